//! The messages between a launch and its processes, one JSON object per line.

use crate::{
    counters::Counters,
    driver::{NodeResult, Setting},
    work::Work,
};
use evb_core::NodeId;
use serde::{Deserialize, Serialize};

/// The first line of a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The node of the process.
    pub(crate) node: u16,
    /// The address of the node's layer for its peers.
    pub(crate) address: String,
}

/// A command to a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Join the others, whose addresses these are. It comes first, when all processes have connected.
    Join { peers: Vec<(NodeId, String)> },
    /// Take part in a measurement.
    Measure { work: Box<Work>, setting: Setting },
    /// Tell the counters of the network interfaces.
    Count,
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
    /// The counters of the network interfaces.
    Counted(Counters),
    /// The process cannot continue.
    Failed { why: String },
}
