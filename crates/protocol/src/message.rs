//! What the machines say to each other.

use alloc::{sync::Arc, vec::Vec};
use evb_core::{EventId, Mark, NodeId, Sighting, SourceId};

/// One source's part of one event, or the statement that it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment<B> {
    /// The event.
    pub event: EventId,
    /// The readout unit it comes from.
    pub source: SourceId,
    /// Payload length in bytes.
    pub length: u32,
    /// CRC-32C of the payload, made where the fragment entered the event builder.
    pub checksum: u32,
    /// What the fragment says of itself beside its event number, if anything.
    pub mark: Option<Mark>,
    /// Whether the payload is good.
    pub status: FragmentStatus,
    /// The payload's handle: the driver's business.
    pub payload: B,
}

/// Whether a fragment's payload is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FragmentStatus {
    /// As it came from the front end, and checked.
    Good = 0,
    /// There, but its checksum or inner structure is wrong.
    Corrupted = 1,
    /// Not there: the readout unit says that it has none.
    Missing = 2,
    /// Cut off: the original was above the largest size.
    Oversized = 3,
    /// Good in itself, but its mark is not that of the other fragments of its event.
    Mismatched = 4,
}

/// What a readout unit has seen of a source whose numbers nobody can place yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighted {
    /// The turns of the numbering before: a source that starts to count again begins a new segment.
    pub segment: u32,
    /// The source said itself that it started to count again.
    pub declared: bool,
    /// No more fragments of this segment will come.
    pub last: bool,
    /// Bits of a number.
    pub bits: u8,
    /// The last event that the source had before this segment, 0 for none.
    pub after: EventId,
    /// The number at position 0 of the segment.
    pub number: u64,
    /// Positions of fragments in the segment and their marks, those that were not told before.
    pub fragments: Arc<[Sighting]>,
}

/// One event and the builder it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The event.
    pub event: EventId,
    /// Its builder.
    pub builder: NodeId,
}

/// One event that a builder has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The event.
    pub event: EventId,
    /// How it ended.
    pub ending: Ending,
}

/// How an event ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ending {
    /// Stored with a fragment missing or bad.
    Incomplete = 0,
    /// Stored with every fragment there and good.
    Complete = 1,
    /// Rejected after the first phase: the other fragments were never asked for, and nothing is stored.
    Rejected = 2,
}

/// A message between machines. Lists are shared, so that a broadcast costs one list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message<B> {
    /// Builder to event manager: the builder can take this many more events.
    Request {
        /// Number of events.
        slots: u32,
    },
    /// Builder to event manager: these events are built and stored, or rejected.
    Done(Arc<[Completion]>),
    /// Readout unit to event manager: fragments are there up to this event.
    Available {
        /// The last event with a fragment.
        through: EventId,
        /// The last event that the source claims by a leap of its counter; `through` without a leap. It counts when
        /// another source has it, too.
        claim: EventId,
        /// No more will come.
        last: bool,
    },
    /// Readout unit to event manager: which events are these?
    Sighted(Arc<Sighted>),
    /// Event manager to one readout unit: the event of position 0 of a segment.
    Align {
        /// The segment that it is an answer for.
        segment: u32,
        /// The event of position 0; one below 1 says that the run begins after it. `None` when nothing tells.
        first: Option<i64>,
    },
    /// Event manager to all readout units: tell the marks of your events, or do so no longer.
    Compare(bool),
    /// Readout unit to event manager: marks of events, those that were not told before.
    Marks(Arc<[(EventId, Mark)]>),
    /// Readout unit to event manager: the buffer is above the busy threshold, or free again.
    Busy(bool),
    /// Event manager to all readout units: events up to this one are triggered.
    Readout {
        /// The last triggered event.
        through: EventId,
    },
    /// Event manager to all readout units (push): send these events to their builders.
    Assign(Arc<[Assigned]>),
    /// Event manager to one builder: these events are yours.
    Grant(Arc<[EventId]>),
    /// Builder to readout unit (pull and phased): send me these events.
    Pull(Arc<[EventId]>),
    /// Builder to readout unit: your fragments of these events have not come.
    Ask {
        /// The number of the question, counted from 1.
        number: u32,
        /// The last question whose answer has come, 0 for none. What was sent before that answer has come, or is lost.
        heard: u32,
        /// The events, at least one.
        events: Arc<[EventId]>,
    },
    /// Readout unit to builder: the answer to a question. It travels behind the fragments that were sent before it.
    Answer {
        /// The number of the question.
        number: u32,
        /// Events of the question whose fragments are not there yet. They are sent when they come.
        pending: Arc<[EventId]>,
    },
    /// Builder to event manager: this node was away for long. Is it still a builder of the run?
    Away {
        /// The number of the question.
        number: u32,
    },
    /// Event manager to builder: the answer to [`Message::Away`].
    Standing {
        /// The number of the question.
        number: u32,
        /// Whether the builder was not given up.
        stands: bool,
    },
    /// Event manager to all builders: a readout unit is dead, or has come back. A builder believes nobody else, since it
    /// may itself be the one that was cut off.
    Unit {
        /// The readout unit.
        node: NodeId,
        /// Whether it lives.
        alive: bool,
    },
    /// Event manager to a readout unit that has come back: the events before this one are over.
    Resume {
        /// The first event that is not over.
        first: EventId,
    },
    /// Event manager to all readout units: these events are done, forget them.
    Clear(Arc<[EventId]>),
    /// Readout unit to builder: one fragment.
    Fragment(Fragment<B>),
    /// Readout unit to builder: several fragments in one packet.
    Packet(Vec<Fragment<B>>),
}

impl<B> Message<B> {
    /// Whether the message travels as fragments do, and not as control: an answer must not overtake them.
    pub const fn is_data(&self) -> bool {
        matches!(self, Self::Fragment(_) | Self::Packet(_) | Self::Answer { .. })
    }
}
