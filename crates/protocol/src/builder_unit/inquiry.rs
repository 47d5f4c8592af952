//! The questions that a builder asks a readout unit about fragments that have not come.
//!
//! One question at a time is under way to each readout unit. Its answer travels behind the fragments that were sent
//! before, so a slow network slows the questions down, and what still lacks when the answer is there was lost. A
//! question that is not answered is asked again, each time later.

use crate::Message;
use alloc::{sync::Arc, vec::Vec};
use evb_core::{EventId, Span, Time};

/// Most events in one question.
pub(super) const MOST_ASKED: usize = 256;
/// Questions about the same events are at most so many times the patience apart.
pub(super) const LONGEST_WAIT: u64 = 32;
/// Most fragments of which is remembered that they were asked for: a second copy of one is no fault.
pub(super) const MOST_REMEMBERED: usize = 1 << 14;

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
    pub(super) fn ask<B>(&mut self, now: Time, patience: Span, lacking: Vec<EventId>) -> Message<B> {
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

    /// Begins anew with a readout unit that has begun anew.
    pub(super) fn forget(&mut self) {
        (self.heard, self.asked, self.due) = (0, Arc::default(), Time::ZERO);
    }

    /// Takes an answer; the events of the question, if it is the last one.
    pub(super) fn hear(&mut self, number: u32) -> Option<Arc<[EventId]>> {
        if number <= self.heard || number > self.number {
            return None;
        }
        self.heard = number;
        (number == self.number).then(|| core::mem::take(&mut self.asked))
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
