//! The parameters of each transport, as in figure 6 of ATLAS DAQ note 77, and the rows that they were taken from.

use super::case::{MARK_UNTRUSTED, distinct};
use crate::{
    table::{ALWAYS, Column, Table, beside},
    text::{hanging, shortened, significant},
};
use evb_record::Parameters;

type Row = (&'static str, &'static str, &'static str, fn(&Parameters) -> Option<f64>);

/// Title, unit, name in the record and value of each parameter: those of the note in its order, then others.
const ROWS: [Row; 14] = [
    ("latency (ping-pong)", "us", "latency_us", |p| p.latency_us),
    ("latency (two-way)", "us", "two_way_us", |p| p.two_way_us),
    ("overhead (pairs)", "us", "overhead_us", |p| p.overhead_us),
    ("bandwidth (pairs)", "MB/s", "bandwidth_mb_per_s", |p| p.bandwidth_mb_per_s),
    ("broadcast quality", "", "broadcast_quality", |p| p.broadcast_quality),
    ("funnel", "us", "funnel_us", |p| p.funnel_us),
    ("push-farm", "us", "push_farm_us", |p| p.push_farm_us),
    ("pull-farm", "us", "pull_farm_us", |p| p.pull_farm_us),
    ("overlap", "%", "overlap_percent", |p| p.overlap_percent),
    ("half-peak size", "B", "half_peak_bytes", |p| p.half_peak_bytes),
    ("peak rate", "M/s", "peak_rate_m_per_s", |p| p.peak_rate_m_per_s),
    ("fixed overhead (fit)", "us", "fixed_overhead_us", |p| p.fixed_overhead_us),
    ("rate (fit)", "MB/s", "rate_mb_per_s", |p| p.rate_mb_per_s),
    ("error of the fit", "%", "fit_error_percent", |p| p.fit_error_percent),
];

/// Longest name of a transport in the heading.
const LONGEST_NAME: usize = 14;

/// The table and its footnotes; empty if no transport has any of the parameters.
pub(super) fn table(all: &[Parameters], width: usize) -> String {
    if all.iter().all(|parameters| parameters.taken_from.is_empty()) {
        return String::new();
    }
    let tables = beside(all.len(), width, |some, gap, width| part(&all[some], gap, width));
    format!("parameters\n{tables}\n{}", footnotes(all, width))
}

fn part(some: &[Parameters], gap: bool, width: usize) -> String {
    let names = some.iter().map(|parameters| shortened(&parameters.transport, LONGEST_NAME));
    let names = names.map(|name| Column::number(name, ALWAYS));
    let mut table = Table::new([Column::word(""), Column::word("unit")].into_iter().chain(names)).padded(gap.into(), 1);
    for (title, unit, name, value) in ROWS {
        let cell = |parameters: &Parameters| match value(parameters) {
            Some(value) => format!("{}{}", significant(value, 3), mark(parameters, name)),
            None => "- ".into(),
        };
        table.row([title.to_owned(), unit.to_owned()].into_iter().chain(some.iter().map(cell)));
    }
    table.draw(width)
}

fn mark(parameters: &Parameters, name: &str) -> &'static str {
    let trusted = parameters.taken_from.get(name).is_none_or(|origin| origin.trusted);
    if trusted { " " } else { MARK_UNTRUSTED }
}

/// The rows that each parameter was taken from.
fn footnotes(all: &[Parameters], width: usize) -> String {
    ROWS.iter().map(|(title, _, name, _)| footnote(all, title, name, width)).collect()
}

/// One line, or one for each group of transports that differ.
fn footnote(all: &[Parameters], title: &str, name: &str, width: usize) -> String {
    let rows = |parameters: &'_ Parameters| parameters.taken_from.get(name).map(|origin| origin.rows.clone());
    let ways = distinct(all.iter().filter_map(rows));
    let line = |way: &String| {
        let same = all.iter().filter(|parameters| rows(parameters).as_ref() == Some(way));
        let names: Vec<_> = same.map(|parameters| parameters.transport.as_str()).collect();
        let whose = if ways.len() == 1 { String::new() } else { format!(" ({})", names.join(", ")) };
        hanging(&format!("  {title:<21} "), &format!("{way}{whose}"), width)
    };
    ways.iter().map(line).collect()
}
