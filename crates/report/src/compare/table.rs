//! A comparison for the terminal.

use crate::{
    benchmark::{Case, distinct, titled},
    text::{align_right, dense_table, metric, nanos, significant},
};
use comfy_table::Table;
use evb_record::{Change, Comparison};

/// One table for each pattern, then the reasons, each once, then how many rows have which verdict.
pub fn comparison_table(rows: &[Comparison]) -> String {
    let groups = Case::groups(rows.iter().map(Case::from));
    let tables: String = groups.iter().map(|group| draw(rows, &group[0])).collect();
    let reasons = titled("reasons", rows.iter().filter_map(|row| row.reason.as_deref()));
    format!("{tables}{reasons}{}\n", last_line(rows))
}

fn draw(rows: &[Comparison], group: &Case<'_>) -> String {
    let mut rows: Vec<_> = rows.iter().filter(|row| Case::from(*row).is_alike(group)).collect();
    rows.sort_by(|one, other| Case::from(*one).order(&Case::from(*other)));
    let computes = rows.iter().any(|row| row.compute_us > 0.0);
    let waits = distinct(rows.iter().map(|row| row.wait.as_str())).len() > 1;
    let names = ["nodes", "bytes", "compute", "transport", "wait", "old", "new", "change", "seen from", "verdict"];
    let is_shown = |index: &usize| (*index != 2 || computes) && (*index != 4 || waits);
    let shown: Vec<_> = (0..names.len()).filter(is_shown).collect();
    let mut table = dense_table(shown.iter().map(|&index| names[index]));
    for row in &rows {
        let cells = cells(row);
        table.add_row(shown.iter().map(|&index| cells[index].as_str()));
    }
    align_numbers(&mut table, &shown);
    let quantity = if rows[0].quantity == "cycle_ns" { "time of a cycle" } else { "messages per second" };
    format!("{}: {quantity}, median of the launches\n{table}\n\n", group.heading())
}

fn align_numbers(table: &mut Table, shown: &[usize]) {
    for (column, index) in shown.iter().enumerate() {
        if matches!(index, 0..=2 | 5..=8) {
            align_right(table, column..column + 1);
        }
    }
}

fn cells(row: &Comparison) -> [String; 10] {
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

fn last_line(rows: &[Comparison]) -> String {
    let mut verdicts: Vec<_> = rows.iter().map(|row| row.verdict).collect();
    verdicts.sort_unstable();
    let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
    let counts: Vec<_> = distinct(verdicts.into_iter())
        .into_iter()
        .map(|verdict| format!("{} {}", count(verdict), name(verdict)))
        .collect();
    let good = if rows.iter().all(|row| row.good) { "good" } else { "not good" };
    format!("{good}: {}", counts.join(", "))
}
