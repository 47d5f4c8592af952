//! The status of the service: what the page shows, and what `GET api/status` answers.

use crate::rates::Rates;
use evb::NodePresence;
use evb_record::{Histogram, Record, WaitingSource};
use evb_report::Limit;
use serde::Serialize;
use std::sync::Arc;

/// The status of the service. Times are seconds since 1970.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Status {
    /// Time of this status.
    pub(crate) now: f64,
    /// State of run control.
    pub(crate) state: &'static str,
    /// Commands that mean something in this state.
    pub(crate) commands: Vec<&'static str>,
    /// Name of the experiment.
    pub(crate) experiment: String,
    /// Version of evb.
    pub(crate) version: &'static str,
    /// Transport between the nodes.
    pub(crate) transport: String,
    /// Protocol of event building.
    pub(crate) protocol: String,
    /// The run that goes on, or the last one.
    pub(crate) run: Option<RunStatus>,
    /// All nodes in the order of their numbers.
    pub(crate) nodes: Vec<NodeStatus>,
    /// Rates and occupancy now; none between runs.
    pub(crate) now_rates: Option<Rates>,
    /// Live sources that the run waits for.
    pub(crate) waiting: Vec<WaitingSource>,
    /// The unit that others wait for, if there is one.
    pub(crate) slowest: Option<Slowest>,
    /// What limits the run that goes on, as far as its units tell.
    pub(crate) limit: Option<Limit>,
    /// The disk of the event files; `None` if nothing is stored.
    pub(crate) disk: Option<Disk>,
    /// The record of the run so far, or of the last run, without its histograms.
    pub(crate) record: Option<Arc<Record>>,
    /// Its histograms, which are asked for by themselves: they are large, and a status goes to every page.
    #[serde(skip)]
    pub(crate) histograms: Arc<Vec<Histogram>>,
    /// The reason why the last configuration failed, or why the registry of runs cannot be written.
    pub(crate) error: Option<Problem>,
}

/// A run.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct RunStatus {
    /// Number of the run.
    pub(crate) number: u64,
    /// Type of the run, as the operator gave it.
    #[serde(rename = "type")]
    pub(crate) run_type: String,
    /// Comment at the start.
    pub(crate) comment: String,
    /// Time of the start.
    pub(crate) started: f64,
    /// Time since the start, in seconds.
    pub(crate) seconds: f64,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct NodeStatus {
    /// Name of the node, such as `ru0`.
    pub(crate) name: String,
    /// `manager`, `readout` or `builder`.
    pub(crate) kind: &'static str,
    /// `up`, `absent` or `lost`.
    pub(crate) state: &'static str,
    /// The way in which it was lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
}

/// The word for the presence of a node.
pub(crate) const fn word(presence: NodePresence) -> &'static str {
    match presence {
        NodePresence::Here => "up",
        NodePresence::Absent => "absent",
        NodePresence::Lost => "lost",
    }
}

/// A unit that others wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Slowest {
    /// Name of the unit.
    pub(crate) node: String,
    /// The evidence.
    pub(crate) why: String,
}

/// The disk of the event files.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Disk {
    /// Folder of the event files.
    pub(crate) directory: String,
    /// Bytes that can still be written.
    pub(crate) free_bytes: u64,
    /// Size of the file system in bytes.
    pub(crate) total_bytes: u64,
    /// Time until it is full at the present rate, in seconds; none while nothing is stored.
    pub(crate) seconds_until_full: Option<f64>,
}

/// An error for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The error.
    #[serde(rename = "error")]
    pub message: String,
    /// The way out.
    pub hint: Option<String>,
}

impl Problem {
    /// An error with its way out.
    pub fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { message: message.into(), hint: Some(hint.into()) }
    }
}
