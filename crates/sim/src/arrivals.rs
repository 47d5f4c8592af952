//! When triggers, messages and events come that nobody asks for.

use evb_core::{EventId, Frequency, NodeId, Stream, stream};
use evb_experiment::{Load, Plan, Workload};
use evb_patterns::Pattern;
use evb_sources::SizeModel;
use rand::RngExt;
use rand_distr::{Distribution, Exp1};

/// The purpose of the streams of intervals.
const INTERVALS: u64 = 101;

/// How many sizes the mean of a distribution is taken from.
const SAMPLES: u64 = 10_000;

/// Picoseconds per second.
const SECOND: f64 = 1e12;

/// The arrivals of one simulation.
pub(crate) struct Arrivals {
    streams: Vec<Arriving>,
    poisson: bool,
    /// Nothing arrives: senders send as much as goes.
    saturating: bool,
    /// Events that may still come, for gathering.
    events: u64,
    bounded: bool,
}

/// The arrivals at one node.
struct Arriving {
    node: u16,
    random: Stream,
    /// Mean interval in picoseconds.
    interval: f64,
    /// When the last one was due, unrounded, so that regular intervals do not drift.
    due: f64,
    left: u64,
}

impl Arrivals {
    pub(crate) fn new(plan: &Plan) -> Self {
        match &plan.workload {
            Workload::EventBuilding => Self::of_triggers(plan),
            Workload::Traffic(traffic) => {
                let messages = traffic.messages.unwrap_or(u64::MAX);
                let gather = matches!(traffic.config.pattern, Pattern::Gather { .. });
                let (saturating, poisson) = match traffic.load {
                    Load::Saturating => (true, false),
                    Load::Rate { poisson, .. } | Load::Fraction { poisson, .. } => (false, poisson),
                };
                let nodes = if gather { vec![0] } else { traffic.config.senders.iter().map(|node| node.0).collect() };
                let interval = |node: u16| match traffic.load {
                    Load::Saturating => f64::INFINITY,
                    Load::Rate { rate, .. } => interval(rate),
                    Load::Fraction { load, .. } => {
                        let unit = node.saturating_sub(traffic.config.senders.first.0);
                        let rate = plan.network.config.link.rate.as_bytes_per_second();
                        mean_size(plan, unit) / (load * rate) * SECOND
                    }
                };
                let streams = nodes.into_iter().filter(|_| !saturating);
                let streams = streams.map(|node| Arriving::new(plan, node, interval(node), messages)).collect();
                Self { streams, poisson, saturating, events: messages, bounded: traffic.messages.is_some() }
            }
        }
    }

    fn of_triggers(plan: &Plan) -> Self {
        let driven = plan.trigger.rate.map(|rate| Arriving::new(plan, 0, interval(rate), u64::MAX));
        Self {
            saturating: driven.is_none(),
            streams: driven.into_iter().collect(),
            poisson: plan.trigger.poisson,
            events: 0,
            bounded: plan.building.events.is_some(),
        }
    }

    /// What comes per second at all nodes; none when senders send as much as goes.
    pub(crate) fn rate_hz(&self) -> Option<f64> {
        (!self.saturating).then(|| self.streams.iter().map(|stream| SECOND / stream.interval).sum())
    }

    /// Whether senders send as much as goes.
    pub(crate) fn are_saturating(&self) -> bool {
        self.saturating
    }

    /// Whether they end by number.
    pub(crate) fn are_bounded(&self) -> bool {
        self.bounded
    }

    /// The first arrival of each node.
    pub(crate) fn first(&mut self) -> Vec<(u16, u64)> {
        let nodes: Vec<u16> = self.streams.iter().map(|stream| stream.node).collect();
        // Regular arrivals at many nodes are out of step with each other.
        let shift = !self.poisson && nodes.len() > 1;
        for stream in self.streams.iter_mut().filter(|_| shift) {
            stream.due = -stream.interval * stream.random.random::<f64>();
        }
        nodes.into_iter().filter_map(|node| Some((node, self.next(node, 0)?))).collect()
    }

    /// The arrival after the one at `now`.
    pub(crate) fn next(&mut self, node: u16, now: u64) -> Option<u64> {
        let index = self.streams.binary_search_by_key(&node, |stream| stream.node).ok()?;
        let stream = &mut self.streams[index];
        stream.left = stream.left.checked_sub(1)?;
        let factor: f64 = if self.poisson { Exp1.sample(&mut stream.random) } else { 1.0 };
        stream.due += stream.interval * factor;
        Some((stream.due.round() as u64).max(now))
    }

    /// Counts one event for gathering; false when there shall be no more.
    pub(crate) fn take_event(&mut self) -> bool {
        let left = self.events > 0;
        self.events -= u64::from(left);
        left
    }
}

impl Arriving {
    fn new(plan: &Plan, node: u16, interval: f64, left: u64) -> Self {
        Self { node, random: stream(plan.run.seed, NodeId(node), INTERVALS), interval, due: 0.0, left }
    }
}

fn interval(rate: Frequency) -> f64 {
    SECOND / rate.as_hertz()
}

/// The mean size of the messages of a sender, in bytes.
fn mean_size(plan: &Plan, unit: u16) -> f64 {
    let options = evb_sources::OpenOptions {
        data_directory: plan.data_directory.clone(),
        unit,
        seed: plan.run.seed,
        max_fragment: u32::try_from(plan.building.max_fragment.0).unwrap_or(u32::MAX),
    };
    // A source that cannot be opened is reported when its node is made.
    let Ok(mut sizes) = SizeModel::open(&plan.sources[usize::from(unit)], &options) else { return 1.0 };
    let sum: f64 = (1..=SAMPLES).map(|event| f64::from(sizes.size(EventId(event)).unwrap_or(0))).sum();
    (sum / SAMPLES as f64).max(1.0)
}
