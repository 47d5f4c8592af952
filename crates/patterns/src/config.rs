//! What traffic a set of nodes makes.

use alloc::vec::Vec;
use evb_core::NodeRange;
use serde::Serialize;

/// The traffic of one experiment. Every machine of it holds a copy.
///
/// There is at least one sender and one receiver, and the numbers of the pattern fit: whoever makes a configuration has
/// checked that (an experiment file is refused otherwise).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrafficConfig {
    /// The nodes that send data (in [`Pattern::Gather`]: the buffers).
    pub senders: NodeRange,
    /// The nodes that receive it (in [`Pattern::Gather`]: the processors).
    pub receivers: NodeRange,
    /// Who sends to whom, and when.
    pub pattern: Pattern,
    /// Messages that a saturating sender has under way at once, at least 1: it sends the next when one has left its host.
    pub window: u32,
    /// Seed of every random stream.
    pub seed: u64,
}

/// Who sends to whom.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Pattern {
    /// Sender n always sends to receiver `destinations[n]`.
    Assigned {
        /// One index of a receiver for each sender, from 0, below the number of receivers.
        destinations: Vec<u16>,
    },
    /// Each message goes to a receiver drawn at random; never to the one on the sender's own host, which the driver
    /// names.
    Random,
    /// Sender n always sends to receiver `(n + half) mod receivers`, where half is half the number of receivers: fixed
    /// pairs that send to each other when a node of each kind shares a host.
    Pairs,
    /// Event building without a manager: message e of every sender, counted from 0, goes to receiver e mod N.
    Rotation {
        /// How the senders start.
        start: Start,
    },
    /// MStreamIO: each sender waits for a start message from every receiver, then sends to each in turn.
    Stream,
    /// Second-level trigger: for each event some processors gather data from some buffers each, at once.
    Gather {
        /// Fewest buffers that one processor gathers from, at least 1. The number is drawn for each processor and event,
        /// all from `least` to `most` alike.
        least: u16,
        /// Most buffers that one processor gathers from; not below `least`, nor above the number of buffers.
        most: u16,
        /// Processors that gather for one event, from 1 to the number of processors.
        processors: u16,
        /// Whether a processor asks each buffer; else the buffers send by themselves as soon as the event comes.
        ask: bool,
    },
}

/// How the senders of a rotation start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// All with the first event.
    Simultaneous,
    /// Sender n skips the first n events.
    Retarded,
}
