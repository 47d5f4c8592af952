//! Tables that fit the width of a terminal: columns have an importance, and the least important ones are left out.

use crate::text::hanging;
use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, Table as Drawing, TableComponent, Width,
    presets::UTF8_HORIZONTAL_ONLY,
};
use std::ops::Range;

/// Width of a terminal whose width is unknown, in columns.
pub const NARROW: usize = 80;

/// Importance of a column that is never left out.
pub(crate) const ALWAYS: u8 = u8::MAX;
/// Narrowest width of a column of sentences before another column is left out.
const NARROWEST_TEXT: u16 = 16;

/// A column: its name, and its treatment in a narrow table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    name: String,
    alignment: CellAlignment,
    importance: u8,
    wraps: bool,
}

impl Column {
    /// A column of numbers. The column with the least importance is left out first; [`ALWAYS`] never is.
    pub(crate) fn number(name: impl Into<String>, importance: u8) -> Self {
        Self { alignment: CellAlignment::Right, importance, ..Self::word(name) }
    }

    /// A column of words that is never left out.
    pub(crate) fn word(name: impl Into<String>) -> Self {
        Self { name: name.into(), alignment: CellAlignment::Left, importance: ALWAYS, wraps: false }
    }

    /// A column of sentences, which are wrapped.
    pub(crate) fn sentence(name: impl Into<String>) -> Self {
        Self { wraps: true, ..Self::word(name) }
    }
}

/// Rows of texts below the names of their columns.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
    padding: (u16, u16),
    ruled: bool,
}

impl Table {
    /// A table without lines between its rows.
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new(), padding: (1, 1), ruled: false }
    }

    /// Draws lines between the rows, if there are few.
    pub(crate) fn ruled(self) -> Self {
        Self { ruled: true, ..self }
    }

    /// Sets the space on either side of each cell.
    pub(crate) fn padded(self, left: u16, right: u16) -> Self {
        Self { padding: (left, right), ..self }
    }

    /// Adds a row: one text for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table in `width` columns of a terminal. If it is too wide, first the names of its columns are wrapped and
    /// the gaps made smaller, then the least important columns are left out, which is noted below, and at last all
    /// cells are wrapped.
    pub(crate) fn draw(&self, width: usize) -> String {
        let mut shown: Vec<_> = (0..self.columns.len()).collect();
        let is_narrow = |shown: &[usize], squeeze| widest(&self.drawing(shown, squeeze, Cells::Narrowest)) <= width;
        let squeeze =
            [Squeeze::No, Squeeze::Names, Squeeze::Gaps].into_iter().find(|squeeze| is_narrow(&shown, *squeeze));
        let squeeze = squeeze.unwrap_or(Squeeze::Gaps);
        while !is_narrow(&shown, squeeze) && self.leave_out(&mut shown) {}
        let cells = if is_narrow(&shown, squeeze) { Cells::Sentences(width) } else { Cells::Broken(width) };
        let text = self.drawing(&shown, squeeze, cells);
        let missing: Vec<_> = (0..self.columns.len()).filter(|index| !shown.contains(index)).collect();
        let names: Vec<_> = missing.into_iter().map(|index| self.columns[index].name.as_str()).collect();
        match names.is_empty() {
            true => text,
            false => format!("{text}\n{}", hanging("no room for: ", &names.join(", "), width).trim_end()),
        }
    }

    /// Leaves out the least important column, of several the last; returns false if all remaining ones are needed.
    fn leave_out(&self, shown: &mut Vec<usize>) -> bool {
        let least = shown.iter().rposition(|&index| {
            let importance = self.columns[index].importance;
            importance < ALWAYS && shown.iter().all(|&other| importance <= self.columns[other].importance)
        });
        least.map(|at| shown.remove(at)).is_some()
    }

    /// The columns that are shown.
    fn drawing(&self, shown: &[usize], squeeze: Squeeze, cells: Cells) -> String {
        let mut drawing = Drawing::new();
        drawing.load_preset(UTF8_HORIZONTAL_ONLY).set_content_arrangement(ContentArrangement::Dynamic);
        drawing.set_width(cells.width().min(WIDEST) as u16);
        drawing.set_header(shown.iter().map(|&index| header(&self.columns[index].name, squeeze)));
        for row in &self.rows {
            drawing.add_row(shown.iter().map(|&index| row[index].as_str()));
        }
        let (left, right) = if squeeze == Squeeze::Gaps { (0, self.padding.1.min(1)) } else { self.padding };
        for (column, &index) in drawing.column_iter_mut().zip(shown) {
            column.set_padding((left, right));
            column.set_cell_alignment(self.columns[index].alignment);
            if let Some(constraint) = cells.constraint(self.columns[index].wraps, left + right) {
                column.set_constraint(constraint);
            }
        }
        if !self.ruled {
            without_lines(&mut drawing);
        }
        drawing.to_string()
    }
}

/// The first measures in a narrow table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Squeeze {
    No,
    /// The names of columns are wrapped.
    Names,
    /// The names are wrapped, and the gaps between columns are smaller.
    Gaps,
}

/// The way in which cells fit a width.
#[derive(Clone, Copy, Debug)]
enum Cells {
    /// Sentences are as narrow as allowed, and all other cells unwrapped.
    Narrowest,
    /// Sentences are wrapped, so that the table has this width at most.
    Sentences(usize),
    /// All cells are wrapped.
    Broken(usize),
}

impl Cells {
    fn width(self) -> usize {
        match self {
            Self::Narrowest => WIDEST,
            Self::Sentences(width) | Self::Broken(width) => width,
        }
    }

    fn constraint(self, is_sentence: bool, padding: u16) -> Option<ColumnConstraint> {
        match (self, is_sentence) {
            (Self::Narrowest, true) => Some(ColumnConstraint::UpperBoundary(Width::Fixed(NARROWEST_TEXT + padding))),
            (Self::Broken(_), _) | (Self::Sentences(_), true) => None,
            (Self::Narrowest | Self::Sentences(_), false) => Some(ColumnConstraint::ContentWidth),
        }
    }
}

/// As many things side by side as fit the width, and the others in further tables below. `table` draws some of them,
/// with or without gaps between, in a number of columns.
pub(crate) fn beside(count: usize, width: usize, table: impl Fn(Range<usize>, bool, usize) -> String) -> String {
    let tables = |most: usize, gaps: bool, width: usize| -> Vec<String> {
        let parts = (0..count).step_by(most).map(|first| first..count.min(first + most));
        parts.map(|part| table(part, gaps, width)).collect()
    };
    let ways = (1..=count).rev().flat_map(|most| [(most, true), (most, false)]);
    let mut drawn = ways.map(|(most, gaps)| tables(most, gaps, WIDEST));
    let narrow = drawn.find(|tables| tables.iter().all(|table| widest(table) <= width));
    narrow.unwrap_or_else(|| tables(1, false, width)).join("\n")
}

/// A width at which no table is wrapped.
const WIDEST: usize = u16::MAX as usize;

/// Columns of the longest line.
pub(crate) fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// The name of a column; wrapped at its spaces and dots, unless it has explicit lines.
fn header(name: &str, squeeze: Squeeze) -> String {
    match squeeze == Squeeze::No || name.contains('\n') {
        true => name.to_owned(),
        false => name.replace(' ', "\n").replace('.', ".\n"),
    }
}

fn without_lines(drawing: &mut Drawing) {
    for part in [
        TableComponent::HorizontalLines,
        TableComponent::MiddleIntersections,
        TableComponent::LeftBorderIntersections,
        TableComponent::RightBorderIntersections,
    ] {
        drawing.remove_style(part);
    }
}
