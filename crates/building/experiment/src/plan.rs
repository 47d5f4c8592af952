//! The resolved experiment: every default filled in, every value checked, ready for a driver.

use crate::Bundling;
use evb_core::{Bandwidth, ByteCount, EventId, Frequency, NodeId, SourceId, Span};
use evb_fabric::{Jitter, MapperConfig, NetworkConfig, NetworkFault};
use evb_filter::Selection;
use evb_protocol::Config;
use evb_sources::SourceSpec;
use evb_transport_registry::TransportChoice;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

mod background;
mod cpu;
mod fault;
mod histogram;
mod workload;

pub use background::{BackgroundPlan, BackgroundPriority};
pub use cpu::{
    CacheCost, Computers, CpuFit, CpuPlan, CrossingCost, DiskPlan, EventCost, Interruption, LocalMessages, ManagerCost,
    MessageCost, PayloadCost, WakeCost,
};
pub use fault::{FaultAction, FaultSpec};
pub use histogram::{FieldLayout, HistogramPlan, NumberType, PayloadLayout, PayloadPart, Quantity};
pub use workload::{Load, TrafficPlan, Workload};

/// One event builder or one traffic pattern, fully described. A sweep makes several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Name of the experiment; the file's stem by default.
    pub name: String,
    /// Description by the user.
    pub description: String,
    /// The swept keys and their values at this point, in the order of the file; empty without `[sweep]`.
    pub sweep: Vec<(String, String)>,
    /// The machines' configuration.
    pub building: Config,
    /// Selection of events: after the first phase in phased building, when an event is built otherwise.
    pub filter: Selection,
    /// Rate and end of the trigger.
    pub trigger: TriggerPlan,
    /// The sources of all readout units, in the order of the units.
    pub sources: Vec<SourceSpec>,
    /// The sources of each readout unit, and the events of a block.
    #[serde(default)]
    pub bundling: Bundling,
    /// Folder that relative data files start from; `${NAME}` stands for an environment variable.
    pub data_directory: PathBuf,
    /// Transport of the nodes when the user does not choose another.
    pub transport: TransportChoice,
    /// Transport of control messages; `None` if they travel with the fragments.
    #[serde(default)]
    pub control: Option<TransportChoice>,
    /// Events that are kept, and their folder.
    pub storage: StoragePlan,
    /// Histograms that the builder units fill.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<HistogramPlan>,
    /// Seed and limits.
    pub run: RunPlan,
    /// Faults that are brought about on purpose.
    pub faults: Vec<FaultSpec>,
    /// The network that a simulation runs on; a real run uses the real one.
    pub network: NetworkPlan,
    /// Work of the nodes.
    pub workload: Workload,
    /// Traffic that shares the simulated network with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<BackgroundPlan>,
    /// The place of this event builder between two stages.
    #[serde(default)]
    pub link: StageLink,
    /// The event builders that build the events in two stages; `None` if this one does it alone.
    #[serde(default)]
    pub stages: Option<Box<Stages>>,
}

impl Plan {
    /// The plan as JSON, for nodes in other processes.
    ///
    /// A plan has many types. Reading and writing them is compiled here once, not in each crate and for each message that
    /// carries a plan.
    ///
    /// # Errors
    /// None that a plan of an experiment file can cause.
    pub fn to_json(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// The text is not a plan of this version.
    pub fn from_json(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// The event builders that carry out the plan: those of two stages, or this one.
    pub fn event_builders(&self) -> impl Iterator<Item = &Self> {
        let stages = self.stages.iter().flat_map(|stages| stages.groups.iter().chain(&stages.slices));
        stages.chain(Some(self).filter(|_| self.stages.is_none()))
    }

    /// The description of a source.
    pub fn source(&self, source: SourceId) -> &SourceSpec {
        let first = self.bundling.bounds.first().copied().unwrap_or(0);
        &self.sources[usize::from(source.0 - first)]
    }

    /// The source of the sizes of the data messages of a node of traffic; `None` if the node sends none. A receiver
    /// that sends, too, has messages like those of the sender of the same index.
    pub fn data_source(&self, node: NodeId) -> Option<SourceId> {
        let Workload::Traffic(TrafficPlan { config, .. }) = &self.workload else { return None };
        if config.senders.contains(node) {
            return Some(SourceId(node.0 - config.senders.first.0));
        }
        let sends = config.pattern.is_mutual() && config.receivers.contains(node);
        sends.then(|| SourceId((node.0 - config.receivers.first.0) % config.senders.count))
    }

    /// The host of a node in the network; `None` if the node needs none.
    #[inline]
    pub fn host(&self, node: NodeId) -> Option<u16> {
        let (readouts, builders) = (self.building.readout_nodes(), self.building.builder_nodes());
        let placement = &self.network.placement;
        if readouts.contains(node) {
            Some(placement.readout + (node.0 - readouts.first.0))
        } else if builders.contains(node) {
            Some(placement.builder + (node.0 - builders.first.0))
        } else {
            self.host_of_other(node)
        }
    }

    /// The host of the event manager, or of a node of background traffic.
    fn host_of_other(&self, node: NodeId) -> Option<u16> {
        match node {
            Config::EVENT_MANAGER => self.network.placement.manager,
            _ => self.background.iter().find_map(|background| background.host(node)),
        }
    }

    /// The index of the builder unit, or the receiver of traffic, on the host of a node.
    pub fn receiver_beside(&self, node: NodeId) -> Option<u16> {
        let index = self.host(node)?.checked_sub(self.network.placement.builder)?;
        Some(index).filter(|&index| index < self.building.builder_units)
    }

    /// Events after which the trigger stops. The machines count the blocks of them.
    pub fn events(&self) -> Option<u64> {
        let Bundling { block, last, .. } = self.bundling;
        let lacking = last.map_or(0, |events| u64::from(block.saturating_sub(events)));
        Some(self.building.events?.saturating_mul(block.into()).saturating_sub(lacking))
    }

    /// Largest fragment of one source that is accepted.
    pub fn max_fragment(&self) -> ByteCount {
        self.bundling.max_fragment.unwrap_or(self.building.max_fragment)
    }

    /// The rate of a builder's disk that is slow on purpose; the slowest, if the file has several.
    pub fn slow_disk(&self, builder: NodeId) -> Option<Bandwidth> {
        let rates = self.faults.iter().filter(|fault| fault.node == builder).filter_map(|fault| match fault.action {
            FaultAction::SlowDisk { rate } => Some(rate),
            _ => None,
        });
        rates.min()
    }
}

/// The event builders of two stages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// The first stage: an event builder for each readout unit of the second, which makes its super-fragments.
    pub groups: Vec<Plan>,
    /// The second stage. Each event builder has every `slices.len()`-th event.
    pub slices: Vec<Plan>,
}

impl Stages {
    /// The same stages, with the sockets between them in a folder.
    #[must_use]
    pub fn in_folder(&self, folder: &Path) -> Self {
        let mut stages = self.clone();
        for plan in stages.groups.iter_mut().chain(&mut stages.slices) {
            if let StageLink::Outlets { paths, .. } | StageLink::Inlets(paths) = &mut plan.link {
                paths.iter_mut().for_each(|path| *path = folder.join(&*path));
            }
        }
        stages
    }
}

/// The place of an event builder between two stages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StageLink {
    /// It has sources, and stores events.
    #[default]
    None,
    /// It is a group of the first stage: it hands super-fragments on.
    Outlets {
        /// The readout unit of the second stage that its super-fragments are for.
        unit: u16,
        /// The sockets to which its builder units send, in their order.
        paths: Vec<PathBuf>,
    },
    /// It is a slice of the second stage: its readout units get super-fragments from these sockets, in their order.
    Inlets(Vec<PathBuf>),
}

impl StageLink {
    /// The socket between a readout unit of a slice and its group, in a folder to be chosen.
    pub(crate) fn path(slice: u16, unit: u16) -> PathBuf {
        format!("s{slice}-g{unit}").into()
    }
}

/// Rate and end of the trigger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TriggerPlan {
    /// Mean rate; `None` is free running or data-driven, as `Config::trigger` says.
    pub rate: Option<Frequency>,
    /// True for exponential intervals (a Poisson process), false for equal ones.
    pub poisson: bool,
    /// Time after which the trigger stops.
    pub duration: Option<Span>,
    /// Percent of what comes at a rate that may be lost before the result is not good.
    pub accept_loss: u8,
}

/// Events that are kept, and their folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoragePlan {
    /// Choice of events that are written.
    pub keep: Keep,
    /// Folder of the event files.
    pub directory: PathBuf,
    /// Size at which a new file is begun.
    pub file_size: ByteCount,
    /// Event files are compressed with Zstandard.
    pub compresses: bool,
    /// Largest size of the file of fragments that belong to no event, for each readout unit; 0 stores none.
    pub apart: ByteCount,
}

/// Choice of events that are written.
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
    /// True if an event is written.
    pub const fn keeps(self, event: EventId, complete: bool) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::OneIn(n) => !complete || event.0.is_multiple_of(n),
        }
    }
}

/// Seed and limits.
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
    /// Placement of the nodes on the cores of their machine.
    pub cores: Cores,
    /// Time after the start that is not measured. Without it, rates are of the steady window that is found.
    pub warmup: Option<Span>,
    /// The nodes that a run requires.
    pub needs: Needs,
    /// Events per second of which each builder sends a copy to those who monitor the run; 0 for none.
    pub samples: u16,
    /// What happens when all lost nodes have joined again during a run.
    pub rejoin: Rejoin,
}

/// Placement of nodes on the cores of their machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cores {
    /// The system places them, and moves them as it likes.
    #[default]
    None,
    /// Each unit is bound to a core: a separate one if there are enough, else readout units and builder units share them
    /// evenly. The event manager is bound if a core is left, and in threads.
    Auto,
}

/// The run in which lost nodes take part again, when all of them have joined again during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rejoin {
    /// The run that the operator starts next.
    #[default]
    NextRun,
    /// A run that begins at once in place of the present one.
    Split,
}

/// The nodes that a run requires: it is stopped when one of them is lost, or too few are left.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// Nodes that must be there.
    pub required: Vec<NodeId>,
    /// Fewest readout units.
    pub readouts: u16,
    /// Fewest builder units.
    pub builders: u16,
}

/// The network of a simulation, and which node is where in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkPlan {
    /// Switches, links, interfaces and how they behave.
    pub config: NetworkConfig,
    /// The message layer that it was fitted to; `None` if it was described.
    pub fitted_to: Option<String>,
    /// The hosts of the nodes.
    pub placement: Placement,
    /// The mappers that find the routes; without them, routes are known.
    pub mapper: Option<MapperConfig>,
    /// Faults of the network on purpose.
    pub faults: Vec<NetworkFault>,
    /// Errors of the times at which buckets of a barrel shifter begin.
    #[serde(default, skip_serializing_if = "SlotErrors::is_none")]
    pub slot_errors: SlotErrors,
    /// The processors of the computers; `None` if the work of nodes takes no time beside `host`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuPlan>,
}

/// Errors of the times at which readout units begin the buckets of a barrel shifter. They are a part of the simulated
/// world: real units have errors of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlotErrors {
    /// Each unit is early or late by a constant time of at most this.
    pub skew: Span,
    /// Random times before the buckets; `None` if there are none.
    pub jitter: Option<Jitter>,
}

impl SlotErrors {
    /// True if all buckets begin in time.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The host of the first unit of each kind; the others follow, one on each host. Units of different kinds may share
/// hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placement {
    /// The host of the event manager; `None` if control has a separate network, or there is no manager.
    pub manager: Option<u16>,
    /// The host of the first readout unit, or sender.
    pub readout: u16,
    /// The host of the first builder unit, or receiver.
    pub builder: u16,
}
