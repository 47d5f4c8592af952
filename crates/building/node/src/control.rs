//! Messages between run control and nodes, which are threads or processes.

use crate::error::NodeError;
use crate::run_info::RunInfo;
use crate::sample::Sample;
pub(crate) use evb_control::Order;
use evb_core::NodeId;
use evb_experiment::Plan;
use evb_unit::Report;
use serde::{Deserialize, Serialize};

/// A message of run control to a node in a separate process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ToNode {
    /// A question: could the node be configured for this event builder? Nothing changes.
    Check {
        check: Box<Setup>,
        /// Number of the question, which the answer repeats.
        question: u64,
    },
    Order(Instruction),
}

/// An order to a node, with the data that the node needs to carry it out.
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
    /// The run, for [`Order::Prepare`] and [`Order::Next`].
    Run(RunInfo),
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
    #[serde(with = "plan_as_text")]
    pub(crate) plan: Plan,
    /// The resolved experiment file, which event files carry.
    pub(crate) text: String,
    /// The nodes of its machine, itself among them, which share the cores; empty if none is bound to one.
    pub(crate) here: Vec<NodeId>,
}

/// A plan in a message is a text with its JSON.
mod plan_as_text {
    use evb_experiment::Plan;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};

    pub(super) fn serialize<S: Serializer>(plan: &Plan, serializer: S) -> Result<S::Ok, S::Error> {
        plan.to_json().map_err(ser::Error::custom)?.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Plan, D::Error> {
        Plan::from_json(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

/// A notice of a node to run control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Notice {
    /// The node takes orders.
    Joined,
    /// The answer to [`ToNode::Check`].
    Checked {
        /// Number of the question.
        question: u64,
        /// The reason why the node could not take the experiment; `None` if it could.
        against: Option<NodeError>,
    },
    /// The endpoint is open at this address, after [`Order::Open`].
    Opened { address: String },
    /// The node has dropped all that belonged to the configuration, after [`Order::Reset`].
    Reset,
    /// The node is ready, after [`Order::Connect`] or [`Order::Prepare`].
    Ready,
    /// The current report, several times a second.
    Progress(Report),
    /// Every triggered event has ended, after [`Order::Settle`] (event manager).
    Settled,
    /// Every triggered event has ended, and there will be no more (event manager).
    Drained,
    /// No builder is left (event manager).
    NoBuilders,
    /// A peer is gone.
    Lost {
        /// The peer's node id.
        peer: u16,
        /// The reason, as text for the user.
        reason: String,
    },
    /// A text for the user without further effect.
    Note(String),
    /// A copy of an event, for those who monitor the run.
    Sample(Box<Sample>),
    /// The node has failed.
    Failed(NodeError),
    /// The last report of the run, after [`Order::Finish`] or [`Order::Next`].
    Finished(Report),
    /// The node is gone: its thread or process has ended, or cannot be heard.
    Gone {
        /// The reason, as text for the user.
        reason: String,
    },
}
