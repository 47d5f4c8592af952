//! A file of recorded fragments, opened for reading.

use super::{FedEntry, FedFault, FedFileError, number::ID_BITS, walk::walk_window, window::Window};
use crate::SourceError;
use evb_core::{MAX_GAP, Mark, Recording, Sighting};
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// Most fragments that a file reports before the first event of all sources is known.
const MOST_SIGHTED: usize = 1024;

/// A file of recorded fragments: its index, and the bytes on demand through a window of 1 MiB.
#[derive(Debug)]
pub struct FedFile {
    path: PathBuf,
    window: Window<File>,
    entries: Vec<FedEntry>,
    /// Events that have a fragment, ascending, and the numbers of their fragments.
    events: Vec<(u64, usize)>,
    padding: Option<FilePadding>,
}

/// The bytes after the last fragment of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePadding {
    /// Offset of the first of them.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
}

impl FedFile {
    /// Opens a file and reads through it once. Damaged fragments are noted, not refused; so are a cut and padding at the
    /// end. With `source_id` the fragments
    /// must belong to that front-end driver; without it the first good fragment decides.
    ///
    /// # Errors
    /// If the file cannot be opened or read, is empty, holds no good fragment at all, or only those of
    /// another front-end driver.
    pub fn open(path: impl Into<PathBuf>, source_id: Option<u16>) -> Result<Self, SourceError> {
        let path = path.into();
        let opened = File::open(&path).and_then(Window::new);
        let mut window = match opened {
            Ok(window) => window,
            Err(error) => return Err(SourceError::Open { path, error }),
        };
        let mut entries = match walk_window(&mut window, source_id) {
            Ok(entries) => entries,
            Err(error) => return Err(SourceError::Fed { path, error }),
        };
        let padding = take_padding(&mut entries);
        let events = entries.iter().enumerate().filter_map(|(index, entry)| Some((entry.event?, index)));
        let mut events: Vec<_> = events.collect();
        events.sort_unstable();
        Ok(Self { path, window, entries, events, padding })
    }

    /// Refuses a file with damaged fragments, or with padding at its end.
    ///
    /// # Errors
    /// With the first damage.
    pub fn undamaged(self) -> Result<Self, SourceError> {
        let damaged =
            self.entries.iter().find_map(|entry| Some((entry.offset, entry.fault.filter(|fault| fault.is_damage())?)));
        match damaged.or(self.padding.map(|padding| (padding.offset, FedFault::Padding))) {
            Some((offset, fault)) => {
                Err(SourceError::Fed { path: self.path, error: FedFileError::Damaged { offset, fault } })
            }
            None => Ok(self),
        }
    }

    /// The fragments in the order of the file.
    pub fn entries(&self) -> &[FedEntry] {
        &self.entries
    }

    /// The last fragment, if the file ends within it.
    pub fn cut(&self) -> Option<&FedEntry> {
        self.entries.last().filter(|entry| entry.fault == Some(FedFault::Cut))
    }

    /// The bytes after the last fragment, if they do not begin another one.
    pub const fn padding(&self) -> Option<FilePadding> {
        self.padding
    }

    /// The last event with a fragment in the file.
    pub fn events(&self) -> u64 {
        self.events.last().map_or(0, |(event, _)| *event)
    }

    /// Number of fragments with this fault.
    pub fn count(&self, fault: FedFault) -> usize {
        self.entries.iter().filter(|entry| entry.fault == Some(fault)).count()
    }

    /// The position (from 0) of the fragment of `event`, if there is one.
    pub fn find(&self, event: u64) -> Option<usize> {
        let guess = usize::try_from(event.checked_sub(1)?).ok()?;
        // No event before this one is skipped: the usual case.
        let near = self.events.get(guess).filter(|(found, _)| *found == event);
        let found = near.or_else(|| {
            let place = self.events.binary_search_by_key(&event, |(event, _)| *event).ok()?;
            self.events.get(place)
        });
        found.map(|(_, index)| *index)
    }

    /// The source id of the front-end driver.
    pub fn source_id(&self) -> Option<u16> {
        self.good().next().map(|(_, entry)| entry.source_id)
    }

    /// The mark of the fragment of `event`: its bunch crossing, if it is good.
    pub fn mark(&self, event: u64) -> Option<Mark> {
        let entry = self.entries[self.find(event)?];
        entry.fault.is_none().then(|| Mark::new(entry.bunch_crossing.into()))
    }

    /// The level-1 id in the header of the fragment of `event`.
    pub fn counter(&self, event: u64) -> Option<u64> {
        Some(self.entries[self.find(event)?].level1_id.into())
    }

    /// The extent and first fragments of the recording.
    pub fn recording(&self) -> Recording {
        let sighting = |(event, entry): (u64, &FedEntry)| Sighting {
            position: event - 1,
            mark: Some(Mark::new(entry.bunch_crossing.into())),
        };
        let number = self.good().next().map_or(0, |(event, entry)| u64::from(entry.level1_id).wrapping_sub(event - 1));
        let leap = self.events.windows(2).find(|pair| pair[1].0 - pair[0].0 > MAX_GAP + 1);
        Recording {
            positions: self.events(),
            solid: leap.map_or(self.events(), |pair| pair[0].0),
            bits: ID_BITS,
            number: number & ((1 << ID_BITS) - 1),
            fragments: self.good().take(MOST_SIGHTED).map(sighting).collect(),
        }
    }

    /// Good fragments with their events, in ascending order of events.
    fn good(&self) -> impl Iterator<Item = (u64, &FedEntry)> {
        let known = self.events.iter().map(|(event, index)| (*event, &self.entries[*index]));
        known.filter(|(_, entry)| entry.fault.is_none())
    }

    /// Fills `bytes`, which is not longer than fragment `n`, with the first bytes of that fragment.
    ///
    /// # Errors
    /// If the file cannot be read, or has no such fragment.
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

/// Takes the padding at the end of a file from its fragments.
fn take_padding(entries: &mut Vec<FedEntry>) -> Option<FilePadding> {
    let is_padding = |entry: &FedEntry| entry.fault == Some(FedFault::Padding);
    let fragments = entries.iter().rposition(|entry| !is_padding(entry)).map_or(0, |last| last + 1);
    let padding = entries.split_off(fragments);
    let bytes = padding.iter().map(|entry| u64::from(entry.length)).sum();
    padding.first().map(|first| FilePadding { offset: first.offset, bytes })
}
