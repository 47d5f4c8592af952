//! The traffic of a set of nodes.

use alloc::vec::Vec;
use evb_core::{NodeRange, Span};
use serde::{Deserialize, Serialize};

/// The traffic of one experiment. Every machine of it holds a copy.
///
/// There is at least one sender and one receiver, and the numbers of the pattern fit each other. The creator of a
/// configuration has checked that; an experiment file that breaks it is refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficConfig {
    /// The nodes that send data (in [`Pattern::Gather`]: the buffers).
    pub senders: NodeRange,
    /// The nodes that receive it (in [`Pattern::Gather`]: the processors).
    pub receivers: NodeRange,
    /// The pattern: which sender sends to which receiver, and when.
    pub pattern: Pattern,
    /// Messages that a saturating sender has under way at once, at least 1: it sends the next one when a message has
    /// left its host. In [`Pattern::Funnel`] and [`Pattern::PushFarm`] every sender keeps to it, and a message is under
    /// way until the receiver is done with its cycle. In [`Pattern::PingPong`] it is the depth of the pipeline: a
    /// message is under way until its answer is back.
    pub window: u32,
    /// Seed of every random stream.
    pub seed: u64,
}

/// The traffic pattern: which sender sends to which receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Pattern {
    /// Sender n always sends to receiver `destinations[n]`.
    Assigned {
        /// One index of a receiver for each sender, from 0, below the number of receivers.
        destinations: Vec<u16>,
    },
    /// Each message goes to a receiver drawn at random, never to the one on the sender's own host, which the driver
    /// names.
    Random,
    /// Sender n always sends to receiver `(n + half) mod receivers`, where half is half the number of receivers: fixed
    /// pairs that send to each other when a node of each kind shares a host.
    Pairs,
    /// Event building without a manager: message e of every sender, counted from 0, goes to receiver e mod N.
    Rotation {
        /// The start of the senders.
        start: Start,
    },
    /// MStreamIO: each sender waits for a start message from every receiver, then sends to each in turn.
    Stream,
    /// Second-level trigger: for each event some processors gather data from some buffers each, at once.
    Gather {
        /// Fewest buffers that one processor gathers from, at least 1. The number is drawn for each processor and
        /// event, uniformly from `least` to `most`.
        least: u16,
        /// Most buffers that one processor gathers from; not below `least`, nor above the number of buffers.
        most: u16,
        /// Processors that gather for one event, from 1 to the number of processors.
        processors: u16,
        /// True if a processor asks each buffer; if false, the buffers send as soon as the event arrives.
        ask: bool,
    },
    /// Sender n sends to receiver n, which sends back. The sender counts the cycles: round trips, which overlap if the
    /// window is above 1.
    PingPong,
    /// Sender n and receiver n send to each other at once. A cycle of a node ends when its own message has left and the
    /// other's has arrived; the sender counts the cycles.
    TwoWay,
    /// Every node, sender or receiver, sends to every other at once. A cycle of a node ends when all its own messages
    /// have left and one from each other node has arrived; every node counts its own cycles.
    AllToAll,
    /// One sender sends a message to each receiver. A cycle ends when the last message has left its host.
    Outfarming,
    /// One sender sends the same message to all receivers: one message for the machine, which the driver copies where the
    /// network cannot. A cycle ends when the last copy has left its host.
    Broadcast,
    /// All senders send to one receiver. A cycle is one message from each sender; [`TrafficConfig::window`] keeps the
    /// senders together.
    Funnel,
    /// A [`Pattern::Funnel`] whose receiver computes in each cycle. With a window of two the data of the next event are
    /// on their way meanwhile, and never those of a later one.
    PushFarm {
        /// Time of the receiver's processor for each event, beside its messages.
        work: Span,
    },
    /// One receiver asks all senders, and computes when the answers have arrived. It asks for the next event before it
    /// computes.
    PullFarm {
        /// Time of the receiver's processor for each event, beside its messages.
        work: Span,
    },
}

impl Pattern {
    /// The name in experiment files.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Assigned { .. } => "assigned",
            Self::Random => "random",
            Self::Pairs => "pairs",
            Self::Rotation { .. } => "rotation",
            Self::Stream => "stream",
            Self::Gather { .. } => "gather",
            Self::PingPong => "ping-pong",
            Self::TwoWay => "two-way",
            Self::AllToAll => "all-to-all",
            Self::Outfarming => "outfarming",
            Self::Broadcast => "broadcast",
            Self::Funnel => "funnel",
            Self::PushFarm { .. } => "push-farm",
            Self::PullFarm { .. } => "pull-farm",
        }
    }

    /// Returns true if the nodes repeat cycles and report when each cycle has [ended](crate::TrafficEvent::Ended), as
    /// in the benchmarks of ATLAS DAQ note 77.
    pub const fn has_cycles(&self) -> bool {
        match self {
            Self::Assigned { .. }
            | Self::Random
            | Self::Pairs
            | Self::Rotation { .. }
            | Self::Stream
            | Self::Gather { .. } => false,
            Self::PingPong
            | Self::TwoWay
            | Self::AllToAll
            | Self::Outfarming
            | Self::Broadcast
            | Self::Funnel
            | Self::PushFarm { .. }
            | Self::PullFarm { .. } => true,
        }
    }

    /// Returns true if receivers send data too, and senders receive them.
    pub const fn is_mutual(&self) -> bool {
        matches!(self, Self::PingPong | Self::TwoWay | Self::AllToAll)
    }
}

/// The start of the senders of a rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// All senders start with the first event.
    Simultaneous,
    /// Sender n skips the first n events.
    Retarded,
}
