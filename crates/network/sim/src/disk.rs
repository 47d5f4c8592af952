//! The disk of a simulated builder. A disk that is slow on purpose stores events one after another; all others store
//! them at once.

use crate::filter::Processors;
use evb_core::{Bandwidth, EventId, NodeId, Span, Time};
use evb_experiment::{Keep, Plan};
use evb_filter::{Question, Route, StreamId};
use evb_protocol::Built;
use evb_unit::{SimulatedPayload, Store, SuperFragmentSender};
use std::collections::VecDeque;

pub(crate) struct Disk {
    keep: Keep,
    /// Rate of a slow disk; `None` for a fast one.
    rate: Option<Bandwidth>,
    free_at: Time,
    /// Events that are not stored yet: at most those of the builder's slots.
    writing: VecDeque<Built<SimulatedPayload>>,
    /// Times at which the events begun since the last drain will be stored.
    pub(crate) begun: Vec<Time>,
    /// The filter units beside it.
    pub(crate) filter: Processors,
    /// The events on their way to the second stage, in a builder of the first.
    pub(crate) outlet: Option<SuperFragmentSender<SimulatedPayload>>,
}

impl Disk {
    /// The disk of a node.
    pub(crate) fn of(plan: &Plan, node: NodeId) -> Self {
        Self {
            keep: plan.storage.keep,
            rate: plan.slow_disk(node),
            free_at: Time::ZERO,
            writing: VecDeque::new(),
            begun: Vec::new(),
            filter: Processors::of(plan),
            outlet: SuperFragmentSender::new(plan),
        }
    }

    /// The event that is stored next.
    pub(crate) fn stored(&mut self) -> Option<Built<SimulatedPayload>> {
        self.writing.pop_front()
    }
}

impl Store<SimulatedPayload> for Disk {
    fn ask(&mut self, now: Time, question: Question<SimulatedPayload>) {
        self.filter.ask(now, question);
    }

    fn keeps(&self, _stream: StreamId, event: EventId, complete: bool) -> bool {
        self.outlet.is_some() || (self.rate.is_some() && self.keep.keeps(event, complete))
    }

    fn store(&mut self, now: Time, _route: Route, built: Built<SimulatedPayload>) -> Option<Built<SimulatedPayload>> {
        if let Some(outlet) = &mut self.outlet {
            outlet.add(built);
            return None;
        }
        let Some(rate) = self.rate.filter(|_| self.keep.keeps(built.event, built.complete)) else { return Some(built) };
        let bytes: u64 = built.fragments.iter().flatten().map(|fragment| u64::from(fragment.length)).sum();
        let span = u128::from(bytes) * 8_000_000_000_000 / u128::from(rate.0.max(1));
        self.free_at = self.free_at.max(now) + Span(u64::try_from(span).unwrap_or(u64::MAX));
        self.writing.push_back(built);
        self.begun.push(self.free_at);
        None
    }
}
