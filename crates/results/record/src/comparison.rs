//! Results of `evb compare`: a benchmark in two files, and which of them is better.

use crate::{BenchmarkSettings, Outcome, RecordKind};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A measurement in two files of benchmarks: one line of `evb compare --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Always [`RecordKind::Comparison`].
    pub kind: RecordKind,
    /// The message layer.
    pub transport: String,
    /// The communication pattern.
    pub pattern: String,
    /// The settings of the measurement. They are fields beside the others in JSON.
    #[serde(flatten)]
    pub settings: BenchmarkSettings,
    /// The difference of the launches. Its fields are beside the others in JSON.
    #[serde(flatten)]
    pub difference: Difference,
}

/// A quantity of a point of an experiment in two files of runs or simulations: one line of `evb compare --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunComparison {
    /// Always [`RecordKind::RunComparison`].
    pub kind: RecordKind,
    /// Name of the experiment.
    pub experiment: String,
    /// The swept keys and their values; empty without a sweep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, String>,
    /// The transports of the old and of the new file; empty where the point is missing.
    pub transports: [String; 2],
    /// The difference of the runs. Its fields are beside the others in JSON.
    #[serde(flatten)]
    pub difference: Difference,
}

/// The difference of a quantity between an old and a new file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The compared quantity, by its name in the records. Less is better for the times `cycle_ns` and `latency_us`, and
    /// more for the rates.
    pub quantity: String,
    /// The value in the old file; `None` if it has none. For runs, the interval is the range of all runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Interval>,
    /// The value in the new file; `None` if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<Interval>,
    /// The new median less the old one, in percent of the old one; `None` unless both files have a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_percent: Option<f64>,
    /// Lower limit of the 95 % confidence interval of the change, in percent of the old value; `None` if there are too
    /// few launches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_low_percent: Option<f64>,
    /// Upper limit of the 95 % confidence interval of the change, in percent of the old value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_high_percent: Option<f64>,
    /// The smallest difference that this comparison detects in half of all cases, given the scatter between the
    /// launches, in percent of the lesser value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_from_percent: Option<f64>,
    /// The verdict on the change.
    pub verdict: Change,
    /// The reason for the verdict, if the numbers do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// False if the difference is a reason to reject the new file.
    pub good: bool,
}

impl Difference {
    /// The verdict on the new file by this difference alone.
    pub fn outcome(&self) -> Outcome {
        match self.verdict {
            _ if !self.good => Outcome::NotGood,
            Change::CannotTell | Change::Untrusted => Outcome::CannotTell,
            _ => Outcome::Good,
        }
    }
}

/// The median of the launches of a row, and the interval that holds the median of all possible launches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The median of the launches.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// The change of a row from the old file to the new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Messages were lost or corrupted in the new file, and not in the old one.
    NotGood,
    /// Worse by more than the tolerance, with an interval that excludes no change.
    Slower,
    /// The row is in the old file only.
    Missing,
    /// The numbers of one of the files cannot be trusted, or the machine has changed.
    Untrusted,
    /// The launches scatter too much, or are too few, for any other verdict.
    CannotTell,
    /// The row is in the new file only.
    New,
    /// The whole interval of the change lies within the tolerance.
    Same,
    /// Better by more than the tolerance, with an interval that excludes no change.
    Faster,
}
