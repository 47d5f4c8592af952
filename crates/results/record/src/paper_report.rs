//! The results of one paper: its values, and the findings, tables and figures that they form.

use crate::PaperItem;
use serde::{Deserialize, Serialize};

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
    /// The independent findings, which are the predicted values without repetition.
    pub findings: Vec<PaperFinding>,
    /// The tables.
    pub tables: Vec<PaperTable>,
    /// The figures.
    pub figures: Vec<Figure>,
}

impl PaperReport {
    /// Returns true if exactly the items in the list of known differences are outside.
    pub fn good(&self) -> bool {
        self.items.iter().all(PaperItem::is_as_listed)
    }
}

/// Predicted values that come from one experiment, such as the points of one curve: they agree or fail together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaperFinding {
    /// Name of the finding, unique in its paper.
    pub name: String,
    /// For each value the index of its item in the report.
    pub items: Vec<usize>,
    /// The causes of its values that are outside, in a few words each.
    pub causes: Vec<String>,
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
