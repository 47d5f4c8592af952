//! Events of a trigger source: groups of triggers whose windows overlap, and the hits in them.

use super::Matcher;
use crate::matching::{Decision, MOST_HITS};
use crate::outcome::{Outcome, Sink, Slot};
use evb_core::EventId;

/// Most triggers of a group. In a longer one, all hits of other sources are ambiguous.
const MOST_TRIGGERS: usize = 64;

impl Matcher {
    /// Settles all groups that no further hit can change, and the hits between them.
    pub(super) fn settle_groups(&mut self, trigger: usize, sink: &mut impl Sink) {
        let (of_trigger, of_others) = (self.horizon(trigger), self.lowest_horizon(Some(trigger)));
        while let Some(is_cut) = self.next_group(trigger, of_trigger, of_others) {
            self.settle_group(trigger, is_cut, sink);
        }
        self.settle_between(trigger, of_trigger.min(of_others), sink);
    }

    /// Gathers the times of the next group, if it is closed: neither a trigger nor a hit of it can come any more. Says
    /// whether it goes on behind the most triggers.
    fn next_group(&mut self, trigger: usize, of_trigger: i64, of_others: i64) -> Option<bool> {
        let state = &self.sources[trigger];
        let mut last = state.front()?;
        self.triggers.clear();
        self.triggers.push(last);
        let reach = self.window.saturating_mul(2);
        let mut next = state.time_at(1).filter(|next| *next <= last.saturating_add(reach));
        while let Some(time) = next.filter(|_| self.triggers.len() < MOST_TRIGGERS) {
            self.triggers.push(time);
            last = time;
            next = state.time_at(self.triggers.len()).filter(|next| *next <= last.saturating_add(reach));
        }
        let is_cut = next.is_some();
        let is_closed = of_trigger > last.saturating_add(if is_cut { 0 } else { reach });
        (is_closed && of_others > last.saturating_add(self.window)).then_some(is_cut)
    }

    fn settle_group(&mut self, trigger: usize, is_cut: bool, sink: &mut impl Sink) {
        let (window, count, all) = (self.window, self.triggers.len(), self.sources.len());
        let (first, last) = (self.triggers[0], self.triggers[count - 1]);
        let reach = window.saturating_mul(2);
        let is_too_long = is_cut || self.cut_at.is_some_and(|cut| first <= cut.saturating_add(reach));
        self.cut_at = is_too_long.then_some(last);
        self.slots.clear();
        self.slots.resize(count * all, Slot::Missing);
        // A match of this group begins to count again.
        (0..count).for_each(|_| self.note_reference());
        for source in 0..all {
            if source == trigger {
                self.settle_triggers(trigger, sink);
                continue;
            }
            let state = &mut self.sources[source];
            state.settle_before(first.saturating_sub(window), Outcome::OutOfWindow, sink);
            match state.count_through(last.saturating_add(window)) {
                0 => {}
                1 if count == 1 && !is_too_long => self.settle_pair(source, sink),
                hits if hits > MOST_HITS || is_too_long => self.settle_all_ambiguous(source, hits, sink),
                hits => self.settle_matching(source, hits, sink),
            }
        }
        for (index, &time) in self.triggers.iter().enumerate() {
            self.events += 1;
            sink.event(EventId(self.events), time, &self.slots[index * all..(index + 1) * all]);
        }
        self.passed = self.passed.max(last.saturating_add(window));
        self.passed_by_trigger = self.passed_by_trigger.max(last.saturating_add(if is_cut { 0 } else { reach }));
    }

    fn settle_triggers(&mut self, trigger: usize, sink: &mut impl Sink) {
        let all = self.sources.len();
        for index in 0..self.triggers.len() {
            let event = EventId(self.events + 1 + index as u64);
            if let Some(hit) = self.sources[trigger].settle(Outcome::Event(event), sink) {
                self.slots[index * all + trigger] = Slot::Hit(hit.serial);
            }
        }
    }

    /// One hit and one event: the usual case.
    #[inline]
    fn settle_pair(&mut self, source: usize, sink: &mut impl Sink) {
        let state = &mut self.sources[source];
        let (time, outcome) = (state.front(), state.outcome_of_match(EventId(self.events + 1)));
        let Some((hit, time)) = state.settle(outcome, sink).zip(time) else { return };
        self.slots[source] = Slot::of(hit.serial, outcome);
        if self.slots[source] != Slot::Ambiguous {
            Self::learn(state, hit.local, self.triggers[0] - time);
        }
    }

    fn settle_all_ambiguous(&mut self, source: usize, hits: usize, sink: &mut impl Sink) {
        let all = self.sources.len();
        self.sources[source].settle_many(hits, Outcome::Ambiguous, sink);
        for index in 0..self.triggers.len() {
            self.slots[index * all + source] = Slot::Ambiguous;
        }
    }

    fn settle_matching(&mut self, source: usize, hits: usize, sink: &mut impl Sink) {
        let all = self.sources.len();
        let state = &mut self.sources[source];
        self.times.clear();
        self.times.extend((0..hits).filter_map(|position| state.time_at(position)));
        self.matching.decide(&self.times, &self.triggers, self.window);
        for (event, decision) in self.matching.events.iter().enumerate() {
            if *decision == Decision::Ambiguous {
                self.slots[event * all + source] = Slot::Ambiguous;
            }
        }
        for (index, decision) in self.matching.hits.iter().enumerate() {
            let outcome = match *decision {
                Decision::One(event) => state.outcome_of_match(EventId(self.events + 1 + event as u64)),
                Decision::Ambiguous => Outcome::Ambiguous,
                Decision::None => Outcome::OutOfWindow,
            };
            let hit = state.settle(outcome, sink);
            if let (Decision::One(event), Some(hit)) = (*decision, hit) {
                self.slots[event * all + source] = Slot::of(hit.serial, outcome);
                if outcome != Outcome::Ambiguous {
                    Self::learn(state, hit.local, self.triggers[event] - self.times[index]);
                }
            }
        }
    }

    /// Settles hits that are so far before the next trigger that they belong to none.
    fn settle_between(&mut self, trigger: usize, lowest: i64, sink: &mut impl Sink) {
        let next = self.sources[trigger].front().unwrap_or(i64::MAX);
        let next = next.min(lowest).min(self.latest());
        if next == i64::MIN {
            return;
        }
        let limit = next.saturating_sub(self.window);
        for (source, state) in self.sources.iter_mut().enumerate() {
            if source != trigger {
                state.settle_before(limit, Outcome::OutOfWindow, sink);
            }
        }
        self.passed = self.passed.max(limit.saturating_sub(1));
        self.passed_by_trigger = self.passed_by_trigger.max(next.saturating_sub(1));
    }
}
