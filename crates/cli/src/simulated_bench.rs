//! The simulator as one more message layer of `evb bench`: the same patterns over a simulated network.

use crate::failure::Failure;
use evb_bench::{Benchmark, LayerChoice, Measurement, Suite, VERSION};
use evb_experiment::{Experiment, Other, Plan, Workload};
use evb_record::{Benchmark as BenchmarkRecord, CpuLoad, Kind, Launches, Record, SIMULATED, Times};
use std::{
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

/// Cycles, or messages of each sender, that are simulated.
const MESSAGES: u64 = 2000;

/// A simulated network: a preset by its name, or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Simulated(pub(crate) String);

impl Simulated {
    /// Simulates all measurements of a suite; one record for each.
    pub(crate) fn run(&self, suite: &Suite, stop: &AtomicBool) -> Result<Vec<BenchmarkRecord>, Failure> {
        if Path::new(&self.0).extension().is_some_and(|extension| extension == "toml") {
            return simulate_on(&Other::read(Path::new(&self.0))?, &self.0, suite, stop);
        }
        let parse = |measurement: &Measurement| Experiment::parse(&text(measurement, &self.0), "bench", &[]);
        simulate(&self.0, suite, stop, &|measurement| Ok(parse(measurement)?))
    }
}

/// Simulates all measurements of a suite on a network of which there is a text; one record for each.
pub(crate) fn simulate_on(
    network: &Other,
    name: &str,
    suite: &Suite,
    stop: &AtomicBool,
) -> Result<Vec<BenchmarkRecord>, Failure> {
    let parse = |measurement: &Measurement| Experiment::parse_on(&text(measurement, "ideal"), "bench", network, &[]);
    simulate(name, suite, stop, &|measurement| Ok(parse(measurement)?))
}

fn simulate(
    name: &str,
    suite: &Suite,
    stop: &AtomicBool,
    experiment: &dyn Fn(&Measurement) -> Result<Experiment, Failure>,
) -> Result<Vec<BenchmarkRecord>, Failure> {
    let mut records = Vec::new();
    // It counts messages, so the times of a layer play no part, and joins any number of nodes.
    let layer: LayerChoice = "threads".parse().map_err(Failure::new)?;
    for measurement in suite.measurements(&layer) {
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::new("stopped"));
        }
        let experiment = experiment(&measurement)?;
        let simulated = evb_sim::simulate(&experiment.plans()[0], None, &mut |_| !stop.load(Ordering::Relaxed));
        records.push(record(name, &measurement, &experiment.plans()[0], &simulated.map_err(Failure::new)?));
    }
    Ok(records)
}

fn record(name: &str, measurement: &Measurement, plan: &Plan, record: &Record) -> BenchmarkRecord {
    let has_cycles = matches!(&plan.workload, Workload::Traffic(traffic) if traffic.config.pattern.has_cycles())
        || measurement.rate.is_some();
    let latency = record.latency_us;
    let counting = if measurement.benchmark == Benchmark::AllToAll { measurement.nodes } else { 1 };
    // A simulation tells no more of a distribution; the shortest of what always takes the same time is its median.
    let cycles = has_cycles.then(|| Times {
        min: latency.p50 * 1e3,
        p50: latency.p50 * 1e3,
        p99: latency.p99 * 1e3,
        p999: latency.max * 1e3,
        max: latency.max * 1e3,
        mean: f64::from(counting) * 1e9 / record.event_rate_hz,
        samples: record.events.built,
    });
    let messages_per_s = record.throughput_bytes_per_s / measurement.size as f64;
    let (quantity, value) = cycles.map_or(("messages_per_s", messages_per_s), |cycles| ("cycle_ns", cycles.p50));
    BenchmarkRecord {
        kind: Kind::Benchmark,
        experiment: "bench".into(),
        seed: measurement.seed,
        version: VERSION.into(),
        pattern: measurement.benchmark.name().into(),
        transport: format!("sim:{name}"),
        size_bytes: measurement.size as u64,
        nodes: measurement.nodes,
        compute_us: measurement.compute_us(),
        window: measurement.window,
        rate_hz: measurement.rate,
        wait: SIMULATED.into(),
        cores: Vec::new(),
        cycle_ns: cycles,
        half_round_trip_ns: cycles.filter(|_| measurement.benchmark.is_round_trip()).map(|cycles| cycles.scaled(0.5)),
        messages_per_s,
        bytes_per_s: record.throughput_bytes_per_s,
        cpu_load: CpuLoad::default(),
        launches: Launches {
            quantity: quantity.into(),
            values: vec![value],
            median: value,
            low: value,
            high: value,
            confidence: 1.0,
        },
        longest_gap_us: 0.0,
        messages: record.events.built,
        lost: record.events.lost,
        corrupted: 0,
        calibration: None,
        trusted: true,
        notes: Vec::new(),
        good: record.good,
    }
}

/// The experiment file of a measurement.
fn text(measurement: &Measurement, preset: &str) -> String {
    let workload = match measurement.benchmark {
        Benchmark::Roundtrip => "ping-pong",
        Benchmark::OneWay => "pairs",
        other => other.name(),
    };
    let (senders, nodes) = (measurement.benchmark.senders(measurement.nodes), measurement.nodes);
    let mut keys = vec![format!("type = {workload:?}"), format!("messages = {MESSAGES}")];
    if has_window(measurement.benchmark) {
        keys.push(format!("window = {}", measurement.window));
    }
    if measurement.benchmark.computes() {
        keys.push(format!("compute = \"{}\"", measurement.compute));
    }
    if let Some(rate) = measurement.rate {
        keys.push(format!("rate = \"{rate} Hz\"\narrivals = \"regular\""));
    }
    format!(
        "[network]\npreset = {preset:?}\n[workload]\n{}\n[readout]\nunits = {senders}\n\
         source = {{ type = \"fixed\", size = \"{} B\" }}\n[builder]\nunits = {}\n[run]\nseed = {}\nwarmup = \"0 s\"\n",
        keys.join("\n"),
        measurement.size,
        nodes - senders,
        measurement.seed
    )
}

const fn has_window(benchmark: Benchmark) -> bool {
    match benchmark {
        Benchmark::PingPong
        | Benchmark::Roundtrip
        | Benchmark::Pairs
        | Benchmark::OneWay
        | Benchmark::Stream
        | Benchmark::Funnel
        | Benchmark::PushFarm => true,
        Benchmark::TwoWay
        | Benchmark::AllToAll
        | Benchmark::Outfarming
        | Benchmark::Broadcast
        | Benchmark::PullFarm => false,
    }
}
