//! Records of `evb paper`: published values, reproduced values beside them, and the parameters that they depend on.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::RecordKind;

/// One published value and its reproduction: one line of `evb paper --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperItem {
    /// Always [`RecordKind::Paper`].
    pub kind: RecordKind,
    /// The folder of the paper.
    pub paper: String,
    /// Name of the item, unique in its paper.
    pub item: String,
    /// Description of the value.
    pub what: String,
    /// Place in the paper.
    pub place: String,
    /// Unit of `published`, `reproduced`, `difference` and `tolerance`; empty for a plain number.
    pub unit: String,
    /// The expected relation of `reproduced` to `published`.
    pub relation: Relation,
    /// The published value; `None` if nothing was published.
    pub published: Option<f64>,
    /// The reproduced value; `None` if it is not a number, or not modelled.
    pub reproduced: Option<f64>,
    /// The reproduced value less the published value.
    pub difference: Option<f64>,
    /// Largest difference of a value that is inside; `None` if the value is not judged.
    pub tolerance: Option<f64>,
    /// The paper's own error that is the tolerance; empty if the tolerance is the rule for all papers.
    pub error_from: String,
    /// What agreement would prove.
    pub class: Class,
    /// The reason for the class.
    pub because: String,
    /// The verdict on the reproduced value.
    pub verdict: Verdict,
    /// True if the published value is the result of a theory, and not of a measurement.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub theory: bool,
    /// The reason for the difference, if the value is in the list of known differences.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
    /// True if the value is inside with some seeds and outside with others. It is in the list of known differences.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub varies: bool,
    /// The tool of the measurement, if the value does not come from a simulation of a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_with: Option<String>,
    /// Seed of every random stream.
    pub seed: u64,
    /// Version of evb.
    pub version: String,
}

impl PaperItem {
    /// Returns true if the list of known differences agrees with the verdict: the value is outside and listed, or
    /// neither. Both agree with a value that varies.
    pub fn is_as_listed(&self) -> bool {
        self.varies || (self.verdict == Verdict::Outside) == self.known.is_some()
    }

    /// Returns true if this value would be inside. NaN is not.
    pub fn is_inside(&self, reproduced: f64) -> bool {
        self.relation.holds(reproduced, self.published.unwrap_or_default(), self.tolerance.unwrap_or_default())
    }

    /// The difference in per cent of the published value; zero for a bound that holds. `None` if either number is missing,
    /// or the published one is zero.
    pub fn error_percent(&self) -> Option<f64> {
        let wrong = match self.relation {
            Relation::Equal | Relation::Shown => self.difference?,
            Relation::AtLeast => self.difference?.min(0.0),
            Relation::AtMost => self.difference?.max(0.0),
        };
        Some(wrong / self.published.filter(|published| *published != 0.0)?.abs() * 100.0)
    }
}

/// The expected relation of a reproduced value to the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Equal within the tolerance.
    Equal,
    /// Not below the published value.
    AtLeast,
    /// Not above the published value.
    AtMost,
    /// No number was published.
    Shown,
}

impl Relation {
    /// Returns true if a reproduced value has this relation to a published one, up to a tolerance in the wrong direction.
    pub fn holds(self, reproduced: f64, published: f64, tolerance: f64) -> bool {
        let difference = reproduced - published;
        let off = match self {
            Self::Equal => difference.abs(),
            Self::AtLeast => -difference,
            Self::AtMost => difference,
            Self::Shown => 0.0,
        };
        // A sum of decimal fractions is off by some units in its last place.
        reproduced.is_finite() && off <= tolerance + 1e-9 * reproduced.abs()
    }
}

/// What the agreement of a value would prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Nothing was set by the value or by anything that implies it: it can fail, and only such values count.
    Predicted,
    /// A parameter was set by the value, or the value holds at one value of an assumption only.
    Calibrated,
    /// The value follows from inputs, from a formula or from conservation.
    Implied,
    /// The paper says it in words; the number is our reading of them.
    Words,
    /// The two numbers are known not to be comparable.
    Different,
    /// The paper has it and evb does not.
    NotModelled,
    /// Nothing was published to compare with.
    Unpublished,
}

/// The verdict on a reproduced value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The difference is at most the tolerance.
    Inside,
    /// The difference is larger than the tolerance.
    Outside,
    /// There is nothing to compare, or it cannot be compared.
    NotJudged,
}

/// A parameter of the experiments of a paper, and the values that move with it: one line of
/// `evb paper --sensitivity --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sensitivity {
    /// Always [`RecordKind::Sensitivity`].
    pub kind: RecordKind,
    /// The folder of the paper.
    pub paper: String,
    /// The parameter.
    pub parameter: String,
    /// The origin of its value.
    pub basis: Basis,
    /// The place in the paper, or the reason for the value and its range.
    pub because: String,
    /// The items that set the parameter.
    pub set_by: Vec<String>,
    /// The value of the experiment files, then the values at which they were simulated again.
    pub values: Vec<String>,
    /// The published items that move by more than 0.1 %, and what each is at each of `values`.
    pub items: BTreeMap<String, Vec<Option<f64>>>,
    /// Seed of every random stream.
    pub seed: u64,
    /// Version of evb.
    pub version: String,
}

/// The origin of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The paper states it, or a source that the paper names.
    Stated,
    /// It was set so that items of the paper come out.
    Calibrated,
    /// Neither.
    Assumed,
}
