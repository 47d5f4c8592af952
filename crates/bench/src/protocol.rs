//! What a launch and its processes say to each other, one JSON object a line.

use crate::{
    cell::Cell,
    driver::{NodeResult, Setting},
};
use evb_core::NodeId;
use serde::{Deserialize, Serialize};

/// The first line of a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The token of the launch, in hexadecimal digits.
    pub(crate) token: String,
    /// Its node.
    pub(crate) node: u16,
    /// Where its peers reach it, as its layer says.
    pub(crate) address: String,
}

/// The answer, when all have come.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// All nodes and their addresses.
    Welcome { peers: Vec<(NodeId, String)> },
}

/// What a process is told.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Take part in a measurement.
    Measure { cell: Cell, setting: Setting },
    /// End.
    Exit,
}

/// What a process tells.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Notice {
    /// It has joined its peers.
    Joined,
    /// The measurement is done.
    Measured(NodeResult),
    /// It cannot go on.
    Failed { why: String },
}
