//! What run control and nodes say to each other, whether the nodes are threads or processes.

pub(crate) use evb_control::Order;
use evb_core::NodeId;
use evb_experiment::Plan;
use evb_protocol::{Ending, FaultCounts};
use evb_record::Finding;
use evb_steady::Series;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, ops::Add};

/// An order on its way to a node, with what the node needs to carry it out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Instruction {
    pub(crate) order: Order,
    #[serde(default, skip_serializing_if = "Detail::is_none")]
    pub(crate) detail: Detail,
}

/// The part of an order that only the driver knows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Detail {
    #[default]
    None,
    /// The event builder, for [`Order::Open`].
    Setup(Box<Setup>),
    /// All nodes and their addresses, for [`Order::Connect`].
    Peers(Vec<(NodeId, String)>),
    /// The number of the run, for [`Order::Prepare`].
    Run(u64),
}

impl Detail {
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

impl From<Order> for Instruction {
    fn from(order: Order) -> Self {
        Self { order, detail: Detail::None }
    }
}

/// The event builder that a node is part of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) node: NodeId,
    pub(crate) plan: Plan,
    /// The resolved experiment file, which event files carry.
    pub(crate) text: String,
}

/// What a node tells run control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Notice {
    /// The node takes orders.
    Joined,
    /// The endpoint is open at this address, after [`Order::Open`].
    Opened { address: String },
    /// The node is ready, after [`Order::Connect`] or [`Order::Prepare`].
    Ready,
    /// How things stand, several times a second.
    Progress(Report),
    /// Every triggered event has ended (event manager).
    Drained,
    /// No builder is left (event manager).
    NoBuilders,
    /// A peer is gone.
    Lost {
        /// The peer's node id.
        peer: u16,
        /// Why, for people.
        reason: String,
    },
    /// The node cannot go on.
    Failed(NodeError),
    /// The last report, after [`Order::Finish`].
    Finished(Report),
    /// The node is gone: its thread or process has ended, or cannot be heard.
    Gone {
        /// Why, for people.
        reason: String,
    },
}

/// Why a node cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct NodeError {
    /// What is wrong, with place and value.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl NodeError {
    pub(crate) fn new(message: impl ToString) -> Self {
        Self { message: message.to_string(), hint: None }
    }

    /// The user has stopped the run before it began.
    pub(crate) fn stopped() -> Self {
        Self::new("stopped before the run began")
    }

    /// The error and what to do about it, in one line.
    pub(crate) fn with_hint(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{} ({hint})", self.message),
            None => self.message.clone(),
        }
    }

    pub(crate) fn hint(self, hint: impl ToString) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }
}

/// How one node stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    Manager(ManagerReport),
    Readout(ReadoutReport),
    Builder(BuilderReport),
}

/// Faults by kind.
pub(crate) type Faults = BTreeMap<String, u64>;

/// The counts as a table by name.
pub(crate) fn faults(counts: &FaultCounts) -> Faults {
    counts.seen().map(|(fault, count)| (fault.name().to_owned(), count)).collect()
}

/// Events by their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) built: u64,
    pub(crate) incomplete: u64,
    pub(crate) rejected: u64,
}

impl Ended {
    pub(crate) fn count(&mut self, ending: Ending) {
        match ending {
            Ending::Complete => self.built += 1,
            Ending::Incomplete => self.incomplete += 1,
            Ending::Rejected => self.rejected += 1,
        }
    }

    pub(crate) const fn total(self) -> u64 {
        self.built + self.incomplete + self.rejected
    }
}

impl Add for Ended {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            built: self.built + other.built,
            incomplete: self.incomplete + other.incomplete,
            rejected: self.rejected + other.rejected,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ManagerReport {
    pub(crate) triggered: u64,
    pub(crate) ended: Ended,
    pub(crate) inhibited: u64,
    pub(crate) inhibitions: u64,
    pub(crate) reassigned: u64,
    /// What each builder has ended.
    pub(crate) of_builders: Vec<Ended>,
    pub(crate) latency_us: evb_record::Latency,
    pub(crate) faults: Faults,
    /// What a window is found by.
    pub(crate) series: Series,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReadoutReport {
    /// The last event that the unit knows to be triggered.
    pub(crate) through: u64,
    pub(crate) counts: evb_record::Readout,
    pub(crate) faults: Faults,
    pub(crate) findings: Vec<Finding>,
    /// The bytes sent.
    pub(crate) series: Series,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct BuilderReport {
    pub(crate) counts: evb_record::Builder,
    pub(crate) faults: Faults,
    pub(crate) findings: Vec<Finding>,
    /// The bytes and the fragments received.
    pub(crate) series: Series,
}

/// How a run stands, for whoever draws the progress.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Events triggered so far.
    pub triggered: u64,
    /// Events ended so far: built, incomplete or rejected.
    pub ended: u64,
    /// Of these, events with a fragment missing or bad.
    pub incomplete: u64,
    /// Payload bytes delivered to builders so far.
    pub bytes: u64,
    /// Time since the start in seconds.
    pub seconds: f64,
    /// The run was told to stop and drains.
    pub stopping: bool,
}
