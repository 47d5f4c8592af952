//! A sweep as a table: one row for each record.

use crate::{
    rates,
    replicates::{group_table, is_replicated},
    table::{ALWAYS, Column as Shown, Table},
    text::{metric, micros, per_destination, percent, shortened},
};
use evb_record::{Outcome, PointRecord, Record};
use std::collections::BTreeSet;

/// One row for each record, real or simulated: the swept keys, the results, and the faults if there are any. Where the seed is
/// swept, one row for each combination of the other keys, with the means of its replicates. The number of good records is below.
pub fn sweep_table(records: &[Record], width: usize) -> String {
    if is_replicated(records) {
        return group_table(records, width);
    }
    let keys = swept_keys(records);
    let shown = columns(records);
    let rate = records.first().map_or("event rate", rates::rate_name);
    let column = |&(name, importance, _): &Column| match name {
        "" => Shown::number(rate, importance),
        REASON | OPEN => Shown::sentence(name),
        name => Shown::number(name, importance),
    };
    let mut table = Table::new(keys.iter().map(|key| Shown::word(*key)).chain(shown.iter().map(column)));
    for record in records {
        let swept = keys.iter().map(|key| record.sweep.get(*key).cloned().unwrap_or_default());
        table.row(swept.chain(shown.iter().map(|(_, _, cell)| cell(record))));
    }
    format!("{}\n\n{}\n", table.draw(width), last_line(records))
}

/// The keys that are swept in any of the records, in alphabetical order.
pub(crate) fn swept_keys<R: PointRecord>(records: &[R]) -> Vec<&str> {
    let keys: BTreeSet<_> = records.iter().flat_map(|record| record.sweep().keys().map(String::as_str)).collect();
    keys.into_iter().collect()
}

/// Longest part of a note in the table: the record has the whole text.
const LONGEST_NOTE: usize = 48;
const REASON: &str = "not good because";
const OPEN: &str = "cannot tell because";

/// Name, importance and cells of a column.
type Column = (&'static str, u8, fn(&Record) -> String);

/// The columns with content. The nameless one is the rate of events or messages.
fn columns(records: &[Record]) -> Vec<Column> {
    let mut columns: Vec<Column> = Vec::new();
    if records.iter().any(|record| record.trigger.offered_rate_hz.is_some()) {
        let offered = |record: &Record| record.trigger.offered_rate_hz.map_or_else(String::new, rates::hertz);
        columns.push(("offered rate", 7, offered));
    }
    columns.extend::<[Column; 4]>([
        ("", 8, |record| rates::hertz(record.event_rate_hz)),
        ("\u{b1} %", 4, rates::half_interval),
        ("throughput", 6, |record| format!("{}B/s", metric(record.throughput_bytes_per_s))),
        ("per destination", 2, |record| {
            per_destination(record).map_or_else(String::new, |(mean, ..)| format!("{}B/s", metric(mean)))
        }),
    ]);
    if records.iter().any(rates::has_waste) {
        let goodput = |record: &Record| {
            record.goodput_bytes_per_s.map_or_else(String::new, |goodput| format!("{}B/s", metric(goodput)))
        };
        columns.push(("goodput", 7, goodput));
    }
    if records.iter().any(|record| record.simulation.is_some()) {
        columns.push(("efficiency %", 7, |record| {
            record.simulation.as_ref().map_or_else(String::new, |simulation| percent(rates::efficiency(simulation)))
        }));
    }
    if records.iter().any(|record| background(record) > 0.0) {
        columns.push(("background", 6, |record| format!("{}B/s", metric(background(record)))));
    }
    if records.iter().any(|record| record.events.rejected > 0) {
        columns.push(("rejected", 4, |record| record.events.rejected.to_string()));
    }
    columns.push(("p50 us", 5, |record| micros(record.latency_us.p50)));
    columns.push(("p99 us", 3, |record| micros(record.latency_us.p99)));
    match Outcome::worst(records.iter().map(Record::outcome)) {
        Outcome::Good => {}
        Outcome::CannotTell => columns.push((OPEN, ALWAYS, reason)),
        Outcome::NotGood => columns.push((REASON, ALWAYS, any_reason)),
    }
    columns
}

/// Payload of all background traffic, in bytes per second.
fn background(record: &Record) -> f64 {
    let tables = record.simulation.iter().flat_map(|simulation| &simulation.background);
    tables.map(|background| background.throughput_bytes_per_s).sum()
}

/// The reason why a record is not good or cannot be judged, in few words; empty for a good one.
fn reason(record: &Record) -> String {
    if record.good {
        return String::new();
    }
    let deadlock = record.simulation.as_ref().is_some_and(|simulation| !simulation.network.deadlock.is_empty());
    let events = [("incomplete", record.events.incomplete), ("lost", record.events.lost)];
    let mut reasons: Vec<_> = deadlock.then(|| "deadlock".to_owned()).into_iter().collect();
    reasons.extend(events.iter().filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")));
    if !record.lost_nodes.is_empty() {
        reasons.push(format!("lost nodes: {}", record.lost_nodes.join(" ")));
    }
    match (reasons.is_empty(), record.reason()) {
        (true, Some(finding)) => shortened(&finding.message, LONGEST_NOTE),
        (true, None) => "unknown".into(),
        (false, _) => reasons.join(", "),
    }
}

/// The reason in a column of records that are not good.
pub(crate) fn any_reason(record: &Record) -> String {
    match record.outcome() {
        Outcome::CannotTell => format!("{}: {}", Outcome::CannotTell.name(), reason(record)),
        _ => reason(record),
    }
}

pub(crate) fn last_line(records: &[Record]) -> String {
    let count = |outcome| records.iter().filter(|record| record.outcome() == outcome).count();
    match Outcome::worst(records.iter().map(Record::outcome)) {
        _ if records.is_empty() => "not good: the sweep has no points".to_owned(),
        Outcome::Good => format!("good: all {} points", records.len()),
        worst => format!("{}: {} of {} points", worst.name(), count(worst), records.len()),
    }
}
