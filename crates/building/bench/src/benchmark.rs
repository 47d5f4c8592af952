//! The benchmarks: what each of them sends, and between how many nodes.

use evb_core::Span;
use evb_patterns::{Pattern, Start};
use serde::{Deserialize, Serialize};

/// The benchmarks: those of ATLAS DAQ note 77, the standalone programs of the CMS event builder, and the traffic of its
/// demonstrator of 1999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Benchmark {
    /// One node sends a message, another sends it back.
    PingPong,
    /// Two nodes send to each other at once.
    TwoWay,
    /// Every node sends to every other at once.
    AllToAll,
    /// Half of the nodes send to the other half, in fixed pairs.
    Pairs,
    /// One node sends a message to each of the others.
    Outfarming,
    /// One node sends the same message to all others, by the layer's own broadcast if it has one.
    Broadcast,
    /// All nodes but one send to that one.
    Funnel,
    /// A funnel whose receiver computes for each event.
    PushFarm,
    /// One node asks all others for data, then for those of the next event, and computes.
    PullFarm,
    /// One node sends to another as fast as possible, or at a given rate.
    OneWay,
    /// Ping-pong with several messages under way.
    Roundtrip,
    /// Half of the nodes each send to all of the other half in turn (MStreamIO).
    Stream,
    /// Half of the nodes each send to one node of the other half, as they are assigned.
    Assigned,
    /// Half of the nodes send to nodes of the other half that are drawn at random.
    Random,
    /// Event building without a manager: half of the nodes send to all of the other half in turn, and all begin with the
    /// same one.
    Rotation,
    /// A rotation whose sender n begins with receiver n, so that no two senders send to the same receiver.
    RetardedRotation,
    /// Second-level trigger: for each event one node of the second half asks some of the first half for their data. Events
    /// come at a rate.
    Gather,
    /// Second-level trigger: for each event some nodes of the first half send their data to one of the second half, which
    /// has not asked for them.
    GatherUnasked,
}

impl Benchmark {
    /// All benchmarks, those of the note first.
    pub const ALL: [Self; 18] = [
        Self::PingPong,
        Self::TwoWay,
        Self::AllToAll,
        Self::Pairs,
        Self::Outfarming,
        Self::Broadcast,
        Self::Funnel,
        Self::PushFarm,
        Self::PullFarm,
        Self::OneWay,
        Self::Roundtrip,
        Self::Stream,
        Self::Assigned,
        Self::Random,
        Self::Rotation,
        Self::RetardedRotation,
        Self::Gather,
        Self::GatherUnasked,
    ];

    /// The benchmarks of ATLAS DAQ note 77.
    pub const NOTE: &[Self] = Self::ALL.first_chunk::<9>().expect("there are nine").as_slice();

    /// The name on the command line and in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::PingPong => "ping-pong",
            Self::TwoWay => "two-way",
            Self::AllToAll => "all-to-all",
            Self::Pairs => "pairs",
            Self::Outfarming => "outfarming",
            Self::Broadcast => "broadcast",
            Self::Funnel => "funnel",
            Self::PushFarm => "push-farm",
            Self::PullFarm => "pull-farm",
            Self::OneWay => "one-way",
            Self::Roundtrip => "roundtrip",
            Self::Stream => "stream",
            Self::Assigned => "assigned",
            Self::Random => "random",
            Self::Rotation => "rotation",
            Self::RetardedRotation => "rotation-retarded",
            Self::Gather => "gather",
            Self::GatherUnasked => "gather-unasked",
        }
    }

    /// The largest usable number of nodes up to `most`; `None` if `most` is too small.
    #[must_use]
    pub fn nodes_of(self, most: u16) -> Option<u16> {
        let nodes = match self {
            Self::PingPong | Self::TwoWay | Self::OneWay | Self::Roundtrip => most.min(2),
            Self::Pairs
            | Self::Stream
            | Self::Assigned
            | Self::Random
            | Self::Rotation
            | Self::RetardedRotation
            | Self::Gather
            | Self::GatherUnasked => most & !1,
            _ => most,
        };
        (nodes >= 2).then_some(nodes)
    }

    /// The numbers of nodes of ATLAS DAQ note 77 (section 2) for this pattern: its numbers of receivers and a sender,
    /// four senders and a receiver, or its numbers of nodes.
    #[must_use]
    pub const fn note_nodes(self) -> &'static [u16] {
        match self {
            Self::PingPong | Self::TwoWay | Self::OneWay | Self::Roundtrip => &[2],
            Self::Outfarming | Self::Broadcast => &[2, 3, 5, 9, 17, 33, 65],
            Self::Funnel | Self::PushFarm | Self::PullFarm => &[5],
            Self::Pairs
            | Self::AllToAll
            | Self::Stream
            | Self::Assigned
            | Self::Random
            | Self::Rotation
            | Self::RetardedRotation
            | Self::Gather
            | Self::GatherUnasked => &[2, 4, 8, 16, 32, 64],
        }
    }

    /// Number of senders among `nodes`.
    #[must_use]
    pub const fn senders(self, nodes: u16) -> u16 {
        match self {
            Self::Outfarming | Self::Broadcast => 1,
            Self::Funnel | Self::PushFarm | Self::PullFarm => nodes - 1,
            _ => nodes / 2,
        }
    }

    /// Default number of messages that a sender has under way. In a funnel and a push-farm one event is on its way
    /// while the receiver is busy with another, as in the note.
    #[must_use]
    pub const fn default_window(self) -> u32 {
        match self {
            Self::Funnel | Self::PushFarm => 2,
            Self::Roundtrip => 8,
            _ => 1,
        }
    }

    /// Returns true if a farm computes.
    #[must_use]
    pub const fn computes(self) -> bool {
        matches!(self, Self::PushFarm | Self::PullFarm)
    }

    /// Returns true if a cycle is a round trip.
    #[must_use]
    pub const fn is_round_trip(self) -> bool {
        matches!(self, Self::PingPong | Self::Roundtrip)
    }

    /// Returns true if the rate of senders can be set.
    #[must_use]
    pub fn takes_rate(self) -> bool {
        !self.pattern(Span::ZERO, (1, 1), Vec::new()).has_cycles()
    }

    /// Returns true if a rate of events must be set: no node knows when an event has ended everywhere, so that the next
    /// one could begin.
    #[must_use]
    pub const fn needs_rate(self) -> bool {
        matches!(self, Self::Gather | Self::GatherUnasked)
    }

    /// The pattern of the machines. `compute` is the time that a farm computes for each event, an event is gathered from
    /// `least` to `most` senders, and `destinations` are the receivers of assigned senders.
    pub(crate) fn pattern(self, compute: Span, (least, most): (u16, u16), destinations: Vec<u16>) -> Pattern {
        match self {
            Self::PingPong | Self::Roundtrip => Pattern::PingPong,
            Self::TwoWay => Pattern::TwoWay,
            Self::AllToAll => Pattern::AllToAll,
            Self::Pairs | Self::OneWay => Pattern::Pairs,
            Self::Outfarming => Pattern::Outfarming,
            Self::Broadcast => Pattern::Broadcast,
            Self::Funnel => Pattern::Funnel,
            Self::PushFarm => Pattern::PushFarm { work: compute },
            Self::PullFarm => Pattern::PullFarm { work: compute },
            Self::Stream => Pattern::Stream,
            Self::Assigned => Pattern::Assigned { destinations },
            Self::Random => Pattern::Random,
            Self::Rotation => Pattern::Rotation { start: Start::Simultaneous },
            Self::RetardedRotation => Pattern::Rotation { start: Start::Retarded },
            Self::Gather => Pattern::Gather { least, most, processors: 1, ask: true },
            Self::GatherUnasked => Pattern::Gather { least, most, processors: 1, ask: false },
        }
    }
}
