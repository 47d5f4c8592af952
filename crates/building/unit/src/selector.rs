//! The selection of a builder's events: it asks the chain of filters, then the filter units, and picks the stream.
//!
//! No event is rejected unseen: one with a missing or bad fragment passes all built-in filters but `complete`, ends
//! incomplete and is stored. So a filter has seen every rejected event completely.

use crate::{Payload, Store, split::EventDecision};
use evb_core::{EventId, Time};
use evb_filter::{Answer, Passage, Question, Selection, StreamId, Verdict};
use evb_protocol::{BuilderCommand, Built, Fragment, Region};
use evb_record::Filtering;
use std::collections::HashMap;

/// The selection of one builder, with its counts.
pub struct Selector {
    selection: Selection,
    /// Streams of events whose first phase was accepted: at most those under construction.
    accepted: HashMap<EventId, StreamId>,
    counts: Filtering,
}

impl Selector {
    /// A selector that has seen no event.
    pub fn new(selection: Selection) -> Self {
        Self { selection, accepted: HashMap::new(), counts: Filtering::default() }
    }

    /// The counts, or `None` if nothing is selected.
    pub fn filtering(&self) -> Option<Filtering> {
        (!self.selection.is_open()).then(|| self.counts.clone())
    }

    /// Counts anew: the next run begins.
    pub(crate) fn next_run(&mut self) {
        self.counts = Filtering::default();
    }

    /// The way of an event that is built, as far as it is known without its fragments. An event that is not wanted is
    /// counted, and is not to be given to [`take_built`](Self::take_built). One that somebody sees, as a sample or in a
    /// histogram, is wanted though it is rejected or not stored.
    pub(crate) fn foresee<B, S: Store<B>>(
        &mut self,
        storage: &S,
        event: EventId,
        complete: bool,
        is_seen: bool,
    ) -> EventDecision {
        let stream = match self.selection.foresee(event, complete) {
            _ if self.selection.phased || self.selection.is_open() => {
                self.accepted.get(&event).copied().unwrap_or_default()
            }
            Some(Passage::Rejected) if is_seen => return EventDecision::Wanted,
            Some(Passage::Rejected) => {
                self.counts.rejected += 1;
                return EventDecision::Rejected;
            }
            Some(Passage::Taken(stream)) => stream,
            Some(Passage::Passed) if self.selection.units.is_none() => StreamId::PHYSICS,
            Some(Passage::Passed) | None => return EventDecision::Wanted,
        };
        if is_seen || storage.keeps(stream, event, complete) {
            return EventDecision::Wanted;
        }
        if self.selection.phased {
            self.accepted.remove(&event);
        } else {
            self.counts.accepted += 1;
        }
        EventDecision::Unstored
    }

    /// Decides about an event that is built, stores it if it is accepted, and returns the answer for the machine. There
    /// is none while filter units decide or the event is being stored.
    pub fn take_built<B: Payload, S: Store<B>>(
        &mut self,
        storage: &mut S,
        now: Time,
        built: Built<B>,
    ) -> Option<BuilderCommand<B>> {
        // Phased building has decided before.
        if self.selection.phased || self.selection.is_open() {
            let stream = self.accepted.remove(&built.event).unwrap_or_default();
            return self.store(storage, now, stream, built);
        }
        match self.verdict(built.event, built.complete, &built.fragments) {
            Some(verdict) => self.end(storage, now, built, verdict),
            None => {
                storage.ask(now, Question { built, is_phase: false });
                None
            }
        }
    }

    /// Decides about an event whose first phase is over, as [`take_built`](Self::take_built) does. `asked` are the
    /// readout units of the phase.
    pub fn take_phase<B: Payload, S: Store<B>>(
        &mut self,
        storage: &mut S,
        now: Time,
        (event, complete): (EventId, bool),
        asked: Region,
        fragments: &[Option<Fragment<B>>],
    ) -> Option<BuilderCommand<B>> {
        if let Some(verdict) = self.verdict(event, complete, fragments) {
            return Some(self.end_phase(event, verdict));
        }
        // Only what was asked for is part of the question: the other fragments are not missing.
        let built = Built { event, opened: now, complete, asked, fragments: fragments.to_vec() };
        storage.ask(now, Question { built, is_phase: true });
        None
    }

    /// Takes the decision of the filter units, and returns the answer for the machine.
    pub fn take_answer<B: Payload, S: Store<B>>(
        &mut self,
        storage: &mut S,
        now: Time,
        answer: Answer<B>,
    ) -> Option<BuilderCommand<B>> {
        let Answer { question: Question { built, is_phase }, verdict } = answer;
        if is_phase { Some(self.end_phase(built.event, verdict)) } else { self.end(storage, now, built, verdict) }
    }

    /// The verdict of the chain, or `None` if filter units decide.
    fn verdict<B: Payload>(
        &self,
        event: EventId,
        complete: bool,
        fragments: &[Option<Fragment<B>>],
    ) -> Option<Verdict> {
        match self.selection.pass(event, complete, fragments) {
            Passage::Rejected => Some(Verdict::Rejected),
            Passage::Taken(stream) => Some(Verdict::Accepted(stream)),
            Passage::Passed if self.selection.units.is_none() => Some(Verdict::Accepted(StreamId::PHYSICS)),
            Passage::Passed => None,
        }
    }

    fn end<B: Payload, S: Store<B>>(
        &mut self,
        storage: &mut S,
        now: Time,
        built: Built<B>,
        verdict: Verdict,
    ) -> Option<BuilderCommand<B>> {
        match self.count(verdict) {
            Some(stream) => self.store(storage, now, stream, built),
            None => Some(BuilderCommand::Rejected(built)),
        }
    }

    /// Stores an event that is kept, with its copies.
    fn store<B: Payload, S: Store<B>>(
        &self,
        storage: &mut S,
        now: Time,
        stream: StreamId,
        built: Built<B>,
    ) -> Option<BuilderCommand<B>> {
        let route = self.selection.route(stream, &built);
        storage.store(now, route, built).map(BuilderCommand::Stored)
    }

    fn end_phase<B>(&mut self, event: EventId, verdict: Verdict) -> BuilderCommand<B> {
        let stream = self.count(verdict);
        if let Some(stream) = stream.filter(|&stream| stream != StreamId::PHYSICS) {
            self.accepted.insert(event, stream);
        }
        BuilderCommand::Decided { event, accepted: stream.is_some() }
    }

    /// Counts a verdict, and returns the stream of the event if it is kept.
    fn count(&mut self, verdict: Verdict) -> Option<StreamId> {
        match verdict {
            Verdict::Rejected => self.counts.rejected += 1,
            Verdict::Accepted(_) => self.counts.accepted += 1,
            Verdict::Quarantined => self.counts.quarantined += 1,
        }
        match verdict {
            Verdict::Rejected => None,
            Verdict::Accepted(stream) => Some(stream),
            Verdict::Quarantined => Some(self.selection.quarantine()),
        }
    }
}
