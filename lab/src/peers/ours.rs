//! Measurements of evb, from the records that it prints.

use super::{
    Blocks,
    comparison::Statistic,
    jobs::{self, Bench},
    theirs::Measure,
};
use serde_json::Value;
use std::{path::Path, process::Command};

/// Readout units of the event builder: an event has a fragment of each.
const READOUT_UNITS: f64 = 2.0;

/// One result of evb.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reading {
    /// A time in nanoseconds or a rate per second.
    pub(super) median: f64,
    pub(super) mean: f64,
    /// The limit of the cores for the same bytes in nanoseconds: a word alone, or a word and a cache line.
    pub(super) limit: Option<f64>,
    /// Nanoseconds of a word between the cores, before and after.
    pub(super) cores: Vec<f64>,
}

impl Reading {
    pub(super) fn of(&self, statistic: Statistic) -> f64 {
        match statistic {
            Statistic::Median => self.median,
            Statistic::Mean => self.mean,
        }
    }
}

/// One turn: a reading for each size.
pub(super) type OurMeasure = Box<dyn Fn() -> Result<Vec<Reading>, String>>;

/// A measurement by evb.
pub(super) enum Ours {
    /// A pattern of `evb bench` over a transport, with the launcher of its processes if there is one.
    Layer { pattern: &'static str, transport: String, launcher: Option<String>, wait: &'static str },
    /// The 2 x 2 event builder in five processes over a transport, given as the settings of an experiment.
    EventBuilding { transport: &'static [&'static str], launcher: Option<Vec<String>>, blocks: Blocks },
}

impl Ours {
    pub(super) fn measure(self, bench: &Bench, sizes: &[u32]) -> OurMeasure {
        let (bench, sizes) = (bench.clone(), sizes.to_vec());
        Box::new(move || match &self {
            Self::Layer { pattern, transport, launcher, wait } => {
                let sizes = sizes.iter().map(|size| format!("{size}B")).collect::<Vec<_>>().join(",");
                let mut command = bench.on_both(&bench.evb);
                command.args(["bench", pattern, "--transport", transport, "--sizes", &sizes, "--wait", wait]);
                command.args(["--time", &format!("{} ms", bench.effort.milliseconds)]);
                command.args(["--launches", "1", "--json", "--quiet"]);
                command.args(launcher.iter().flat_map(|launcher| ["--launcher", launcher]));
                readings(&jobs::output(&mut command)?)
            }
            Self::EventBuilding { transport, launcher, blocks } => {
                sizes.iter().map(|&size| build(&bench, transport, launcher.as_deref(), size, *blocks)).collect()
            }
        })
    }
}

/// A measurement of evb as the peer of another one.
pub(super) fn as_peer(ours: OurMeasure) -> Measure {
    Box::new(move || Ok(ours()?.iter().map(|reading| reading.median).collect()))
}

fn build(
    bench: &Bench,
    transport: &[&str],
    launcher: Option<&[String]>,
    size: u32,
    blocks: Blocks,
) -> Result<Reading, String> {
    let mut command = match launcher {
        Some(words) => {
            let mut command = bench.on_both(&words[0]);
            command.args(&words[1..]).arg(&bench.evb);
            command
        }
        None => bench.on_both(&bench.evb),
    };
    command.arg("run").arg(bench.root.join("experiments/two-by-two.toml")).args(["--json", "--quiet"]);
    command.args(launcher.is_none().then_some("--processes"));
    let events = format!("trigger.events={}", bench.effort.events_in(blocks, size));
    let (size, block) = (format!("readout.source.size={size} B"), format!("trigger.block={}", blocks.key()));
    command.args(
        [&*events, &size, &block, "run.placement=auto"]
            .into_iter()
            .chain(transport.iter().copied())
            .flat_map(|set| ["--set", set]),
    );
    built(&jobs::output(&mut command)?)
}

/// The first two cores that evb may use.
pub(super) fn cores(evb: &Path, scratch: &Path) -> Result<[u64; 2], String> {
    let record = calibration(evb, scratch)?;
    let cores: Option<Vec<_>> =
        record["cores"].as_array().map(|cores| cores.iter().filter_map(Value::as_u64).collect());
    match cores.unwrap_or_default()[..] {
        [first, second] if first != second => Ok([first, second]),
        _ => Err("two cores are needed".into()),
    }
}

/// Nanoseconds of a word from core to core, before and after a short benchmark.
pub(super) fn core_to_core(evb: &Path, scratch: &Path) -> Result<Vec<f64>, String> {
    calibration(evb, scratch).map(|record| words(&record))
}

/// The record of a short benchmark.
fn calibration(evb: &Path, scratch: &Path) -> Result<Value, String> {
    let mut command = Command::new(evb);
    command.args(["bench", "ping-pong", "--transport", "threads", "--sizes", "8B", "--time", "1 ms"]);
    command.args(["--warmup", "1 ms", "--launches", "1", "--json", "--quiet"]).current_dir(scratch);
    let text = jobs::output(&mut command)?;
    benchmarks(&text)?.into_iter().next().ok_or_else(|| "evb bench printed no record".into())
}

fn benchmarks(text: &str) -> Result<Vec<Value>, String> {
    let records: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
    let records = records.map_err(|error| format!("a record of evb: {error}"))?;
    Ok(records.into_iter().filter(|record| record["kind"] == "benchmark").collect())
}

fn readings(text: &str) -> Result<Vec<Reading>, String> {
    benchmarks(text)?.iter().map(reading).collect()
}

/// Half a round trip, or the messages per second of a pattern without round trips.
fn reading(record: &Value) -> Result<Reading, String> {
    let number = |value: &Value| value.as_f64().ok_or_else(|| "a record of evb bench lacks its result".to_owned());
    if record["good"] != true {
        return Err("messages were lost or corrupted".into());
    }
    let (median, mean) = match record.get("half_round_trip_ns").filter(|times| times.is_object()) {
        Some(times) => (number(&times["p50"])?, number(&times["mean"])?),
        None => (number(&record["messages_per_s"])?, number(&record["messages_per_s"])?),
    };
    // A word carries 8 bytes; longer messages use a cache line beside it.
    let name = if record["size_bytes"].as_u64() <= Some(8) { "line_ns" } else { "message_ns" };
    let limits = calibrations(record, name);
    let limit = (!limits.is_empty()).then(|| limits.iter().sum::<f64>() / limits.len() as f64);
    Ok(Reading { median, mean, limit, cores: words(record) })
}

fn words(record: &Value) -> Vec<f64> {
    calibrations(record, "line_ns")
}

/// Times before and after.
fn calibrations(record: &Value, name: &str) -> Vec<f64> {
    ["before", "after"].iter().filter_map(|moment| record["calibration"][moment][name].as_f64()).collect()
}

/// Fragments per second of a run with [`READOUT_UNITS`] in which all events were built.
fn built(text: &str) -> Result<Reading, String> {
    let record: Value = serde_json::from_str(text.trim()).map_err(|error| format!("the record of evb run: {error}"))?;
    let rate = record["event_rate_hz"].as_f64().map(|rate| rate * READOUT_UNITS);
    match (record["good"].as_bool(), rate) {
        (Some(true), Some(rate)) => Ok(Reading { median: rate, mean: rate, limit: None, cores: Vec::new() }),
        (Some(false), _) => Err("not all events were built".into()),
        _ => Err("the record of evb run lacks its event rate".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALIBRATION: &str =
        r#""calibration":{"before":{"line_ns":60.0,"message_ns":80.0},"after":{"line_ns":64.0,"message_ns":84.0}}"#;

    fn record(size: u32, result: &str, good: bool) -> String {
        format!(
            r#"{{"kind":"benchmark","size_bytes":{size},{result},"messages_per_s":5e6,"good":{good},{CALIBRATION}}}"#
        )
    }

    #[test]
    fn a_latency_comes_with_the_limit_of_its_size() {
        let times = r#""half_round_trip_ns":{"p50":90.0,"mean":99.0}"#;
        let text = format!("{}\n{}\n{{\"kind\":\"parameters\"}}\n", record(8, times, true), record(64, times, true));
        let readings = readings(&text).unwrap();
        let expected = Reading { median: 90.0, mean: 99.0, limit: Some(62.0), cores: vec![60.0, 64.0] };
        assert_eq!(readings, [expected.clone(), Reading { limit: Some(82.0), ..expected }]);
    }

    #[test]
    fn a_stream_has_a_rate() {
        let readings = readings(&record(8, r#""window":1"#, true)).unwrap();
        assert_eq!((readings[0].median, readings[0].mean), (5e6, 5e6));
    }

    #[test]
    fn bad_records_are_rejected() {
        assert_eq!(readings(&record(8, r#""window":1"#, false)), Err("messages were lost or corrupted".into()));
        assert!(readings("no record").unwrap_err().starts_with("a record of evb: "));
        assert_eq!(built(r#"{"good":false,"event_rate_hz":1.0}"#), Err("not all events were built".into()));
        assert_eq!(built(r#"{"good":true,"event_rate_hz":7e5}"#).unwrap().median, 14e5);
    }
}
