//! What a live source shows about the identity of its fragments: by it one can tell whether its alignment is confirmed.

use super::{Arrival, ReadoutCounts};
use crate::Fault;
use evb_core::{Mark, MarkComparison};

/// Fragments per mismatch, at least, for marks to prove anything.
const CONTRADICTED: u64 = 20;
/// Numbers after a wrap that may be lost before the first that counts.
const NEAR_ZERO: u64 = 64;
/// Changes of the mark that prove an alignment, if no mark contradicts it.
const TELLING_CHANGES: u64 = 4;

/// Counters and marks of a live source over all its fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The first and the last counter that came.
    pub counters: Option<(u64, u64)>,
    /// Fragments that carried a mark.
    pub marked: u64,
    /// Marks that do not agree with the one before them.
    pub mark_changes: u64,
    /// Leaps of the counter that were taken for lost fragments.
    pub leaps: u64,
    /// The counter before its last turn, and the one after it.
    pub last_turn: Option<(u64, u64)>,
    last_mark: Option<Mark>,
}

impl Identity {
    pub(super) fn note<B>(&mut self, arrival: &Arrival<B>, marks: MarkComparison) {
        let first = self.counters.map_or(arrival.number, |(first, _)| first);
        self.counters = Some((first, arrival.number));
        self.marked += u64::from(arrival.mark.is_some());
        let is_change = self.last_mark.zip(arrival.mark).is_some_and(|(last, mark)| !marks.agree(last, mark));
        self.mark_changes += u64::from(is_change);
        self.last_mark = arrival.mark;
    }

    pub(super) const fn note_turn(&mut self, from: u64, to: u64) {
        self.last_turn = Some((from, to));
    }

    /// The width of the counter in bits, if it looks narrower than `bits`: it began again behind the last number of a
    /// smaller width.
    pub fn narrower(&self, bits: u8) -> Option<u8> {
        let (from, to) = self.last_turn?;
        let range = from.checked_add(1).filter(|range| range.is_power_of_two() && to < NEAR_ZERO)?;
        let width = range.trailing_zeros() as u8;
        (1..bits).contains(&width).then_some(width)
    }

    /// What was counted after `before`, an earlier state. Counters are those of the whole time.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            marked: self.marked - before.marked,
            mark_changes: self.mark_changes - before.mark_changes,
            leaps: self.leaps - before.leaps,
            ..*self
        }
    }
}

impl ReadoutCounts {
    /// The number of mismatched fragments in a run up to which the events of the source's fragments are proved, and not
    /// only assumed; `None` if nothing proves them. The proof is in marks that builders have compared, or in the word of
    /// the experiment file about the first counter (`is_declared`), as long as the counter has no fault. Marks with many
    /// mismatches prove nothing, and marks that several events share need a counter without faults: a shift shows only
    /// where the mark changes.
    pub fn tolerated_mismatches(&self, is_declared: bool) -> Option<u64> {
        let Identity { marked, mark_changes, leaps, .. } = self.identity;
        let faults = [Fault::OutOfSequence, Fault::Resynchronised, Fault::Disputed, Fault::Late];
        let is_faultless = leaps + faults.map(|fault| self.faults.get(fault)).iter().sum::<u64>() == 0;
        if self.came == 0 || is_declared && is_faultless {
            return Some(u64::MAX);
        }
        let is_shared = mark_changes + 1 < marked - marked / 10;
        let tells = marked == self.came && (mark_changes >= TELLING_CHANGES || mark_changes + 1 >= marked);
        let tolerated = if is_shared { 0 } else { self.came / CONTRADICTED };
        (tells && (is_faultless || !is_shared)).then_some(tolerated)
    }
}
