//! A comparison for the terminal.

use crate::{
    benchmark::{Case, distinct, titled},
    table::{ALWAYS, Column, Table},
    text::{metric, nanos, significant},
};
use evb_record::{Change, Comparison};

/// One table for each pattern, then the reasons, each once, then the number of rows with each verdict.
pub fn comparison_table(rows: &[Comparison], width: usize) -> String {
    let groups = Case::groups(rows.iter().map(Case::from));
    let tables: String = groups.iter().map(|group| draw(rows, &group[0], width)).collect();
    let reasons = titled("reasons", rows.iter().filter_map(|row| row.reason.as_deref()));
    format!("{tables}{reasons}{}\n", last_line(rows.iter().map(|row| (row.verdict, row.good))))
}

fn draw(rows: &[Comparison], group: &Case<'_>, width: usize) -> String {
    let mut rows: Vec<_> = rows.iter().filter(|row| Case::from(*row).is_alike(group)).collect();
    rows.sort_by(|one, other| Case::from(*one).order(&Case::from(*other)));
    let computes = rows.iter().any(|row| row.compute_us > 0.0);
    let waits = distinct(rows.iter().map(|row| row.wait.as_str())).len() > 1;
    let is_shown = |index: &usize| (*index != 2 || computes) && (*index != 4 || waits);
    let shown: Vec<_> = (0..COLUMNS).filter(is_shown).collect();
    let columns = columns();
    let mut table = Table::new(shown.iter().map(|&index| columns[index].clone()));
    for row in &rows {
        let cells = cells(row);
        table.row(shown.iter().map(|&index| cells[index].clone()));
    }
    let quantity = if rows[0].quantity == "cycle_ns" { "time of a cycle" } else { "messages per second" };
    format!("{}: {quantity}, median of the launches\n{}\n\n", group.heading(), table.draw(width))
}

const COLUMNS: usize = 10;

fn columns() -> [Column; COLUMNS] {
    [
        Column::number("nodes", ALWAYS),
        Column::number("bytes", ALWAYS),
        Column::number("compute", ALWAYS),
        Column::word("transport"),
        Column::word("wait"),
        Column::number("old", 1),
        Column::number("new", 2),
        Column::number("change", 4),
        Column::number("seen from", 3),
        Column::word("verdict"),
    ]
}

fn cells(row: &Comparison) -> [String; COLUMNS] {
    let value = |median: f64| if row.quantity == "cycle_ns" { nanos(median) } else { metric(median) + "/s" };
    let cell =
        |interval: Option<evb_record::Interval>| interval.map_or_else(|| "-".into(), |found| value(found.median));
    [
        row.nodes.to_string(),
        row.size_bytes.to_string(),
        Case::from(row).compute(),
        row.transport.clone(),
        row.wait.clone(),
        cell(row.old),
        cell(row.new),
        row.change_percent.map_or_else(|| "-".into(), |change| format!("{change:+.1} %")),
        row.seen_from_percent.map_or_else(|| "-".into(), |least| format!("{} %", significant(least, 2))),
        format!("{}{}", if row.good { "" } else { "! " }, name(row.verdict)),
    ]
}

pub(super) fn name(verdict: Change) -> &'static str {
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

/// How many rows have each verdict, and whether all are good.
pub(super) fn last_line(rows: impl Iterator<Item = (Change, bool)>) -> String {
    let (mut verdicts, goods): (Vec<_>, Vec<_>) = rows.unzip();
    verdicts.sort_unstable();
    let count = |verdict| verdicts.iter().filter(|other| **other == verdict).count();
    let counts: Vec<_> = distinct(verdicts.iter().copied())
        .into_iter()
        .map(|verdict| format!("{} {}", count(verdict), name(verdict)))
        .collect();
    let good = if goods.into_iter().all(|good| good) { "good" } else { "not good" };
    format!("{good}: {}", counts.join(", "))
}
