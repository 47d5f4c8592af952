//! The greeting between run control and a node in another process.
//!
//! A node connects, both sides prove that they have the token, and the node says hello with its role, and is welcomed or
//! refused. From then on orders go one way and notices the other; the plan travels with the orders. The end of a
//! connection means that the peer is gone.

use crate::machine::Machine;
use serde::{Deserialize, Serialize};

/// The first line of a node.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The node's role, such as `ru0`.
    pub(crate) role: String,
    /// Version of evb.
    pub(crate) version: String,
    /// The node's machine.
    pub(crate) machine: Machine,
}

/// The answer of run control.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The node has its place; orders follow.
    Welcome,
    /// The node has no place.
    Refused {
        /// The reason, as text for the user.
        reason: String,
    },
}
