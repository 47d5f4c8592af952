//! Events and fragments, on their way in and out.

use bytes::Bytes;
use evb_core::{EventId, SourceId};
use std::fmt;

/// Whether a fragment's payload is good. The numbers are those of the wire format's fragment status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Status {
    /// As it came from the front end, and checked.
    Good = 0,
    /// There, but its checksum or inner structure was wrong when it came.
    Corrupted = 1,
    /// Not there: the source has none, or it did not come in time.
    Missing = 2,
    /// Cut off: the original was above the largest size.
    Oversized = 3,
    /// Good in itself, but its second identity is not that of the other fragments of its event.
    Mismatched = 4,
}

impl Status {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Good, Self::Corrupted, Self::Missing, Self::Oversized, Self::Mismatched];

    /// The status with this number.
    pub const fn from_number(number: u8) -> Option<Self> {
        match number {
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

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One fragment on its way into a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentRef<'a> {
    /// The source it comes from.
    pub source: SourceId,
    /// Whether its payload is good.
    pub status: Status,
    /// CRC-32C of the payload, as it came with the fragment. It is taken on trust for a good fragment.
    pub checksum: u32,
    /// The payload.
    pub bytes: &'a [u8],
}

/// One fragment out of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The source it comes from.
    pub source: SourceId,
    /// Whether its payload was good when it was written.
    pub status: Status,
    /// The checksum that came with the fragment.
    pub checksum: u32,
    /// The payload as it came.
    pub bytes: Bytes,
}

/// One event out of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number.
    pub id: EventId,
    /// Whether every fragment was there and good when it was written.
    pub complete: bool,
    /// Where its record begins, in bytes from the start of the file.
    pub offset: u64,
    /// Its fragments in the order in which they were written.
    pub fragments: Vec<Fragment>,
}

/// What a reader comes across.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// An event, every byte as it was written.
    Event(Event),
    /// An event whose headers are right, but some of whose payload bytes changed after they were written.
    Damaged {
        /// The event, with the bytes as they are now.
        event: Event,
        /// The sources whose bytes changed.
        sources: Vec<SourceId>,
    },
    /// Bytes in which no event can be recognised.
    Lost(LostRange),
}

/// Bytes in which no event can be recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRange {
    /// Where they begin, in bytes from the start of the file.
    pub offset: u64,
    /// How many bytes they are.
    pub length: u64,
    /// The events that were there, if the file has its index. Without one there was at least a part of one event.
    pub events: Vec<EventId>,
    /// Whether the file simply ends here, as after a crash.
    pub tail: bool,
}
