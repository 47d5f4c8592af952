//! The resolved experiment: every default filled in, every value checked, ready for a driver.

use evb_core::{Bandwidth, ByteCount, EventId, Frequency, NodeId, Span};
use evb_fabric::{NetworkConfig, NetworkFault};
use evb_patterns::TrafficConfig;
use evb_protocol::{Config, Filter};
use evb_sources::SourceSpec;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// One event builder or one traffic pattern, fully described. A sweep gives several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the experiment; the file's stem by default.
    pub name: String,
    /// What the user wrote about it.
    pub description: String,
    /// The swept keys and their values at this point, in the order of the file; empty without `[sweep]`.
    pub sweep: Vec<(String, String)>,
    /// The machines' configuration.
    pub building: Config,
    /// What decides after the first phase of an event; it accepts all where there is one phase only.
    pub filter: Filter,
    /// Rate and end of the trigger.
    pub trigger: TriggerPlan,
    /// One source per readout unit.
    pub sources: Vec<SourceSpec>,
    /// Folder that relative data files start from; `${NAME}` stands for an environment variable.
    pub data_directory: PathBuf,
    /// How nodes talk when the user does not say otherwise.
    pub transport: TransportKind,
    /// What is kept, and where.
    pub storage: StoragePlan,
    /// Seed, limits and the like.
    pub run: RunPlan,
    /// Faults that are brought about on purpose.
    pub faults: Vec<FaultSpec>,
    /// The network that a simulation runs on; a real run has one of its own.
    pub network: NetworkPlan,
    /// What the nodes do.
    pub workload: Workload,
}

impl Plan {
    /// The rate of a builder's disk that is slow on purpose; the slowest, if the file has several.
    pub fn slow_disk(&self, builder: NodeId) -> Option<Bandwidth> {
        let rates = self.faults.iter().filter(|fault| fault.node == builder).filter_map(|fault| match fault.action {
            FaultAction::SlowDisk { rate } => Some(rate),
            _ => None,
        });
        rates.min()
    }
}

/// Rate and end of the trigger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriggerPlan {
    /// Mean rate; `None` is free running or data-driven, as `Config::trigger` says.
    pub rate: Option<Frequency>,
    /// Whether the intervals are exponential (a Poisson process) instead of equal.
    pub poisson: bool,
    /// Time after which the trigger stops.
    pub duration: Option<Span>,
    /// Percent of what comes at a rate that may be lost before the result is not good.
    pub accept_loss: u8,
}

/// How nodes talk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum TransportKind {
    /// Threads of one process, messages by reference.
    InProcess,
    /// Shared memory between processes of one machine.
    Shm,
    /// TCP between processes.
    Tcp,
    /// MPI; the ranks are the nodes.
    Mpi,
    /// libfabric.
    Ofi {
        /// The provider, such as `tcp` or `verbs`.
        provider: String,
    },
    /// The VELO hardware, simulated cycle by cycle, between threads of one process.
    VeloRtl {
        /// Wires of a link in one direction.
        wires: u32,
    },
}

impl TransportKind {
    /// Its name, as in an experiment file.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::InProcess => "in-process",
            Self::Shm => "shm",
            Self::Tcp => "tcp",
            Self::Mpi => "mpi",
            Self::Ofi { .. } => "ofi",
            Self::VeloRtl { .. } => "velo-rtl",
        }
    }

    /// Whether its nodes are threads of one process.
    pub const fn is_one_process(&self) -> bool {
        matches!(self, Self::InProcess | Self::VeloRtl { .. })
    }
}

/// What is kept, and where.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoragePlan {
    /// Which events are written.
    pub keep: Keep,
    /// Folder of the event files.
    pub directory: PathBuf,
    /// Size at which a new file is begun.
    pub file_size: ByteCount,
}

/// Which events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Every event.
    All,
    /// No event: the null storage.
    None,
    /// Every event whose number is a multiple of this, and every incomplete one.
    OneIn(u64),
}

impl Keep {
    /// Whether an event is written.
    pub const fn keeps(self, event: EventId, complete: bool) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::OneIn(n) => !complete || event.0.is_multiple_of(n),
        }
    }
}

/// Seed, limits and the like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunPlan {
    /// Seed of every random stream.
    pub seed: u64,
    /// Longest silence of a peer, and longest wait for nodes to start.
    pub peer_timeout: Span,
    /// Longest time for which nothing moves in a stopped run before it is given up.
    pub drain_timeout: Span,
    /// Threads that carry the nodes in one process; the number of cores, at most the number of nodes, by default.
    pub workers: Option<u16>,
    /// What happens before this time after the start is not measured; when there is none, rates are of the steady window
    /// that is found.
    pub warmup: Option<Span>,
}

/// The network of a simulation, and which node is where in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkPlan {
    /// Switches, links, interfaces and how they behave.
    pub config: NetworkConfig,
    /// The message layer that it was fitted to; none when it was described.
    pub fitted_to: Option<String>,
    /// The hosts of the nodes.
    pub placement: Placement,
    /// What goes wrong in the network on purpose.
    pub faults: Vec<NetworkFault>,
}

/// The host of the first unit of each kind; the others follow, one on each host. Units of different kinds may share
/// hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The host of the event manager; none when it needs none: control has a network of its own, or there is no manager.
    pub manager: Option<u16>,
    /// The host of the first readout unit, or sender.
    pub readout: u16,
    /// The host of the first builder unit, or receiver.
    pub builder: u16,
}

/// What the nodes do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Workload {
    /// They build events: [`Plan::building`] says how.
    EventBuilding,
    /// Readout units send to builder units after a pattern, without an event manager.
    Traffic(TrafficPlan),
}

/// Traffic that is not event building. It ends after `messages`, or with the trigger's `duration`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficPlan {
    /// The machines' configuration.
    pub config: TrafficConfig,
    /// How much is sent.
    pub load: Load,
    /// Messages of each sender (of [`Gather`](evb_patterns::Pattern::Gather): events in all; of what
    /// [has cycles](evb_patterns::Pattern::has_cycles): cycles) after which it stops.
    pub messages: Option<u64>,
}

/// How much the senders of a traffic pattern send.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Load {
    /// As much as goes.
    Saturating,
    /// Messages at a rate.
    Rate {
        /// Mean rate of each sender (of [`Gather`](evb_patterns::Pattern::Gather): of events in all).
        rate: Frequency,
        /// Whether the intervals are exponential (a Poisson process) instead of equal.
        poisson: bool,
    },
    /// Bytes at a part of the rate of a sender's link.
    Fraction {
        /// Payload of each sender over the rate of its link; above 1 is more than the link can take.
        load: f64,
        /// Whether the intervals are exponential (a Poisson process) instead of equal.
        poisson: bool,
    },
}

/// A fault that is brought about on purpose.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultSpec {
    /// The node it happens to.
    pub node: NodeId,
    /// What happens.
    pub action: FaultAction,
}

/// What happens to a node on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum FaultAction {
    /// The node stops dead at this time after the start.
    Kill {
        /// Time after the start of the run.
        at: Span,
    },
    /// Every n-th fragment of this readout unit has one bit flipped after its checksum was made.
    Corrupt {
        /// One in this many.
        one_in: u64,
    },
    /// Every n-th fragment of this readout unit is sent twice.
    Duplicate {
        /// One in this many.
        one_in: u64,
    },
    /// Every n-th fragment of this readout unit is not sent.
    Lose {
        /// One in this many.
        one_in: u64,
    },
    /// Every n-th fragment of this readout unit is sent late by `by`.
    Delay {
        /// One in this many.
        one_in: u64,
        /// How late.
        by: Span,
    },
    /// Every n-th fragment of this readout unit is made larger than allowed.
    Oversize {
        /// One in this many.
        one_in: u64,
    },
    /// What this builder unit stores goes through a disk of this rate, one event after another.
    SlowDisk {
        /// The rate.
        rate: Bandwidth,
    },
}
