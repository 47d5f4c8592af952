//! What run control and a node in another process say to each other before a run.
//!
//! A node dials, says hello with the run's token and what it is, and is welcomed with the addresses of all nodes, or
//! refused. From then on orders go one way and notices the other. A connection that ends means that its other end is
//! gone.

use evb_core::NodeId;
use serde::{Deserialize, Serialize};

/// The first line of a node.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The run's token, in hexadecimal digits.
    pub(crate) token: String,
    /// The node's id.
    pub(crate) node: u16,
    /// Version of evb.
    pub(crate) version: String,
    /// Fingerprint of the experiment: all nodes must have the same.
    pub(crate) experiment: u32,
    /// Where its peers reach it, as its transport says.
    pub(crate) address: String,
}

/// The answer of run control.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The run begins when all are ready.
    Welcome {
        /// The number of the run.
        run: u64,
        /// All nodes and their addresses.
        peers: Vec<(NodeId, String)>,
    },
    /// This node has no place in the run.
    Refused {
        /// Why, for people.
        reason: String,
    },
}
