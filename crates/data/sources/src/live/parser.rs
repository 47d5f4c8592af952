//! The frames of a connection or datagram: in evb's own framing, or in a described one.

use super::LiveItem;
use crate::{
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
    pub(super) unit: u16,
    pub(super) max_fragment: u32,
    pub(super) counter_mask: u64,
}

impl Frames {
    /// Returns true if the frames carry times.
    pub(super) fn have_times(&self) -> bool {
        self.framing.as_ref().is_some_and(|framing| framing.clock.is_some() || framing.hits.is_some())
    }
}

/// A frame that was read.
pub(super) struct Parsed {
    /// It is meant for this source.
    pub(super) is_ours: bool,
    pub(super) item: LiveItem,
}

/// Extracts the frames of one connection.
pub(super) enum Parser {
    Own(FrameParser, Frames),
    Board(FrameScanner, Frames),
}

impl Parser {
    pub(super) fn new(frames: &Frames) -> Self {
        let frames = frames.clone();
        match &frames.framing {
            None => Self::Own(FrameParser::new(frames.max_fragment), frames),
            Some(framing) => Self::Board(FrameScanner::new(framing.clone(), frames.max_fragment), frames),
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
            Self::Own(parser, frames) => Ok(parser.pop()?.map(|frame| own(frame, frames))),
            Self::Board(scanner, frames) => {
                let frame = if settles { scanner.settle() } else { scanner.pop() };
                Ok(frame?.map(|frame| board(frame, frames)))
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
            Self::Board(scanner, _) => scanner.unfinished().is_empty(),
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
        let (scanner, frames) = match self {
            Self::Own(_, frames) => {
                return take(decode_datagram(bytes, frames.max_fragment).map(|frame| own(frame, frames)));
            }
            Self::Board(scanner, frames) => (scanner, frames),
        };
        scanner.clear();
        scanner.push(bytes);
        loop {
            let (is_end, next) = match scanner.settle() {
                Ok(Some(frame)) => (false, Ok(board(frame, frames))),
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

fn own(frame: Frame, frames: &Frames) -> Parsed {
    let is_ours = frame.source == frames.unit;
    let counter = frame.counter & frames.counter_mask;
    Parsed { is_ours, item: item(frame, counter) }
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

fn board(frame: BoardFrame, frames: &Frames) -> Parsed {
    let BoardFrame { is_ours, counter, clock, mark, good, bytes } = frame;
    let (counter, mark) = (counter & frames.counter_mask, mark.map(Mark::new));
    Parsed { is_ours, item: LiveItem::Fragment { counter, resynchronised: false, mark, clock, good, bytes } }
}
