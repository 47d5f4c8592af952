//! Rates with their interval, and their time window: the same rows for runs and simulations.

use crate::text::{metric, percent};
use evb_record::Record;

/// The rows of the totals: offered rate, event rate and window, by the names of the record.
pub(crate) fn rows(record: &Record) -> Vec<(&'static str, String)> {
    let offered = record.trigger.offered_rate_hz.map(|rate| ("offered rate", hertz(rate)));
    offered.into_iter().chain([(rate_name(record), event_rate(record)), ("window", window(record))]).collect()
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
