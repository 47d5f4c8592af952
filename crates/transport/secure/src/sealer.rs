//! Sealing: bytes become records that the other side alone can open, in order and once.
//!
//! A record is its length (16 bits, little-endian), the sealed bytes, and a tag of 16 bytes. Its number is not sent:
//! both sides count.

use snow::StatelessTransportState;
use std::{
    fmt,
    io::{self, Write},
    sync::Arc,
};

/// Bytes that a record has more than what is sealed in it.
pub const SEAL_BYTES: usize = LENGTH_BYTES + TAG_BYTES;
/// Most bytes that are sealed in one record.
pub const MOST_PLAIN: usize = u16::MAX as usize - TAG_BYTES;
pub(super) const LENGTH_BYTES: usize = 2;
pub(super) const TAG_BYTES: usize = 16;

/// The sending side of a session.
pub struct Sealer {
    state: Arc<StatelessTransportState>,
    /// Number of the next record.
    next: u64,
}

impl Sealer {
    pub(super) const fn new(state: Arc<StatelessTransportState>) -> Self {
        Self { state, next: 0 }
    }

    /// Appends the records of `plain` to `wire`; without bytes that is one empty record.
    ///
    /// # Errors
    /// The session has sealed as many records as it may.
    pub fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        let mut rest = plain;
        loop {
            let (record, after) = rest.split_at(rest.len().min(MOST_PLAIN));
            self.seal_one(record, wire)?;
            rest = after;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    /// Seals `plain` and writes it to a stream that blocks.
    ///
    /// # Errors
    /// The stream failed; what was written of it may be cut off, so nothing else can follow.
    pub fn write(&mut self, mut stream: impl Write, plain: &[u8]) -> io::Result<()> {
        let mut wire = Vec::with_capacity(plain.len() + SEAL_BYTES * (1 + plain.len() / MOST_PLAIN));
        self.seal(plain, &mut wire)?;
        stream.write_all(&wire)
    }

    fn seal_one(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        let sealed = plain.len() + TAG_BYTES;
        let start = wire.len() + LENGTH_BYTES;
        wire.extend_from_slice(&(sealed as u16).to_le_bytes());
        wire.resize(start + sealed, 0);
        let result = self.state.write_message(self.next, plain, &mut wire[start..]);
        result.map_err(|error| io::Error::other(format!("a record cannot be sealed: {error}")))?;
        self.next += 1;
        Ok(())
    }
}

/// Hides the keys from logs.
impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("next", &self.next).finish_non_exhaustive()
    }
}
