//! The bundle: the fragments of several sources and events as one payload.
//!
//! The payloads come first, in ascending order of event, then of source, and each pair occurs once. The index follows:
//! an entry for each fragment in the same order, and a tail. So a bundle is written from its first byte to its last,
//! before it is known how many fragments it has. All numbers are little-endian.
//!
//! | bytes of an entry | meaning |
//! |---|---|
//! | 0..2 | event, counted from the first event of the bundle |
//! | 2..4 | source |
//! | 4 | status |
//! | 5..8 | zero |
//! | 8..12 | length of the payload in bytes |
//! | 12..16 | checksum of the payload |
//! | 16..20 | mark, 0 for none |
//!
//! | bytes of the tail | meaning |
//! |---|---|
//! | 0..8 | first event of the bundle |
//! | 8..12 | number of entries |
//! | 12..16 | checksum of the entries and the tail before it |
//! | 16..20 | magic number |
//!
//! The checksum of a good bundle is that of its index, which has those of the payloads: no byte is summed twice. Any
//! other bundle has bytes that are not as its index says, and its checksum is that of all its bytes.

use bytes::{Bytes, BytesMut};
use evb_core::{Counter, EventId, Mark, SourceId};
use evb_experiment::Bundling;
use evb_protocol::{Fragment, FragmentStatus};
use evb_sources::Room;
use std::fmt;

const MAGIC: [u8; 4] = *b"\xE5BDL";
const TAIL: usize = Bundling::TAIL_BYTES as usize;
const ENTRY: usize = Bundling::ENTRY_BYTES as usize;

/// Bytes that get their checksums together. They are still in the innermost cache, and the processor has written them
/// there: a checksum right behind the writing waits for it.
const SUMMED_TOGETHER: usize = 8 << 10;

/// Bytes of the index of a bundle.
pub(crate) const fn index_bytes(fragments: usize) -> usize {
    fragments * ENTRY + TAIL
}

/// Defect of a bundle: it cannot be split into fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleError {
    /// The payload has no index, or its beginning is missing.
    NoIndex,
    /// The index is damaged.
    DamagedIndex,
    /// It is the bundle of other events.
    OtherEvents,
    /// An entry of the index is impossible, or not in order.
    BadEntry,
    /// The lengths in the index do not add up to the length of the payload.
    WrongLength,
}

impl fmt::Display for BundleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoIndex => "the bundle has no index",
            Self::DamagedIndex => "the checksum of the index of the bundle is wrong",
            Self::OtherEvents => "the bundle is that of other events",
            Self::BadEntry => "an entry in the index of the bundle is impossible",
            Self::WrongLength => "the lengths in the index do not add up to that of the bundle",
        })
    }
}

impl std::error::Error for BundleError {}

/// A fragment in a bundle, as its index has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundlePart {
    /// The event.
    pub event: EventId,
    /// The source.
    pub source: SourceId,
    /// The status.
    pub status: FragmentStatus,
    /// Length of the payload in bytes.
    pub length: u32,
    /// CRC-32C of the payload.
    pub checksum: u32,
    /// The mark.
    pub mark: Option<Mark>,
    /// The counter of a fragment that is alone; the index of a bundle has none.
    pub counter: Option<Counter>,
    /// Position in the bundle: of the first byte, or of the fragment where there are no bytes.
    pub at: u32,
}

impl BundlePart {
    /// A fragment that is alone.
    pub(crate) const fn whole<B>(fragment: &Fragment<B>) -> Self {
        let Fragment { event, source, status, length, checksum, mark, counter, .. } = *fragment;
        Self { event, source, status, length, checksum, mark, counter, at: 0 }
    }

    /// The order of the fragments in a bundle.
    pub(crate) const fn place(&self) -> (u64, u16) {
        (self.event.0, self.source.0)
    }

    /// The fragment with its payload.
    pub(crate) const fn with<B>(&self, payload: B) -> Fragment<B> {
        let Self { event, source, status, length, checksum, mark, counter, at: _ } = *self;
        Fragment { event, source, length, checksum, mark, counter, status, payload }
    }

    /// Where its payload lies.
    pub(crate) const fn range(&self) -> std::ops::Range<usize> {
        self.at as usize..self.at as usize + self.length as usize
    }

    /// The entry in the index of a bundle with this first event.
    fn encode(&self, first: EventId) -> [u8; ENTRY] {
        let mut bytes = [0; ENTRY];
        bytes[..2].copy_from_slice(&((self.event.0 - first.0) as u16).to_le_bytes());
        bytes[2..4].copy_from_slice(&self.source.0.to_le_bytes());
        bytes[4] = self.status as u8;
        bytes[8..12].copy_from_slice(&self.length.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[16..].copy_from_slice(&Mark::to_bits(self.mark).to_le_bytes());
        bytes
    }
}

/// A bundle on its way from sources to a payload.
pub trait Bundle<B> {
    /// Adds a fragment behind those before it.
    fn push(&mut self, fragment: &Fragment<B>);

    /// Takes the last fragment out again.
    fn pop(&mut self);

    /// The payload and its length, and the checksum of a bundle whose fragments are good.
    fn finish(self, first: EventId) -> (B, u32, u32);
}

/// Memory for a bundle.
pub trait Space {
    /// At least this many bytes, with what was written before.
    fn bytes(&mut self, length: usize) -> &mut [u8];

    /// The first bytes as a payload.
    fn freeze(self, length: usize) -> Bytes;
}

impl Space for BytesMut {
    fn bytes(&mut self, length: usize) -> &mut [u8] {
        if self.len() < length {
            self.resize(length, 0);
        }
        self
    }

    fn freeze(mut self, length: usize) -> Bytes {
        self.truncate(length);
        self.freeze()
    }
}

/// The bytes of a bundle that is being written. As a [`Room`] it has space for the next payload, which
/// [`add`](Self::add) makes a fragment of the bundle.
#[derive(Debug)]
pub struct Writer<M> {
    space: M,
    /// Bytes of the payloads.
    end: usize,
    /// Bytes of the next one.
    next: usize,
    /// Number of parts that have their checksums.
    summed: usize,
    parts: Vec<BundlePart>,
}

impl<M: Space> Writer<M> {
    /// An empty bundle in this memory, with space for this many fragments.
    pub fn new(space: M, fragments: usize) -> Self {
        Self { space, end: 0, next: 0, summed: 0, parts: Vec::with_capacity(fragments) }
    }

    /// Makes a fragment of what the [`Room`] has been filled with.
    #[inline]
    pub fn add(&mut self, event: EventId, source: SourceId, status: FragmentStatus, mark: Option<Mark>) {
        let (at, length) = (self.end as u32, self.next as u32);
        self.parts.push(BundlePart { event, source, status, length, checksum: 0, mark, counter: None, at });
        self.end += self.next;
        self.next = 0;
        if self.end - self.parts[self.summed].at as usize >= SUMMED_TOGETHER {
            self.sum();
        }
    }

    /// Adds the checksums that are still missing.
    fn sum(&mut self) {
        let bytes = self.space.bytes(self.end);
        for part in &mut self.parts[self.summed..] {
            part.checksum = evb_core::checksum(&bytes[part.range()]);
        }
        self.summed = self.parts.len();
    }
}

impl<M: Space> Room for Writer<M> {
    #[inline]
    fn room(&mut self, length: usize) -> &mut [u8] {
        self.next = length;
        &mut self.space.bytes(self.end + length)[self.end..self.end + length]
    }
}

impl<M: Space> Bundle<Bytes> for Writer<M> {
    fn push(&mut self, fragment: &Fragment<Bytes>) {
        self.sum();
        let Fragment { event, source, status, checksum, mark, .. } = *fragment;
        self.room(fragment.payload.len()).copy_from_slice(&fragment.payload);
        let (at, length) = (self.end as u32, fragment.payload.len() as u32);
        self.parts.push(BundlePart { event, source, status, length, checksum, mark, counter: None, at });
        self.end += length as usize;
        self.next = 0;
        self.summed += 1;
    }

    fn pop(&mut self) {
        self.end -= self.parts.pop().map_or(0, |part| part.length as usize);
        self.summed = self.summed.min(self.parts.len());
    }

    fn finish(mut self, first: EventId) -> (Bytes, u32, u32) {
        self.sum();
        let length = self.end + index_bytes(self.parts.len());
        let index = &mut self.space.bytes(length)[self.end..length];
        let (slots, tail) = index.split_at_mut(self.parts.len() * ENTRY);
        for (slot, part) in slots.as_chunks_mut::<ENTRY>().0.iter_mut().zip(&self.parts) {
            *slot = part.encode(first);
        }
        tail[..8].copy_from_slice(&first.0.to_le_bytes());
        tail[8..12].copy_from_slice(&(self.parts.len() as u32).to_le_bytes());
        tail[16..].copy_from_slice(&MAGIC);
        let checksum = evb_core::checksum(&index[..index.len() - 8]);
        let at = index.len() - 8;
        index[at..at + 4].copy_from_slice(&checksum.to_le_bytes());
        (self.space.freeze(length), u32::try_from(length).unwrap_or(u32::MAX), checksum)
    }
}

/// The checksum of the index, as a bundle has it in its tail; none for a payload that is none.
pub fn checksum_of_index(bundle: &[u8]) -> Option<u32> {
    let tail = bundle.last_chunk::<TAIL>()?;
    (tail[16..] == MAGIC).then(|| u32_at(tail, 12))
}

/// The first event of a bundle, as its tail has it; none for a payload that is none.
pub(crate) fn first_event(bundle: &[u8]) -> Option<EventId> {
    let tail = bundle.last_chunk::<TAIL>()?;
    (tail[16..] == MAGIC).then(|| EventId(u64_at(tail, 0)))
}

/// Reads the index of a bundle into `parts`, without a look at the payloads.
///
/// # Errors
/// The bytes are not a bundle, or a damaged one. Then `parts` has no meaning.
pub fn read_index(first: EventId, bundle: &[u8], parts: &mut Vec<BundlePart>) -> Result<(), BundleError> {
    parts.clear();
    let sum = checksum_of_index(bundle).ok_or(BundleError::NoIndex)?;
    let (rest, tail) = bundle.split_at(bundle.len() - TAIL);
    let count = u32_at(tail, 8) as usize;
    // A count that the bytes cannot hold allocates nothing.
    if count > rest.len() / ENTRY {
        return Err(BundleError::NoIndex);
    }
    let payload = rest.len() - count * ENTRY;
    if evb_core::checksum(&bundle[payload..bundle.len() - 8]) != sum {
        return Err(BundleError::DamagedIndex);
    }
    if u64_at(tail, 0) != first.0 {
        return Err(BundleError::OtherEvents);
    }
    parts.reserve(count);
    let (mut at, mut last) = (0, None);
    for entry in rest[payload..].as_chunks::<ENTRY>().0 {
        let part = decode_entry(first, entry, at).ok_or(BundleError::BadEntry)?;
        let place = Some(part.place());
        if last >= place {
            return Err(BundleError::BadEntry);
        }
        at = at.checked_add(part.length).ok_or(BundleError::WrongLength)?;
        last = place;
        parts.push(part);
    }
    if at as usize == payload { Ok(()) } else { Err(BundleError::WrongLength) }
}

/// One fragment, whose payload begins at `at`.
fn decode_entry(first: EventId, entry: &[u8; ENTRY], at: u32) -> Option<BundlePart> {
    Some(BundlePart {
        event: EventId(first.0.saturating_add(u16_at(entry, 0).into())),
        source: SourceId(u16_at(entry, 2)),
        status: u8::try_from(u32_at(entry, 4)).ok().and_then(FragmentStatus::from_byte)?,
        length: u32_at(entry, 8),
        checksum: u32_at(entry, 12),
        mark: Mark::from_bits(u32_at(entry, 16)),
        counter: None,
        at,
    })
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fragments() -> impl Strategy<Value = Vec<Fragment<Bytes>>> {
        let places = prop::collection::btree_set((0..300_u16, any::<u16>()), 0..40);
        let content = (
            prop::sample::select(&FragmentStatus::ALL[..]),
            any::<Option<u32>>(),
            prop::collection::vec(any::<u8>(), 0..200),
        );
        (places, prop::collection::vec(content, 40)).prop_map(|(places, contents)| {
            let pairs = places.into_iter().zip(contents);
            pairs.map(|((event, source), (status, mark, bytes))| fragment(event, source, status, mark, bytes)).collect()
        })
    }

    fn fragment(event: u16, source: u16, status: FragmentStatus, mark: Option<u32>, bytes: Vec<u8>) -> Fragment<Bytes> {
        Fragment {
            event: EventId(1000 + u64::from(event)),
            source: SourceId(source),
            length: bytes.len() as u32,
            checksum: evb_core::checksum(&bytes),
            mark: mark.map(Mark::new),
            counter: None,
            status,
            payload: bytes.into(),
        }
    }

    fn encode(first: EventId, fragments: &[Fragment<Bytes>]) -> Bytes {
        let mut writer = Writer::new(BytesMut::new(), 0);
        fragments.iter().for_each(|fragment| writer.push(fragment));
        writer.finish(first).0
    }

    fn decode(first: EventId, bundle: &Bytes) -> Result<Vec<Fragment<Bytes>>, BundleError> {
        let mut parts = Vec::new();
        read_index(first, bundle, &mut parts)?;
        Ok(parts.iter().map(|part| part.with(bundle.slice(part.range()))).collect())
    }

    fn bytes_before_index(fragments: &[Fragment<Bytes>]) -> usize {
        fragments.iter().map(|fragment| fragment.payload.len()).sum()
    }

    proptest! {
        #[test]
        fn fragments_come_out_as_they_went_in(fragments in fragments()) {
            let bundle = encode(EventId(1000), &fragments);
            prop_assert_eq!(bundle.len(), index_bytes(fragments.len()) + bytes_before_index(&fragments));
            prop_assert_eq!(decode(EventId(1000), &bundle), Ok(fragments));
        }

        #[test]
        fn a_bundle_that_is_too_short_or_too_long_is_an_error(fragments in fragments(), cut in any::<prop::sample::Index>()) {
            let bundle = encode(EventId(1000), &fragments);
            prop_assert!(decode(EventId(1000), &bundle.slice(bundle.len() - cut.index(bundle.len())..)).is_err());
            let longer = [&[0], &bundle[..]].concat().into();
            prop_assert_eq!(decode(EventId(1000), &longer), Err(BundleError::WrongLength));
        }

        #[test]
        fn any_bytes_are_a_bundle_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), has_tail: bool) {
            let tail = b"\xff\xff\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\0\0\0\xE5BDL";
            let mut bytes = [&bytes[..], if has_tail { &tail[..] } else { &[] }].concat();
            let end = bytes.len();
            if has_tail && end >= index_bytes(2) {
                let sum = evb_core::checksum(&bytes[end - index_bytes(2)..end - 8]);
                bytes[end - 8..end - 4].copy_from_slice(&sum.to_le_bytes());
            }
            let bytes = Bytes::from(bytes);
            if let Ok(fragments) = decode(EventId(u64::MAX), &bytes) {
                prop_assert_eq!(bytes.len(), index_bytes(fragments.len()) + bytes_before_index(&fragments));
            }
        }

        #[test]
        fn a_changed_byte_is_noticed(fragments in fragments(), at in any::<prop::sample::Index>(), bits in 1..=255_u8) {
            let mut bytes = encode(EventId(1000), &fragments).to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
            let changed = decode(EventId(1000), &bytes.into());
            let index = bytes_before_index(&fragments)..;
            prop_assert_eq!(changed.is_err(), index.contains(&at), "the index has a checksum");
            let is_good = |fragment: &Fragment<Bytes>| evb_core::checksum(&fragment.payload) == fragment.checksum;
            prop_assert!(!changed.is_ok_and(|fragments| fragments.iter().all(is_good)), "payloads have theirs");
        }
    }

    #[test]
    fn a_bundle_of_other_events_is_an_error() {
        let bundle = encode(EventId(1000), &[fragment(0, 7, FragmentStatus::Good, None, vec![1, 2])]);
        assert_eq!(decode(EventId(1001), &bundle), Err(BundleError::OtherEvents));
    }

    #[test]
    fn entries_out_of_order_or_twice_are_an_error() {
        let one = |event| fragment(event, 7, FragmentStatus::Good, None, vec![1, 2]);
        for fragments in [[one(1), one(0)], [one(1), one(1)]] {
            let bundle = encode(EventId(1000), &fragments);
            assert_eq!(decode(EventId(1000), &bundle), Err(BundleError::BadEntry));
        }
    }
}
