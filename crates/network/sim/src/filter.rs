//! The filter units of a simulated builder, each with one event after another. They have processors of their own, unless they
//! share the cores of the builder's computer.

use crate::{
    cpu::local_filter_units,
    storage::{Batch, bytes},
};
use evb_core::{Span, Time};
use evb_experiment::Plan;
use evb_filter::{Answer, Question, Selection, StreamId, Verdict};
use evb_unit::SimulatedPayload;
use std::collections::{BTreeMap, VecDeque};

/// The filter units of one builder.
pub(crate) struct FilterUnits {
    selection: Selection,
    /// Processor time of an event.
    pub(crate) time: Span,
    /// Times at which the processors of the units will be free; none if the units share the cores of the builder's computer.
    free_at: Vec<Time>,
    /// Events for units on shared cores that the builder has not handed over.
    fresh: Vec<Question<SimulatedPayload>>,
    /// Events that wait for a unit on shared cores.
    waiting: VecDeque<Question<SimulatedPayload>>,
    /// Events that are being decided about, by the time of the decision and in the order of the requests. All events here are at
    /// most those of the builder's slots.
    busy: BTreeMap<(Time, u64), Question<SimulatedPayload>>,
    asked: u64,
    /// Times of the decisions about the events requested since the last drain.
    pub(crate) begun: Vec<Time>,
}

impl FilterUnits {
    /// The filter units of each builder of a plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        let (units, time) = plan.filter.units.as_ref().map_or((1, Span::ZERO), |units| (units.units, units.time));
        let own = if local_filter_units(plan) > 0 { 0 } else { units.max(1) };
        Self {
            selection: plan.filter.clone(),
            time,
            free_at: vec![Time::ZERO; own.into()],
            fresh: Vec::new(),
            waiting: VecDeque::new(),
            busy: BTreeMap::new(),
            asked: 0,
            begun: Vec::new(),
        }
    }

    /// Assigns an event to the unit that is free first.
    pub(crate) fn ask(&mut self, now: Time, question: Question<SimulatedPayload>) {
        match self.free_at.iter_mut().min() {
            Some(free_at) => {
                let decided = (*free_at).max(now) + self.time;
                *free_at = decided;
                self.begun.push(decided);
                self.decide(decided, question);
            }
            None => self.fresh.push(question),
        }
    }

    fn decide(&mut self, at: Time, question: Question<SimulatedPayload>) {
        self.asked += 1;
        self.busy.insert((at, self.asked), question);
    }

    /// True if the builder has events for units on shared cores.
    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Hands events to units on shared cores; returns the number of those that wait.
    pub(crate) fn hand_over(&mut self) -> usize {
        self.waiting.extend(self.fresh.drain(..));
        self.waiting.len()
    }

    /// The events that a unit on a shared core takes next: its part of those that wait, as in a run.
    pub(crate) fn next_batch(&self) -> Batch {
        let Some(units) = &self.selection.units else { return Batch::default() };
        let part = self.waiting.len().div_ceil(units.units.max(1).into()).min(units.events as usize);
        let bytes = self.waiting.iter().take(part).map(|question| bytes(&question.built)).sum();
        Batch { events: part as u64, bytes }
    }

    /// A unit on a shared core will have decided about the events that it takes.
    pub(crate) fn begin(&mut self, batch: Batch, decided: Time) {
        for _ in 0..batch.events {
            let Some(question) = self.waiting.pop_front() else { return };
            self.decide(decided, question);
        }
    }

    /// The next decision.
    pub(crate) fn answer(&mut self) -> Option<Answer<SimulatedPayload>> {
        let (_, question) = self.busy.pop_first()?;
        let verdict = if self.selection.draws_program(question.built.event) {
            Verdict::Accepted(StreamId::PHYSICS)
        } else {
            Verdict::Rejected
        };
        Some(Answer { question, verdict })
    }
}
