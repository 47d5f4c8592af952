//! The bytes of an event file. Everything is little-endian and begins at a multiple of eight bytes.
//!
//! This module encodes and decodes the fixed parts; it reads and writes no file. The format is described in
//! `docs/reference/event-file.md`.

mod block;
mod trailer;

pub(crate) use block::{BLOCK_HEADER_BYTES, BLOCK_MAGIC, BlockHeader, MAX_BLOCK_BYTES};
pub(crate) use trailer::{FragmentIdentity, decode_trailer, encode_trailer, identity_flags, trailer_bytes};

use crate::{Status, checksum};
use evb_core::{EventId, SourceId};

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
pub(crate) const EVENT_MAGIC: [u8; 4] = *b"\xE5EVT";
pub(crate) const INDEX_MAGIC: [u8; 4] = *b"\xE5IDX";
pub(crate) const FOOTER_MAGIC: [u8; 4] = *b"\xE5END";

/// Alignment of every block.
pub(crate) const ALIGNMENT: u64 = 8;
pub(crate) const FILE_HEADER_BYTES: usize = 24;
pub(crate) const EVENT_HEADER_BYTES: usize = 32;
pub(crate) const FRAGMENT_HEADER_BYTES: usize = 16;
/// Bytes of a record of one fragment beside its payload: its headers, its trailer, and its entry in the index.
pub const FRAGMENT_RECORD_BYTES: usize =
    EVENT_HEADER_BYTES + FRAGMENT_HEADER_BYTES + trailer_bytes(1) + INDEX_ENTRY_BYTES;
pub(crate) const INDEX_HEADER_BYTES: usize = 24;
pub(crate) const INDEX_ENTRY_BYTES: usize = 16;
pub(crate) const FOOTER_BYTES: usize = 24;

/// Flag of an event.
const COMPLETE: u8 = 1;

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

/// The start of an event's head. The fragment headers follow, then the payloads, then the trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventHeader {
    pub(crate) id: EventId,
    /// Bytes of the whole record.
    pub(crate) length: u64,
    pub(crate) tag: Tag,
    pub(crate) fragments: u16,
    pub(crate) complete: bool,
    /// Checksum of the head.
    pub(crate) checksum: u32,
}

impl EventHeader {
    /// Appends the header without its checksum, which [`seal_event_head`] fills in.
    pub(crate) fn encode(id: EventId, length: u64, tag: Tag, fragments: u16, complete: bool, out: &mut Vec<u8>) {
        let mut bytes = [0; EVENT_HEADER_BYTES];
        bytes[..4].copy_from_slice(&EVENT_MAGIC);
        put_u64(&mut bytes, 8, id.0);
        put_u64(&mut bytes, 16, length);
        put_u32(&mut bytes, 24, tag);
        bytes[28..30].copy_from_slice(&fragments.to_le_bytes());
        bytes[30] = if complete { COMPLETE } else { 0 };
        out.extend_from_slice(&bytes);
    }

    /// Decodes a header; `None` if the magic is wrong or the length impossible. The checksum is not compared yet.
    pub(crate) fn decode(bytes: &[u8; EVENT_HEADER_BYTES]) -> Option<Self> {
        let header = Self {
            id: EventId(u64_at(bytes, 8)),
            length: u64_at(bytes, 16),
            tag: u32_at(bytes, 24),
            fragments: u16::from_le_bytes([bytes[28], bytes[29]]),
            complete: bytes[30] & COMPLETE != 0,
            checksum: u32_at(bytes, 4),
        };
        let possible = header.head_bytes() as u64 <= header.length && header.length <= MAX_EVENT_BYTES;
        (bytes[..4] == EVENT_MAGIC && possible).then_some(header)
    }

    /// Bytes of this header and its fragment headers.
    pub(crate) const fn head_bytes(&self) -> usize {
        EVENT_HEADER_BYTES + self.fragments as usize * FRAGMENT_HEADER_BYTES
    }

    /// Bytes of the trailer of a record with this length of payloads, padding included: 0 in version 1, which has no
    /// trailer. `None` if the length of the record is wrong.
    pub(crate) fn trailer_bytes(&self, payload: u64) -> Option<usize> {
        let bytes = self.length.checked_sub(self.head_bytes() as u64 + payload)?;
        let expected = trailer_bytes(self.fragments as usize);
        (bytes == 0 || bytes == expected as u64).then_some(bytes as usize)
    }

    /// The fragment headers in this head; `None` if a status does not exist.
    pub(crate) fn fragments(&self, head: &[u8]) -> Option<Vec<FragmentHeader>> {
        head[EVENT_HEADER_BYTES..].chunks_exact(FRAGMENT_HEADER_BYTES).map(FragmentHeader::decode).collect()
    }

    /// Returns true if `head`, this header and its fragment headers, has the right checksum.
    pub(crate) fn matches(&self, head: &[u8]) -> bool {
        checksum(&head[8..]) == self.checksum
    }
}

/// Fills in the checksum of a head, which covers everything after it, and returns it.
pub(crate) fn seal_event_head(head: &mut [u8]) -> u32 {
    let sum = checksum(&head[8..]);
    put_u32(head, 4, sum);
    sum
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
}

impl FragmentHeader {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let mut bytes = [0; FRAGMENT_HEADER_BYTES];
        bytes[..2].copy_from_slice(&self.source.0.to_le_bytes());
        bytes[2] = self.status as u8;
        put_u32(&mut bytes, 4, self.length);
        put_u32(&mut bytes, 8, self.checksum);
        put_u32(&mut bytes, 12, self.stored_checksum);
        out.extend_from_slice(&bytes);
    }

    /// Decodes a header; `None` if the status does not exist.
    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            source: SourceId(u16::from_le_bytes([bytes[0], bytes[1]])),
            status: Status::from_byte(bytes[2])?,
            length: u32_at(bytes, 4),
            checksum: u32_at(bytes, 8),
            stored_checksum: u32_at(bytes, 12),
        })
    }
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
        for (length, known) in [(MAX_EVENT_BYTES, true), (MAX_EVENT_BYTES + 1, false), (31, false)] {
            let mut head = Vec::new();
            EventHeader::encode(EventId(1), length, 7, 0, true, &mut head);
            seal_event_head(&mut head);
            let start = head[..EVENT_HEADER_BYTES].try_into().expect("a header");
            assert_eq!(EventHeader::decode(&start).is_some(), known, "{length} bytes");
        }
    }
}
