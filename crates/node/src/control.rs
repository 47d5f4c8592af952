//! What run control and nodes say to each other, whether the nodes are threads or processes.

use evb_core::NodeId;
use evb_unit::Report;
use serde::{Deserialize, Serialize};

/// What run control tells a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// Begin.
    Start,
    /// No more triggers (event manager).
    Stop,
    /// End events with what is there: nothing will come any more (builder units).
    Cut,
    /// Others have lost this node: it is lost to all (event manager).
    Lost(NodeId),
    /// Close the files and send the final report.
    Finish,
    /// Everybody has finished: go.
    Exit,
    /// Stop dead, as a crash would: a fault on purpose.
    Die,
}

/// What a node tells run control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Notice {
    /// All peers are reached.
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

    pub(crate) fn hint(self, hint: impl ToString) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }
}
