//! Comparison of runs and simulations, point by point.

use super::{
    evidence::{Evidence, one_sided},
    ratio::LogRatio,
};
use crate::{
    benchmark::distinct,
    compare::table::{difference_cells, difference_columns, verdicts},
    table::{Column, Table},
    text::{metric, micros},
};
use evb_record::{Change, Interval, Outcome, Record, RecordKind, RunComparison};
use std::collections::BTreeMap;

/// What is compared.
struct Quantity {
    name: &'static str,
    value: fn(&Record) -> f64,
    less_is_better: bool,
    /// A rate counts in a steady window only.
    is_rate: bool,
}

const QUANTITIES: [Quantity; 4] = [
    rate("event_rate_hz", |record| record.event_rate_hz),
    rate("throughput_bytes_per_s", |record| record.throughput_bytes_per_s),
    time("latency_us.p50", |record| record.latency_us.p50),
    time("latency_us.p99", |record| record.latency_us.p99),
];

const fn rate(name: &'static str, value: fn(&Record) -> f64) -> Quantity {
    Quantity { name, value, less_is_better: false, is_rate: true }
}

const fn time(name: &'static str, value: fn(&Record) -> f64) -> Quantity {
    Quantity { name, value, less_is_better: true, is_rate: false }
}

/// Compares the runs or simulations of two files, so that runs can be held against simulations.
///
/// Records of one experiment and one point of its sweep are the launches of that point, and are compared as those of
/// benchmarks. A simulation is the same each time. What neither side has measured is left out.
#[must_use]
pub fn compare_runs(old: &[Record], new: &[Record], tolerance: f64) -> Vec<RunComparison> {
    let (old, new) = (points(old), points(new));
    let others = new.keys().filter(|point| !old.contains_key(*point));
    let all = old.keys().chain(others);
    let side = |records: &BTreeMap<_, Vec<_>>, point| records.get(point).map_or_else(Vec::new, Clone::clone);
    all.flat_map(|point| compare_point(&side(&old, point), &side(&new, point), tolerance)).collect()
}

type Point<'a> = (&'a str, &'a BTreeMap<String, String>);

fn points(records: &[Record]) -> BTreeMap<Point<'_>, Vec<&Record>> {
    let mut points: BTreeMap<Point<'_>, Vec<&Record>> = BTreeMap::new();
    for record in records {
        points.entry((&record.experiment, &record.sweep)).or_default().push(record);
    }
    points
}

fn compare_point(old: &[&Record], new: &[&Record], tolerance: f64) -> Vec<RunComparison> {
    let is_measured = |quantity: &&Quantity| old.iter().chain(new).any(|record| (quantity.value)(record) > 0.0);
    QUANTITIES.iter().filter(is_measured).map(|quantity| compare_quantity(quantity, old, new, tolerance)).collect()
}

fn compare_quantity(quantity: &Quantity, old: &[&Record], new: &[&Record], tolerance: f64) -> RunComparison {
    let point = old.first().or(new.first()).expect("a point has a record");
    let difference = match [old, new].map(|records| interval(quantity, records)) {
        [Some(before), Some(after)] => Evidence {
            change: after.median / before.median - 1.0,
            harm: harm(old, new),
            doubt: doubt(quantity, old, new),
            ratio: ratio(quantity, old, new),
        }
        .judge(quantity.name, [before, after], tolerance, quantity.less_is_better),
        values @ [Some(_), None] => one_sided(quantity.name, values, Change::Missing, None, false),
        values @ [None, _] => one_sided(quantity.name, values, Change::New, None, true),
    };
    RunComparison {
        kind: RecordKind::RunComparison,
        experiment: point.experiment.clone(),
        sweep: point.sweep.clone(),
        transports: [old, new].map(|records| records.first().map_or_else(String::new, |one| one.transport.clone())),
        difference,
    }
}

/// Median, least and largest value of the launches; `None` without a launch.
fn interval(quantity: &Quantity, records: &[&Record]) -> Option<Interval> {
    let mut values: Vec<_> = records.iter().map(|record| (quantity.value)(record)).collect();
    values.sort_by(f64::total_cmp);
    let (low, high) = (*values.first()?, *values.last()?);
    let median = f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2]);
    Some(Interval { median, low, high })
}

/// The reason for which new records are not good, if the old ones were better.
fn harm(old: &[&Record], new: &[&Record]) -> Option<String> {
    became(Outcome::NotGood, old, new)
}

/// The reason of a new record with this verdict, if the verdicts of all old ones are better.
fn became(outcome: Outcome, old: &[&Record], new: &[&Record]) -> Option<String> {
    let found = new.iter().find(|record| record.outcome() == outcome)?;
    let was_better = old.iter().all(|record| record.outcome() < outcome);
    was_better.then(|| match found.reason() {
        Some(finding) => finding.message.clone(),
        None => format!("{} lost, {} incomplete", found.events.lost, found.events.incomplete),
    })
}

fn doubt(quantity: &Quantity, old: &[&Record], new: &[&Record]) -> Option<String> {
    if let Some(why) = became(Outcome::CannotTell, old, new) {
        return Some(why);
    }
    for (records, file) in [(old, "old"), (new, "new")] {
        if records.iter().any(|record| (quantity.value)(record) <= 0.0) {
            return Some(format!("the {file} file has no {}", quantity.name));
        }
        if quantity.is_rate && records.iter().any(|record| !record.window.steady) {
            return Some(format!("{file} file: no steady window was found, and rates are of the whole time"));
        }
    }
    None
}

/// The ratio of new and old. A simulation is the same in as many launches as the other side has.
fn ratio(quantity: &Quantity, old: &[&Record], new: &[&Record]) -> Result<LogRatio, String> {
    let is_exact = |records: &[&Record]| records.iter().all(|record| record.kind == RecordKind::Simulation);
    let values = |records: &[&Record], launches: usize| -> Vec<f64> {
        let times = if is_exact(records) { launches.div_ceil(records.len()).max(1) } else { 1 };
        records.iter().map(|record| (quantity.value)(record)).cycle().take(records.len() * times).collect()
    };
    if is_exact(old) && is_exact(new) {
        return Ok(LogRatio::exact((quantity.value)(old[0]), (quantity.value)(new[0])));
    }
    LogRatio::of_launches(&values(old, new.len()), &values(new, old.len()))
        .map_err(|_| format!("{} before and {} now are too few: use --runs 6 or more", old.len(), new.len()))
}

/// A table of compared points, and the reasons of the verdicts.
#[must_use]
pub fn run_comparison_table(rows: &[RunComparison], width: usize) -> String {
    let points = rows.iter().any(|row| !row.sweep.is_empty());
    let mut columns = vec![Column::word(if points { "point" } else { "" }), Column::word("quantity")];
    columns.extend(difference_columns());
    let mut table = Table::new(columns);
    for row in rows {
        let keys = row.sweep.iter().map(|(key, value)| format!("{key} = {value}"));
        let point = keys.collect::<Vec<_>>().join(", ");
        let quantity = row.difference.quantity.as_str();
        let cells = difference_cells(&row.difference, |median| show(quantity, median));
        table.row([point, name(quantity).into()].into_iter().chain(cells));
    }
    let both = rows.iter().filter(|row| row.difference.old.is_some() && row.difference.new.is_some());
    let experiments = distinct(both.map(|row| match &row.transports {
        [old, new] if old == new => format!("{}: {new}", row.experiment),
        [old, new] => format!("{}: {old}, then {new}", row.experiment),
    }));
    let verdicts = verdicts(rows.iter().map(|row| &row.difference));
    format!("{}\n{}\n\n{verdicts}", experiments.join("; "), table.draw(width))
}

fn name(quantity: &str) -> &str {
    match quantity {
        "event_rate_hz" => "rate",
        "throughput_bytes_per_s" => "throughput",
        "latency_us.p50" => "median latency",
        "latency_us.p99" => "p99 latency",
        other => other,
    }
}

fn show(quantity: &str, value: f64) -> String {
    match quantity {
        "event_rate_hz" => format!("{}Hz", metric(value)),
        "throughput_bytes_per_s" => format!("{}B/s", metric(value)),
        _ => format!("{} us", micros(value)),
    }
}
