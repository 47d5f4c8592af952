//! The bundle: the fragments of several sources and events as one payload.
//!
//! A bundle begins with an index: a head and an entry for each fragment. The head has a magic number, the number of
//! fragments, the checksum of the rest of the index, and the first event. The payloads follow in the order of the entries. All
//! numbers are little-endian. Entries are in ascending order of event, then of source, and each pair occurs once.
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

use bytes::{BufMut, Bytes, BytesMut};
use evb_core::{EventId, Mark, SourceId};
use evb_experiment::Bundling;
use evb_protocol::{Fragment, FragmentStatus};
use std::fmt;

const MAGIC: [u8; 4] = *b"\xE5BDL";
const HEAD: usize = Bundling::HEAD_BYTES as usize;
const ENTRY: usize = Bundling::ENTRY_BYTES as usize;

/// Bytes of the index of a bundle.
pub(crate) const fn index_bytes(fragments: usize) -> usize {
    HEAD + fragments * ENTRY
}

/// Defect of a bundle: it cannot be split into fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleError {
    /// The payload has no index, or its end is missing.
    NoIndex,
    /// The index is not as it was made.
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

/// Puts fragments into one payload. `first` is the first event of the bundle; the fragments are in order.
pub fn encode(first: EventId, fragments: &[Fragment<Bytes>]) -> Bytes {
    let payload: usize = fragments.iter().map(|fragment| fragment.payload.len()).sum();
    let mut bytes = BytesMut::with_capacity(index_bytes(fragments.len()) + payload);
    bytes.put_slice(&MAGIC);
    bytes.put_u32_le(fragments.len() as u32);
    bytes.put_u32_le(0);
    bytes.put_u64_le(first.0);
    for fragment in fragments {
        bytes.put_u16_le((fragment.event.0 - first.0) as u16);
        bytes.put_u16_le(fragment.source.0);
        bytes.put_u32_le((fragment.status as u8).into());
        bytes.put_u32_le(fragment.payload.len() as u32);
        bytes.put_u32_le(fragment.checksum);
        bytes.put_u32_le(Mark::to_bits(fragment.mark));
    }
    let sum = index_checksum(&bytes);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
    fragments.iter().for_each(|fragment| bytes.put_slice(&fragment.payload));
    bytes.freeze()
}

/// The checksum of an index: that of the first event and the entries, and the number of fragments.
fn index_checksum(index: &[u8]) -> u32 {
    evb_core::checksum(&index[12..]) ^ u32_at(index, 4)
}

/// Splits a payload into its fragments, which share its memory. Their checksums are not compared yet.
///
/// # Errors
/// The bytes are no bundle, or a damaged one.
pub fn decode(first: EventId, bundle: &Bytes) -> Result<Vec<Fragment<Bytes>>, BundleError> {
    let (head, rest) = bundle.split_at_checked(HEAD).ok_or(BundleError::NoIndex)?;
    let count = u32_at(head, 4) as usize;
    // A count that the bytes cannot hold allocates nothing.
    if head[..4] != MAGIC || count > rest.len() / ENTRY {
        return Err(BundleError::NoIndex);
    }
    let mut at = index_bytes(count);
    if index_checksum(&bundle[..at]) != u32_at(head, 8) {
        return Err(BundleError::DamagedIndex);
    }
    if u64_at(head, 12) != first.0 {
        return Err(BundleError::OtherEvents);
    }
    let mut fragments: Vec<Fragment<Bytes>> = Vec::with_capacity(count);
    for entry in rest[..count * ENTRY].chunks_exact(ENTRY) {
        let fragment = decode_entry(first, entry, bundle, &mut at)?;
        let place = |fragment: &Fragment<Bytes>| (fragment.event, fragment.source);
        if fragments.last().is_some_and(|last| place(last) >= place(&fragment)) {
            return Err(BundleError::BadEntry);
        }
        fragments.push(fragment);
    }
    if at == bundle.len() { Ok(fragments) } else { Err(BundleError::WrongLength) }
}

/// One fragment. Its payload begins at `at`, which moves on.
fn decode_entry(first: EventId, entry: &[u8], bundle: &Bytes, at: &mut usize) -> Result<Fragment<Bytes>, BundleError> {
    let length = u32_at(entry, 8);
    let end = at.checked_add(length as usize).filter(|end| *end <= bundle.len()).ok_or(BundleError::WrongLength)?;
    let fragment = Fragment {
        event: EventId(first.0.saturating_add(u16_at(entry, 0).into())),
        source: SourceId(u16_at(entry, 2)),
        length,
        checksum: u32_at(entry, 12),
        mark: Mark::from_bits(u32_at(entry, 16)),
        status: status(u32_at(entry, 4)).ok_or(BundleError::BadEntry)?,
        payload: bundle.slice(*at..end),
    };
    *at = end;
    Ok(fragment)
}

/// The status with this number.
const fn status(number: u32) -> Option<FragmentStatus> {
    match number {
        0 => Some(FragmentStatus::Good),
        1 => Some(FragmentStatus::Corrupted),
        2 => Some(FragmentStatus::Missing),
        3 => Some(FragmentStatus::Oversized),
        4 => Some(FragmentStatus::Mismatched),
        _ => None,
    }
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
        let content = (0..5_u32, any::<Option<u32>>(), prop::collection::vec(any::<u8>(), 0..200));
        (places, prop::collection::vec(content, 40)).prop_map(|(places, contents)| {
            let pairs = places.into_iter().zip(contents);
            pairs.map(|((event, source), (number, mark, bytes))| fragment(event, source, number, mark, bytes)).collect()
        })
    }

    fn fragment(event: u16, source: u16, number: u32, mark: Option<u32>, bytes: Vec<u8>) -> Fragment<Bytes> {
        Fragment {
            event: EventId(1000 + u64::from(event)),
            source: SourceId(source),
            length: bytes.len() as u32,
            checksum: evb_core::checksum(&bytes),
            mark: mark.map(Mark::new),
            status: status(number).expect("a status"),
            payload: bytes.into(),
        }
    }

    proptest! {
        #[test]
        fn fragments_come_out_as_they_went_in(fragments in fragments()) {
            let bundle = encode(EventId(1000), &fragments);
            let payload: usize = fragments.iter().map(|fragment| fragment.payload.len()).sum();
            prop_assert_eq!(bundle.len(), index_bytes(fragments.len()) + payload);
            prop_assert_eq!(decode(EventId(1000), &bundle), Ok(fragments));
        }

        #[test]
        fn a_bundle_that_is_too_short_or_too_long_is_an_error(fragments in fragments(), cut in any::<prop::sample::Index>()) {
            let bundle = encode(EventId(1000), &fragments);
            prop_assert!(decode(EventId(1000), &bundle.slice(..cut.index(bundle.len()))).is_err());
            let longer = [&bundle[..], &[0]].concat().into();
            prop_assert_eq!(decode(EventId(1000), &longer), Err(BundleError::WrongLength));
        }

        #[test]
        fn any_bytes_are_a_bundle_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), has_head: bool) {
            let mut bytes = [if has_head { &b"\xE5BDL\x02\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"[..] } else { &[] }, &bytes].concat();
            if has_head && bytes.len() >= index_bytes(2) {
                let sum = index_checksum(&bytes[..index_bytes(2)]);
                bytes[8..12].copy_from_slice(&sum.to_le_bytes());
            }
            let bytes = Bytes::from(bytes);
            if let Ok(fragments) = decode(EventId(u64::MAX), &bytes) {
                let payload: usize = fragments.iter().map(|fragment| fragment.payload.len()).sum();
                prop_assert_eq!(bytes.len(), index_bytes(fragments.len()) + payload);
            }
        }

        #[test]
        fn a_changed_byte_is_noticed(fragments in fragments(), at in any::<prop::sample::Index>(), bits in 1..=255_u8) {
            let mut bytes = encode(EventId(1000), &fragments).to_vec();
            let at = at.index(bytes.len());
            bytes[at] ^= bits;
            let changed = decode(EventId(1000), &bytes.into());
            prop_assert_eq!(changed.is_err(), at < index_bytes(fragments.len()), "the index has a checksum");
            let is_good = |fragment: &Fragment<Bytes>| evb_core::checksum(&fragment.payload) == fragment.checksum;
            prop_assert!(!changed.is_ok_and(|fragments| fragments.iter().all(is_good)), "payloads have theirs");
        }
    }

    #[test]
    fn a_bundle_of_other_events_is_an_error() {
        let bundle = encode(EventId(1000), &[fragment(0, 7, 0, None, vec![1, 2])]);
        assert_eq!(decode(EventId(1001), &bundle), Err(BundleError::OtherEvents));
    }

    #[test]
    fn entries_out_of_order_or_twice_are_an_error() {
        let one = |event| fragment(event, 7, 0, None, vec![1, 2]);
        for fragments in [[one(1), one(0)], [one(1), one(1)]] {
            let bundle = encode(EventId(1000), &fragments);
            assert_eq!(decode(EventId(1000), &bundle), Err(BundleError::BadEntry));
        }
    }
}
