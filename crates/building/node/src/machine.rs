//! The machines of nodes: their names and clocks.

use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// A machine, as a node on it describes it to run control when it joins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Name of the machine.
    pub(crate) host: String,
    /// Time of its clock in seconds since 1970.
    pub(crate) clock: f64,
}

/// The machine of a node, as run control saw it when the node joined.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeMachine {
    /// Name of the machine.
    pub host: String,
    /// Time by which its clock was ahead of that of run control, in seconds; less than zero if it was behind. The way of the
    /// message counts as behind.
    pub clock_ahead_s: f64,
}

impl Machine {
    /// This machine, now.
    pub(crate) fn here() -> Self {
        Self { host: host(), clock: now() }
    }

    /// This machine in the eyes of run control, which hears of it now.
    pub(crate) fn seen(self) -> NodeMachine {
        NodeMachine { host: self.host, clock_ahead_s: self.clock - now() }
    }
}

/// Name of this machine.
pub fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}
