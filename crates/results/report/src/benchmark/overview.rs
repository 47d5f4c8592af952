//! All patterns over all transports in one table, a number for each.

use super::{
    case::{Case, distinct},
    detail::Value,
};
use crate::table::{ALWAYS, Column, Table, beside};
use evb_record::Benchmark;

/// The table; empty unless there are several patterns, each measured once on each transport.
pub(super) fn table(records: &[Benchmark], width: usize) -> String {
    let groups = Case::groups(records.iter().map(Case::from));
    if groups.len() < 2 || groups.iter().any(|cases| cases.len() > 1) {
        return String::new();
    }
    let cases: Vec<_> = groups.iter().map(|cases| &cases[0]).collect();
    let transports = distinct(records.iter().map(|row| row.transport.as_str()));
    let tables =
        beside(transports.len(), width, |some, gap, width| part(records, &cases, &transports[some], gap, width));
    format!("overview\n{tables}\n")
}

fn part(records: &[Benchmark], cases: &[&Case<'_>], transports: &[&str], gap: bool, width: usize) -> String {
    let labels = [Column::word("pattern"), Column::number("nodes", ALWAYS), Column::word("number")];
    let names = transports.iter().map(|name| Column::number(format!("{name} "), ALWAYS));
    let mut table = Table::new(labels.into_iter().chain(names)).padded(gap.into(), 1);
    for case in cases {
        let rows: Vec<_> = records.iter().filter(|row| Case::from(*row) == **case).collect();
        let value = Value::of(rows[0]);
        let cell = |name: &&str| rows.iter().find(|row| row.transport == **name).map(|row| value.main(row));
        let labels = [case.pattern.to_owned(), case.nodes.to_string(), value.main_name().to_owned()];
        table.row(labels.into_iter().chain(transports.iter().map(|name| cell(name).unwrap_or_else(|| "- ".into()))));
    }
    table.draw(width)
}
