//! The results of `evb paper`: published values, ours beside them, and the tables and figures that they belong to.

use alloc::{string::String, vec::Vec};
use serde::{Deserialize, Serialize};

use crate::Kind;

/// One published value and ours: one line of `evb paper --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperItem {
    /// Always [`Kind::Paper`].
    pub kind: Kind,
    /// The folder of the paper.
    pub paper: String,
    /// Name of the item, unique in its paper.
    pub item: String,
    /// What it is.
    pub what: String,
    /// Where in the paper it stands.
    pub place: String,
    /// Unit of `published`, `reproduced`, `difference` and `tolerance`; empty for a plain number.
    pub unit: String,
    /// How `reproduced` should compare with `published`.
    pub relation: Relation,
    /// The published value; none when there is only ours to show.
    pub published: Option<f64>,
    /// Ours.
    pub reproduced: f64,
    /// Ours less the published value.
    pub difference: Option<f64>,
    /// Largest difference that is accepted, towards the wrong side only for `at_least` and `at_most`.
    pub tolerance: f64,
    /// Whether the difference is at most the tolerance.
    pub within: bool,
    /// What to think of it.
    pub verdict: Verdict,
    /// Why the tolerance is what it is; for a calibrated value, what was set by it.
    pub because: String,
    /// What ours was measured with, when it is no simulation of a network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_with: Option<String>,
    /// Seed of every random stream.
    pub seed: u64,
    /// Version of evb.
    pub version: String,
}

/// How a reproduced value should compare with the published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// Equal within the tolerance.
    Equal,
    /// Not below it by more than the tolerance.
    AtLeast,
    /// Not above it by more than the tolerance.
    AtMost,
    /// Nothing was published.
    Shown,
}

/// What to think of a reproduced value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Inside the tolerance.
    Within,
    /// Outside the tolerance.
    Outside,
    /// Inside the tolerance, but a parameter was set by this very value: no success.
    Calibrated,
    /// Nothing was published to compare it with.
    Shown,
}

/// All of one paper.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperReport {
    /// The folder of the paper.
    pub slug: String,
    /// Title of the paper.
    pub title: String,
    /// Year in which it was published.
    pub year: u16,
    /// Every value, those of the tables too.
    pub items: Vec<PaperItem>,
    /// The tables.
    pub tables: Vec<PaperTable>,
    /// The figures.
    pub figures: Vec<Figure>,
}

impl PaperReport {
    /// Whether every item is inside its tolerance.
    pub fn good(&self) -> bool {
        self.items.iter().all(|item| item.within)
    }
}

/// A table, whose cells are items.
#[derive(Clone, Debug, PartialEq)]
pub struct PaperTable {
    /// Name of the table, unique in its paper; the items of its cells begin with it.
    pub name: String,
    /// What it shows.
    pub what: String,
    /// Where in the paper it stands.
    pub place: String,
    /// Unit of all cells.
    pub unit: String,
    /// What the rows differ in.
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

/// A figure: our curves, and the points that were published.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name of the figure, unique in its paper, fit for the stem of a file name.
    pub name: String,
    /// What it shows.
    pub what: String,
    /// Where in the paper it stands.
    pub place: String,
    /// Title of the horizontal axis, with its unit.
    pub x: String,
    /// Title of the vertical axis, with its unit.
    pub y: String,
    /// Whether the horizontal axis is logarithmic.
    pub x_log: bool,
    /// Whether the vertical axis is logarithmic.
    pub y_log: bool,
    /// Our curves.
    pub curves: Vec<Curve>,
    /// Published points.
    pub published: Vec<Curve>,
}

/// A curve, or a set of points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// What it is.
    pub label: String,
    /// The points, in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
}
