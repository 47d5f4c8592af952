//! Arrivals of triggers, messages and events that come without a request.

use evb_core::{EventId, NodeId, SourceId, Time};
use evb_experiment::{Load, Plan, Workload};
use evb_patterns::Pattern;
use evb_protocol::Config;
use evb_sources::SizeModel;
use evb_unit::{Arrivals, open_options};

/// Number of drawn sizes whose mean is taken where no formula gives it.
const SAMPLES: u64 = 10_000;

/// The arrivals of one simulation, at all nodes.
pub(crate) struct AllArrivals {
    /// Arrivals of each node, in the order of the nodes.
    nodes: Vec<Arriving>,
    /// True if nothing arrives: senders send as much as the network takes.
    pub(crate) saturating: bool,
    /// Events that may still come, for gathering.
    events: u64,
    /// True if the arrivals end by number.
    pub(crate) bounded: bool,
}

/// The arrivals at one node.
struct Arriving {
    node: NodeId,
    arrivals: Arrivals,
    left: u64,
}

impl AllArrivals {
    pub(crate) fn new(plan: &Plan) -> Self {
        let Workload::Traffic(traffic) = &plan.workload else { return Self::of_triggers(plan) };
        let left = traffic.messages.unwrap_or(u64::MAX);
        let seed = plan.run.seed;
        let arriving = |node: NodeId| {
            let arrivals = match traffic.load {
                Load::Saturating => return None,
                Load::Rate { rate, poisson } => Arrivals::at_rate(seed, node, rate, poisson),
                Load::Fraction { load, poisson } => Arrivals::new(seed, node, slot(plan, node) / load, poisson),
                Load::Slots { load } => Arrivals::in_slots(seed, node, slot(plan, node), load),
            };
            Some(Arriving { node, arrivals, left })
        };
        let is_gathering = matches!(traffic.config.pattern, Pattern::Gather { .. });
        let nodes = if is_gathering { NodeId(0).into() } else { traffic.config.senders };
        Self {
            nodes: nodes.iter().filter_map(arriving).collect(),
            saturating: matches!(traffic.load, Load::Saturating),
            events: left,
            bounded: traffic.messages.is_some(),
        }
    }

    fn of_triggers(plan: &Plan) -> Self {
        let arrivals = Arrivals::of_triggers(plan);
        let arriving = |arrivals| Arriving { node: Config::EVENT_MANAGER, arrivals, left: u64::MAX };
        Self {
            saturating: arrivals.is_none(),
            nodes: arrivals.into_iter().map(arriving).collect(),
            events: 0,
            bounded: plan.building.events.is_some(),
        }
    }

    /// Arrivals per second at all nodes; `None` if senders send as much as the network takes.
    pub(crate) fn rate_hz(&self) -> Option<f64> {
        (!self.saturating).then(|| self.nodes.iter().map(|arriving| arriving.arrivals.rate_hz()).sum())
    }

    /// The first arrival of each node.
    pub(crate) fn first(&mut self) -> Vec<(NodeId, Time)> {
        if self.nodes.len() > 1 {
            self.nodes.iter_mut().for_each(|arriving| arriving.arrivals.shift());
        }
        self.nodes.iter_mut().filter_map(|arriving| Some((arriving.node, arriving.next()?))).collect()
    }

    /// The arrival after the one at `now`.
    pub(crate) fn next(&mut self, node: NodeId, now: Time) -> Option<Time> {
        let index = self.nodes.binary_search_by_key(&node, |arriving| arriving.node).ok()?;
        Some(self.nodes[index].next()?.max(now))
    }

    /// Counts one event for gathering; returns false if no more may come.
    pub(crate) fn take_event(&mut self) -> bool {
        let left = self.events > 0;
        self.events -= u64::from(left);
        left
    }
}

impl Arriving {
    fn next(&mut self) -> Option<Time> {
        self.left = self.left.checked_sub(1)?;
        Some(self.arrivals.advance())
    }
}

/// The time of a message of mean size on the link of its sender, in seconds.
fn slot(plan: &Plan, sender: NodeId) -> f64 {
    let Workload::Traffic(traffic) = &plan.workload else { return 0.0 };
    let unit = sender.0.saturating_sub(traffic.config.senders.first.0);
    let config = &plan.network.config;
    let rate = plan.host(sender).map_or(config.link.rate, |host| config.host_link(host).rate);
    mean_size(plan, unit) / rate.as_bytes_per_second()
}

/// The mean size of the messages or fragments of a unit, in bytes.
pub(crate) fn mean_size(plan: &Plan, unit: u16) -> f64 {
    let options = open_options(plan, SourceId(unit));
    // A source that cannot be opened is reported when its node is made.
    let Ok(mut sizes) = SizeModel::open(plan.source(SourceId(unit)), &options) else { return 1.0 };
    mean(&mut sizes)
}

/// The mean of sizes, in bytes.
pub(crate) fn mean(sizes: &mut SizeModel) -> f64 {
    if let Some(mean) = sizes.mean() {
        return mean.max(1.0);
    }
    let sum: f64 = (1..=SAMPLES).map(|event| f64::from(sizes.size(EventId(event)).unwrap_or(0))).sum();
    (sum / SAMPLES as f64).max(1.0)
}
