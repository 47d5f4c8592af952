//! The answers of a readout unit to a builder that asks for missing fragments.
//!
//! Messages between two nodes keep their order. A fragment that was sent before an answer which the builder has
//! received is therefore lost, and is sent again. A fragment that was sent later is under way, and the next answer
//! travels behind it. So a question costs a slow network only itself, and a repeated question causes no second copy.

use super::{HeldEvent, ReadoutMachine};
use crate::{Fault, Fragment, FragmentStatus, Message};
use alloc::vec::Vec;
use core::num::NonZeroU32;
use evb_core::{EventId, NodeId};

/// The state of one builder at a readout unit.
#[derive(Clone, Copy, Default)]
pub(super) struct Asker {
    /// The builder is gone; its messages do not count.
    gone: bool,
    /// The last question that was answered.
    answered: u32,
}

/// The transmission of a fragment.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct LastTransmission {
    to: NodeId,
    /// Number of the answer that the fragment travels before, from 1.
    before: NonZeroU32,
}

impl LastTransmission {
    pub(super) fn is_to(self, node: NodeId) -> bool {
        self.to == node
    }
}

impl<B: Clone + Default> ReadoutMachine<B> {
    /// The index of a living builder.
    pub(super) fn builder(&self, node: NodeId) -> Option<usize> {
        let builders = self.config.builder_nodes();
        let index = builders.contains(node).then(|| usize::from(node.0 - builders.first.0))?;
        (!self.askers[index].gone).then_some(index)
    }

    pub(super) fn note_builder(&mut self, node: NodeId, gone: bool) {
        let builders = self.config.builder_nodes();
        if builders.contains(node) {
            self.askers[usize::from(node.0 - builders.first.0)] = Asker { gone, answered: 0 };
        }
    }

    /// The transmission of a fragment that goes to this builder now.
    pub(super) fn sent_now(&self, to: NodeId, builder: usize) -> LastTransmission {
        LastTransmission { to, before: NonZeroU32::MIN.saturating_add(self.askers[builder].answered) }
    }

    /// Answers a question. The builder has received the answer with number `heard`.
    pub(super) fn answer(&mut self, from: NodeId, number: u32, heard: u32, events: &[EventId]) {
        let Some(builder) = self.builder(from) else { return self.counts.faults.count(Fault::Unexpected) };
        // An older question than one that was answered came late.
        if number < self.askers[builder].answered {
            return;
        }
        let is_pending = |event: &EventId| self.answer_for(*event, from, heard);
        let pending: Vec<_> = events.iter().copied().filter(is_pending).collect();
        self.askers[builder].answered = number;
        self.shaper.push_behind(builder, Message::Answer { number, pending: pending.into() });
    }

    /// Sends the fragment of an event to a builder that lacks it, unless it is under way. Returns true if the fragment
    /// is not read yet.
    fn answer_for(&mut self, event: EventId, builder: NodeId, heard: u32) -> bool {
        if self.held.is_over(event.0) {
            self.refuse(event, builder);
            return false;
        }
        // An event absurdly far ahead has no fragment yet.
        let Some(held) = self.entry(event) else { return true };
        match *held {
            HeldEvent { fragment: Some(_), sent, .. } => {
                let is_under_way = sent.is_some_and(|sent| sent.is_to(builder) && sent.before.get() > heard);
                if !is_under_way {
                    self.counts.repeated += u64::from(sent.is_some_and(|sent| sent.is_to(builder)));
                    if let Some(held) = self.entry(event) {
                        held.sent = None;
                    }
                    self.serve(event, builder);
                }
            }
            _ => {
                self.serve(event, builder);
                return self.entry(event).is_some_and(|held| held.fragment.is_none());
            }
        }
        false
    }

    /// Tells a builder that there is no fragment of an event that is over. The builder has most likely ended it
    /// meanwhile.
    fn refuse(&mut self, event: EventId, to: NodeId) {
        let (now, fragment) = (self.now, self.missing(event));
        if let Some(builder) = self.builder(to) {
            self.shaper.push(now, builder, fragment);
        }
    }

    /// The statement that the source has no fragment of an event.
    pub(super) fn missing(&self, event: EventId) -> Fragment<B> {
        let (source, status, payload) = (self.source, FragmentStatus::Missing, B::default());
        Fragment { event, source, length: 0, checksum: 0, mark: None, counter: None, status, payload }
    }

    /// Joins the present run after a restart of this unit: earlier events are over.
    pub(super) fn resume(&mut self, first: EventId) {
        while self.held.first() < first.0 {
            match self.held.len() {
                0 => self.held.skip_to(first.0),
                _ => self.clear(EventId(self.held.first())),
            }
        }
        self.counts.through = self.counts.through.max(EventId(first.0.saturating_sub(1)));
    }
}
