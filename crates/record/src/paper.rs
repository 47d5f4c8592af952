//! Results of `evb paper`: published values, reproduced values beside them, and their tables and figures.

use alloc::{string::String, vec::Vec};
use serde::{Deserialize, Serialize};

use crate::Kind;

/// One published value and its reproduction: one line of `evb paper --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperItem {
    /// Always [`Kind::Paper`].
    pub kind: Kind,
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
    /// The published value; none if nothing was published.
    pub published: Option<f64>,
    /// The reproduced value.
    pub reproduced: f64,
    /// The reproduced value less the published value.
    pub difference: Option<f64>,
    /// Largest accepted difference; for `at_least` and `at_most` in the wrong direction only.
    pub tolerance: f64,
    /// True if the difference is at most the tolerance.
    pub within: bool,
    /// The verdict on the reproduced value.
    pub verdict: Verdict,
    /// The reason for the tolerance; for a calibrated value, the parameter that was set by it.
    pub because: String,
    /// The tool of the measurement, if the value does not come from a simulation of a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_with: Option<String>,
    /// Seed of every random stream.
    pub seed: u64,
    /// Version of evb.
    pub version: String,
}

/// The expected relation of a reproduced value to the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Equal within the tolerance.
    Equal,
    /// Not below the published value by more than the tolerance.
    AtLeast,
    /// Not above the published value by more than the tolerance.
    AtMost,
    /// Nothing was published.
    Shown,
}

/// The verdict on a reproduced value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Inside the tolerance.
    Within,
    /// Outside the tolerance.
    Outside,
    /// Inside the tolerance, but a parameter was set by this very value: no success.
    Calibrated,
    /// Nothing was published for comparison.
    Shown,
}

/// The results of one paper.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperReport {
    /// The folder of the paper.
    pub slug: String,
    /// Title of the paper.
    pub title: String,
    /// Year in which it was published.
    pub year: u16,
    /// Every value, including those of the tables.
    pub items: Vec<PaperItem>,
    /// The tables.
    pub tables: Vec<PaperTable>,
    /// The figures.
    pub figures: Vec<Figure>,
}

impl PaperReport {
    /// Returns true if every item is inside its tolerance.
    pub fn good(&self) -> bool {
        self.items.iter().all(|item| item.within)
    }
}

/// A table, whose cells are items.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperTable {
    /// Name of the table, unique in its paper; the items of its cells begin with it.
    pub name: String,
    /// Description of the table.
    pub what: String,
    /// Place in the paper.
    pub place: String,
    /// Unit of all cells.
    pub unit: String,
    /// The quantity that differs between rows.
    pub row_name: String,
    /// The value of each row.
    pub rows: Vec<String>,
    /// The columns.
    pub columns: Vec<PaperColumn>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperColumn {
    /// Name of the column.
    pub name: String,
    /// For each row the index of its item in the report.
    pub items: Vec<usize>,
}

/// A figure: reproduced curves and published points.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name of the figure, unique in its paper, fit for the stem of a file name.
    pub name: String,
    /// Description of the figure.
    pub what: String,
    /// Place in the paper.
    pub place: String,
    /// Title of the horizontal axis, with its unit.
    pub x: String,
    /// Title of the vertical axis, with its unit.
    pub y: String,
    /// True if the horizontal axis is logarithmic.
    pub x_log: bool,
    /// True if the vertical axis is logarithmic.
    pub y_log: bool,
    /// Reproduced curves.
    pub curves: Vec<Curve>,
    /// Published points.
    pub published: Vec<Curve>,
}

/// A curve, or a set of points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// The label of the curve.
    pub label: String,
    /// The points, in the order of the line through them.
    pub points: Vec<(f64, f64)>,
}
