//! The processors of a simulation: who shares cores, and what the work of nodes costs.

use evb_core::{Bandwidth, ByteCount, Frequency, Span};
use serde::{Deserialize, Serialize};

/// The processors of the computers that carry the nodes, and the time that the work of nodes takes on them.
///
/// A worker is a thread with one node or several. It gives each of its nodes a turn: the node takes what has come, works and
/// sends. What it does in a turn costs time by the piece and by the byte.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuPlan {
    /// Which nodes share the cores of one computer.
    pub computers: Computers,
    /// Cores of each computer.
    pub cores: u16,
    /// What carries messages between the nodes of one computer.
    pub messages: LocalMessages,
    /// Each node is a process with a worker of its own. Otherwise `run.workers` threads carry the nodes of a computer.
    pub processes: bool,
    /// Time of one turn of a node in which nothing happens.
    pub poll: Span,
    /// Time of each turn of a node for each other node whose messages it looks for.
    pub poll_peer: Span,
    /// Sending a message.
    pub send: MessageCost,
    /// Receiving a message.
    pub receive: MessageCost,
    /// Times beside these for a message from another worker of the computer.
    pub crossing: CrossingCost,
    /// Work of the event manager.
    pub manager: ManagerCost,
    /// Work of a readout unit: reading or generating, and the checksum.
    pub readout: PayloadCost,
    /// Work of a readout unit beside this for each fragment whose size differs from the one before.
    pub draw: Span,
    /// Work of a builder unit: matching, checking, and the end of the event.
    pub builder: PayloadCost,
    /// Work of the thread that stores the events of a builder.
    pub storage: EventCost,
    /// The disk of each computer; `None` if it takes what is stored at once.
    pub disk: Option<DiskPlan>,
    /// Work of a filter unit to get an event, beside [`UnitsPlan::time`](evb_filter::UnitsPlan::time).
    pub filter: EventCost,
    /// The caches of the cores; `None` if the place of payload does not matter.
    pub cache: Option<CacheCost>,
    /// Waking a worker that sleeps.
    pub wake: WakeCost,
    /// Time that a core needs to change from one worker to another.
    pub context_switch: Span,
    /// Time of a switch beside this for each other worker that shares the core, whose data have been in its caches since.
    pub refill: Span,
    /// Time for which a worker may use a core while others wait for it.
    pub slice: Span,
    /// What takes the cores away from workers, of any length.
    pub interruptions: Vec<Interruption>,
    /// Where the costs come from, if they were fitted to runs.
    pub fit: Option<CpuFit>,
}

impl CpuPlan {
    /// True if storing events takes time.
    #[must_use]
    pub fn storing_takes_time(&self) -> bool {
        self.disk.is_some() || self.storage != EventCost::default()
    }
}

/// A kind of interruption of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    /// Mean time between two of them on a core, at random.
    pub every: Span,
    /// Time for which the core is away.
    pub length: Span,
}

/// Costs that were fitted to runs of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuFit {
    /// Per cent by which simulated event rates differ from those of the runs, of nine in ten at most.
    pub error_percent: f64,
    /// Event rate of the run by which the machine is known again: the experiment `two-by-two` with single events.
    pub reference: Frequency,
}

/// Which nodes share the cores of one computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Computers {
    /// Those of one host of the network.
    EachHost,
    /// All of them.
    One,
}

/// What carries messages between the nodes of one computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalMessages {
    /// Its memory.
    Memory,
    /// The network, if the nodes are on different hosts of it.
    Network,
}

/// The cost of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageCost {
    /// Time for each peer of a turn, however many messages: that of a system call.
    pub call: Span,
    /// Time for each message.
    pub message: Span,
    /// Time for each byte of payload.
    pub byte: Span,
}

/// The cost of a message from another worker of the same computer, whose data are in the caches of another core.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrossingCost {
    /// Time until the receiver can see the message.
    pub delay: Span,
    /// Time of the receiver for each message.
    pub message: Span,
    /// Time of the receiver for each byte of payload.
    pub byte: Span,
}

/// The cost of events for their manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManagerCost {
    /// Time for each block of events, or for each event without blocks.
    pub block: Span,
    /// Time for each event.
    pub event: Span,
}

/// The cost of fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadCost {
    /// Time for the fragments of each block of events, or for each fragment without blocks.
    pub block: Span,
    /// Time for each fragment.
    pub fragment: Span,
    /// Time for each byte of payload.
    pub byte: Span,
}

/// The cost of whole events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCost {
    /// Time for each event.
    pub event: Span,
    /// Time for each byte of its payload.
    pub byte: Span,
}

/// A disk, with the memory of the system before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskPlan {
    /// Rate at which the disk writes.
    pub rate: Bandwidth,
    /// Time of each write of events beside that of its bytes.
    pub latency: Span,
    /// Bytes that the system holds for the disk. What fits is stored at once; what does not waits until the disk has written enough.
    pub cache: ByteCount,
}

impl DiskPlan {
    /// A disk without latency, and without memory before it.
    #[must_use]
    pub const fn of_rate(rate: Bandwidth) -> Self {
        Self { rate, latency: Span::ZERO, cache: ByteCount(0) }
    }
}

/// The cost of payload that has left the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheCost {
    /// Payload under way on a computer from which on it leaves the caches.
    pub size: ByteCount,
    /// Time of the receiver for each byte that has left them.
    pub byte: Span,
}

/// The cost of waking a worker that sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeCost {
    /// Time from the message to the first turn of the worker.
    pub delay: Span,
    /// Time of the worker that sends the message.
    pub call: Span,
}
