//! The frames of a connection or datagram: in evb's own framing, or in a described one.

use super::{LiveItem, counter_mask, link::Link};
use crate::{
    LiveSpec, OpenOptions, SourceError,
    board::{BoardFrame, FrameScanner, Framing},
    framing::{Frame, FrameError, FrameParser, decode_datagram},
};
use evb_core::Mark;
use std::sync::Arc;

/// The framing of a source, and what frames are read for.
#[derive(Clone, Debug)]
pub(super) struct Frames {
    /// `None` for evb's own.
    pub(super) framing: Option<Arc<Framing>>,
    pub(super) max_fragment: u32,
    pub(super) counter_mask: u64,
}

impl Frames {
    /// The frames of a source, which are those of all that share its link.
    ///
    /// # Errors
    /// If the counter has no possible width.
    pub(super) fn new(spec: &LiveSpec, options: &OpenOptions) -> Result<Self, SourceError> {
        Ok(Self {
            framing: spec.framing.clone().map(Arc::new),
            max_fragment: options.max_fragment,
            counter_mask: counter_mask(spec.counter.bits)?,
        })
    }

    /// Returns true if the frames carry times.
    pub(super) fn have_times(&self) -> bool {
        self.framing.as_ref().is_some_and(|framing| framing.clock.is_some() || framing.hits.is_some())
    }
}

/// A frame that was read.
pub(super) struct Parsed {
    /// The place of its source among those of the link; `None` if it is of none.
    pub(super) to: Option<usize>,
    pub(super) item: LiveItem,
}

/// Extracts the frames of one connection.
pub(super) enum Parser {
    Own(FrameParser, Sharing),
    Board(FrameScanner, Sharing),
}

/// Which of the sources of a link a frame is for.
pub(super) struct Sharing {
    max_fragment: u32,
    counter_mask: u64,
    /// The ids of the sources, and the frames of each so far.
    sources: Vec<(u64, u64)>,
    /// Frames have no source id.
    takes_all: bool,
    /// Frames have no counter, and are counted for each source.
    counts: bool,
}

impl Sharing {
    fn new(link: &Link) -> Self {
        let framing = link.frames.framing.as_ref();
        Self {
            max_fragment: link.frames.max_fragment,
            counter_mask: link.frames.counter_mask,
            sources: link.outlets().iter().map(|outlet| (outlet.id, 0)).collect(),
            takes_all: framing.is_some_and(|framing| framing.source.is_none()),
            counts: framing.is_some_and(|framing| framing.counter.is_none()),
        }
    }

    fn place(&self, id: u64) -> Option<usize> {
        self.sources.iter().position(|(own, _)| *own == id)
    }

    fn own(&self, frame: Frame) -> Parsed {
        let (to, counter) = (self.place(frame.source.into()), frame.counter & self.counter_mask);
        Parsed { to, item: item(frame, counter) }
    }

    fn board(&mut self, frame: BoardFrame) -> Parsed {
        let BoardFrame { source, counter, clock, mark, good, bytes, .. } = frame;
        let to = if self.takes_all { Some(0) } else { source.and_then(|id| self.place(id)) };
        let counter = match to {
            Some(to) if self.counts => {
                let count = &mut self.sources[to].1;
                *count += 1;
                *count - 1
            }
            _ => counter,
        };
        let (counter, mark) = (counter & self.counter_mask, mark.map(Mark::new));
        Parsed { to, item: LiveItem::Fragment { counter, resynchronised: false, mark, clock, good, bytes } }
    }
}

impl Parser {
    /// A parser for the sources of a link, which are all there.
    pub(super) fn new(link: &Link) -> Self {
        let (sharing, most) = (Sharing::new(link), link.frames.max_fragment);
        match &link.frames.framing {
            None => Self::Own(FrameParser::new(most), sharing),
            Some(framing) => Self::Board(FrameScanner::new(framing.clone(), most), sharing),
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        match self {
            Self::Own(parser, _) => parser.push(bytes),
            Self::Board(scanner, _) => scanner.push(bytes),
        }
    }

    /// The next frame, or `None` if more bytes are needed. `settles` says that nothing has come for a while, or
    /// that nothing more will come.
    pub(super) fn pop(&mut self, settles: bool) -> Result<Option<Parsed>, FrameError> {
        match self {
            Self::Own(parser, sharing) => Ok(parser.pop()?.map(|frame| sharing.own(frame))),
            Self::Board(scanner, sharing) => {
                let frame = if settles { scanner.settle() } else { scanner.pop() };
                Ok(frame?.map(|frame| sharing.board(frame)))
            }
        }
    }

    /// The bytes of an unfinished frame.
    pub(super) fn unfinished(&self) -> &[u8] {
        match self {
            Self::Own(parser, _) => parser.unfinished(),
            Self::Board(scanner, _) => scanner.unfinished(),
        }
    }

    /// Returns true if the stream is between two frames.
    pub(super) fn is_at_boundary(&self) -> bool {
        match self {
            Self::Own(parser, _) => parser.is_at_boundary(),
            Self::Board(scanner, _) => scanner.is_at_boundary(),
        }
    }

    /// The first bytes of the last garbage, where they are kept.
    pub(super) fn skipped(&self) -> Option<&[u8]> {
        match self {
            Self::Own(..) => None,
            Self::Board(scanner, _) => Some(scanner.skipped()),
        }
    }

    /// Reads the frames of a datagram, one after the other. After an error the rest of the datagram is not read.
    pub(super) fn read_datagram(
        &mut self,
        bytes: &[u8],
        mut take: impl FnMut(Result<Parsed, FrameError>) -> bool,
    ) -> bool {
        let (scanner, sharing) = match self {
            Self::Own(_, sharing) => {
                return take(decode_datagram(bytes, sharing.max_fragment).map(|frame| sharing.own(frame)));
            }
            Self::Board(scanner, sharing) => (scanner, sharing),
        };
        scanner.clear();
        scanner.push(bytes);
        loop {
            let (is_end, next) = match scanner.settle() {
                Ok(Some(frame)) => (false, Ok(sharing.board(frame))),
                Ok(None) if scanner.unfinished().is_empty() => return true,
                Ok(None) => {
                    let found = scanner.unfinished().len();
                    (true, Err(FrameError::DatagramSize { found, wanted: 0 }))
                }
                Err(error) => (error.ends_stream(), Err(error)),
            };
            if !take(next) || is_end {
                return !is_end;
            }
        }
    }
}

/// The item of a frame whose counter is cut to its width.
pub(super) fn item(frame: Frame, counter: u64) -> LiveItem {
    if frame.end_of_run {
        return LiveItem::EndOfRun { counter: Some(counter), sent: frame.mark };
    }
    let Frame { resynchronised, good, mark, payload, .. } = frame;
    let mark = mark.map(Mark::new);
    LiveItem::Fragment { counter, resynchronised, mark, clock: None, good, bytes: payload }
}
