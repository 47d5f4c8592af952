//! The questions of a builder to a readout unit about fragments that have not arrived.
//!
//! One question at a time is under way to each readout unit. The answer travels behind the fragments that were sent
//! before it, so a slow network slows the questions down. A fragment that is still missing when the answer arrives was
//! lost. A question without an answer is repeated, with growing intervals.
//!
//! After a loss a builder asks fewer readout units at a time, because a switch that drops packets would be filled
//! again.

use crate::Message;
use alloc::{collections::VecDeque, sync::Arc, vec::Vec};
use evb_core::{EventId, Span, Time};

/// Most events in one question.
pub(super) const MOST_ASKED: usize = 256;
/// Longest interval between questions about the same events, as a multiple of the patience.
pub(super) const LONGEST_WAIT: u64 = 32;
/// Most fragments that are remembered as asked for. A second copy of a remembered fragment is not a fault.
pub(super) const MOST_REMEMBERED: usize = 1 << 14;

/// Answers without a loss after which one more readout unit may be asked at a time.
const GOOD_ANSWERS: u32 = 8;

/// The number of readout units that may be asked at a time.
///
/// The window starts with all readout units. A loss means that a switch drops packets because this builder gets more
/// than the switch can hold; asking every unit again would fill it again. So each loss halves the window, and answers
/// without a loss raise it slowly, as TCP does with its congestion window.
pub(super) struct InquiryWindow {
    limit: u32,
    under_way: u32,
    good: u32,
    /// Readout units whose question has to wait, in order.
    held: VecDeque<usize>,
}

impl InquiryWindow {
    /// A window that admits this many readout units.
    pub(super) const fn new(units: u16) -> Self {
        Self { limit: units as u32, under_way: 0, good: 0, held: VecDeque::new() }
    }

    /// Returns true if this readout unit may be asked now; if not, it is queued.
    pub(super) fn admit(&mut self, source: usize) -> bool {
        let admitted = self.under_way < self.limit;
        if !admitted && !self.held.contains(&source) {
            self.held.push_back(source);
        }
        admitted
    }

    /// The next queued readout unit that may be asked.
    pub(super) fn next(&mut self) -> Option<usize> {
        if self.under_way < self.limit { self.held.pop_front() } else { None }
    }

    const fn begin(&mut self) {
        self.under_way += 1;
    }

    const fn end(&mut self) {
        self.under_way = self.under_way.saturating_sub(1);
    }

    /// Adapts the window to an answer with or without a loss.
    pub(super) fn note(&mut self, lost: bool, units: usize) {
        self.good = if lost { 0 } else { self.good + 1 };
        if lost {
            self.limit = (self.limit / 2).max(1);
        } else if self.good >= GOOD_ANSWERS {
            self.limit = (self.limit + 1).min(units as u32);
            self.good = 0;
        }
    }
}

/// The state of the questions to one readout unit.
#[derive(Default)]
pub(super) struct Inquiry {
    /// Number of the last question.
    number: u32,
    /// Number of the last question whose answer has arrived.
    heard: u32,
    /// The events of the last question while it has no answer.
    asked: Arc<[EventId]>,
    /// The oldest event of the last question. While it stays the same, nothing has arrived.
    oldest: EventId,
    /// Lost fragments were asked for again without waiting.
    hurried: bool,
    wait: Span,
    due: Time,
}

impl Inquiry {
    /// Time from which the next question may be sent.
    pub(super) const fn due(&self) -> Time {
        self.due
    }

    /// A question about these events, the oldest first.
    pub(super) fn ask<B>(
        &mut self,
        now: Time,
        patience: Span,
        lacking: Vec<EventId>,
        window: &mut InquiryWindow,
    ) -> Message<B> {
        if !self.is_under_way() {
            window.begin();
        }
        let oldest = lacking.first().copied().unwrap_or_default();
        if oldest == self.oldest {
            self.wait = Span((self.wait.0 * 2).min(patience.0 * LONGEST_WAIT));
        } else {
            self.oldest = oldest;
            self.hurried = false;
            self.wait = patience;
        }
        self.number += 1;
        self.due = now + self.wait;
        self.asked = lacking.into();
        Message::Ask { number: self.number, heard: self.heard, events: Arc::clone(&self.asked) }
    }

    /// Limits the wait for an answer when all requested fragments are there: the answer may be lost.
    pub(super) fn lapse(&mut self, now: Time, window: &mut InquiryWindow) {
        if self.is_under_way() && self.due <= now {
            window.end();
            self.asked = Arc::default();
        }
    }

    /// Resets the state after a restart of the readout unit.
    pub(super) fn forget(&mut self, window: &mut InquiryWindow) {
        if self.is_under_way() {
            window.end();
        }
        self.heard = 0;
        self.asked = Arc::default();
        self.due = Time::ZERO;
    }

    /// Returns true if a question has no answer yet.
    pub(super) fn is_under_way(&self) -> bool {
        !self.asked.is_empty()
    }

    /// Takes an answer. Returns the events of the question if it is the last one.
    pub(super) fn hear(&mut self, number: u32, window: &mut InquiryWindow) -> Option<Arc<[EventId]>> {
        if number <= self.heard || number > self.number {
            return None;
        }
        self.heard = number;
        (number == self.number).then(|| {
            window.end();
            core::mem::take(&mut self.asked)
        })
    }

    /// Allows the next question at once: all requested fragments have arrived.
    pub(super) const fn settle(&mut self, now: Time) {
        self.due = now;
    }

    /// Allows the next question at once after a loss, but only once until something arrives.
    pub(super) const fn hurry(&mut self, now: Time) {
        if !self.hurried {
            self.hurried = true;
            self.due = now;
        }
    }
}
