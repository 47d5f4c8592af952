//! What is measured at once: one pattern with one size on some nodes.

use evb_core::{NodeId, NodeRange, Span};
use evb_patterns::{Pattern, TrafficConfig};
use serde::{Deserialize, Serialize};

/// Length of messages that carry no data: requests and the like (ATLAS DAQ note 77, section 2: 64 bytes).
pub const CONTROL_BYTES: usize = 64;

/// One measurement. All nodes of a launch get it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Who sends to whom.
    pub benchmark: Benchmark,
    /// Number of nodes that take part: those from 0 on.
    pub nodes: u16,
    /// Length of a data message in bytes, at least [`wire::SMALLEST`](crate::SMALLEST_BYTES).
    pub size: usize,
    /// Time that the receiver of a farm computes for each event.
    pub compute: Span,
    /// Messages that a sender has under way at once, at least 1.
    pub window: u32,
    /// Rate at which each sender offers messages, per second; else it sends as fast as it goes.
    pub rate: Option<f64>,
    /// Time before the measurement begins.
    pub warmup: Span,
    /// Time that is measured.
    pub duration: Span,
    /// What nodes without work do.
    pub wait: Wait,
    /// Seed of every random stream.
    pub seed: u64,
}

/// The benchmarks: those of ATLAS DAQ note 77, and the standalone programs of the CMS event builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Benchmark {
    /// One node sends, another sends back.
    PingPong,
    /// Two nodes send to each other at once.
    TwoWay,
    /// Every node sends to every other at once.
    AllToAll,
    /// Half of the nodes send to the other half, in fixed pairs.
    Pairs,
    /// One node sends a message to each of the others.
    Outfarming,
    /// One node sends the same message to all others, by the layer's own broadcast where it has one.
    Broadcast,
    /// All nodes but one send to that one.
    Funnel,
    /// A funnel whose receiver computes for each event.
    PushFarm,
    /// One node asks all others for data, asks for those of the next event, and computes.
    PullFarm,
    /// One node sends to another as fast as it goes, or at a given rate.
    OneWay,
    /// Ping-pong with several messages under way.
    Roundtrip,
    /// Half of the nodes each send to all of the other half in turn (MStreamIO).
    Stream,
}

impl Benchmark {
    /// All of them, those of the note first.
    pub const ALL: [Self; 12] = [
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
    ];

    /// Those of ATLAS DAQ note 77.
    pub const NOTE: &[Self] = Self::ALL.first_chunk::<9>().expect("there are nine").as_slice();

    /// Its name, as on the command line and in records.
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
        }
    }

    /// The largest number of nodes up to `most` that it can use; none if they are too few.
    #[must_use]
    pub fn nodes_of(self, most: u16) -> Option<u16> {
        let nodes = match self {
            Self::PingPong | Self::TwoWay | Self::OneWay | Self::Roundtrip => most.min(2),
            Self::Pairs | Self::Stream => most & !1,
            _ => most,
        };
        (nodes >= 2).then_some(nodes)
    }

    /// The numbers of nodes of ATLAS DAQ note 77 (section 2), as this pattern needs them: so many receivers and a sender, four
    /// senders and a receiver, or so many nodes.
    #[must_use]
    pub const fn note_nodes(self) -> &'static [u16] {
        match self {
            Self::PingPong | Self::TwoWay | Self::OneWay | Self::Roundtrip => &[2],
            Self::Outfarming | Self::Broadcast => &[2, 3, 5, 9, 17, 33, 65],
            Self::Funnel | Self::PushFarm | Self::PullFarm => &[5],
            Self::Pairs | Self::AllToAll | Self::Stream => &[2, 4, 8, 16, 32, 64],
        }
    }

    /// How many of `nodes` send.
    #[must_use]
    pub const fn senders(self, nodes: u16) -> u16 {
        match self {
            Self::Outfarming | Self::Broadcast => 1,
            Self::Funnel | Self::PushFarm | Self::PullFarm => nodes - 1,
            _ => nodes / 2,
        }
    }

    /// Messages that a sender has under way when nobody says how many: in a funnel and a push-farm one event is on its way
    /// while the receiver is busy with another, as the note has it.
    #[must_use]
    pub const fn default_window(self) -> u32 {
        match self {
            Self::Funnel | Self::PushFarm => 2,
            Self::Roundtrip => 8,
            _ => 1,
        }
    }

    /// Whether a farm computes.
    #[must_use]
    pub const fn computes(self) -> bool {
        matches!(self, Self::PushFarm | Self::PullFarm)
    }

    /// Whether a cycle is a round trip.
    #[must_use]
    pub const fn is_round_trip(self) -> bool {
        matches!(self, Self::PingPong | Self::Roundtrip)
    }

    /// Whether senders can be told to keep to a rate.
    #[must_use]
    pub const fn takes_rate(self) -> bool {
        matches!(self, Self::OneWay | Self::Pairs | Self::Stream)
    }
}

/// What a node without work does. It is the same for all message layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// It looks again at once. With more nodes than cores it keeps others from working.
    Spin,
    /// It looks some times, then lets others run each time.
    Yield,
    /// It looks some times, lets others run some times, then sleeps until the layer wakes it.
    Sleep,
}

impl Wait {
    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Yield => "yield",
            Self::Sleep => "sleep",
        }
    }
}

impl Cell {
    /// What the receiver of a farm computes for each event, in microseconds.
    #[must_use]
    pub fn compute_us(&self) -> f64 {
        self.compute.0 as f64 / 1e6
    }

    /// What the machines are told.
    pub(crate) fn traffic(&self) -> TrafficConfig {
        let senders = self.benchmark.senders(self.nodes);
        TrafficConfig {
            senders: NodeRange { first: NodeId(0), count: senders },
            receivers: NodeRange { first: NodeId(senders), count: self.nodes - senders },
            pattern: self.pattern(),
            window: self.window,
            seed: self.seed,
        }
    }

    fn pattern(&self) -> Pattern {
        match self.benchmark {
            Benchmark::PingPong | Benchmark::Roundtrip => Pattern::PingPong,
            Benchmark::TwoWay => Pattern::TwoWay,
            Benchmark::AllToAll => Pattern::AllToAll,
            Benchmark::Pairs | Benchmark::OneWay => Pattern::Pairs,
            Benchmark::Outfarming => Pattern::Outfarming,
            Benchmark::Broadcast => Pattern::Broadcast,
            Benchmark::Funnel => Pattern::Funnel,
            Benchmark::PushFarm => Pattern::PushFarm { work: self.compute },
            Benchmark::PullFarm => Pattern::PullFarm { work: self.compute },
            Benchmark::Stream => Pattern::Stream,
        }
    }
}
