//! The messages between a launch and its processes, one JSON object per line.

use crate::{
    driver::{NodeResult, Setting},
    work::Work,
};
use evb_core::NodeId;
use serde::{Deserialize, Serialize};

/// The first line of a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The token of the launch, in hexadecimal digits.
    pub(crate) token: String,
    /// The node of the process.
    pub(crate) node: u16,
    /// The address of the node's layer for its peers.
    pub(crate) address: String,
}

/// The answer, when all processes have connected.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// All nodes and their addresses.
    Welcome { peers: Vec<(NodeId, String)> },
}

/// A command to a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Take part in a measurement.
    Measure { work: Box<Work>, setting: Setting },
    /// End the measurement early.
    Stop,
    /// End.
    Exit,
}

/// A report from a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The process has joined its peers.
    Joined,
    /// The measurement is done.
    Measured(Box<NodeResult>),
    /// The process cannot continue.
    Failed { why: String },
}
