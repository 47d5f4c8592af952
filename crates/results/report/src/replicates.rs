//! Replicates: the records of a sweep that differ in their seed alone. Their mean is what is wanted, with its interval; the
//! seed is no axis.

use crate::{
    csv::{line, number},
    rates,
    sweep::{any_reason, last_line, swept_keys},
    table::{ALWAYS, Column, Table},
    text::{metric, micros, per_destination, percent},
};
use evb_record::{Estimate, Outcome, PointRecord, Record};
use std::collections::BTreeMap;

/// The key of the seed.
const SEED: &str = "run.seed";

/// True if a key is the seed.
pub(crate) fn is_seed(key: &str) -> bool {
    key == SEED
}

/// The swept keys without the seed, in alphabetical order.
pub(crate) fn keys_of_groups<R: PointRecord>(records: &[R]) -> Vec<&str> {
    swept_keys(records).into_iter().filter(|key| !is_seed(key)).collect()
}

/// The records of each combination of the other keys, in the order of their first records. Without a swept seed each record is
/// a group.
pub(crate) fn groups<R: PointRecord>(records: &[R]) -> Vec<Vec<&R>> {
    let mut places: BTreeMap<Vec<(&str, &str)>, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&R>> = Vec::new();
    for record in records {
        let others = record.sweep().iter().filter(|(key, _)| !is_seed(key));
        let others = others.map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let place = match record.sweep().contains_key(SEED) {
            true => *places.entry(others).or_insert(groups.len()),
            false => groups.len(),
        };
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(record);
    }
    groups
}

/// True if a combination has several replicates.
pub(crate) fn is_replicated(records: &[Record]) -> bool {
    groups(records).iter().any(|group| group.len() > 1)
}

/// The mean of a number of replicates; `None` if one does not have it.
pub(crate) fn estimate<R>(group: &[&R], value: impl Fn(&R) -> Option<f64>) -> Option<Estimate> {
    Estimate::of(&group.iter().map(|record| value(record)).collect::<Option<Vec<_>>>()?)
}

/// A number of a record that has a mean.
struct Figure {
    /// Its name in the table of all groups.
    name: &'static str,
    value: fn(&Record) -> Option<f64>,
}

const FIGURES: [Figure; 9] = [
    Figure { name: "event_rate_hz", value: |r| Some(r.event_rate_hz) },
    Figure { name: "throughput_bytes_per_s", value: |r| Some(r.throughput_bytes_per_s) },
    Figure { name: "goodput_bytes_per_s", value: |r| r.goodput_bytes_per_s },
    Figure { name: "per_destination_bytes_per_s.mean", value: |r| per_destination(r).map(|(mean, ..)| mean) },
    Figure { name: "efficiency", value: |r| r.simulation.as_ref().map(|simulation| simulation.efficiency) },
    Figure { name: "latency_us.p50", value: |r| Some(r.latency_us.p50) },
    Figure { name: "latency_us.p99", value: |r| Some(r.latency_us.p99) },
    Figure { name: "latency_us.p999", value: |r| Some(r.latency_us.p999) },
    Figure { name: "latency_us.max", value: |r| Some(r.latency_us.max) },
];

/// One line for each combination of the swept keys without the seed: the keys, the number of `replicates`, of each figure the
/// mean and the two ends of its 95 % confidence interval by Student's t, then the worst verdict. The ends are empty where there
/// is one replicate. `None` if no combination has several.
pub fn groups_csv(records: &[Record]) -> Option<String> {
    if !is_replicated(records) {
        return None;
    }
    let keys = keys_of_groups(records);
    let mut text = String::new();
    let of_figure = |figure: &Figure| ["mean", "low", "high"].map(|part| format!("{}.{part}", figure.name));
    let figures: Vec<_> = FIGURES.iter().flat_map(of_figure).collect();
    let names = keys.iter().copied().chain(["replicates"]);
    line(&mut text, names.chain(figures.iter().map(String::as_str)).chain(["verdict"]));
    for group in groups(records) {
        let mut cells: Vec<_> = keys.iter().map(|key| group[0].sweep.get(*key).cloned().unwrap_or_default()).collect();
        cells.push(group.len().to_string());
        cells.extend(FIGURES.iter().flat_map(|figure| cells_of(estimate(&group, figure.value))));
        cells.push(worst(&group).key().to_owned());
        line(&mut text, cells.iter().map(String::as_str));
    }
    Some(text)
}

fn cells_of(estimate: Option<Estimate>) -> [String; 3] {
    let Some(Estimate { mean, half_width, .. }) = estimate else { return [const { String::new() }; 3] };
    let end = |sign: f64| half_width.map_or_else(String::new, |half| number(mean + sign * half));
    [number(mean), end(-1.0), end(1.0)]
}

fn worst(group: &[&Record]) -> Outcome {
    Outcome::worst(group.iter().map(|record| record.outcome()))
}

/// Name, importance, value of a record, and form of the mean. The nameless one is the rate of events or messages.
type Shown = (&'static str, u8, fn(&Record) -> Option<f64>, fn(f64) -> String);

fn bytes(rate: f64) -> String {
    format!("{}B/s", metric(rate))
}

/// The figures that some record has.
fn shown(records: &[Record]) -> Vec<Shown> {
    let mut shown: Vec<Shown> = vec![
        ("", 8, |r| Some(r.event_rate_hz), rates::hertz),
        ("throughput", 6, |r| Some(r.throughput_bytes_per_s), bytes),
    ];
    if records.iter().any(rates::has_waste) {
        shown.push(("goodput", 7, |r| r.goodput_bytes_per_s, bytes));
    }
    shown.push(("p50 us", 5, |r| Some(r.latency_us.p50), micros));
    shown.push(("p99 us", 3, |r| Some(r.latency_us.p99), micros));
    shown
}

/// One row for each combination of the swept keys without the seed, with the means of its replicates.
pub(crate) fn group_table(records: &[Record], width: usize) -> String {
    let keys = keys_of_groups(records);
    let shown = shown(records);
    let rate = records.first().map_or("event rate", rates::rate_name);
    let figures = shown
        .iter()
        .map(|&(name, importance, ..)| Column::number(if name.is_empty() { rate } else { name }, importance));
    let worst_of_all = Outcome::worst(records.iter().map(Record::outcome));
    let reason = (worst_of_all != Outcome::Good).then(|| Column::sentence(format!("{} because", worst_of_all.name())));
    let columns = keys.iter().map(|key| Column::word(*key)).chain([Column::number("replicates", ALWAYS)]);
    let mut table = Table::new(columns.chain(figures).chain(reason));
    for group in groups(records) {
        let of_keys = keys.iter().map(|key| group[0].sweep.get(*key).cloned().unwrap_or_default());
        let means = shown.iter().map(|(_, _, value, form)| with_interval(estimate(&group, value), *form));
        let reason = (worst_of_all != Outcome::Good).then(|| reason_of(&group));
        table.row(of_keys.chain([group.len().to_string()]).chain(means).chain(reason));
    }
    let note = "means of the replicates; \u{b1} is half of their 95 % interval by Student's t";
    format!("{}\n{note}\n\n{}\n", table.draw(width), last_line(records))
}

/// A mean with half of its interval in percent of it, if that is known.
fn with_interval(estimate: Option<Estimate>, form: fn(f64) -> String) -> String {
    let Some(estimate) = estimate else { return String::new() };
    let half = estimate.relative().map_or_else(String::new, |part| format!(" \u{b1} {} %", percent(part)));
    form(estimate.mean).trim_end().to_owned() + &half
}

/// Why the worst replicate of a group is not good.
fn reason_of(group: &[&Record]) -> String {
    let worst = worst(group);
    let Some(first) = group.iter().find(|record| record.outcome() == worst && worst != Outcome::Good) else {
        return String::new();
    };
    let count = group.iter().filter(|record| record.outcome() == worst).count();
    format!("{count} of {}: {}", group.len(), any_reason(first))
}
