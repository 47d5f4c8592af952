//! The questions that a builder asks a readout unit about fragments that have not come.
//!
//! One question at a time is under way to each readout unit. Its answer travels behind the fragments that were sent
//! before, so a slow network slows the questions down, and what still lacks when the answer is there was lost. A
//! question that is not answered is asked again, each time later.

use crate::Message;
use alloc::{collections::VecDeque, sync::Arc, vec::Vec};
use evb_core::{EventId, Span, Time};

/// Most events in one question.
pub(super) const MOST_ASKED: usize = 256;
/// Questions about the same events are at most so many times the patience apart.
pub(super) const LONGEST_WAIT: u64 = 32;
/// Most fragments of which is remembered that they were asked for: a second copy of one is no fault.
pub(super) const MOST_REMEMBERED: usize = 1 << 14;

/// Answers without a loss until one more readout unit is asked at a time.
const GOOD_ANSWERS: u32 = 8;

/// How many readout units are asked at a time.
///
/// All of them, until something is lost: then a switch that drops has had more for this builder than it can hold, and
/// asking all again would only fill it again. So each loss halves the number, and answers without one raise it slowly, as
/// TCP does with what it has under way.
pub(super) struct Window {
    limit: u32,
    under_way: u32,
    good: u32,
    /// Readout units that have to wait for their question, in turn.
    held: VecDeque<usize>,
}

impl Window {
    /// A window for so many readout units.
    pub(super) const fn new(units: u16) -> Self {
        Self { limit: units as u32, under_way: 0, good: 0, held: VecDeque::new() }
    }

    /// Whether one more may be asked; one that may not waits for its turn.
    pub(super) fn admit(&mut self, source: usize) -> bool {
        let admitted = self.under_way < self.limit;
        if !admitted && !self.held.contains(&source) {
            self.held.push_back(source);
        }
        admitted
    }

    /// Who is asked next, if somebody waits and may be asked.
    pub(super) fn next(&mut self) -> Option<usize> {
        if self.under_way < self.limit { self.held.pop_front() } else { None }
    }

    const fn begin(&mut self) {
        self.under_way += 1;
    }

    const fn end(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Notes whether something was lost.
    pub(super) fn note(&mut self, lost: bool, units: usize) {
        self.good = if lost { 0 } else { self.good + 1 };
        if lost {
            self.limit = (self.limit / 2).max(1);
        } else if self.good >= GOOD_ANSWERS {
            (self.limit, self.good) = ((self.limit + 1).min(units as u32), 0);
        }
    }
}

/// What a builder has asked one readout unit.
#[derive(Default)]
pub(super) struct Inquiry {
    /// The last question.
    number: u32,
    /// The last question whose answer has come.
    heard: u32,
    /// The events of the last question, as long as it has no answer.
    asked: Arc<[EventId]>,
    /// The oldest event of the last question: as long as it is the same, nothing has come.
    oldest: EventId,
    /// What was lost was asked for at once, without waiting.
    hurried: bool,
    wait: Span,
    due: Time,
}

impl Inquiry {
    /// When the next question may go.
    pub(super) const fn due(&self) -> Time {
        self.due
    }

    /// A question about these events, the oldest first.
    pub(super) fn ask<B>(
        &mut self,
        now: Time,
        patience: Span,
        lacking: Vec<EventId>,
        window: &mut Window,
    ) -> Message<B> {
        if !self.is_under_way() {
            window.begin();
        }
        let oldest = lacking.first().copied().unwrap_or_default();
        if oldest == self.oldest {
            self.wait = Span((self.wait.0 * 2).min(patience.0 * LONGEST_WAIT));
        } else {
            (self.oldest, self.hurried, self.wait) = (oldest, false, patience);
        }
        self.number += 1;
        self.due = now + self.wait;
        self.asked = lacking.into();
        Message::Ask { number: self.number, heard: self.heard, events: Arc::clone(&self.asked) }
    }

    /// What was asked for has come, and the answer not: it is waited for no longer than a lost one.
    pub(super) fn lapse(&mut self, now: Time, window: &mut Window) {
        if self.is_under_way() && self.due <= now {
            window.end();
            self.asked = Arc::default();
        }
    }

    /// Begins anew with a readout unit that has begun anew.
    pub(super) fn forget(&mut self, window: &mut Window) {
        if self.is_under_way() {
            window.end();
        }
        (self.heard, self.asked, self.due) = (0, Arc::default(), Time::ZERO);
    }

    /// Whether a question has no answer yet.
    pub(super) fn is_under_way(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Takes an answer; the events of the question, if it is the last one.
    pub(super) fn hear(&mut self, number: u32, window: &mut Window) -> Option<Arc<[EventId]>> {
        if number <= self.heard || number > self.number {
            return None;
        }
        self.heard = number;
        (number == self.number).then(|| {
            window.end();
            core::mem::take(&mut self.asked)
        })
    }

    /// All that was asked for has come: the next question need not wait.
    pub(super) const fn settle(&mut self, now: Time) {
        self.due = now;
    }

    /// Some of what was asked for is lost: the next question asks for it at once, but only once until something comes.
    pub(super) const fn hurry(&mut self, now: Time) {
        if !self.hurried {
            (self.hurried, self.due) = (true, now);
        }
    }
}
