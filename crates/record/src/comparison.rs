//! The results of `evb compare`: a benchmark in two files, and which of them is better.

use crate::Kind;
use alloc::string::String;
use serde::{Deserialize, Serialize};

/// One row of two files of benchmarks: one line of `evb compare --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`Kind::Comparison`].
    pub kind: Kind,
    /// The message layer.
    pub transport: String,
    /// The communication pattern.
    pub pattern: String,
    /// Length of a data message in bytes.
    pub size_bytes: u64,
    /// Number of nodes.
    pub nodes: u16,
    /// Time that the receiver of a farm computes for each event, in microseconds.
    pub compute_us: f64,
    /// Messages that a sender has under way at once.
    pub window: u32,
    /// Rate at which each sender offers messages, per second; none when it sends as fast as it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<f64>,
    /// How a node without work waits.
    pub wait: String,
    /// What is compared: `cycle_ns`, of which less is better, or `messages_per_s`, of which more is.
    pub quantity: String,
    /// What the old file has; none when the row is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Interval>,
    /// What the new file has; none when the row is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Interval>,
    /// The new median less the old one, in percent of the old one; none unless there are both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_percent: Option<f64>,
    /// Lower limit of the interval that holds the true change with 95 %, in percent of the old value; none when there are too few
    /// launches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_low_percent: Option<f64>,
    /// The upper limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_high_percent: Option<f64>,
    /// The smallest difference that could have been seen between launches that scatter as these do, in percent of the lesser
    /// value: half of all such differences are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_from_percent: Option<f64>,
    /// What to think of it.
    pub verdict: Change,
    /// Why, where the numbers do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether the row is no reason to turn the new file down.
    pub good: bool,
}

/// The median of the launches of a row, and the interval that holds the median of all possible launches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The median.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What became of a row from the old file to the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Messages were lost or corrupted that were not before.
    NotGood,
    /// Worse by more than the tolerance, and the interval of the change leaves no room for none.
    Slower,
    /// It is in the old file only.
    Missing,
    /// The numbers of one of the files cannot be trusted, or the machine has changed.
    Untrusted,
    /// The launches scatter too much, or are too few, for any of the others.
    CannotTell,
    /// It is in the new file only.
    New,
    /// The whole interval of the change lies within the tolerance.
    Same,
    /// Better by more than the tolerance, and the interval of the change leaves no room for none.
    Faster,
}
