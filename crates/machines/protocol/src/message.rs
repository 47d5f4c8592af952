//! The messages between the machines.

use crate::wire::{Body, Field, HEAD_BYTES, Head, Layout, WireError};
use alloc::{boxed::Box, sync::Arc, vec::Vec};
use evb_coincidence::Outcome;
use evb_core::{Counter, EventId, FragmentStatus, Mark, NodeId, Sighting, SourceId, Time};

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
    /// The number that the source gave the fragment, if the source numbers its fragments by itself.
    pub counter: Option<Counter>,
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
    /// The number at position 0 of the segment, counted from the source's first one if that is known.
    pub number: u64,
    /// Numbers from the last fragment with an event to position 0, if it is ahead by value and the restart was not
    /// announced; else 0.
    pub ahead: u32,
    /// Positions in the segment, and marks, of fragments that were not reported before.
    pub fragments: Arc<[Sighting]>,
}

/// A report of the times of fragments whose events are to be found by time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Times {
    /// The serial number of the first fragment of the report, counted from 1 in the order of arrival.
    pub first: u64,
    /// Clock values of the fragments in ticks, unwrapped: they wrap at 64 bits only.
    pub ticks: Arc<[u64]>,
    /// No fragment before this clock value comes any more, if the source is silent.
    pub frontier: Option<u64>,
    /// The buffer is full of fragments without an outcome, so that no more come.
    pub full: bool,
    /// No more fragments will come.
    pub last: bool,
}

/// The outcome of one fragment that was reported with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Its serial number.
    pub serial: u64,
    /// The event that it belongs to, or the reason why there is none.
    pub outcome: Outcome,
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

messages! {
    /// A message between machines. Lists are shared, so that a broadcast costs one list.
    #[derive(Clone, Debug, PartialEq, Eq)]
    kinds {
        /// Readout unit to builder: one fragment.
        data 10 Fragment(fragment: Fragment<B> => body),
        /// Builder to event manager: the builder can take this many more events.
        control 1 Request {
            /// Number of events.
            slots: u32 => length,
        },
        /// Builder to event manager: these events are stored, or rejected.
        control 2 Done(completions: Arc<[Completion]> => body),
        /// Readout unit to event manager: fragments up to this event are available.
        control 3 Available {
            /// The last event with a fragment.
            through: EventId => event,
            /// The last event that the source claims after a leap of its counter; equal to `through` without a leap. It
            /// counts only if another source has it, too.
            claim: EventId => second,
            /// No more fragments will come.
            last: bool => flag,
        },
        /// Readout unit to event manager: the buffer is above the busy threshold, or free again.
        control 4 Busy(busy: bool => flag),
        /// Event manager to all readout units: events up to this one are triggered.
        control 5 Readout {
            /// The last triggered event.
            through: EventId => event,
        },
        /// Event manager to all readout units (push): send these events to their builders.
        control 6 Assign(assigned: Arc<[Assigned]> => body),
        /// Event manager to one builder: the builder owns these events.
        control 7 Grant(events: Arc<[EventId]> => body),
        /// Builder to readout unit (pull and phased): send me these events.
        control 8 Pull(events: Arc<[EventId]> => body),
        /// Event manager to all readout units: these events have ended and may be forgotten.
        control 9 Clear(events: Arc<[EventId]> => body),
        /// Readout unit to event manager: a question for the events of these fragments.
        control 11 Sighted(sighted: Arc<Sighted> => body),
        /// Event manager to one readout unit: the event of position 0 of a segment.
        control 12 Align {
            /// The segment that the answer is for.
            segment: u32 => length,
            /// The event of position 0. A value below 1 means that the run begins after it. `None` means that the
            /// events cannot be determined.
            first: Option<i64> => (flag, event),
        },
        /// Event manager to all readout units: report the marks of your events, or stop doing so.
        control 13 Compare(wanted: bool => flag),
        /// Readout unit to event manager: marks of events that were not reported before. Empty when its source has ended and
        /// all have been reported.
        control 14 Marks(marks: Arc<[(EventId, Mark)]> => body),
        /// Builder to readout unit: the fragments of these events have not arrived.
        control 15 Ask {
            /// The number of the question, counted from 1.
            number: u32 => checksum,
            /// The last question whose answer has arrived, 0 for none. A fragment sent before that answer has arrived
            /// or is lost.
            heard: u32 => mark,
            /// The events, at least one.
            events: Arc<[EventId]> => body,
        },
        /// Readout unit to builder: the answer to a question. It travels behind the fragments that were sent before it.
        data 16 Answer {
            /// The number of the question.
            number: u32 => checksum,
            /// Events of the question whose fragments are not read yet. They are sent later.
            pending: Arc<[EventId]> => body,
        },
        /// Builder to event manager: the node did not run for a long time, and asks whether it still belongs to the
        /// run.
        control 17 Away {
            /// The number of the question.
            number: u32 => checksum,
        },
        /// Event manager to builder: the answer to [`Message::Away`].
        control 18 Membership {
            /// The number of the question.
            number: u32 => checksum,
            /// True if the builder was not given up.
            is_member: bool => flag,
        },
        /// Event manager to a readout unit that has come back: the events before this one have ended.
        control 19 Resume {
            /// The first event that has not ended.
            first: EventId => event,
        },
        /// Event manager to all builders: a readout unit is dead, or has come back. A builder believes only the event
        /// manager, since the builder may itself be the one that was cut off.
        control 20 Unit {
            /// The readout unit.
            node: NodeId => source,
            /// True if the readout unit is alive.
            alive: bool => flag,
        },
        /// Readout unit to builder: bytes of a fragment that does not fit into one bucket.
        data 21 Piece(piece: Box<Piece<B>> => body),
        /// Readout unit to builder: the end of a bucket.
        data 22 Slot {
            /// Nothing was in the bucket.
            empty: bool => flag,
            /// The round, when units keep step by rounds; else 0.
            round: u64 => event,
        },
        /// Builder to readout unit: the next bucket may come.
        control 23 Credit {
            /// The last bucket of every readout unit was empty.
            calm: bool => flag,
        },
        /// Builder to event manager: its bucket of a round has come.
        control 24 Taken {
            /// The round.
            round: u64 => event,
            /// Nothing was in the bucket.
            empty: bool => flag,
        },
        /// Event manager to all readout units: a round begins.
        control 25 Round {
            /// The number of the round, counted from 1.
            number: u64 => event,
            /// The last bucket of every readout unit for every builder was empty.
            calm: bool => flag,
        },
        /// Readout unit to event manager: a question for its time.
        control 26 TimeRequest {
            /// The unit's time, in picoseconds on the wire.
            asked: Time => event,
        },
        /// Event manager to readout unit: the answer to [`Message::TimeRequest`].
        control 27 TimeAnswer {
            /// The unit's time of the question.
            asked: Time => event,
            /// The manager's time of the answer.
            manager: Time => second,
        },
        /// Event manager to all units, and builder to readout units: the number of events in a block, from a block on.
        /// It comes before every message about these blocks, on each route. Builders forward it for that, before they
        /// ask for events.
        control 28 BlockSize(size: BlockSize => (event, second, length)),
        /// Readout unit to event manager: the times of fragments.
        control 29 Times(times: Arc<Times> => body),
        /// Event manager to one readout unit: the outcomes of fragments. Of the events up to the last one that is settled,
        /// the source has no fragments but those that it has been told.
        control 30 Matched {
            /// The last settled event.
            through: EventId => event,
            /// Outcomes that were not reported before.
            outcomes: Arc<[Settled]> => body,
        },
    }
    packet {
        /// Readout unit to builder: several fragments in one packet. On the wire they travel one after another.
        Packet(fragments: Vec<Fragment<B>>)
    }
}
