//! The status of a fragment.

use core::fmt;

/// The status of a fragment's payload. Its byte is the same in messages, in bundles and in event files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FragmentStatus {
    /// Unchanged since the front end, and checked.
    Good = 0,
    /// Present, but with a wrong checksum or inner structure.
    Corrupted = 1,
    /// Absent: the source has none, or it did not arrive in time.
    Missing = 2,
    /// Cut off: the original was above the largest size.
    Oversized = 3,
    /// Good by itself, but its mark differs from that of the other fragments of its event.
    Mismatched = 4,
}

impl FragmentStatus {
    /// All statuses, in the order of their bytes.
    pub const ALL: [Self; 5] = [Self::Good, Self::Corrupted, Self::Missing, Self::Oversized, Self::Mismatched];

    /// The status with this byte, or `None` if the byte has no meaning.
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Good),
            1 => Some(Self::Corrupted),
            2 => Some(Self::Missing),
            3 => Some(Self::Oversized),
            4 => Some(Self::Mismatched),
            _ => None,
        }
    }

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Corrupted => "corrupted",
            Self::Missing => "missing",
            Self::Oversized => "oversized",
            Self::Mismatched => "mismatched",
        }
    }
}

impl fmt::Display for FragmentStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
