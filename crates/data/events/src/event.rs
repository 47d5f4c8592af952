//! Events and fragments, written and read.

use bytes::Bytes;
use evb_core::{EventId, FragmentStatus as Status, Mark, SourceId};

/// What an event is, beside its fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventInfo {
    /// Its number. In a file of fragments that were set apart, the number of the record.
    pub id: EventId,
    /// Time of the trigger by the clock of the host, in nanoseconds since 1970-01-01 UTC. In a file of fragments that
    /// were set apart, the time of arrival.
    pub triggered: Option<u64>,
    /// Time of the trigger by the clock of the sources, in their own unit.
    pub source_time: Option<u64>,
}

/// An event without times.
impl From<EventId> for EventInfo {
    fn from(id: EventId) -> Self {
        Self { id, triggered: None, source_time: None }
    }
}

/// Why a fragment belongs to no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ApartReason {
    /// A second fragment with the same number.
    Duplicate = 1,
    /// Its number fits neither those before nor those after it.
    OutOfSequence = 2,
    /// Its source could not tell which events its fragments belong to.
    OutOfStep = 3,
    /// It is from before the first event that all sources had.
    Early = 4,
    /// Its event was over.
    Late = 5,
    /// Its mark is not that of its event.
    Mismatch = 6,
    /// It claims the event of another fragment of its source, with a different content.
    Disputed = 7,
    /// Its event was not known when the run ended.
    Unplaced = 8,
    /// Too few other sources had a fragment at its time.
    Alone = 9,
    /// By its time it could belong to several events, or its event could have another fragment of its source.
    Ambiguous = 10,
    /// There was no trigger at its time.
    OutOfWindow = 11,
    /// The bytes are of no fragment: they were between two frames.
    Skipped = 12,
    /// Another reason.
    Other = 255,
}

impl ApartReason {
    /// All reasons, in the order of their bytes.
    pub const ALL: [Self; 13] = [
        Self::Duplicate,
        Self::OutOfSequence,
        Self::OutOfStep,
        Self::Early,
        Self::Late,
        Self::Mismatch,
        Self::Disputed,
        Self::Unplaced,
        Self::Alone,
        Self::Ambiguous,
        Self::OutOfWindow,
        Self::Skipped,
        Self::Other,
    ];

    /// The reason with this byte. `None` for 0, the byte of a fragment of an event.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        (byte > 0).then(|| Self::ALL.into_iter().find(|reason| *reason as u8 == byte).unwrap_or(Self::Other))
    }

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::OutOfSequence => "out_of_sequence",
            Self::OutOfStep => "out_of_step",
            Self::Early => "early",
            Self::Late => "late",
            Self::Mismatch => "mismatch",
            Self::Disputed => "disputed",
            Self::Unplaced => "unplaced",
            Self::Alone => "alone",
            Self::Ambiguous => "ambiguous",
            Self::OutOfWindow => "out_of_window",
            Self::Skipped => "skipped",
            Self::Other => "other",
        }
    }
}

/// A fragment to be written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FragmentRef<'a> {
    /// The source it comes from.
    pub source: SourceId,
    /// The status of the payload.
    pub status: Status,
    /// CRC-32C of the payload, as it arrived with the fragment. It is not checked again for a good fragment.
    pub checksum: u32,
    /// The number that its source gave it, if the source numbers its fragments.
    pub counter: Option<u64>,
    /// Its mark, if it carries one.
    pub mark: Option<Mark>,
    /// Why it belongs to no event; `None` for a fragment of an event.
    pub apart: Option<ApartReason>,
    /// The payload. The writer copies a small one, and refers to a large one until the kernel has it.
    pub bytes: &'a Bytes,
}

impl<'a> FragmentRef<'a> {
    /// A fragment of an event, without number and mark.
    pub const fn new(source: SourceId, status: Status, checksum: u32, bytes: &'a Bytes) -> Self {
        Self { source, status, checksum, counter: None, mark: None, apart: None, bytes }
    }
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
    /// The number that its source gave it.
    pub counter: Option<u64>,
    /// Its mark.
    pub mark: Option<Mark>,
    /// Why it belongs to no event; `None` for a fragment of an event.
    pub apart: Option<ApartReason>,
    /// The payload as it came.
    pub bytes: Bytes,
}

/// An event read from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number.
    pub id: EventId,
    /// Time of the trigger by the clock of the host, in nanoseconds since 1970-01-01 UTC; see [`EventInfo`].
    pub triggered: Option<u64>,
    /// Time of the trigger by the clock of the sources.
    pub source_time: Option<u64>,
    /// True if every fragment was there and good when the event was written.
    pub complete: bool,
    /// Offset of its record, in bytes from the start of the file.
    pub offset: u64,
    /// Offset of the first payload; the others follow, each padded to a multiple of 8 bytes.
    pub payload_offset: u64,
    /// Its fragments in the order in which they were written.
    pub fragments: Vec<Fragment>,
}

impl Event {
    /// Bytes of all payloads.
    pub fn payload_bytes(&self) -> u64 {
        self.fragments.iter().map(|fragment| fragment.bytes.len() as u64).sum()
    }

    /// Returns true if this is no event, but the record of a fragment that was set apart.
    pub fn is_apart(&self) -> bool {
        self.fragments.iter().any(|fragment| fragment.apart.is_some())
    }
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
