//! Extraction of described frames from bytes.
//!
//! The scanner is *in step* while one frame follows another. In step, a frame is believed if its checksum is right, or
//! if it has none. A frame with a wrong checksum is damaged if the next frame begins behind it; otherwise its length is
//! wrong, too. Out of step the scanner looks for the next magic, and believes the frame behind it only if its checksum
//! is right or if another magic follows it. What it passes over is counted and kept.

use super::{FrameEnd, Framing};
use crate::{framing::FrameError, stream_buffer::StreamBuffer};
use bytes::{Bytes, BytesMut};
use memchr::memmem;
use std::sync::Arc;

/// Most bytes of one stretch of garbage that are kept.
const MOST_KEPT: usize = 1 << 16;
/// Bytes behind the beginning of an unfinished frame from which the scanner looks whether its length is wrong.
const FIRST_LOOK: usize = 1 << 14;

/// What begins at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// A frame of this length, and whether it is good.
    Frame(usize, bool),
    /// No frame.
    Nothing,
    /// It takes more bytes to tell.
    Unfinished,
    /// A frame that is above the largest size, by its length.
    Oversized(usize),
}

/// A frame as its description reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoardFrame {
    /// Its source id is that of the description, if that has one.
    pub is_ours: bool,
    /// Its source id, if the description has one.
    pub source: Option<u64>,
    /// The event counter; without one, the number of frames before this one.
    pub counter: u64,
    /// The clock in ticks.
    pub clock: Option<u64>,
    /// The mark.
    pub mark: Option<u32>,
    /// The checksum is right, and the board did not flag the frame as damaged.
    pub good: bool,
    /// The whole frame.
    pub bytes: Bytes,
}

/// Extracts the frames of one connection or datagram socket, from behind the header of the stream on.
#[derive(Debug)]
pub struct FrameScanner {
    framing: Arc<Framing>,
    shortest: usize,
    most: usize,
    buffer: StreamBuffer,
    /// Bytes that still come before the first frame.
    header: usize,
    in_step: bool,
    /// Bytes that were passed over since the last frame, and the first of them.
    skipped: usize,
    kept: BytesMut,
    /// Buffered bytes from which an unfinished frame is doubted.
    look_at: usize,
    /// Number of frames so far, for boards without a counter.
    frames: u64,
    ended: bool,
}

impl FrameScanner {
    /// A scanner that accepts frames of up to `max_fragment` bytes.
    pub fn new(framing: Arc<Framing>, max_fragment: u32) -> Self {
        Self {
            shortest: framing.shortest(),
            most: max_fragment as usize,
            header: framing.stream_header as usize,
            framing,
            buffer: StreamBuffer::default(),
            in_step: true,
            skipped: 0,
            kept: BytesMut::new(),
            look_at: FIRST_LOOK,
            frames: 0,
            ended: false,
        }
    }

    /// Takes bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let header = self.header.min(bytes.len());
        self.header -= header;
        if !self.ended {
            self.buffer.push(&bytes[header..]);
        }
    }

    /// Number of bytes that still come before the first frame.
    pub(crate) const fn header(&self) -> usize {
        self.header
    }

    /// Returns true if all bytes so far are those of whole frames, or of none.
    pub fn is_at_boundary(&self) -> bool {
        let is_new = self.header == self.framing.stream_header as usize;
        self.buffer.is_empty() && (self.header == 0 || is_new)
    }

    /// The next frame, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`FrameError::Skipped`] after bytes that belong to no frame. [`FrameError::Oversized`] before the scanner skips a
    /// frame above the largest size. [`FrameError::Lost`] if no later frame can be found; every further call returns it
    /// again.
    pub fn pop(&mut self) -> Result<Option<BoardFrame>, FrameError> {
        self.next(false)
    }

    /// The next frame when nothing has come for a while, or nothing comes any more: a frame is believed without the one
    /// behind it, and one whose length is wrong is not waited for if others follow it.
    ///
    /// # Errors
    /// As [`pop`](Self::pop).
    pub fn settle(&mut self) -> Result<Option<BoardFrame>, FrameError> {
        self.next(true)
    }

    /// The first bytes of the last garbage, at most 64 KiB.
    pub fn skipped(&self) -> &[u8] {
        &self.kept
    }

    /// The bytes of an unfinished frame.
    pub fn unfinished(&self) -> &[u8] {
        &self.buffer
    }

    /// Forgets the bytes of an unfinished frame: the next ones begin a frame.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.header = 0;
        self.in_step = true;
        self.skipped = 0;
        self.ended = false;
    }

    fn next(&mut self, settles: bool) -> Result<Option<BoardFrame>, FrameError> {
        if self.ended {
            return Err(FrameError::Lost);
        }
        while !self.buffer.is_empty() {
            match self.look(settles) {
                Found::Frame(length, good) => {
                    if let Some(error) = self.end_of_garbage() {
                        return Err(error);
                    }
                    return Ok(Some(self.take(length, good)));
                }
                Found::Unfinished => match self.believed_behind(settles) {
                    Some(at) => self.pass_over(at),
                    None => break,
                },
                Found::Oversized(length) if self.in_step => {
                    let bytes = u32::try_from(length).unwrap_or(u32::MAX);
                    self.skip()?;
                    return Err(FrameError::Oversized { bytes, limit: self.most as u32 });
                }
                Found::Nothing | Found::Oversized(_) => self.skip()?,
            }
        }
        match settles.then(|| self.end_of_garbage()).flatten() {
            Some(error) => Err(error),
            None => Ok(None),
        }
    }

    /// What begins at the first byte.
    fn look(&self, settles: bool) -> Found {
        let found = self.look_at_byte(0);
        let Found::Frame(length, good) = found else { return found };
        if good && (self.in_step || self.framing.checksum.is_some()) {
            return found;
        }
        match self.is_followed(length) {
            Some(true) => found,
            Some(false) => Found::Nothing,
            None if settles && (self.in_step || self.framing.checksum.is_none()) => found,
            None if settles => Found::Nothing,
            None => Found::Unfinished,
        }
    }

    /// What seems to begin at this byte, by its own bytes alone.
    fn look_at_byte(&self, at: usize) -> Found {
        let bytes = &self.buffer[at..];
        if self.has_magic(bytes) == Some(false) {
            return Found::Nothing;
        }
        if bytes.len() < self.shortest {
            return Found::Unfinished;
        }
        let Some(length) = self.length(bytes) else { return self.endless(bytes.len()) };
        if length < self.shortest {
            return Found::Nothing;
        }
        if length > self.most {
            return Found::Oversized(length);
        }
        let Some(frame) = bytes.get(..length) else { return Found::Unfinished };
        Found::Frame(length, self.framing.checksum.as_ref().is_none_or(|checksum| checksum.is_right(frame)))
    }

    /// The length of the frame at the first of these bytes; 0 if it is impossible, `None` if its end has not come.
    #[inline]
    fn length(&self, bytes: &[u8]) -> Option<usize> {
        match &self.framing.end {
            FrameEnd::Size(size) => Some(*size as usize),
            FrameEnd::Length { field, unit, adds } => {
                let counted = field.read(bytes).checked_mul(u64::from(*unit));
                let length = counted.and_then(|counted| counted.checked_add_signed(i64::from(*adds)));
                Some(length.and_then(|length| usize::try_from(length).ok()).unwrap_or(0))
            }
            FrameEnd::Marker(marker) => {
                let from = self.shortest - marker.len();
                memmem::find(&bytes[from..], marker).map(|at| from + at + marker.len())
            }
            FrameEnd::Datagram => Some(bytes.len()),
        }
    }

    /// Judges a frame whose end marker is not among its first `bytes` bytes.
    const fn endless(&self, bytes: usize) -> Found {
        if bytes > self.most { Found::Oversized(bytes) } else { Found::Unfinished }
    }

    /// Whether a frame begins at this byte, as far as the bytes tell. Without a magic nothing can be told from the next
    /// frame.
    fn is_followed(&self, at: usize) -> Option<bool> {
        if self.framing.magic.is_empty() {
            return self.in_step.then_some(true);
        }
        self.has_magic(&self.buffer[at..])
    }

    /// Whether the magic is in its place in these bytes; `None` if it takes more of them to tell.
    fn has_magic(&self, bytes: &[u8]) -> Option<bool> {
        let (magic, at) = (self.framing.magic.as_slice(), self.framing.magic_at as usize);
        let there = bytes.get(at..).unwrap_or_default();
        let compared = magic.len().min(there.len());
        let differs = there[..compared] != magic[..compared];
        (differs || compared == magic.len()).then_some(!differs)
    }

    fn take(&mut self, length: usize, good: bool) -> BoardFrame {
        self.in_step = true;
        self.look_at = FIRST_LOOK;
        let bytes = self.buffer.cut(length);
        let framing = &*self.framing;
        let read = |field: Option<super::Field>| field.map(|field| field.read(&bytes));
        let source = read(framing.source.map(|(field, _)| field));
        let is_ours = framing.source.is_none_or(|(_, value)| source == Some(value));
        let counter = read(framing.counter).unwrap_or(self.frames);
        self.frames += 1;
        BoardFrame {
            is_ours,
            source,
            counter,
            clock: read(framing.clock.map(|clock| clock.field)),
            mark: read(framing.mark).map(|mark| mark as u32),
            good: good && read(framing.damaged).unwrap_or(0) == 0,
            bytes,
        }
    }

    // ---- out of step

    /// The report about the garbage before a frame, if there is any.
    fn end_of_garbage(&mut self) -> Option<FrameError> {
        let bytes = std::mem::take(&mut self.skipped);
        (bytes > 0).then_some(FrameError::Skipped { bytes: bytes as u64 })
    }

    /// Passes over the first byte, and what follows it up to the next magic.
    fn skip(&mut self) -> Result<(), FrameError> {
        let magic = self.framing.magic.as_slice();
        if magic.is_empty() {
            self.ended = true;
            return Err(FrameError::Lost);
        }
        // What comes before the magic of the next frame belongs to that frame.
        let rest = self.buffer.get(1 + self.framing.magic_at as usize..).unwrap_or_default();
        let next = memmem::find(rest, magic).unwrap_or_else(|| beginning(rest, magic));
        self.pass_over(1 + next);
        Ok(())
    }

    fn pass_over(&mut self, bytes: usize) {
        if self.skipped == 0 {
            self.kept.clear();
        }
        let room = MOST_KEPT.saturating_sub(self.kept.len());
        self.kept.extend_from_slice(&self.buffer[..bytes.min(room)]);
        self.skipped += bytes;
        self.in_step = false;
        self.buffer.advance(bytes);
    }

    /// The place of a whole frame within an unfinished one, whose length is wrong then. It is looked for when nothing more
    /// has come for a while, and each time that the bytes have doubled.
    fn believed_behind(&mut self, settles: bool) -> Option<usize> {
        let has_grown = self.buffer.len() >= self.look_at;
        if has_grown {
            self.look_at = self.buffer.len() * 2;
        }
        let magic = self.framing.magic.as_slice();
        if magic.is_empty() || !(has_grown || settles) {
            return None;
        }
        let rest = self.buffer.get(1 + self.framing.magic_at as usize..).unwrap_or_default();
        let mut places = memmem::find_iter(rest, magic).map(|place| place + 1);
        places.find(|&place| match self.look_at_byte(place) {
            Found::Frame(_, true) if self.framing.checksum.is_some() => true,
            Found::Frame(length, _) => self.is_followed(place + length) == Some(true),
            Found::Nothing | Found::Unfinished | Found::Oversized(_) => false,
        })
    }
}

/// The number of bytes before a magic that may begin at the end of these bytes.
fn beginning(bytes: &[u8], magic: &[u8]) -> usize {
    let least = bytes.len().saturating_sub(magic.len() - 1);
    (least..bytes.len()).find(|&at| magic.starts_with(&bytes[at..])).unwrap_or(bytes.len())
}
