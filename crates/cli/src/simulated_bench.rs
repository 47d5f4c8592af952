//! The simulator as one more message layer of `evb bench`: the same patterns over a simulated network.

use crate::failure::Failure;
use evb_bench::{Benchmark, Cell, LayerChoice, Suite, VERSION};
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
        let parse = |cell: &Cell| Experiment::parse(&text(cell, &self.0), "bench", &[]);
        simulate(&self.0, suite, stop, &|cell| Ok(parse(cell)?))
    }
}

/// Simulates all measurements of a suite on a network of which there is a text; one record for each.
pub(crate) fn simulate_on(
    network: &Other,
    name: &str,
    suite: &Suite,
    stop: &AtomicBool,
) -> Result<Vec<BenchmarkRecord>, Failure> {
    let parse = |cell: &Cell| Experiment::parse_on(&text(cell, "ideal"), "bench", network, &[]);
    simulate(name, suite, stop, &|cell| Ok(parse(cell)?))
}

fn simulate(
    name: &str,
    suite: &Suite,
    stop: &AtomicBool,
    experiment: &dyn Fn(&Cell) -> Result<Experiment, Failure>,
) -> Result<Vec<BenchmarkRecord>, Failure> {
    let mut records = Vec::new();
    // It counts messages, so the times of a layer play no part, and joins any number of nodes.
    let layer: LayerChoice = "threads".parse().map_err(Failure::new)?;
    for cell in suite.cells(&layer) {
        if stop.load(Ordering::Relaxed) {
            return Err(Failure::new("stopped"));
        }
        let experiment = experiment(&cell)?;
        let simulated = evb_sim::simulate(&experiment.plans()[0], None, &mut |_| !stop.load(Ordering::Relaxed));
        records.push(record(name, &cell, &experiment.plans()[0], &simulated.map_err(Failure::new)?));
    }
    Ok(records)
}

fn record(name: &str, cell: &Cell, plan: &Plan, record: &Record) -> BenchmarkRecord {
    let has_cycles = matches!(&plan.workload, Workload::Traffic(traffic) if traffic.config.pattern.has_cycles())
        || cell.rate.is_some();
    let latency = record.latency_us;
    let counting = if cell.benchmark == Benchmark::AllToAll { cell.nodes } else { 1 };
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
    let messages_per_s = record.throughput_bytes_per_s / cell.size as f64;
    let (quantity, value) = cycles.map_or(("messages_per_s", messages_per_s), |cycles| ("cycle_ns", cycles.p50));
    BenchmarkRecord {
        kind: Kind::Benchmark,
        experiment: "bench".into(),
        seed: cell.seed,
        version: VERSION.into(),
        pattern: cell.benchmark.name().into(),
        transport: format!("sim:{name}"),
        size_bytes: cell.size as u64,
        nodes: cell.nodes,
        compute_us: cell.compute_us(),
        window: cell.window,
        rate_hz: cell.rate,
        wait: SIMULATED.into(),
        cores: Vec::new(),
        cycle_ns: cycles,
        half_round_trip_ns: cycles.filter(|_| cell.benchmark.is_round_trip()).map(|cycles| cycles.scaled(0.5)),
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
fn text(cell: &Cell, preset: &str) -> String {
    let workload = match cell.benchmark {
        Benchmark::Roundtrip => "ping-pong",
        Benchmark::OneWay => "pairs",
        other => other.name(),
    };
    let (senders, nodes) = (cell.benchmark.senders(cell.nodes), cell.nodes);
    let mut keys = vec![format!("type = {workload:?}"), format!("messages = {MESSAGES}")];
    if has_window(cell.benchmark) {
        keys.push(format!("window = {}", cell.window));
    }
    if cell.benchmark.computes() {
        keys.push(format!("compute = \"{}\"", cell.compute));
    }
    if let Some(rate) = cell.rate {
        keys.push(format!("rate = \"{rate} Hz\"\narrivals = \"regular\""));
    }
    format!(
        "[network]\npreset = {preset:?}\n[workload]\n{}\n[readout]\nunits = {senders}\n\
         source = {{ type = \"fixed\", size = \"{} B\" }}\n[builder]\nunits = {}\n[run]\nseed = {}\nwarmup = \"0 s\"\n",
        keys.join("\n"),
        cell.size,
        nodes - senders,
        cell.seed
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
