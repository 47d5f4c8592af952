//! A comparison for the terminal.

use crate::{
    benchmark::{Case, distinct, titled},
    table::{ALWAYS, Column, Table},
    text::{metric, nanos, significant},
};
use evb_record::{Change, Comparison, Difference, Interval, Outcome};

/// One table for each pattern, then the reasons, each once, then the number of rows with each verdict.
pub fn comparison_table(rows: &[Comparison], width: usize) -> String {
    let groups = Case::groups(rows.iter().map(Case::from));
    let tables: String = groups.iter().map(|group| draw(rows, &group[0], width)).collect();
    tables + &verdicts(rows.iter().map(|row| &row.difference))
}

fn draw(rows: &[Comparison], group: &Case<'_>, width: usize) -> String {
    let mut rows: Vec<_> = rows.iter().filter(|row| Case::from(*row).is_alike(group)).collect();
    rows.sort_by(|one, other| Case::from(*one).order(&Case::from(*other)));
    let computes = rows.iter().any(|row| row.settings.compute_us > 0.0);
    let waits = distinct(rows.iter().map(|row| row.settings.wait.as_str())).len() > 1;
    let is_shown = |index: &usize| (*index != 2 || computes) && (*index != 4 || waits);
    let columns = columns();
    let shown: Vec<_> = (0..columns.len()).filter(is_shown).collect();
    let mut table = Table::new(shown.iter().map(|&index| columns[index].clone()));
    for row in &rows {
        let cells = cells(row);
        table.row(shown.iter().map(|&index| cells[index].clone()));
    }
    let quantity = if rows[0].difference.quantity == "cycle_ns" { "time of a cycle" } else { "messages per second" };
    format!("{}: {quantity}, median of the launches\n{}\n\n", group.heading(), table.draw(width))
}

fn columns() -> Vec<Column> {
    let mut columns = vec![
        Column::number("nodes", ALWAYS),
        Column::number("bytes", ALWAYS),
        Column::number("compute", ALWAYS),
        Column::word("transport"),
        Column::word("wait"),
    ];
    columns.extend(difference_columns());
    columns
}

fn cells(row: &Comparison) -> Vec<String> {
    let is_time = row.difference.quantity == "cycle_ns";
    let mut cells = vec![
        row.settings.nodes.to_string(),
        row.settings.size_bytes.to_string(),
        Case::from(row).compute(),
        row.transport.clone(),
        row.settings.wait.clone(),
    ];
    let value = |median| if is_time { nanos(median) } else { metric(median) + "/s" };
    cells.extend(difference_cells(&row.difference, value));
    cells
}

/// The columns of the cells of a difference.
pub(super) fn difference_columns() -> [Column; 5] {
    [
        Column::number("old", 1),
        Column::number("new", 2),
        Column::number("change", 4),
        Column::number("seen from", 3),
        Column::word("verdict"),
    ]
}

/// The cells of a difference; `show` writes a median with its unit.
pub(super) fn difference_cells(difference: &Difference, show: impl Fn(f64) -> String) -> [String; 5] {
    let value = |interval: Option<Interval>| interval.map_or_else(|| "-".into(), |found| show(found.median));
    [
        value(difference.old),
        value(difference.new),
        difference.change_percent.map_or_else(|| "-".into(), |change| format!("{change:+.1} %")),
        difference.seen_from_percent.map_or_else(|| "-".into(), |least| format!("{} %", significant(least, 2))),
        format!("{}{}", if difference.good { "" } else { "! " }, name(difference.verdict)),
    ]
}

fn name(verdict: Change) -> &'static str {
    match verdict {
        Change::NotGood => "not good",
        Change::Slower => "slower",
        Change::Missing => "missing",
        Change::Untrusted => "untrusted",
        Change::CannotTell => "cannot tell",
        Change::New => "new",
        Change::Same => "same",
        Change::Faster => "faster",
    }
}

/// The reasons, each once, then the number of rows with each verdict, and whether all are good.
pub(super) fn verdicts<'a>(differences: impl Iterator<Item = &'a Difference> + Clone) -> String {
    let reasons = titled("reasons", differences.clone().filter_map(|difference| difference.reason.as_deref()));
    let mut verdicts: Vec<_> = differences.clone().map(|difference| difference.verdict).collect();
    verdicts.sort_unstable();
    let count = |verdict| verdicts.iter().filter(|other| **other == verdict).count();
    let counts: Vec<_> = distinct(verdicts.iter().copied())
        .into_iter()
        .map(|verdict| format!("{} {}", count(verdict), name(verdict)))
        .collect();
    let worst = Outcome::worst(differences.map(Difference::outcome));
    format!("{reasons}{}: {}\n", worst.name(), counts.join(", "))
}
