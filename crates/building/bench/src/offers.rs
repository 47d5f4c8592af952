//! Messages and events that are offered to a node at a rate.

use crate::work::Work;
use evb_core::{NodeId, Span, Time};
use evb_experiment::Load;
use evb_patterns::Pattern;
use evb_unit::Arrivals;

/// Messages that are due at one node, or the events of gathering, which are due at all nodes at the same times.
pub(crate) struct Offers {
    arrivals: Arrivals,
    /// Time at which they begin, by the clock of the node.
    begin: Time,
    /// Time after which nothing comes, by the clock of the node. It is the same for all nodes: they must agree on the last
    /// event of gathering.
    end: Time,
    /// Messages or events that are still to come.
    left: u64,
    /// Messages or events offered so far.
    pub(crate) made: u64,
    /// True if this node accounts for them: the first node does for the events of gathering.
    is_counted: bool,
    /// False for the events of gathering, which are due at all nodes.
    is_separate: bool,
}

impl Offers {
    /// The offers to a node; `None` if it sends as much as goes, or only answers.
    pub(crate) fn of(work: &Work, local: NodeId, begin: Time) -> Option<Self> {
        let (config, node) = (&work.traffic.config, Work::in_plan(local));
        let Load::Rate { rate, poisson } = work.traffic.load else { return None };
        let is_shared = matches!(config.pattern, Pattern::Gather { .. });
        if !is_shared && !config.senders.contains(node) {
            return None;
        }
        let stream = if is_shared { NodeId(0) } else { node };
        let mut arrivals = Arrivals::at_rate(config.seed, stream, rate, poisson);
        if !is_shared && config.senders.count > 1 {
            arrivals.shift();
        }
        arrivals.advance();
        let is_counted = !is_shared || local == NodeId(0);
        let warmup = work.plan().run.warmup.unwrap_or(Span::ZERO);
        let end = work.plan().trigger.duration.map_or(Time::MAX, |duration| begin + warmup + duration);
        Some(Self {
            arrivals,
            begin,
            end,
            left: work.traffic.messages.unwrap_or(u64::MAX),
            made: 0,
            is_counted,
            is_separate: !is_shared,
        })
    }

    /// The messages or events offered so far that this node accounts for.
    pub(crate) const fn counted(&self) -> u64 {
        if self.is_counted { self.made } else { 0 }
    }

    /// The time of the next offer; `None` after the last one.
    pub(crate) fn due(&self) -> Option<Time> {
        let due = Time(self.begin.0 + self.arrivals.at().0);
        (self.left > 0 && due <= self.end).then_some(due)
    }

    /// Passes all offers that are due, and returns their number. It takes the same time for any number.
    pub(crate) fn pass(&mut self, now: Time) -> u64 {
        let count = self.arrivals.pass(Time(now.min(self.end).since(self.begin).0)).min(self.left);
        (self.left, self.made) = (self.left - count, self.made + count);
        count
    }

    /// Returns true if each node decides alone on its offers.
    pub(crate) const fn is_separate(&self) -> bool {
        self.is_separate
    }

    /// The number of the next offer and its time, if it is due.
    pub(crate) fn take(&mut self, now: Time) -> Option<(u64, Time)> {
        let due = self.due().filter(|&due| due <= now)?;
        self.arrivals.advance();
        (self.left, self.made) = (self.left - 1, self.made + 1);
        Some((self.made, due))
    }
}
