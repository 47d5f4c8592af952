//! Rates with their interval, and their time window: the same rows for runs and simulations.

use crate::text::{metric, percent};
use evb_record::{Record, Simulation};

/// The rows of the totals: offered rate, event rate and window, by the names of the record.
pub(crate) fn rows(record: &Record) -> Vec<(&'static str, String)> {
    let offered = record.trigger.offered_rate_hz.map(|rate| ("offered rate", hertz(rate)));
    offered.into_iter().chain([(rate_name(record), event_rate(record)), ("window", window(record))]).collect()
}

/// Part of the throughput by which the goodput may be lower without being shown.
const SAME_GOODPUT: f64 = 0.01;

/// The rows of the throughput, and of the goodput where it is lower.
pub(crate) fn throughput(record: &Record) -> Vec<(&'static str, String)> {
    let throughput = record.throughput_bytes_per_s;
    let mut rows = vec![("throughput", format!("{}B/s", metric(throughput)))];
    if let Some(goodput) = record.goodput_bytes_per_s.filter(|_| has_waste(record)) {
        let wasted = percent(1.0 - goodput / throughput);
        let of = if record.unit() == "event" {
            "of events that are not complete, or came twice"
        } else {
            "of lost messages"
        };
        rows.push(("goodput", format!("{}B/s: {wasted} % of the throughput is {of}", metric(goodput))));
    }
    rows
}

/// True if the throughput of a record is well above its goodput.
pub(crate) fn has_waste(record: &Record) -> bool {
    let throughput = record.throughput_bytes_per_s;
    record.goodput_bytes_per_s.is_some_and(|goodput| goodput < (1.0 - SAME_GOODPUT) * throughput)
}

/// The efficiency of a simulation by its goodput, where the record has that.
pub(crate) fn efficiency(simulation: &Simulation) -> f64 {
    simulation.goodput_efficiency.unwrap_or(simulation.efficiency)
}

/// The name of the rate.
pub(crate) fn rate_name(record: &Record) -> &'static str {
    if record.unit() == "event" { "event rate" } else { "message rate" }
}

/// Half of the interval of the event rate in percent of the rate; a dash without a steady state.
pub(crate) fn half_interval(record: &Record) -> String {
    let half = |low: f64, high: f64| percent((high - low) / 2.0 / record.event_rate_hz);
    record.event_rate_interval_hz.map_or_else(|| "-".to_owned(), |interval| half(interval.low, interval.high))
}

/// A rate with its unit.
pub(crate) fn hertz(rate: f64) -> String {
    format!("{}Hz", metric(rate))
}

fn event_rate(record: &Record) -> String {
    let rate = hertz(record.event_rate_hz);
    match record.event_rate_interval_hz {
        Some(interval) => format!("{rate}, with 95 % from {} to {}", hertz(interval.low), hertz(interval.high)),
        None => rate,
    }
}

fn window(record: &Record) -> String {
    let window = record.window;
    match window.steady {
        true => format!("steady from {:.6} s to {:.6} s", window.from_s, window.to_s),
        false => "no steady one: rates are of the whole time".to_owned(),
    }
}
