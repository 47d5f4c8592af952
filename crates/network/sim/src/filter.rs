//! The filter units of a simulated builder: processors that each decide about one event after another.

use evb_core::{Span, Time};
use evb_experiment::Plan;
use evb_filter::{Answer, Question, Selection, StreamId, Verdict};
use evb_unit::SimulatedPayload;
use std::collections::BTreeMap;

/// The filter units of one builder.
pub(crate) struct Processors {
    selection: Selection,
    /// Processor time of an event.
    time: Span,
    /// Times at which the processors will be free.
    free_at: Vec<Time>,
    /// Events that are being decided about, by the time of the decision and in the order of the requests: at most those
    /// of the builder's slots.
    busy: BTreeMap<(Time, u64), Question<SimulatedPayload>>,
    asked: u64,
    /// Times of the decisions about the events requested since the last drain.
    pub(crate) begun: Vec<Time>,
}

impl Processors {
    /// The filter units of each builder of a plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        let (units, time) = plan.filter.units.as_ref().map_or((1, Span::ZERO), |units| (units.units, units.time));
        Self {
            selection: plan.filter.clone(),
            time,
            free_at: vec![Time::ZERO; units.max(1).into()],
            busy: BTreeMap::new(),
            asked: 0,
            begun: Vec::new(),
        }
    }

    /// Assigns an event to the processor that is free first.
    pub(crate) fn ask(&mut self, now: Time, question: Question<SimulatedPayload>) {
        if let Some(free_at) = self.free_at.iter_mut().min() {
            *free_at = (*free_at).max(now) + self.time;
            self.asked += 1;
            self.busy.insert((*free_at, self.asked), question);
            self.begun.push(*free_at);
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
