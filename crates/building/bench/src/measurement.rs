//! A measurement: one pattern with one size on some nodes.

use crate::{benchmark::Benchmark, idle_policy::Wait, work::Work};
use evb_core::{ByteCount, Frequency, NodeId, NodeRange, Span};
use evb_experiment::{Load, Plan, TrafficPlan};
use evb_patterns::{Pattern, TrafficConfig};
use evb_record::{Benchmark as BenchmarkRecord, BenchmarkSettings, CpuLoad, Launches, RecordKind, Times};
use evb_sources::SourceSpec;
use serde::{Deserialize, Serialize};

/// One measurement, the same on all nodes of a launch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The communication pattern.
    pub benchmark: Benchmark,
    /// Number of nodes that take part: nodes 0 to `nodes - 1`.
    pub nodes: u16,
    /// Length of a data message in bytes, at least [`wire::SMALLEST`](crate::SMALLEST_BYTES).
    pub size: usize,
    /// Time that the receiver of a farm computes for each event.
    pub compute: Span,
    /// Messages that a sender has in flight, at least 1.
    pub window: u32,
    /// Rate at which each sender offers messages, per second (of gathering: rate of all events); `None` for as fast as
    /// possible.
    pub rate: Option<f64>,
    /// Fewest and most senders that a receiver gathers an event from; all if there are fewer.
    pub gathers: (u16, u16),
    /// The receivers of assigned senders, from 0: of the first, the second and so on, and then from the beginning again.
    pub to: Vec<u16>,
    /// Time before the measurement begins.
    pub warmup: Span,
    /// Time that is measured.
    pub duration: Span,
    /// Behaviour of nodes without work.
    pub wait: Wait,
    /// Seed of every random stream.
    pub seed: u64,
}

impl Measurement {
    /// Computing time of the receiver of a farm for each event, in microseconds.
    #[must_use]
    pub fn compute_us(&self) -> f64 {
        self.compute.0 as f64 / 1e6
    }

    /// The plan of the measurement, on the network `ideal`.
    #[must_use]
    pub fn plan(&self) -> Plan {
        let senders = self.benchmark.senders(self.nodes);
        let range = |first: u16, count: u16| NodeRange { first: NodeId(first), count };
        let config = TrafficConfig {
            senders: range(1, senders),
            receivers: range(1 + senders, self.nodes - senders),
            pattern: self.pattern(),
            window: self.window,
            seed: self.seed,
        };
        let rate = |rate: f64| Load::Rate { rate: Frequency((rate * 1e3).round() as u64), poisson: false };
        plan_of(config, self.rate.map_or(Load::Saturating, rate), self.size, self.warmup, self.duration)
    }

    fn pattern(&self) -> Pattern {
        self.benchmark.pattern(self.compute, self.gathers().unwrap_or_default(), self.destinations())
    }

    /// The receiver of each sender, from 0, if they are assigned; empty for another pattern.
    #[must_use]
    pub fn destinations(&self) -> Vec<u16> {
        let senders = if self.benchmark == Benchmark::Assigned { self.benchmark.senders(self.nodes) } else { 0 };
        self.to.iter().copied().cycle().take(senders.into()).collect()
    }

    /// Fewest and most senders that a receiver gathers an event from, never more than there are; `None` for a pattern that
    /// does not gather.
    #[must_use]
    pub fn gathers(&self) -> Option<(u16, u16)> {
        let senders = self.benchmark.senders(self.nodes);
        self.benchmark.needs_rate().then(|| (self.gathers.0.min(senders), self.gathers.1.min(senders)))
    }

    /// The record of the measurement on a layer before there are any results.
    #[must_use]
    pub fn record(&self, transport: &str, wait: &str) -> BenchmarkRecord {
        BenchmarkRecord {
            kind: RecordKind::Benchmark,
            experiment: "bench".into(),
            seed: self.seed,
            version: evb_node::VERSION.into(),
            pattern: self.benchmark.name().into(),
            transport: transport.into(),
            settings: BenchmarkSettings {
                size_bytes: self.size as u64,
                nodes: self.nodes,
                compute_us: self.compute_us(),
                window: self.window,
                rate_hz: self.rate,
                gathers: self.gathers(),
                destinations: self.destinations(),
                wait: wait.into(),
            },
            cores: Vec::new(),
            cycle_ns: None,
            half_round_trip_ns: None,
            messages_per_s: 0.0,
            bytes_per_s: 0.0,
            cpu_load: CpuLoad::default(),
            launches: Launches::default(),
            longest_gap_us: 0.0,
            messages: 0,
            lost: 0,
            corrupted: 0,
            calibration: None,
            trusted: true,
            notes: Vec::new(),
            good: true,
        }
    }

    /// Half of each cycle, if the cycles are round trips.
    #[must_use]
    pub fn half_round_trip(&self, cycles: Option<Times>) -> Option<Times> {
        cycles.filter(|_| self.benchmark.is_round_trip()).map(|cycles| cycles.scaled(0.5))
    }

    /// Data messages that are offered per second in all; `None` without a rate.
    pub(crate) fn messages_hz(&self) -> Option<f64> {
        let per_offer = match self.gathers() {
            Some((least, most)) => f64::midpoint(least.into(), most.into()),
            None => self.benchmark.senders(self.nodes).into(),
        };
        Some(self.rate? * per_offer)
    }

    /// The work of the nodes.
    #[must_use]
    pub fn work(&self) -> Work {
        let work = Work::new(self.plan(), self.wait).expect("the plan is one of traffic");
        if self.rate.is_some() { work } else { work.untimed() }
    }
}

/// The plan of traffic whose senders send messages of one size as fast as they can, for this time after a warm-up.
pub(crate) fn saturating(config: TrafficConfig, size: usize, warmup: Span, duration: Span) -> Plan {
    plan_of(config, Load::Saturating, size, warmup, duration)
}

fn plan_of(config: TrafficConfig, load: Load, size: usize, warmup: Span, duration: Span) -> Plan {
    let seed = config.seed;
    let traffic = TrafficPlan { config, load, messages: None, awaits_acknowledgement: false };
    let mut plan = Plan::traffic(traffic, SourceSpec::Fixed { size: ByteCount(size as u64) });
    plan.name = "bench".into();
    plan.trigger.duration = Some(duration);
    plan.run.warmup = Some(warmup);
    plan.with_seed(seed)
}
