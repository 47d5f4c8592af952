//! What the counter of a board tells whose fragments are matched by their times: how many of them did not come.

use super::{Arrival, ReadoutCounts, stream::digest};
use crate::Fault;
use evb_core::{EventCounter, Numbered, Numbering, NumberingEvent};

/// The numbers of a board, which say nothing about events.
pub(super) struct CounterGaps {
    numbering: Numbering<u64>,
    /// The largest number.
    last: Option<u64>,
}

impl CounterGaps {
    pub(super) const fn new(counter: EventCounter) -> Self {
        Self { numbering: Numbering::new(counter.bits), last: None }
    }

    /// Takes the number of a fragment.
    pub(super) fn note<B>(&mut self, arrival: &Arrival<B>, counts: &mut ReadoutCounts) {
        let (number, declared) = (arrival.number, arrival.restarted);
        self.numbering.push(Numbered { number, declared, marked: false, digest: digest(arrival), item: number });
        self.count(counts);
    }

    /// The source has ended; `last` is its last number, if it has said that.
    pub(super) fn end(&mut self, last: Option<u64>, counts: &mut ReadoutCounts) {
        self.numbering.end(last);
        self.count(counts);
        let lost = self.last.zip(last).and_then(|(own, last)| self.numbering.ahead(own, last));
        counts.skipped += lost.unwrap_or(0);
    }

    fn count(&mut self, counts: &mut ReadoutCounts) {
        while let Some(event) = self.numbering.pop() {
            match event {
                NumberingEvent::Skipped(skipped) => counts.skipped += skipped,
                NumberingEvent::Turn { number, after, .. } => {
                    counts.faults.count(Fault::Resynchronised);
                    counts.identity.note_turn(after, number);
                }
                NumberingEvent::Wrapped => counts.faults.count(Fault::Wrapped),
                NumberingEvent::Placed { position, item } if self.numbering.last() == Some(position) => {
                    self.last = Some(item);
                }
                // Its time tells its event, whatever its number is.
                NumberingEvent::Placed { .. } | NumberingEvent::Apart { .. } => {}
            }
        }
    }
}
