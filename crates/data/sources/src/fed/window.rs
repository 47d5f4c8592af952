//! A window of bounded size that slides over a file.

use super::word_at;
use std::io::{self, Read, Seek, SeekFrom};

/// Bytes in memory at a time.
const CAPACITY: usize = 1 << 20;
/// Bytes kept before the requested offset: a search looks back to the beginning of a fragment.
const BEHIND: u64 = 1 << 17;

/// A window that slides over a file.
#[derive(Debug)]
pub(crate) struct Window<R> {
    reader: R,
    size: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<R: Read + Seek> Window<R> {
    pub(crate) fn new(mut reader: R) -> io::Result<Self> {
        let size = reader.seek(SeekFrom::End(0))?;
        Ok(Self { reader, size, start: 0, bytes: Vec::new() })
    }

    /// Size of the whole file in bytes at the time of opening.
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// The little-endian word at `offset`.
    pub(crate) fn word(&mut self, offset: u64) -> io::Result<u64> {
        Ok(word_at(self.at(offset, 8)?))
    }

    /// Calls `take` with the bytes from `from` to `to` in pieces; every piece but the last is a whole number of words.
    pub(crate) fn each(&mut self, from: u64, to: u64, mut take: impl FnMut(&[u8])) -> io::Result<()> {
        let mut at = from;
        while at < to {
            let wanted = (to - at).min(8);
            let piece = self.at(at, wanted as usize)?;
            let rest = usize::try_from(to - at).unwrap_or(usize::MAX);
            let length = if rest <= piece.len() { rest } else { piece.len() & !7 };
            take(&piece[..length]);
            at += length as u64;
        }
        Ok(())
    }

    /// At least `wanted` (at most 8) bytes from `offset`, and the bytes after them in the window.
    fn at(&mut self, offset: u64, wanted: usize) -> io::Result<&[u8]> {
        let end = self.start + self.bytes.len() as u64;
        if offset < self.start || offset + wanted as u64 > end {
            self.slide(offset)?;
        }
        let inside = (offset - self.start) as usize;
        match self.bytes.get(inside..) {
            Some(bytes) if bytes.len() >= wanted => Ok(bytes),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn slide(&mut self, offset: u64) -> io::Result<()> {
        self.start = offset.saturating_sub(BEHIND);
        self.bytes.clear();
        self.reader.seek(SeekFrom::Start(self.start))?;
        self.reader.by_ref().take(CAPACITY as u64).read_to_end(&mut self.bytes)?;
        Ok(())
    }
}
