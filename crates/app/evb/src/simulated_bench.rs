//! The simulator as one more message layer of the benchmarks: the same patterns over a simulated network.

use crate::Error;
use evb_bench::{Benchmark, LayerChoice, Measurement, NetworkFit, Suite};
use evb_core::{Bandwidth, ByteCount, Span};
use evb_experiment::{Diagnostics, Other, Plan, Workload};
use evb_fabric::{Flow, HostConfig, LinkConfig};
use evb_patterns::Pattern;
use evb_record::{Benchmark as BenchmarkRecord, Launches, Record, SIMULATED, Times};
use std::{
    num::NonZeroUsize,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

/// Number of simulated cycles, or of messages of each sender.
const MESSAGES: u64 = 2000;

/// The network of a simulated benchmark.
#[derive(Clone, Debug)]
pub enum BenchNetwork {
    /// A preset, by its name.
    Preset(String),
    /// A file with a `[network]`.
    File(Other),
    /// A network that was fitted to measurements.
    Fitted(NetworkFit),
}

impl BenchNetwork {
    /// The preset of this name, or the file if the name ends with `.toml`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn named(name: &str) -> Result<Self, Error> {
        match Path::new(name).extension().is_some_and(|extension| extension == "toml") {
            true => Ok(Self::File(Other::read(Path::new(name))?)),
            false => Ok(Self::Preset(name.to_owned())),
        }
    }

    /// Puts a plan on the network.
    fn under(&self, plan: Plan) -> Result<Plan, Diagnostics> {
        match self {
            Self::Preset(name) => plan.on_network(name),
            Self::File(file) => plan.on_network_of(file),
            Self::Fitted(fit) => Ok(fitted(plan, fit)),
        }
    }
}

/// Simulates all measurements of a suite, and returns one record for each. `name` is the network's name in the records.
///
/// # Errors
/// The network is invalid or too small, or the simulations were stopped.
pub fn simulate_suite(
    network: &BenchNetwork,
    name: &str,
    suite: &Suite,
    stop: &AtomicBool,
) -> Result<Vec<BenchmarkRecord>, Error> {
    let mut records = Vec::new();
    // It counts messages, so the times of a layer play no part, and joins any number of nodes.
    let layer: LayerChoice = "threads".parse().expect("threads are always there");
    for measurement in suite.measurements(&layer) {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Stopped);
        }
        let plan = network.under(plan(&measurement))?;
        let simulated = evb_sim::simulate(&plan, NonZeroUsize::MIN, None, &mut |_| !stop.load(Ordering::Relaxed))?;
        records.push(record(name, &measurement, &plan, &simulated));
    }
    Ok(records)
}

/// The plan of a measurement on the network `ideal`: a number of messages, each of which counts.
fn plan(measurement: &Measurement) -> Plan {
    let mut plan = measurement.plan();
    plan.trigger.duration = None;
    plan.run.warmup = Some(Span::ZERO);
    if let Workload::Traffic(traffic) = &mut plan.workload {
        traffic.messages = Some(MESSAGES);
        if !has_window(&traffic.config.pattern) {
            traffic.config.window = 1;
        }
    }
    plan
}

/// The plan on a network that was fitted, with the values of its file, which are rounded.
fn fitted(mut plan: Plan, fit: &NetworkFit) -> Plan {
    let tenths = |nanoseconds: f64| Span((nanoseconds * 10.0).round() as u64 * 100);
    let host = tenths(fit.host_ns);
    let network = &mut plan.network.config;
    let rate = Bandwidth((fit.bytes_per_s * 1e-3).round() as u64 * 8000);
    network.link = LinkConfig { rate, delay: tenths(fit.delay_ns) };
    network.host = HostConfig { send: host, receive: host, jitter: None };
    network.nic.packet = ByteCount(64 << 10);
    if let Flow::CutThrough { buffer, .. } = &mut network.flow {
        *buffer = ByteCount(1 << 20);
    }
    plan
}

fn record(name: &str, measurement: &Measurement, plan: &Plan, record: &Record) -> BenchmarkRecord {
    let has_cycles = matches!(&plan.workload, Workload::Traffic(traffic) if traffic.config.pattern.has_cycles())
        || measurement.rate.is_some();
    let latency = record.latency_us;
    let counting = if measurement.benchmark == Benchmark::AllToAll { measurement.nodes } else { 1 };
    // A simulation knows no more of a distribution. Times that are always the same have their median as the shortest.
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
        cycle_ns: cycles,
        half_round_trip_ns: measurement.half_round_trip(cycles),
        messages_per_s,
        bytes_per_s: record.throughput_bytes_per_s,
        launches: Launches {
            quantity: quantity.into(),
            values: vec![value],
            median: value,
            low: value,
            high: value,
            confidence: 1.0,
        },
        messages: record.events.built,
        lost: record.events.lost,
        good: record.good,
        ..measurement.record(&format!("sim:{name}"), SIMULATED)
    }
}

/// True if a sender of the pattern can have several messages under way.
const fn has_window(pattern: &Pattern) -> bool {
    match pattern {
        Pattern::PingPong
        | Pattern::Assigned { .. }
        | Pattern::Pairs
        | Pattern::Stream
        | Pattern::Random
        | Pattern::Rotation { .. }
        | Pattern::Funnel
        | Pattern::PushFarm { .. } => true,
        Pattern::Gather { .. }
        | Pattern::TwoWay
        | Pattern::AllToAll
        | Pattern::Outfarming
        | Pattern::Broadcast
        | Pattern::PullFarm { .. } => false,
    }
}
