//! Positioned, buffered reading from anything that can seek.

use crate::layout::ALIGNMENT;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Bytes read ahead.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes searched at once; less than the read-ahead, so that reading a match and searching on costs no second read.
const SEARCH_BYTES: u64 = 64 << 10;

/// A source of bytes with a known length.
pub(crate) struct Input<R> {
    inner: BufReader<R>,
    position: u64,
    length: u64,
}

impl<R: Read + Seek> Input<R> {
    pub(crate) fn new(mut source: R) -> io::Result<Self> {
        let length = source.seek(SeekFrom::End(0))?;
        source.seek(SeekFrom::Start(0))?;
        Ok(Self { inner: BufReader::with_capacity(BUFFER_BYTES, source), position: 0, length })
    }

    /// Length in bytes at the time of opening.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Fills `bytes` from `offset` on.
    pub(crate) fn read_at(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.inner.seek_relative(offset.wrapping_sub(self.position).cast_signed())?;
        let outcome = self.inner.read_exact(bytes);
        // After an error the position is unknown: ask the file.
        self.position = match outcome {
            Ok(()) => offset + bytes.len() as u64,
            Err(_) => self.inner.stream_position()?,
        };
        outcome
    }

    /// The `N` bytes from `offset` on, or `None` if the source ends before.
    pub(crate) fn array_at<const N: usize>(&mut self, offset: u64) -> io::Result<Option<[u8; N]>> {
        let mut bytes = [0; N];
        if offset.checked_add(N as u64).is_none_or(|end| end > self.length) {
            return Ok(None);
        }
        self.read_at(offset, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// The first aligned offset in `from..to` that begins with one of `magics`.
    pub(crate) fn search(&mut self, from: u64, to: u64, magics: &[[u8; 4]]) -> io::Result<Option<u64>> {
        let mut offset = from.next_multiple_of(ALIGNMENT);
        let mut bytes = [0; SEARCH_BYTES as usize];
        while offset + ALIGNMENT <= to {
            let length = (to - offset).min(SEARCH_BYTES) / ALIGNMENT * ALIGNMENT;
            let window = &mut bytes[..length as usize];
            self.read_at(offset, window)?;
            let hit =
                window.chunks_exact(ALIGNMENT as usize).position(|word| magics.iter().any(|m| word.starts_with(m)));
            if let Some(word) = hit {
                return Ok(Some(offset + word as u64 * ALIGNMENT));
            }
            offset += length;
        }
        Ok(None)
    }
}
