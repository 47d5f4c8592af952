//! The histograms that builder units fill, with the places of their values in a payload.

use evb_core::SourceId;
use serde::{Deserialize, Serialize};

/// A histogram of one quantity of the fragments of one source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistogramPlan {
    /// Its name, which no other histogram has.
    pub name: String,
    /// The source of the fragments.
    pub source: SourceId,
    /// The name of the source, such as `ru3`, or `source 5` of a readout unit with several.
    pub source_name: String,
    /// The name of the quantity in the file.
    pub field: String,
    /// The values that are counted.
    pub quantity: Quantity,
    /// Bins, all of one width.
    pub bins: u32,
    /// The lower and the upper end of all bins, the lower one first.
    pub range: [f64; 2],
    /// The bins are channels: one for each whole number of the range.
    pub channels: bool,
    /// One event in this many is looked at: those whose number is a multiple.
    pub one_in: u64,
}

impl HistogramPlan {
    /// True if payload bytes are looked at, not only the length.
    pub const fn reads_payload(&self) -> bool {
        matches!(self.quantity, Quantity::Field(..))
    }
}

/// The values of a fragment that a histogram counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// The length of the payload in bytes.
    Size,
    /// The number of items in the payload.
    Hits(PayloadLayout),
    /// The values of a field.
    Field(PayloadLayout, FieldLayout),
}

/// The parts of a payload: a header, then as many items as there are, then a trailer. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadLayout {
    /// Size of the header.
    pub header: u32,
    /// Size of an item, at least 1.
    pub item: u32,
    /// Size of the trailer.
    pub trailer: u32,
}

/// A part of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PayloadPart {
    /// What is there once, in front.
    Header,
    /// What is there any number of times.
    Items,
    /// What is there once, behind.
    Trailer,
}

/// The place and the type of a field in its part of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldLayout {
    /// The part that has it.
    pub part: PayloadPart,
    /// Bytes of the part before it.
    pub at: u32,
    /// Numbers in it, at least 1.
    pub count: u32,
    /// The type of each number.
    pub number: NumberType,
    /// True if the highest byte of a number comes first.
    pub big_endian: bool,
    /// The lowest and the highest bit that are counted, of an unsigned number; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<(u8, u8)>,
}

/// The type of a number, as NumPy names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NumberType {
    /// Unsigned, 8 bits.
    U1,
    /// Unsigned, 16 bits.
    U2,
    /// Unsigned, 32 bits.
    U4,
    /// Unsigned, 64 bits.
    U8,
    /// Signed, 8 bits.
    I1,
    /// Signed, 16 bits.
    I2,
    /// Signed, 32 bits.
    I4,
    /// Signed, 64 bits.
    I8,
    /// Floating point, 32 bits.
    F4,
    /// Floating point, 64 bits.
    F8,
}

impl NumberType {
    /// All types with their names.
    pub const NAMED: [(&'static str, Self); 10] = [
        ("u1", Self::U1),
        ("u2", Self::U2),
        ("u4", Self::U4),
        ("u8", Self::U8),
        ("i1", Self::I1),
        ("i2", Self::I2),
        ("i4", Self::I4),
        ("i8", Self::I8),
        ("f4", Self::F4),
        ("f8", Self::F8),
    ];

    /// The type with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(known, _)| *known == name).map(|(_, number)| number)
    }

    /// Size of a number in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::U1 | Self::I1 => 1,
            Self::U2 | Self::I2 => 2,
            Self::U4 | Self::I4 | Self::F4 => 4,
            Self::U8 | Self::I8 | Self::F8 => 8,
        }
    }

    /// True if the numbers have no sign and no fraction.
    pub const fn is_unsigned(self) -> bool {
        matches!(self, Self::U1 | Self::U2 | Self::U4 | Self::U8)
    }

    /// True if the numbers have no fraction.
    pub const fn is_whole(self) -> bool {
        !matches!(self, Self::F4 | Self::F8)
    }
}
