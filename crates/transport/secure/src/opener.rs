//! Opening: the records of the other side become the bytes that it has sealed. The first record that is not the next one
//! of this session ends it.

use super::{
    MOST_FIRST, MOST_PLAIN,
    sealer::{LENGTH_BYTES, TAG_BYTES},
};
use snow::StatelessTransportState;
use std::{
    fmt,
    io::{self, ErrorKind, Read},
    sync::Arc,
};

/// The receiving side of a session. It holds at most one record and what was read behind it.
pub struct Opener {
    state: Arc<StatelessTransportState>,
    /// Number of the next record.
    next: u64,
    /// Most bytes in a record; few until the other side has proved who it is.
    limit: usize,
    /// Bytes as they came, up to `filled`, of which those before `opened` were taken.
    wire: Vec<u8>,
    filled: usize,
    opened: usize,
    /// The last opened record, of which the bytes before `taken` were taken.
    plain: Vec<u8>,
    taken: usize,
    /// A record was wrong: nothing is opened any more.
    is_broken: bool,
}

impl Opener {
    pub(super) const fn new(state: Arc<StatelessTransportState>) -> Self {
        Self {
            state,
            next: 0,
            limit: MOST_FIRST,
            wire: Vec::new(),
            filled: 0,
            opened: 0,
            plain: Vec::new(),
            taken: 0,
            is_broken: false,
        }
    }

    /// Another one of the same session at its beginning.
    #[cfg(feature = "fuzz")]
    pub(super) fn again(&self) -> Self {
        Self::new(self.state.clone())
    }

    /// Accepts records of any length from now on: the other side has proved who it is.
    pub const fn trust(&mut self) {
        self.limit = MOST_PLAIN;
    }

    /// Returns true if bytes can be had without reading from the stream.
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.taken < self.plain.len() || matches!(self.whole(), Ok(Some(_)) | Err(_))
    }

    /// Takes the bytes of the next record out of `wire`, all of it.
    ///
    /// # Errors
    /// It is too long, or not the next record of this session.
    pub fn open(&mut self, wire: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let mut rest = wire;
        match self.read_record(&mut rest)? {
            true => {
                self.taken = self.plain.len();
                Ok(Some(self.plain.clone()))
            }
            false => Ok(None),
        }
    }

    /// Reads the next record as a whole; `None` if the stream has ended before it.
    ///
    /// # Errors
    /// Those of the stream, which may be asked again, and of a wrong record.
    pub fn record(&mut self, stream: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
        if !self.read_record(stream)? {
            return Ok(None);
        }
        self.taken = self.plain.len();
        Ok(Some(self.plain.clone()))
    }

    /// Reads opened bytes into `room`; 0 if the stream has ended between two records.
    ///
    /// # Errors
    /// Those of the stream, which may be asked again, and of a wrong record, after which nothing is read any more.
    pub fn read(&mut self, stream: &mut impl Read, room: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.plain.len() {
            if !self.read_record(stream)? {
                return Ok(0);
            }
        }
        let count = room.len().min(self.plain.len() - self.taken);
        room[..count].copy_from_slice(&self.plain[self.taken..self.taken + count]);
        self.taken += count;
        Ok(count)
    }

    /// Replaces the last record by the next one; false if the stream has ended.
    fn read_record(&mut self, stream: &mut impl Read) -> io::Result<bool> {
        loop {
            if let Some(length) = self.whole()? {
                return self.open_next(length).map(|()| true);
            }
            self.make_room();
            match stream.read(&mut self.wire[self.filled..])? {
                0 if self.filled == self.opened => return Ok(false),
                0 => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the connection was closed within a record")),
                count => self.filled += count,
            }
        }
    }

    /// Length of the next record without its length field, if all of it is there.
    fn whole(&self) -> io::Result<Option<usize>> {
        if self.is_broken {
            return Err(wrong());
        }
        let Some(length) = self.wire[self.opened..self.filled].first_chunk() else { return Ok(None) };
        let length = usize::from(u16::from_le_bytes(*length));
        if !(TAG_BYTES..=self.limit + TAG_BYTES).contains(&length) {
            return Err(wrong());
        }
        Ok((self.filled - self.opened >= LENGTH_BYTES + length).then_some(length))
    }

    fn open_next(&mut self, length: usize) -> io::Result<()> {
        let start = self.opened + LENGTH_BYTES;
        self.plain.resize(length - TAG_BYTES, 0);
        self.taken = 0;
        let opened = self.state.read_message(self.next, &self.wire[start..start + length], &mut self.plain);
        if opened != Ok(length - TAG_BYTES) {
            (self.is_broken, self.taken) = (true, self.plain.len());
            return Err(wrong());
        }
        self.next += 1;
        self.opened = start + length;
        Ok(())
    }

    /// Moves what is left to the front, and has room for a whole record.
    fn make_room(&mut self) {
        self.wire.copy_within(self.opened..self.filled, 0);
        (self.filled, self.opened) = (self.filled - self.opened, 0);
        self.wire.resize(self.limit + TAG_BYTES + LENGTH_BYTES, 0);
    }
}

fn wrong() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "a record was changed, repeated or left out, or is none")
}

/// Hides the keys from logs, and what was said.
impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("next", &self.next).field("is_broken", &self.is_broken).finish_non_exhaustive()
    }
}
