//! A file of recorded fragments, opened for reading.

use super::{FedEntry, FedFault, walk::walk_window, window::Window};
use crate::SourceError;
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// A file of recorded fragments: its index, and the bytes on demand through a window of 1 MiB.
#[derive(Debug)]
pub struct FedFile {
    path: PathBuf,
    window: Window<File>,
    entries: Vec<FedEntry>,
}

impl FedFile {
    /// Opens a file and walks through it once. Damaged fragments are noted, not refused.
    ///
    /// # Errors
    /// When the file cannot be opened or read, is empty or cut off, or holds no good fragment at all.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, SourceError> {
        let path = path.into();
        let opened = File::open(&path).and_then(Window::new);
        let mut window = match opened {
            Ok(window) => window,
            Err(error) => return Err(SourceError::Open { path, error }),
        };
        match walk_window(&mut window) {
            Ok(entries) => Ok(Self { path, window, entries }),
            Err(error) => Err(SourceError::Fed { path, error }),
        }
    }

    /// The fragments in the order of the file, which is also the order of their events.
    pub fn entries(&self) -> &[FedEntry] {
        &self.entries
    }

    /// The last event that the file has a fragment of.
    pub fn events(&self) -> u64 {
        self.entries.last().map_or(0, |entry| entry.event)
    }

    /// How many fragments have this fault.
    pub fn count(&self, fault: FedFault) -> usize {
        self.entries.iter().filter(|entry| entry.fault == Some(fault)).count()
    }

    /// The number (from 0) of the fragment of `event`, if there is one.
    pub fn find(&self, event: u64) -> Option<usize> {
        let guess = usize::try_from(event.checked_sub(1)?).ok()?;
        if self.entries.get(guess).is_some_and(|entry| entry.event == event) {
            return Some(guess); // no event before this one is skipped: the usual case
        }
        self.entries.binary_search_by_key(&event, |entry| entry.event).ok()
    }

    /// Fills `bytes`, which is not longer than fragment `n`, with its beginning.
    ///
    /// # Errors
    /// When the file cannot be read, or there is no such fragment.
    pub fn read(&mut self, n: usize, bytes: &mut [u8]) -> io::Result<()> {
        let entry = self.entries.get(n).ok_or(io::ErrorKind::NotFound)?;
        let length = bytes.len().min(entry.length as usize);
        let mut filled = 0;
        self.window.each(entry.offset, entry.offset + length as u64, |piece| {
            bytes[filled..filled + piece.len()].copy_from_slice(piece);
            filled += piece.len();
        })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
