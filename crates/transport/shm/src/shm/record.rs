//! The word before each record of a lane: validity, kind and length.
//!
//! The low 12 bits are those of an address of VELO, offset and length less one. The length continues upwards where an
//! address has the thread, because a lane takes messages longer than a line. A record is written as a whole, so its
//! offset is 0.

use evb_velo::LINE_BITS;

/// Bytes of a word.
pub(crate) const WORD_BYTES: usize = 8;

const LENGTH_BITS: u32 = 40;
const LENGTH_MASK: u64 = ((1 << LENGTH_BITS) - 1) << LINE_BITS;
const KIND_SHIFT: u32 = 56;
const KIND_MASK: u64 = 7 << KIND_SHIFT;
/// The bit that tells a record from empty memory.
const VALID: u64 = 1 << 63;

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// Padding: the next record is at the start of the ring.
    Pad,
    /// A whole message.
    Whole,
    /// A message whose body lies in the sender's pool.
    Lent,
    /// The first part of a message in pieces.
    Begin,
    /// A further part of a message in pieces.
    Piece,
}

/// The header of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: RecordKind,
    /// Bytes of payload, at least 1.
    pub(crate) length: usize,
}

impl Record {
    /// Words that the record takes with its header.
    #[inline]
    pub(crate) const fn words(self) -> u64 {
        1 + self.length.div_ceil(WORD_BYTES) as u64
    }

    #[inline]
    pub(crate) const fn encode(self) -> u64 {
        VALID | (self.kind as u64) << KIND_SHIFT | (self.length as u64 - 1) << LINE_BITS
    }

    /// Reads a word other than 0; `None` if it is not a header.
    #[inline]
    pub(crate) const fn decode(word: u64) -> Option<Self> {
        if word & !(LENGTH_MASK | KIND_MASK) != VALID {
            return None;
        }
        let kind = match (word & KIND_MASK) >> KIND_SHIFT {
            0 => RecordKind::Pad,
            1 => RecordKind::Whole,
            2 => RecordKind::Lent,
            3 => RecordKind::Begin,
            4 => RecordKind::Piece,
            _ => return None,
        };
        Some(Self { kind, length: ((word & LENGTH_MASK) >> LINE_BITS) as usize + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_velo::{AddressMap, PAGE_BITS, Target};

    #[test]
    fn the_low_bits_are_those_of_an_address() {
        let map = AddressMap::new(28, 20).unwrap();
        for length in 1..=64 {
            let address = map.encode(Target { node: 3, thread: 5, length, offset: 0 }).unwrap();
            let header = Record { kind: RecordKind::Whole, length: length as usize }.encode();
            assert_eq!(header & ((1 << PAGE_BITS) - 1), address & ((1 << PAGE_BITS) - 1), "{length} B");
        }
    }

    #[test]
    fn headers_come_back_and_other_words_are_none() {
        for kind in [RecordKind::Pad, RecordKind::Whole, RecordKind::Lent, RecordKind::Begin, RecordKind::Piece] {
            for length in [1, 8, 9, 64, 65, 1 << 20, 1 << LENGTH_BITS] {
                let record = Record { kind, length };
                assert_eq!(Record::decode(record.encode()), Some(record));
            }
        }
        for word in [1, VALID | 1, VALID | 5 << KIND_SHIFT, VALID | 1 << 50, VALID >> 1, u64::MAX] {
            assert_eq!(Record::decode(word), None, "{word:#x}");
        }
    }
}
