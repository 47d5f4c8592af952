//! The bytes of an event file. Everything is little-endian and begins at a multiple of eight bytes.
//!
//! This module encodes and decodes the fixed parts; it reads and writes no file. The format is described in
//! `docs/reference/event-file.md`.

use crate::{ApartReason, EventInfo, Status, checksum};
use evb_core::{EventId, Mark, SourceId};

/// Version of the format that this crate writes.
pub const FORMAT_VERSION: u32 = 2;
/// Oldest version of the format that this crate reads.
pub const OLDEST_VERSION: u32 = 1;
/// Largest number of fragments of one event.
pub const MAX_FRAGMENTS: usize = u16::MAX as usize;
/// Largest record of one event in bytes, headers and padding included.
pub const MAX_EVENT_BYTES: u64 = 1 << 30;
/// Largest number of events in one file. It bounds the memory of the index, 16 bytes for each event.
pub const MAX_EVENTS_PER_FILE: usize = 1 << 20;
/// Largest metadata block in bytes.
pub const MAX_METADATA_BYTES: usize = 16 << 20;

/// Magic number. The first byte is not ASCII, and line ends and an end-of-text character follow, so that a transfer as
/// text is detected at once.
pub(crate) const FILE_MAGIC: [u8; 8] = *b"\x89EVB\r\n\x1a\n";
pub(crate) const EVENT_MAGIC: [u8; 4] = *b"\xE5EV2";
/// Events of version 1. The magic number of an event, not that of its file, says how long its headers are: a file whose
/// header is damaged can then be read.
pub(crate) const EVENT_MAGIC_1: [u8; 4] = *b"\xE5EVT";
pub(crate) const INDEX_MAGIC: [u8; 4] = *b"\xE5IDX";
pub(crate) const FOOTER_MAGIC: [u8; 4] = *b"\xE5END";

/// Alignment of every block.
pub(crate) const ALIGNMENT: u64 = 8;
pub(crate) const FILE_HEADER_BYTES: usize = 24;
pub(crate) const EVENT_HEADER_BYTES: usize = 48;
pub(crate) const FRAGMENT_HEADER_BYTES: usize = 32;
/// The part of an event header that all versions have alike.
pub(crate) const EVENT_START_BYTES: usize = 32;
const FRAGMENT_HEADER_BYTES_1: usize = 16;
/// Bytes of a record of one fragment beside its payload: its headers, and its entry in the index.
pub const FRAGMENT_RECORD_BYTES: usize = EVENT_HEADER_BYTES + FRAGMENT_HEADER_BYTES + INDEX_ENTRY_BYTES;
pub(crate) const INDEX_HEADER_BYTES: usize = 24;
pub(crate) const INDEX_ENTRY_BYTES: usize = 16;
pub(crate) const FOOTER_BYTES: usize = 24;

/// Flag of an event.
const COMPLETE: u8 = 1;
/// Flags of a fragment.
const HAS_COUNTER: u8 = 1;
const HAS_MARK: u8 = 2;

/// `length` rounded up to the alignment.
pub(crate) const fn padded(length: u64) -> u64 {
    length.next_multiple_of(ALIGNMENT)
}

/// Number of zero bytes after `length` bytes.
pub(crate) const fn padding(length: usize) -> usize {
    length.wrapping_neg() % ALIGNMENT as usize
}

/// Bytes that close a file of `events` events: index and footer.
pub(crate) const fn closing_bytes(events: usize) -> u64 {
    (INDEX_HEADER_BYTES + events * INDEX_ENTRY_BYTES + FOOTER_BYTES) as u64
}

/// A number that ties every block to its file: the checksum of the file header, which covers the metadata. An event of
/// another file, which may be the payload of this one, is therefore not mistaken for an event of this file.
pub(crate) type Tag = u32;

/// The start of a file; the metadata follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    pub(crate) version: u32,
    pub(crate) metadata_length: u32,
    pub(crate) metadata_checksum: u32,
    pub(crate) tag: Tag,
}

impl FileHeader {
    /// The header of a file with this metadata block.
    pub(crate) fn encode(metadata: &[u8]) -> [u8; FILE_HEADER_BYTES] {
        let mut bytes = [0; FILE_HEADER_BYTES];
        bytes[..8].copy_from_slice(&FILE_MAGIC);
        put_u32(&mut bytes, 8, FORMAT_VERSION);
        put_u32(&mut bytes, 12, metadata.len() as u32);
        put_u32(&mut bytes, 16, checksum(metadata));
        let tag = checksum(&bytes[..20]);
        put_u32(&mut bytes, 20, tag);
        bytes
    }

    /// Decodes a header; `None` if the magic or the checksum is wrong.
    pub(crate) fn decode(bytes: &[u8; FILE_HEADER_BYTES]) -> Option<Self> {
        let tag = u32_at(bytes, 20);
        (bytes[..8] == FILE_MAGIC && checksum(&bytes[..20]) == tag).then(|| Self {
            version: u32_at(bytes, 8),
            metadata_length: u32_at(bytes, 12),
            metadata_checksum: u32_at(bytes, 16),
            tag,
        })
    }
}

/// The start of an event's head, as all versions have it. The times and the fragment headers follow, then the payloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventHeader {
    pub(crate) id: EventId,
    /// The event was written in version 1: without times, and with shorter fragment headers.
    is_version_1: bool,
    /// Bytes of the whole record.
    pub(crate) length: u64,
    pub(crate) tag: Tag,
    pub(crate) fragments: u16,
    pub(crate) complete: bool,
    checksum: u32,
}

impl EventHeader {
    /// Appends the header without its checksum, which [`seal_event_head`] fills in.
    pub(crate) fn encode(event: EventInfo, length: u64, tag: Tag, fragments: u16, complete: bool, out: &mut Vec<u8>) {
        let mut bytes = [0; EVENT_HEADER_BYTES];
        bytes[..4].copy_from_slice(&EVENT_MAGIC);
        put_u64(&mut bytes, 8, event.id.0);
        put_u64(&mut bytes, 16, length);
        put_u32(&mut bytes, 24, tag);
        bytes[28..30].copy_from_slice(&fragments.to_le_bytes());
        bytes[30] = if complete { COMPLETE } else { 0 };
        put_u64(&mut bytes, 32, event.triggered.unwrap_or(0));
        put_u64(&mut bytes, 40, event.source_time.unwrap_or(0));
        out.extend_from_slice(&bytes);
    }

    /// Decodes the start of a header; `None` if the magic is wrong or the length impossible. The checksum is not
    /// compared yet.
    pub(crate) fn decode(bytes: &[u8; EVENT_START_BYTES]) -> Option<Self> {
        let is_version_1 = bytes[..4] == EVENT_MAGIC_1;
        let header = Self {
            id: EventId(u64_at(bytes, 8)),
            is_version_1,
            length: u64_at(bytes, 16),
            tag: u32_at(bytes, 24),
            fragments: u16::from_le_bytes([bytes[28], bytes[29]]),
            complete: bytes[30] & COMPLETE != 0,
            checksum: u32_at(bytes, 4),
        };
        let possible = header.head_bytes() as u64 <= header.length && header.length <= MAX_EVENT_BYTES;
        ((is_version_1 || bytes[..4] == EVENT_MAGIC) && possible).then_some(header)
    }

    /// Bytes of the event header and of a fragment header.
    const fn sizes(&self) -> (usize, usize) {
        match self.is_version_1 {
            true => (EVENT_START_BYTES, FRAGMENT_HEADER_BYTES_1),
            false => (EVENT_HEADER_BYTES, FRAGMENT_HEADER_BYTES),
        }
    }

    /// Bytes of this header and its fragment headers.
    pub(crate) const fn head_bytes(&self) -> usize {
        let (own, each) = self.sizes();
        own + self.fragments as usize * each
    }

    /// Id and times of the event with this head.
    pub(crate) fn info(&self, head: &[u8]) -> EventInfo {
        let time = |at| Some(u64_at(head, at)).filter(|&time| time > 0);
        match self.is_version_1 {
            true => self.id.into(),
            false => EventInfo { id: self.id, triggered: time(32), source_time: time(40) },
        }
    }

    /// The fragment headers in this head; `None` if a status does not exist.
    pub(crate) fn fragments(&self, head: &[u8]) -> Option<Vec<FragmentHeader>> {
        let (own, each) = self.sizes();
        head[own..].chunks_exact(each).map(FragmentHeader::decode).collect()
    }

    /// Returns true if `head`, this header and its fragment headers, has the right checksum.
    pub(crate) fn matches(&self, head: &[u8]) -> bool {
        checksum(&head[8..]) == self.checksum
    }
}

/// Fills in the checksum of a head: everything after the checksum itself.
pub(crate) fn seal_event_head(head: &mut [u8]) {
    let sum = checksum(&head[8..]);
    put_u32(head, 4, sum);
}

/// One fragment's part of an event's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentHeader {
    pub(crate) source: SourceId,
    pub(crate) status: Status,
    pub(crate) length: u32,
    /// Checksum that arrived with the fragment.
    pub(crate) checksum: u32,
    /// Checksum of the stored bytes. It differs from `checksum` only if the fragment arrived corrupted or was
    /// truncated.
    pub(crate) stored_checksum: u32,
    pub(crate) counter: Option<u64>,
    pub(crate) mark: Option<Mark>,
    pub(crate) apart: Option<ApartReason>,
}

impl FragmentHeader {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; FRAGMENT_HEADER_BYTES];
        bytes[..2].copy_from_slice(&self.source.0.to_le_bytes());
        bytes[2] = self.status as u8;
        bytes[3] = identity_flags(self.counter, self.mark);
        put_u32(&mut bytes, 4, self.length);
        put_u32(&mut bytes, 8, self.checksum);
        put_u32(&mut bytes, 12, self.stored_checksum);
        put_u64(&mut bytes, 16, self.counter.unwrap_or(0));
        put_u32(&mut bytes, 24, self.mark.map_or(0, Mark::value));
        bytes[28] = self.apart.map_or(0, |reason| reason as u8);
        out.extend_from_slice(&bytes);
    }

    /// Decodes a header of any version, whose length shows its version; `None` if the status does not exist.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let is_version_1 = bytes.len() == FRAGMENT_HEADER_BYTES_1;
        let has = |flag: u8| !is_version_1 && bytes[3] & flag != 0;
        Some(Self {
            source: SourceId(u16::from_le_bytes([bytes[0], bytes[1]])),
            status: Status::from_byte(bytes[2])?,
            length: u32_at(bytes, 4),
            checksum: u32_at(bytes, 8),
            stored_checksum: u32_at(bytes, 12),
            counter: has(HAS_COUNTER).then(|| u64_at(bytes, 16)),
            mark: has(HAS_MARK).then(|| Mark::new(u32_at(bytes, 24))),
            apart: if is_version_1 { None } else { ApartReason::from_byte(bytes[28]) },
        })
    }
}

/// The flags of a fragment for counter and mark.
pub(crate) fn identity_flags(counter: Option<u64>, mark: Option<Mark>) -> u8 {
    (if counter.is_some() { HAS_COUNTER } else { 0 }) | if mark.is_some() { HAS_MARK } else { 0 }
}

/// The start of the index; its entries follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexHeader {
    pub(crate) events: u64,
    pub(crate) tag: Tag,
    pub(crate) entries_checksum: u32,
}

impl IndexHeader {
    pub(crate) fn encode(&self) -> [u8; INDEX_HEADER_BYTES] {
        let mut bytes = [0; INDEX_HEADER_BYTES];
        bytes[..4].copy_from_slice(&INDEX_MAGIC);
        put_u64(&mut bytes, 8, self.events);
        put_u32(&mut bytes, 16, self.tag);
        put_u32(&mut bytes, 20, self.entries_checksum);
        let sum = checksum(&bytes[8..]);
        put_u32(&mut bytes, 4, sum);
        bytes
    }

    /// Decodes a header; `None` if the magic or the checksum is wrong.
    pub(crate) fn decode(bytes: &[u8; INDEX_HEADER_BYTES]) -> Option<Self> {
        (bytes[..4] == INDEX_MAGIC && u32_at(bytes, 4) == checksum(&bytes[8..])).then(|| Self {
            events: u64_at(bytes, 8),
            tag: u32_at(bytes, 16),
            entries_checksum: u32_at(bytes, 20),
        })
    }
}

/// The last bytes of a closed file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) index_offset: u64,
    pub(crate) tag: Tag,
}

impl Footer {
    pub(crate) fn encode(&self) -> [u8; FOOTER_BYTES] {
        let mut bytes = [0; FOOTER_BYTES];
        bytes[..4].copy_from_slice(&FOOTER_MAGIC);
        put_u64(&mut bytes, 8, self.index_offset);
        put_u32(&mut bytes, 16, self.tag);
        let sum = checksum(&bytes[8..]);
        put_u32(&mut bytes, 4, sum);
        bytes
    }

    /// Decodes a footer; `None` if the magic or the checksum is wrong.
    pub(crate) fn decode(bytes: &[u8; FOOTER_BYTES]) -> Option<Self> {
        (bytes[..4] == FOOTER_MAGIC && u32_at(bytes, 4) == checksum(&bytes[8..]))
            .then(|| Self { index_offset: u64_at(bytes, 8), tag: u32_at(bytes, 16) })
    }
}

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn put_u64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_above_the_limit_is_rejected_even_with_a_right_checksum() {
        for (length, known) in [(MAX_EVENT_BYTES, true), (MAX_EVENT_BYTES + 1, false), (47, false)] {
            let mut head = Vec::new();
            EventHeader::encode(EventId(1).into(), length, 7, 0, true, &mut head);
            seal_event_head(&mut head);
            let start = head[..EVENT_START_BYTES].try_into().expect("a header");
            assert_eq!(EventHeader::decode(&start).is_some(), known, "{length} bytes");
        }
    }
}
