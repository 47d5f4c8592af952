//! Events of several sources: the earliest hit opens a window, and enough sources in it make an event.

use super::Matcher;
use crate::outcome::{Outcome, Sink, Slot};
use crate::source::SourceState;
use evb_core::EventId;

impl Matcher {
    /// Settles all windows that no further hit can change.
    pub(super) fn settle_several(&mut self, fewest: u16, sink: &mut impl Sink) {
        let lowest = self.lowest_horizon(None);
        while let Some((first, earliest)) = self.earliest() {
            let end = first.saturating_add(self.window);
            if lowest <= end {
                return;
            }
            let is_in = |state: &&SourceState| state.front().is_some_and(|front| front <= end);
            if self.sources.iter().filter(is_in).count() >= fewest.into() {
                self.settle_window(first, end, sink);
            } else {
                self.settle_alone(first, earliest, sink);
            }
        }
    }

    /// The time of the earliest hit, and its source.
    fn earliest(&self) -> Option<(i64, usize)> {
        let fronts = self.sources.iter().enumerate().filter_map(|(source, state)| Some((state.front()?, source)));
        fronts.min()
    }

    fn settle_alone(&mut self, first: i64, source: usize, sink: &mut impl Sink) {
        self.sources[source].settle(Outcome::Alone, sink);
        self.passed = self.passed.max(first);
        if self.reference == Some(source) {
            self.note_reference();
            self.sources[source].trust.forgive();
        }
    }

    /// Makes an event of the hits in a window. A source with several of them does not know which one belongs to it.
    fn settle_window(&mut self, first: i64, end: i64, sink: &mut impl Sink) {
        self.events += 1;
        let event = EventId(self.events);
        let led = self.reference.and_then(|reference| self.sources[reference].front()).filter(|time| *time <= end);
        self.note_reference();
        self.slots.clear();
        for state in &mut self.sources {
            let time = state.front().unwrap_or(i64::MAX);
            self.slots.push(match state.count_through(end) {
                0 => Slot::Missing,
                1 => {
                    let outcome = state.outcome_of_match(event);
                    let Some(hit) = state.settle(outcome, sink) else { continue };
                    if let (Some(led), Outcome::Event(_)) = (led, outcome) {
                        Self::learn(state, hit.local, led - time);
                    }
                    Slot::of(hit.serial, outcome)
                }
                several => {
                    state.settle_many(several, Outcome::Ambiguous, sink);
                    Slot::Ambiguous
                }
            });
        }
        sink.event(event, first, &self.slots);
        self.passed = self.passed.max(end);
    }
}
