//! Events and fragments, written and read.

use bytes::Bytes;
use evb_core::{EventId, FragmentStatus as Status, SourceId};

/// A fragment to be written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentRef<'a> {
    /// The source it comes from.
    pub source: SourceId,
    /// The status of the payload.
    pub status: Status,
    /// CRC-32C of the payload, as it arrived with the fragment. It is not checked again for a good fragment.
    pub checksum: u32,
    /// The payload. The writer copies a small one, and refers to a large one until the kernel has it.
    pub bytes: &'a Bytes,
}

/// A fragment read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The source it comes from.
    pub source: SourceId,
    /// The status of the payload when it was written.
    pub status: Status,
    /// The checksum that came with the fragment.
    pub checksum: u32,
    /// The payload as it came.
    pub bytes: Bytes,
}

/// An event read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number.
    pub id: EventId,
    /// True if every fragment was there and good when the event was written.
    pub complete: bool,
    /// Offset of its record, in bytes from the start of the file.
    pub offset: u64,
    /// Its fragments in the order in which they were written.
    pub fragments: Vec<Fragment>,
}

/// An item found by a reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// An event whose bytes are all as they were written.
    Event(Event),
    /// An event whose headers are intact, but some of whose payload bytes changed after they were written.
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
    /// Offset of the range, in bytes from the start of the file.
    pub offset: u64,
    /// Length of the range in bytes.
    pub length: u64,
    /// The events that the range held, if the file has its index. Without an index the range held at least a part of
    /// one event.
    pub events: Vec<EventId>,
    /// True if the file ends with this range, as after a crash.
    pub tail: bool,
}
