//! The places of the sources in the common time: how they are known, found and lost.

use super::Matcher;
use crate::outcome::{Outcome, Sink};
use crate::source::SourceState;
use crate::tracking::Line;

/// Number of consecutive hits far behind their predecessors from which the clock counts as leapt back.
const BEHIND_IN_A_ROW: u32 = 32;

impl Matcher {
    /// Begins a source with its first hit, or again with a hit out of the range of its clock. Places it if its place is
    /// known without a search.
    #[inline]
    pub(super) fn begin(&mut self, source: usize, ticks: u64) {
        let state = &mut self.sources[source];
        if !state.has_begun() {
            state.begin_at(ticks);
        } else if state.leaps_to(ticks) {
            state.begin_at(ticks);
            self.lose(source);
        }
        let state = &self.sources[source];
        if state.tracking.is_none() && (!state.follows || self.is_to_lead(source)) {
            self.place_by_word(source, ticks);
        }
    }

    /// Places a source by its settings, or as the reference.
    fn place_by_word(&mut self, source: usize, ticks: u64) {
        let state = &self.sources[source];
        let is_known = !state.follows;
        let begin = state.start_time();
        let shift = if is_known || self.passed_by_trigger.max(self.passed) == i64::MIN {
            let shift = begin - *self.base.get_or_insert(begin);
            shift.clamp(i64::MIN.into(), i64::MAX.into()) as i64
        } else {
            // The reference has lost its place: its time goes on behind what is settled.
            let settled = self.passed_by_trigger.max(self.passed);
            let free = settled.saturating_add(self.window.saturating_mul(2)).saturating_add(1);
            free.saturating_sub(state.local(ticks))
        };
        self.sources[source].place(Line::fixed(shift), 1);
        self.reference.get_or_insert(source);
    }

    /// Returns true if the source gives the common time: the trigger source, or the first one that is heard if no place
    /// is known beforehand.
    fn is_to_lead(&self, source: usize) -> bool {
        match self.reference {
            Some(reference) => reference == source,
            None => self.sources.iter().all(|state| state.follows || state.has_ended),
        }
    }

    /// Looks for the places of the sources that have none.
    pub(super) fn search(&mut self) {
        let Some(reference) = self.reference.map(|reference| &self.sources[reference]) else { return };
        if reference.tracking.is_none() {
            return;
        }
        let (tick, is_reference_done) = (reference.tick(), reference.is_done());
        for state in self.sources.iter_mut().filter(|state| state.tracking.is_none()) {
            let (tick, came) = (tick.max(state.tick()), state.counts.came);
            let is_last_chance = is_reference_done && state.is_done() && !state.queue.is_empty();
            let mut found = None;
            if state.search.is_due(self.now, &self.history) {
                found = state.search.attempt(self.now, &self.history, tick);
            }
            if found.is_none() && is_last_chance && !state.search.has_tried(&self.history, came) {
                let oldest = state.queue.iter().map(|hit| hit.local);
                found = state.search.attempt_with_all(&self.history, (oldest, came), tick);
            }
            if let Some(found) = found {
                state.join(&found, self.passed);
            }
        }
    }

    /// Returns true if nothing that comes can tell the place of a source, unless some of its hits are settled.
    pub(super) fn is_place_hopeless(&self, source: usize) -> bool {
        let state = &self.sources[source];
        let Some(reference) = self.reference.map(|reference| &self.sources[reference]) else { return false };
        let has_been_placed = state.counts.lost > 0;
        let are_done = state.is_done() && reference.is_done();
        // One that has lost its place does not stop the others.
        has_been_placed && self.sources.iter().any(|state| state.is_full)
            || are_done && state.search.has_tried(&self.history, state.counts.came)
    }

    /// Gives up the hits of sources that have ended and whose places are not known, when nothing waits for them.
    pub(super) fn give_up_unplaced(&mut self, sink: &mut impl Sink) {
        for source in 0..self.sources.len() {
            let is_lost = self.sources[source].has_ended && self.sources[source].tracking.is_none();
            if is_lost && !self.is_awaited(source) {
                let state = &mut self.sources[source];
                state.settle_many(state.queue.len(), Outcome::NotSynchronised, sink);
            }
        }
    }

    /// Refuses hits whose time is over. Those from before the place was known are not late.
    pub(super) fn refuse_late(&mut self, sink: &mut impl Sink) {
        for source in 0..self.sources.len() {
            let passed = if self.is_trigger(source) { self.passed_by_trigger } else { self.passed };
            let state = &mut self.sources[source];
            state.settle_before(passed.min(state.joined).saturating_add(1), Outcome::NotSynchronised, sink);
            state.settle_before(passed.saturating_add(1), Outcome::Late, sink);
            if state.behind >= BEHIND_IN_A_ROW {
                state.settle_many(state.queue.len(), Outcome::NotSynchronised, sink);
                self.lose(source);
            }
        }
    }

    /// Gives up the places of sources that match nothing any more.
    pub(super) fn note_losses(&mut self) {
        for source in 0..self.sources.len() {
            let state = &self.sources[source];
            if state.follows && state.tracking.is_some() && !self.is_trigger(source) && state.trust.is_gone() {
                self.lose(source);
            }
        }
        self.replace_reference();
    }

    /// Gives up the place of a source. Without the trigger source nothing has a place.
    pub(super) fn lose(&mut self, source: usize) {
        self.sources[source].lose_place(self.now);
        if self.is_trigger(source) {
            self.history.clear();
            self.sources.iter_mut().for_each(|state| state.lose_place(self.now));
        }
        self.replace_reference();
    }

    /// Takes another reference if the present one has ended or lost its place.
    fn replace_reference(&mut self) {
        let leads = |state: &SourceState| state.tracking.is_some() && !state.has_ended;
        if self.rule.trigger().is_some() || self.reference.is_some_and(|reference| leads(&self.sources[reference])) {
            return;
        }
        let next = self.sources.iter().position(leads);
        if next.is_some() || self.reference.is_some_and(|reference| self.sources[reference].tracking.is_none()) {
            self.history.clear();
            self.reference = next;
        }
    }

    /// Notes that a hit of the reference is settled: every source but it should have had one.
    pub(super) fn note_reference(&mut self) {
        for state in &mut self.sources {
            state.trust.note_reference();
        }
    }

    /// Lets a source follow the common time by a matched hit: its own time, and by how much its event was later.
    #[inline]
    pub(super) fn learn(state: &mut SourceState, local: i64, residual: i64) {
        if state.follows
            && let Some(tracking) = &mut state.tracking
        {
            tracking.learn(local, residual);
        }
    }
}
