//! The comparison of runs of an experiment with its simulation.

use crate::{Bounds, Outcome, RecordKind, WorkRecord, median, spread};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Runs of an experiment, held against a simulation of the machine that carried them out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Twin {
    /// Always [`RecordKind::Twin`].
    pub kind: RecordKind,
    /// Name of the experiment.
    pub experiment: String,
    /// The swept keys and their values; empty without a sweep.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sweep: BTreeMap<String, String>,
    /// Seed of every random stream.
    pub seed: u64,
    /// Version of evb.
    pub version: String,
    /// The transport of the runs.
    pub transport: String,
    /// Number of runs.
    pub turns: u64,
    /// Per cent by which simulated event rates of the fitted machine differ from real ones, of nine in ten at most.
    pub band_percent: f64,
    /// Event rate of the run by which the machine is known again, when the machine was fitted, in hertz.
    pub fitted_reference_hz: f64,
    /// The same, beside each of the runs.
    pub reference_hz: Vec<f64>,
    /// What was compared.
    pub figures: Vec<TwinFigure>,
    /// The simulated work by item.
    pub simulated_work: Vec<WorkRecord>,
    /// Whether the runs and the simulation agree.
    pub agreement: Agreement,
    /// The reason for that, in words.
    pub explanation: String,
    /// The same at parts of the full rate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<TwinLoad>,
}

/// Runs at a part of the rate that they have when triggers come as fast as builders take them, held against a simulation at the
/// same trigger rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwinLoad {
    /// The part of the full rate, above 0 and below 1.
    pub load: f64,
    /// The trigger rate, in hertz.
    pub rate_hz: f64,
    /// Event rate of the run by which the machine is known again, beside each of the runs, in hertz.
    pub reference_hz: Vec<f64>,
    /// What was compared.
    pub figures: Vec<TwinFigure>,
    /// Whether the median and the 99th percentile of the latency agree within a factor of two.
    pub agreement: Agreement,
    /// The reason for that, in words.
    pub explanation: String,
}

impl Twin {
    /// The worst verdict: that at the full rate, and those at the loads.
    #[must_use]
    pub fn worst(&self) -> Agreement {
        let loads = self.loads.iter().map(|load| load.agreement);
        loads.fold(self.agreement, |one, other| if other.outcome() > one.outcome() { other } else { one })
    }

    /// True if all runs could be compared.
    #[must_use]
    pub fn is_comparable(&self) -> bool {
        let all = [self.agreement].into_iter().chain(self.loads.iter().map(|load| load.agreement));
        all.into_iter().all(|agreement| agreement != Agreement::NotComparable)
    }
}

/// A figure, real and simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwinFigure {
    /// Name, with its unit.
    pub figure: String,
    /// Its value in each run.
    pub real: Vec<f64>,
    /// Its simulated value.
    pub simulated: f64,
    /// The range of the simulated value by the band of the fit; `None` for figures that the fit has no band for.
    pub simulated_range: Option<Bounds>,
    /// Whether they agree; figures without a band do within a factor of two.
    pub agrees: bool,
}

/// Whether runs and a simulation agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The event rates agree within the band of the fit and the spread of the runs.
    Agree,
    /// They do not.
    Differ,
    /// The machine was not the one of the fit while the runs went on, or not the same from run to run.
    NotComparable,
}

impl Agreement {
    /// The verdict in words: `agree`, `differ` or `not comparable`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Differ => "differ",
            Self::NotComparable => "not comparable",
        }
    }

    /// How good that is.
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::Agree => Outcome::Good,
            Self::Differ => Outcome::NotGood,
            Self::NotComparable => Outcome::CannotTell,
        }
    }
}

impl TwinFigure {
    /// The median of the real values.
    #[must_use]
    pub fn median(&self) -> f64 {
        median(&self.real)
    }

    /// The least and the most of the real values; zeros if there are none.
    #[must_use]
    pub fn ends(&self) -> (f64, f64) {
        let [low, high] = [f64::min, f64::max].map(|end| self.real.iter().copied().reduce(end).unwrap_or(0.0));
        (low, high)
    }

    /// Half of the difference of the most and the least real value, as a part of the median; 0 if that is zero.
    #[must_use]
    pub fn spread(&self) -> f64 {
        spread(&self.real)
    }

    /// The simulated value over the median of the real ones; `None` if that is zero.
    #[must_use]
    pub fn ratio(&self) -> Option<f64> {
        let median = self.median();
        (median > 0.0).then(|| self.simulated / median)
    }
}
