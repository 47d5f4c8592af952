//! The messages between the machines.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use evb_core::{EventId, Mark, NodeId, Sighting, SourceId, Time};

/// One source's part of one event, or the statement that the source has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment<B> {
    /// The event.
    pub event: EventId,
    /// The readout unit it comes from.
    pub source: SourceId,
    /// Payload length in bytes.
    pub length: u32,
    /// CRC-32C of the payload, computed where the fragment entered the event builder.
    pub checksum: u32,
    /// The mark of the fragment, if it carries one.
    pub mark: Option<Mark>,
    /// The status of the payload.
    pub status: FragmentStatus,
    /// The handle of the payload; only the driver looks into it.
    pub payload: B,
}

/// Some bytes of a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece<B> {
    /// Bytes of the payload before this piece.
    pub offset: u32,
    /// Bytes of this piece.
    pub bytes: u32,
    /// The fragment, with the bytes of this piece only as its payload. Length and checksum are those of the whole.
    pub of: Fragment<B>,
}

/// The status of a fragment's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FragmentStatus {
    /// Unchanged since the front end, and checked.
    Good = 0,
    /// Present, but with a wrong checksum or inner structure.
    Corrupted = 1,
    /// Absent: the readout unit says that it has none.
    Missing = 2,
    /// Cut off: the original was above the largest size.
    Oversized = 3,
    /// Good by itself, but its mark differs from that of the other fragments of its event.
    Mismatched = 4,
}

/// A report of fragments whose events are not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighted {
    /// Number of the segment: how often the numbering has turned before. A source that restarts its counter begins a
    /// new segment.
    pub segment: u32,
    /// The source itself announced that it restarted its counter.
    pub declared: bool,
    /// No more fragments of this segment will come.
    pub last: bool,
    /// Bits of a number.
    pub bits: u8,
    /// The last event that the source had before this segment, 0 for none.
    pub after: EventId,
    /// The number at position 0 of the segment.
    pub number: u64,
    /// Positions in the segment, and marks, of fragments that were not reported before.
    pub fragments: Arc<[Sighting]>,
}

/// The number of events in a block, from a block on. To the machines, a block is one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// The first block of this size, counted from 1.
    pub from: EventId,
    /// Its first event, counted from 1.
    pub first: EventId,
    /// Events in each block, at least 1.
    pub events: u32,
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
    /// The outcome.
    pub ending: Ending,
}

/// The outcome of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ending {
    /// Stored with a fragment missing or bad.
    Incomplete = 0,
    /// Stored with every fragment there and good.
    Complete = 1,
    /// Rejected after the event was built, or after its first phase: then the other fragments were never requested.
    /// Nothing is stored.
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
    /// Builder to event manager: these events are stored, or rejected.
    Done(Arc<[Completion]>),
    /// Readout unit to event manager: fragments up to this event are available.
    Available {
        /// The last event with a fragment.
        through: EventId,
        /// The last event that the source claims after a leap of its counter; equal to `through` without a leap. It
        /// counts only if another source has it, too.
        claim: EventId,
        /// No more fragments will come.
        last: bool,
    },
    /// Readout unit to event manager: a question for the events of these fragments.
    Sighted(Arc<Sighted>),
    /// Event manager to one readout unit: the event of position 0 of a segment.
    Align {
        /// The segment that the answer is for.
        segment: u32,
        /// The event of position 0. A value below 1 means that the run begins after it. `None` means that the events
        /// cannot be found out.
        first: Option<i64>,
    },
    /// Event manager to all readout units: report the marks of your events, or stop doing so.
    Compare(bool),
    /// Readout unit to event manager: marks of events that were not reported before.
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
    /// Event manager to one builder: the builder owns these events.
    Grant(Arc<[EventId]>),
    /// Builder to readout unit (pull and phased): send me these events.
    Pull(Arc<[EventId]>),
    /// Builder to readout unit: the fragments of these events have not arrived.
    Ask {
        /// The number of the question, counted from 1.
        number: u32,
        /// The last question whose answer has arrived, 0 for none. A fragment sent before that answer has arrived or is
        /// lost.
        heard: u32,
        /// The events, at least one.
        events: Arc<[EventId]>,
    },
    /// Readout unit to builder: the answer to a question. It travels behind the fragments that were sent before it.
    Answer {
        /// The number of the question.
        number: u32,
        /// Events of the question whose fragments are not read yet. They are sent later.
        pending: Arc<[EventId]>,
    },
    /// Builder to event manager: the node did not run for a long time, and asks whether it still belongs to the run.
    Away {
        /// The number of the question.
        number: u32,
    },
    /// Event manager to builder: the answer to [`Message::Away`].
    Standing {
        /// The number of the question.
        number: u32,
        /// True if the builder was not given up.
        stands: bool,
    },
    /// Event manager to all builders: a readout unit is dead, or has come back. A builder believes nobody else, since
    /// it may itself be the one that was cut off.
    Unit {
        /// The readout unit.
        node: NodeId,
        /// True if the readout unit is alive.
        alive: bool,
    },
    /// Event manager to a readout unit that has come back: the events before this one have ended.
    Resume {
        /// The first event that has not ended.
        first: EventId,
    },
    /// Event manager to all readout units: these events have ended and may be forgotten.
    Clear(Arc<[EventId]>),
    /// Readout unit to builder: one fragment.
    Fragment(Fragment<B>),
    /// Readout unit to builder: several fragments in one packet.
    Packet(Vec<Fragment<B>>),
    /// Readout unit to builder: bytes of a fragment that does not fit into one bucket.
    Piece(Box<Piece<B>>),
    /// Readout unit to builder: the end of a bucket.
    Slot {
        /// Nothing was in the bucket.
        empty: bool,
        /// The round, when units keep step by rounds; else 0.
        round: u64,
    },
    /// Builder to readout unit: the next bucket may come.
    Credit {
        /// The last bucket of every readout unit was empty.
        calm: bool,
    },
    /// Builder to event manager: its bucket of a round has come.
    Taken {
        /// The round.
        round: u64,
        /// Nothing was in the bucket.
        empty: bool,
    },
    /// Event manager to all readout units: a round begins.
    Round {
        /// The number of the round, counted from 1.
        number: u64,
        /// The last bucket of every readout unit for every builder was empty.
        calm: bool,
    },
    /// Event manager to all units, and builder to readout units: the number of events in a block, from a block on. It comes
    /// before every message about these blocks, on each way. Builders pass it on for that, before they ask for events.
    BlockSize(BlockSize),
    /// Readout unit to event manager: a question for its time.
    TimeAsked {
        /// The unit's time.
        asked: Time,
    },
    /// Event manager to readout unit: the answer to [`Message::TimeAsked`].
    TimeTold {
        /// The unit's time of the question.
        asked: Time,
        /// The manager's time of the answer.
        manager: Time,
    },
}

impl<B> Message<B> {
    /// Returns true if the message must keep its order with fragments. An answer must not overtake them.
    pub const fn is_data(&self) -> bool {
        matches!(self, Self::Fragment(_) | Self::Packet(_) | Self::Piece(_) | Self::Slot { .. } | Self::Answer { .. })
    }
}
