//! The disk of a simulated builder that is slow on purpose: events go through it one after another.

use evb_core::{Bandwidth, NodeId, Span, Time};
use evb_experiment::{Keep, Plan};
use evb_protocol::Built;
use std::collections::VecDeque;

pub(crate) struct Disk {
    keep: Keep,
    rate: Bandwidth,
    free_at: Time,
    /// Events that are not stored yet: at most those of the builder's slots.
    writing: VecDeque<Built<()>>,
}

impl Disk {
    /// The disk of a node; none when it is not slow: then what is stored is stored at once.
    pub(crate) fn of(plan: &Plan, node: NodeId) -> Option<Self> {
        let rate = plan.slow_disk(node)?;
        Some(Self { keep: plan.storage.keep, rate, free_at: Time::ZERO, writing: VecDeque::new() })
    }

    /// Whether this event goes to the disk.
    pub(crate) const fn keeps(&self, built: &Built<()>) -> bool {
        self.keep.keeps(built.event, built.complete)
    }

    /// Begins to write an event; when it is stored.
    pub(crate) fn write(&mut self, now: Time, built: Built<()>) -> Time {
        let bytes: u64 = built.fragments.iter().flatten().map(|fragment| u64::from(fragment.length)).sum();
        let span = u128::from(bytes) * 8_000_000_000_000 / u128::from(self.rate.0.max(1));
        self.free_at = self.free_at.max(now) + Span(u64::try_from(span).unwrap_or(u64::MAX));
        self.writing.push_back(built);
        self.free_at
    }

    /// The event that is stored next.
    pub(crate) fn stored(&mut self) -> Option<Built<()>> {
        self.writing.pop_front()
    }
}
