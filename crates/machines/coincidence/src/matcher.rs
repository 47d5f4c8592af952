//! The matcher of all sources: it takes hits and frontiers, and settles what no further hit can change.

mod groups;
mod places;
mod several;

use crate::matching::Matching;
use crate::outcome::{ClockState, Outcome, OutcomeCounts, Sink, Slot};
use crate::search::History;
use crate::settings::{Coincidence, Rule};
use crate::source::{Hit, SourceState};
use alloc::vec::Vec;
use evb_core::{EventId, Span, Time};

/// The matching of the hits of all sources to events.
///
/// A driver gives it hits, frontiers and the state of buffers as they come, and calls [`advance`](Self::advance) after
/// that, and at the [`deadline`](Self::deadline). Its memory is bounded by the buffers of the sources: one that is full
/// must deliver no more hits until some are settled.
pub struct Matcher {
    rule: Rule,
    window: i64,
    patience: Span,
    sources: Vec<SourceState>,
    /// The source whose clock is the common time, or gives it.
    reference: Option<usize>,
    /// The common time 0, in picoseconds of known offsets.
    base: Option<i128>,
    history: History,
    now: Time,
    /// The common time through which everything is settled, and the same for hits of the trigger source.
    passed: i64,
    passed_by_trigger: i64,
    /// The last trigger of a group that was too long to be matched, if the next may belong to it.
    cut_at: Option<i64>,
    events: u64,
    /// Memory that is used again: slots of a group, event after event; times of its triggers; times of hits.
    slots: Vec<Slot>,
    triggers: Vec<i64>,
    times: Vec<i64>,
    matching: Matching,
}

impl Matcher {
    /// A matcher without hits.
    pub fn new(settings: &Coincidence) -> Self {
        let sources = settings.sources.iter().enumerate().map(|(index, clock)| SourceState::new(index, *clock));
        Self {
            rule: settings.rule,
            window: settings.rule.window(),
            patience: settings.patience,
            sources: sources.collect(),
            reference: settings.rule.trigger().map(evb_core::SourceId::index),
            base: None,
            history: History::default(),
            now: Time::ZERO,
            passed: i64::MIN,
            passed_by_trigger: i64::MIN,
            cut_at: None,
            events: 0,
            slots: Vec::new(),
            triggers: Vec::new(),
            times: Vec::new(),
            matching: Matching::default(),
        }
    }

    /// Takes hits of a source: the serial number of the first one, and their clock values in the order of their arrival.
    /// Narrow clocks are unwrapped before. Serial numbers follow each other. A source that does not exist is ignored.
    pub fn push(&mut self, source: usize, first: u64, ticks: &[u64]) {
        if source >= self.sources.len() {
            return;
        }
        for (serial, &ticks) in (first..).zip(ticks) {
            self.push_one(source, serial, ticks);
        }
    }

    #[inline]
    fn push_one(&mut self, source: usize, serial: u64, ticks: u64) {
        self.begin(source, ticks);
        let (is_reference, state) = (self.reference == Some(source), &mut self.sources[source]);
        let local = state.local(ticks);
        state.insert(Hit { local, serial });
        match &state.tracking {
            Some(tracking) if is_reference => self.history.push(tracking.line.time(local)),
            None => state.search.push(local),
            Some(_) => {}
        }
    }

    /// No hit of the source before this clock value will come. A source that was never heard cannot say this.
    pub fn frontier(&mut self, source: usize, ticks: u64) {
        if let Some(state) = self.sources.get_mut(source) {
            state.set_frontier(ticks);
        }
    }

    /// The buffer of the source is full, so that no hit comes before some are settled; or it has room again.
    pub fn set_full(&mut self, source: usize, is_full: bool) {
        if let Some(state) = self.sources.get_mut(source) {
            state.set_full(is_full);
        }
    }

    /// No more hits of the source will come.
    pub fn end(&mut self, source: usize) {
        if let Some(state) = self.sources.get_mut(source) {
            state.has_ended = true;
        }
    }

    /// Settles what can be settled.
    pub fn advance(&mut self, now: Time, sink: &mut impl Sink) {
        self.now = now;
        for state in &mut self.sources {
            state.progressed = false;
            state.settle_abandoned(sink);
            if state.tracking.is_none() {
                state.since.get_or_insert(now);
            }
        }
        loop {
            self.search();
            self.give_up_unplaced(sink);
            self.refuse_late(sink);
            match self.rule {
                Rule::Trigger { source, .. } if usize::from(source) < self.sources.len() => {
                    self.settle_groups(source.into(), sink);
                }
                Rule::Trigger { .. } => {}
                Rule::Several { sources, .. } => self.settle_several(sources, sink),
            }
            if !self.make_room(sink) {
                break;
            }
        }
        self.note_losses();
    }

    /// The time at which [`advance`](Self::advance) settles more although nothing has come, if there is one.
    pub fn deadline(&self) -> Option<Time> {
        let patience = (0..self.sources.len()).filter(|&source| self.is_awaited(source));
        let sought = patience.filter_map(|source| self.sources[source].since);
        let stuck = self.sources.iter().filter_map(|state| Some(state.stuck?.0));
        sought.chain(stuck).map(|since| since + self.patience).filter(|at| *at > self.now).min()
    }

    /// The last event.
    pub const fn through(&self) -> EventId {
        EventId(self.events)
    }

    /// Number of hits of a source by outcome.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn counts(&self, source: usize) -> &OutcomeCounts {
        &self.sources[source].counts
    }

    /// The state of the clock of a source.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn clock(&self, source: usize) -> ClockState {
        let state = &self.sources[source];
        let drift = state.tracking.filter(|_| state.follows).map(|tracking| tracking.line.rate);
        ClockState { synchrony: state.synchrony(), drift, counts: state.counts }
    }

    /// Number of hits of a source without an outcome.
    ///
    /// # Panics
    /// If there is no such source.
    pub fn waiting(&self, source: usize) -> usize {
        self.sources[source].queue.len()
    }

    fn is_trigger(&self, source: usize) -> bool {
        self.rule.trigger().is_some_and(|trigger| trigger.index() == source)
    }

    /// Returns true if events wait for the place of this source.
    fn is_awaited(&self, source: usize) -> bool {
        let state = &self.sources[source];
        let is_unplaced = state.tracking.is_none() && !state.is_over();
        let in_time = || state.since.is_none_or(|since| self.now < since + self.patience);
        let is_needed = state.is_needed() || self.is_trigger(source);
        let is_hopeless = || self.is_place_hopeless(source) || self.have_all_ended();
        is_unplaced && is_needed && in_time() && !is_hopeless()
    }

    fn have_all_ended(&self) -> bool {
        self.sources.iter().all(|state| state.has_ended)
    }

    /// The common time before which nothing comes from a source; the end of time for one that nobody waits for.
    fn horizon(&self, source: usize) -> i64 {
        let state = &self.sources[source];
        let is_needed = state.is_needed() || self.is_trigger(source);
        if !is_needed || state.has_ended && (state.tracking.is_some() || state.is_over()) {
            return i64::MAX;
        }
        let unplaced = if self.is_awaited(source) { i64::MIN } else { i64::MAX };
        state.horizon().unwrap_or(unplaced)
    }

    /// The lowest horizon of all sources but one.
    fn lowest_horizon(&self, without: Option<usize>) -> i64 {
        let others = (0..self.sources.len()).filter(|&source| Some(source) != without);
        others.map(|source| self.horizon(source)).min().unwrap_or(i64::MAX)
    }

    /// The common time of the latest hit of all; the end of time if all sources have ended.
    fn latest(&self) -> i64 {
        if self.have_all_ended() {
            return i64::MAX;
        }
        self.sources.iter().filter_map(SourceState::latest).max().unwrap_or(i64::MIN)
    }

    /// Lets full sources that cannot settle anything wait no longer. Returns true if more may be settled now.
    fn make_room(&mut self, sink: &mut impl Sink) -> bool {
        let lowest = self.lowest_horizon(None);
        let mut is_changed = false;
        for source in 0..self.sources.len() {
            let (horizon, window, is_awaited) = (self.horizon(source), self.window, self.is_awaited(source));
            let state = &mut self.sources[source];
            if !state.is_full || state.progressed || state.queue.is_empty() || is_awaited {
                state.stuck = None;
            } else if state.tracking.is_none() {
                state.settle_many(state.queue.len().div_ceil(2), Outcome::NotSynchronised, sink);
            } else if horizon == lowest && state.shorten(window) {
                is_changed = true;
            } else {
                self.note_stuck(source, lowest);
            }
        }
        is_changed
    }

    /// Gives up the place of a full source that gets no outcome for long although the others go on: its clock has leapt.
    fn note_stuck(&mut self, source: usize, lowest: i64) {
        let (since, was) = *self.sources[source].stuck.get_or_insert((self.now, lowest));
        if self.now >= since + self.patience && lowest > was {
            self.lose(source);
        }
    }
}
