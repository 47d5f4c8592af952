//! The index: ids and offsets of the events of one file, in file order.

use crate::{
    checksum,
    layout::{ALIGNMENT, INDEX_ENTRY_BYTES, IndexHeader, MAX_EVENTS_PER_FILE, Tag, u64_at},
};
use evb_core::EventId;

/// Event ids and offsets, kept as the bytes of the file.
#[derive(Debug, Default)]
pub(crate) struct Index {
    bytes: Vec<u8>,
}

impl Index {
    /// Memory for a whole file's events, so that appending never allocates; untouched memory costs nothing.
    pub(crate) fn for_writing() -> Self {
        Self { bytes: Vec::with_capacity(MAX_EVENTS_PER_FILE * INDEX_ENTRY_BYTES) }
    }

    /// The index in `bytes`, if it matches the header and its offsets ascend from `start` up to `end`.
    pub(crate) fn from_bytes(bytes: Vec<u8>, header: &IndexHeader, start: u64, end: u64) -> Option<Self> {
        let index = Self { bytes };
        let mut next = start;
        let ascends = (0..index.len()).all(|i| {
            let offset = index.get(i).1;
            let good = offset >= next && offset < end && offset.is_multiple_of(ALIGNMENT);
            next = offset.saturating_add(ALIGNMENT);
            good
        });
        (checksum(&index.bytes) == header.entries_checksum && ascends).then_some(index)
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / INDEX_ENTRY_BYTES
    }

    pub(crate) fn get(&self, i: usize) -> (EventId, u64) {
        let at = i * INDEX_ENTRY_BYTES;
        (EventId(u64_at(&self.bytes, at)), u64_at(&self.bytes, at + 8))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (EventId, u64)> + '_ {
        (0..self.len()).map(|i| self.get(i))
    }

    pub(crate) fn push(&mut self, id: EventId, offset: u64) {
        self.bytes.extend_from_slice(&id.0.to_le_bytes());
        self.bytes.extend_from_slice(&offset.to_le_bytes());
    }

    pub(crate) fn pop(&mut self) -> Option<(EventId, u64)> {
        let last = self.len().checked_sub(1)?;
        let entry = self.get(last);
        self.bytes.truncate(last * INDEX_ENTRY_BYTES);
        Some(entry)
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    /// The events that begin from `start` up to, and without, `end`.
    pub(crate) fn between(&self, start: u64, end: u64) -> Vec<EventId> {
        let first = self.first_from(start);
        (first..self.first_from(end).max(first)).map(|i| self.get(i).0).collect()
    }

    pub(crate) fn header(&self, tag: Tag) -> IndexHeader {
        IndexHeader { events: self.len() as u64, tag, entries_checksum: checksum(&self.bytes) }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Position of the first event that begins at `offset` or later: offsets ascend.
    fn first_from(&self, offset: u64) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.get(middle).1 < offset { low = middle + 1 } else { high = middle }
        }
        low
    }
}
