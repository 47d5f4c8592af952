//! The arrivals of background traffic: the messages that its senders are offered.

use crate::arrivals::mean;
use evb_core::{NodeId, SourceId, Span, Time};
use evb_experiment::{BackgroundPlan, Load, Plan, limits::MAX_FRAGMENT};
use evb_sources::{OpenOptions, SizeModel, SourceError};
use evb_unit::{Arrivals, open_options};

/// The arrivals at all senders of one table of background traffic.
pub(crate) struct BackgroundArrivals {
    first: NodeId,
    from: Span,
    /// Empty if the senders send as much as goes.
    senders: Vec<Arriving>,
    /// Mean size of the messages, in bytes.
    mean_size: f64,
}

struct Arriving {
    arrivals: Arrivals,
    left: u64,
}

impl BackgroundArrivals {
    /// The arrivals of all tables of a plan.
    pub(crate) fn of(plan: &Plan) -> Vec<Self> {
        plan.background.iter().map(|background| Self::new(plan, background)).collect()
    }

    fn new(plan: &Plan, background: &BackgroundPlan) -> Self {
        let traffic = &background.traffic;
        let senders = traffic.config.senders;
        // Sizes that cannot be opened are reported when the nodes are made.
        let mean_size = open(plan, background, senders.first).map_or(1.0, |mut sizes| mean(&mut sizes));
        let left = traffic.messages.unwrap_or(u64::MAX);
        let arriving = |node| Some(Arriving { arrivals: arrivals(plan, background, node, mean_size)?, left });
        let mut senders: Vec<_> = senders.iter().filter_map(arriving).collect();
        if senders.len() > 1 {
            senders.iter_mut().for_each(|sender| sender.arrivals.shift());
        }
        Self { first: traffic.config.senders.first, from: background.from, senders, mean_size }
    }

    /// The next arrival at a sender, if there is one.
    pub(crate) fn next(&mut self, sender: NodeId) -> Option<Time> {
        let sender = self.senders.get_mut(sender.index() - self.first.index())?;
        sender.left = sender.left.checked_sub(1)?;
        Some(sender.arrivals.advance() + self.from)
    }

    /// True if nothing arrives: the senders send as much as goes.
    pub(crate) fn is_saturating(&self) -> bool {
        self.senders.is_empty()
    }

    /// Payload that all senders are offered, in bytes per second; `None` if they send as much as goes.
    pub(crate) fn offered_bytes_per_s(&self) -> Option<f64> {
        let rate: f64 = self.senders.iter().map(|sender| sender.arrivals.rate_hz()).sum();
        (!self.is_saturating()).then_some(rate * self.mean_size)
    }
}

/// The sizes of the messages of a sender.
pub(crate) fn open(plan: &Plan, background: &BackgroundPlan, sender: NodeId) -> Result<SizeModel, SourceError> {
    let max_fragment = u32::try_from(MAX_FRAGMENT.0).unwrap_or(u32::MAX);
    let options = OpenOptions { unit: sender.0, max_fragment, ..open_options(plan, SourceId(0)) };
    SizeModel::open(&background.message, &options)
}

fn arrivals(plan: &Plan, background: &BackgroundPlan, node: NodeId, mean_size: f64) -> Option<Arrivals> {
    let seed = plan.run.seed;
    let config = &plan.network.config;
    let link = background.host(node).map_or(config.link.rate, |host| config.host_link(host).rate);
    let message = mean_size / link.as_bytes_per_second();
    match background.traffic.load {
        Load::Saturating => None,
        Load::Rate { rate, poisson } => Some(Arrivals::at_rate(seed, node, rate, poisson)),
        Load::Fraction { load, poisson } => Some(Arrivals::new(seed, node, message / load, poisson)),
        Load::Slots { load } => Some(Arrivals::in_slots(seed, node, message, load)),
    }
}
