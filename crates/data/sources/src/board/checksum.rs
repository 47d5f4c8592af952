//! The checksum of a described frame.

use super::{ByteOrder, Field, position};
use crc_fast::{CrcAlgorithm, checksum};
use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};

/// A kind of checksum: a CRC by its name in the catalogue of Greg Cook, such as `CRC-16/IBM-3740`, or a sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ChecksumKind {
    /// A cyclic redundancy check of 16 or 32 bits.
    Crc(CrcAlgorithm, u8),
    /// The exclusive or of all words of this number of bits.
    Xor(u8),
    /// The sum of all words of this number of bits, modulo its range.
    Sum(u8),
}

/// Kinds that have two names in use.
const OTHER_NAMES: [(&str, &str); 6] = [
    ("CRC-16/CCITT-FALSE", "CRC-16/IBM-3740"),
    ("CRC-16", "CRC-16/ARC"),
    ("CRC-16/X-25", "CRC-16/IBM-SDLC"),
    ("CRC-32", "CRC-32/ISO-HDLC"),
    ("CRC-32C", "CRC-32/ISCSI"),
    ("CRC-16/CCITT", "CRC-16/KERMIT"),
];

/// The sums, by name.
const SUMS: [(&str, ChecksumKind); 6] = [
    ("XOR-8", ChecksumKind::Xor(8)),
    ("XOR-16", ChecksumKind::Xor(16)),
    ("XOR-32", ChecksumKind::Xor(32)),
    ("SUM-8", ChecksumKind::Sum(8)),
    ("SUM-16", ChecksumKind::Sum(16)),
    ("SUM-32", ChecksumKind::Sum(32)),
];

impl ChecksumKind {
    /// Width in bits: 8, 16 or 32.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Crc(_, bits) | Self::Xor(bits) | Self::Sum(bits) => bits,
        }
    }

    /// The checksum of some bytes. A sum takes words in this order; the last one is filled up with zeros.
    #[inline]
    fn of(self, bytes: &[u8], order: ByteOrder) -> u64 {
        match self {
            Self::Crc(algorithm, _) => checksum(algorithm, bytes),
            Self::Xor(bits) => words(bytes, bits, order).fold(0, |all, word| all ^ word),
            Self::Sum(bits) => words(bytes, bits, order).fold(0, u64::wrapping_add) & (u64::MAX >> (64 - bits)),
        }
    }
}

/// The words of this number of bits, 8, 16 or 32.
fn words(bytes: &[u8], bits: u8, order: ByteOrder) -> impl Iterator<Item = u64> {
    bytes.chunks(usize::from(bits / 8)).map(move |chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        let whole = match order {
            ByteOrder::Little => u32::from_le_bytes(word),
            ByteOrder::Big => u32::from_be_bytes(word) >> (32 - bits),
        };
        u64::from(whole)
    })
}

impl FromStr for ChecksumKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.to_uppercase();
        let other = OTHER_NAMES.iter().find(|(other, _)| *other == name).map(|(_, name)| *name);
        let name = other.unwrap_or(&name);
        if let Some((_, sum)) = SUMS.iter().find(|(sum, _)| *sum == name) {
            return Ok(*sum);
        }
        let unknown = || {
            format!(
                "unknown checksum {text:?}; there are xor-8, xor-16, xor-32, sum-8, sum-16, sum-32 and the CRCs of 16 and \
                 32 bits by their names in the catalogue of Greg Cook, such as crc-16/ibm-3740, crc-16/modbus, crc-32 and \
                 crc-32c"
            )
        };
        let bits = [("CRC-16/", 16), ("CRC-32/", 32)].into_iter().find(|(prefix, _)| name.starts_with(prefix));
        let (_, bits) = bits.ok_or_else(unknown)?;
        name.parse().map(|algorithm| Self::Crc(algorithm, bits)).map_err(|_| unknown())
    }
}

impl fmt::Display for ChecksumKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crc(algorithm, _) => write!(f, "{}", algorithm.to_string().to_lowercase()),
            Self::Xor(bits) => write!(f, "xor-{bits}"),
            Self::Sum(bits) => write!(f, "sum-{bits}"),
        }
    }
}

impl Serialize for ChecksumKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ChecksumKind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The checksum of a frame: its kind, where it is, and which bytes it covers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameChecksum {
    /// Its kind.
    pub kind: ChecksumKind,
    /// Its first byte, from the end of the frame if negative.
    pub at: i32,
    /// The first byte that it covers.
    pub from: u32,
    /// The byte behind the last one that it covers, from the end of the frame if negative; 0 is the end of the frame.
    pub to: i32,
    /// The order of its bytes, and of those of the words of a sum.
    pub order: ByteOrder,
}

impl FrameChecksum {
    pub(super) const fn field(&self) -> Field {
        Field::new(self.at, self.kind.bits(), self.order)
    }

    /// Bytes that a frame needs to hold it and the bytes that it covers.
    pub(crate) fn reach(&self) -> usize {
        let covered = match self.to {
            0 => self.from as usize,
            to if to > 0 => (to as usize).max(self.from as usize),
            to => self.from as usize + to.unsigned_abs() as usize,
        };
        self.field().reach().max(covered)
    }

    /// Returns true if a frame has the right checksum. The frame must be long enough.
    #[inline]
    pub(crate) fn is_right(&self, frame: &[u8]) -> bool {
        let end = if self.to == 0 { frame.len() } else { position(self.to, frame.len()) };
        self.kind.of(&frame[self.from as usize..end], self.order) == self.field().read(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_have_the_values_of_the_catalogue() {
        // The check values of the catalogue, over the digits 1 to 9.
        for (name, check) in [
            ("crc-16/ibm-3740", 0x29b1),
            ("crc-16/ccitt-false", 0x29b1),
            ("CRC-16/KERMIT", 0x2189),
            ("crc-16/modbus", 0x4b37),
            ("crc-16/xmodem", 0x31c3),
            ("crc-16", 0xbb3d),
            ("crc-32", 0xcbf4_3926),
            ("crc-32c", 0xe306_9283),
            ("crc-32/mpeg-2", 0x0376_e6e7),
            ("xor-8", 0x31),
            ("sum-8", 0xdd),
        ] {
            let kind: ChecksumKind = name.parse().expect(name);
            assert_eq!(kind.of(b"123456789", ByteOrder::Little), check, "{name}");
            assert_eq!(kind.to_string().parse(), Ok(kind), "{name}");
        }
    }

    #[test]
    fn sums_take_words_in_their_order() {
        let of = |name: &str, order| name.parse::<ChecksumKind>().expect("a kind").of(&[1, 2, 3, 4, 5], order);
        assert_eq!(of("xor-16", ByteOrder::Little), 0x0201 ^ 0x0403 ^ 0x0005);
        assert_eq!(of("xor-16", ByteOrder::Big), 0x0102 ^ 0x0304 ^ 0x0500);
        assert_eq!(of("sum-32", ByteOrder::Little), 0x0403_0201 + 5);
        assert_eq!(of("sum-32", ByteOrder::Big), 0x0102_0304 + 0x0500_0000);
    }

    #[test]
    fn an_unknown_kind_is_refused_with_those_that_there_are() {
        assert!("crc-7".parse::<ChecksumKind>().unwrap_err().contains("crc-16/modbus"));
        assert!("crc-16/none".parse::<ChecksumKind>().is_err());
    }
}
