//! The rows of the registry.

use evb_record::{Outcome, Record};
use serde::Serialize;

/// A run in a list of runs. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRow {
    /// Number of the run.
    pub number: u64,
    /// Type of the run, as the operator gave it.
    #[serde(rename = "type")]
    pub run_type: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Comment at the start; it may be changed later.
    pub comment: String,
    /// Comment at the stop.
    pub stop_comment: String,
    /// `running`, `stopped`, `failed` or `interrupted`.
    pub state: String,
    /// Time of the start.
    pub started: f64,
    /// Time of the end; `None` while it continues, or if its end was not recorded.
    pub ended: Option<f64>,
    /// Events that ended: built, incomplete or rejected.
    pub events: u64,
    /// Event rate of the record, per second.
    pub event_rate_hz: f64,
    /// Payload bytes delivered to builders.
    pub bytes: u64,
    /// True if the verdict is good; `None` while the run continues.
    pub good: Option<bool>,
    /// The verdict; `None` while the run continues.
    pub verdict: Option<Outcome>,
    /// The machine of run control.
    pub host: String,
    /// Version of evb.
    pub version: String,
}

/// All that is known about a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunDetails {
    /// The fields of the list.
    #[serde(flatten)]
    pub row: RunRow,
    /// Seed of every random stream.
    pub seed: u64,
    /// The resolved experiment file.
    pub experiment_text: String,
    /// The nodes at the start, with what is known of their machines.
    pub nodes: Vec<NodeOfRun>,
    /// The record; none until the run has ended.
    pub record: Option<Record>,
}

/// A node at the start of a run.
#[derive(Clone, Debug, PartialEq, Serialize, serde::Deserialize)]
pub struct NodeOfRun {
    /// Name of the node.
    pub name: String,
    /// Machine of the node.
    #[serde(default)]
    pub host: String,
    /// Time by which the clock of its machine was ahead of that of run control when the node joined, in seconds.
    #[serde(default)]
    pub clock_ahead_s: f64,
}

/// A run that starts.
#[derive(Clone, Debug)]
pub struct Begun {
    /// Number of the run.
    pub number: u64,
    /// Type of the run.
    pub run_type: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Comment of the operator.
    pub comment: String,
    /// Time of the start, in seconds since 1970.
    pub started: f64,
    /// The machine of run control.
    pub host: String,
    /// Version of evb.
    pub version: String,
    /// Seed of every random stream.
    pub seed: u64,
    /// The resolved experiment file.
    pub experiment_text: String,
    /// The nodes.
    pub nodes: Vec<NodeOfRun>,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct Ended {
    /// `stopped` or `failed`.
    pub state: &'static str,
    /// Time of the end, in seconds since 1970.
    pub ended: f64,
    /// Comment of the operator.
    pub comment: String,
    /// The record.
    pub record: Record,
}
