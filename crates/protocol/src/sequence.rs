//! The event counter of a front end: a few bits that wrap, skip, repeat and restart, turned into event ids.

use crate::Fault;
use evb_core::EventId;

/// Largest jump of a front end's counter, forwards or backwards, that is taken for lost or repeated fragments. What
/// is beyond is taken for a counter that started again.
pub(crate) const WINDOW: u64 = 4096;

/// What a front end's counter value says about its fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The next event. `wrapped` when the counter started again from zero as it should.
    Next { event: EventId, wrapped: bool },
    /// A later event: those between are skipped.
    Ahead { event: EventId, skipped: u64 },
    /// An event that was passed already: a repetition, or a fragment that was overtaken.
    Behind { event: EventId },
    /// No event can be told: the counter started again.
    Unplaced,
}

impl Placed {
    /// The fault that this placement amounts to.
    pub(crate) const fn fault(self) -> Option<Fault> {
        match self {
            Self::Next { wrapped: false, .. } => None,
            Self::Next { wrapped: true, .. } => Some(Fault::Wrapped),
            Self::Ahead { .. } | Self::Behind { .. } => Some(Fault::OutOfSequence),
            Self::Unplaced => Some(Fault::Resynchronised),
        }
    }
}

/// Follows one front end's counter. Event 1 has the counter value 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence {
    mask: u64,
    last: u64,
}

impl Sequence {
    /// A counter of `bits` bits, 1 to 64.
    pub(crate) const fn new(bits: u8) -> Self {
        Self { mask: u64::MAX >> (64 - bits as u32), last: 0 }
    }

    /// The last event that was placed.
    pub(crate) const fn last(&self) -> EventId {
        EventId(self.last)
    }

    /// Places a fragment by its counter value. With a front end that says it started again, nothing can be placed
    /// until its values fit again: merging by guess would build wrong events.
    pub(crate) fn place(&mut self, counter: u64, restarted: bool) -> Placed {
        // A narrow counter leaves less room to tell forwards from backwards.
        let window = WINDOW.min(self.mask / 4 + 1);
        let forward = counter.wrapping_sub(self.last) & self.mask;
        let backward = self.last.wrapping_sub(counter) & self.mask;
        if forward == 1 {
            self.last += 1;
            return Placed::Next { event: self.last(), wrapped: self.last & self.mask == 0 };
        }
        if restarted {
            return Placed::Unplaced;
        }
        if backward < window && backward <= self.last {
            return Placed::Behind { event: EventId(self.last - backward) };
        }
        if forward <= window {
            self.last += forward;
            return Placed::Ahead { event: self.last(), skipped: forward - 1 };
        }
        Placed::Unplaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_counter_wraps_without_losing_count() {
        let mut sequence = Sequence::new(8);
        for event in 1..=1000_u64 {
            let placed = sequence.place(event & 0xff, false);
            assert_eq!(placed, Placed::Next { event: EventId(event), wrapped: event % 256 == 0 });
        }
    }

    #[test]
    fn skips_repetitions_and_restarts_are_told_apart() {
        let mut sequence = Sequence::new(24);
        for event in 1..=10_000 {
            sequence.place(event, false);
        }
        assert_eq!(sequence.place(10_003, false), Placed::Ahead { event: EventId(10_003), skipped: 2 });
        assert_eq!(sequence.place(10_003, false), Placed::Behind { event: EventId(10_003) });
        assert_eq!(sequence.place(10_001, false), Placed::Behind { event: EventId(10_001) });
        assert_eq!(sequence.place(1, false), Placed::Unplaced);
        assert_eq!(Sequence::new(24).place(0, false), Placed::Behind { event: EventId(0) });
        assert_eq!(sequence.place(10_005, true), Placed::Unplaced);
        assert_eq!(sequence.place(10_004, false), Placed::Next { event: EventId(10_004), wrapped: false });
    }
}
