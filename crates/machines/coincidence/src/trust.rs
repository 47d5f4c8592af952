//! Trust in the place of a clock: by what has matched, and what has not.
//!
//! A clock that leaps puts hits into windows of other events by chance. So a single match is not believed after many
//! misses, where such a source used to match more often.

/// Hits of the reference for one match, before any was seen, and the weight of the last match in that average.
const FIRST_GAP: f64 = 4.0;
const GAP_WEIGHT: f64 = 1.0 / 32.0;
/// Matches that should have come, and did not, until a single match is not trusted; and until the place counts as lost. By
/// chance alone the first happens to one match in 3,000, where few hits of the reference have one, and the second never.
const DOUBTED_AFTER: f64 = 8.0;
const LOST_AFTER: f64 = 32.0;
const FEWEST_LOST: f64 = 64.0;
/// Matches in a row by which a place is trusted again.
const TRUSTED_AFTER: u32 = 3;

/// What has matched of a source.
pub(crate) struct Trust {
    /// Hits of the reference since the last match, and hits of the source that came since.
    missed: u32,
    arrived: u32,
    /// Hits of the reference for one match, on average.
    gap: f64,
    /// Matches since the place is in doubt, and the value of `missed` at the first of them.
    promising: (u32, u32),
}

impl Trust {
    pub(crate) const fn new() -> Self {
        Self { missed: 0, arrived: 0, gap: FIRST_GAP, promising: (0, 0) }
    }

    /// A hit of the source has come.
    #[inline]
    pub(crate) const fn note_arrival(&mut self) {
        self.arrived = self.arrived.saturating_add(1);
    }

    /// A hit of the reference is settled; if the source has matched it, that is noted next.
    #[inline]
    pub(crate) const fn note_reference(&mut self) {
        self.missed = self.missed.saturating_add(1);
    }

    /// The source has matched an event.
    #[inline]
    pub(crate) fn note_match(&mut self) {
        self.gap += (f64::from(self.missed.max(1)) - self.gap) * GAP_WEIGHT;
        (self.missed, self.arrived, self.promising) = (0, 0, (0, 0));
    }

    /// The source is the reference itself, which misses nothing.
    pub(crate) const fn forgive(&mut self) {
        self.missed = 0;
    }

    /// Returns true if the next match is to be believed.
    #[inline]
    pub(crate) fn believes(&mut self) -> bool {
        f64::from(self.missed) < self.gap * DOUBTED_AFTER || self.grows()
    }

    fn grows(&mut self) -> bool {
        let (count, since) = self.promising;
        let is_in_a_row = count > 0 && f64::from(self.missed - since) <= self.gap * f64::from(4 * count);
        self.promising = if is_in_a_row { (count + 1, since) } else { (1, self.missed) };
        self.promising.0 >= TRUSTED_AFTER
    }

    /// Returns true if so many hits of the reference had no match that the place of the clock is wrong.
    pub(crate) fn is_gone(&self) -> bool {
        let least = (self.gap * LOST_AFTER).max(FEWEST_LOST);
        f64::from(self.missed) >= least && f64::from(self.arrived) >= FEWEST_LOST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Misses so many hits of the reference, and then matches one if that is believed.
    fn after(trust: &mut Trust, misses: u32) -> bool {
        (0..=misses).for_each(|_| trust.note_reference());
        let believed = trust.believes();
        if believed {
            trust.note_match();
        }
        believed
    }

    #[test]
    fn a_single_match_after_many_misses_is_not_believed_and_three_in_a_row_are() {
        let mut trust = Trust::new();
        assert!((0..200).all(|_| after(&mut trust, 0)));
        assert!(after(&mut trust, 5));
        assert!(!after(&mut trust, 20), "the first");
        assert!(!after(&mut trust, 20), "another one by chance");
        assert!(!after(&mut trust, 0), "the second in a row");
        assert!(after(&mut trust, 0), "the third");
    }

    #[test]
    fn a_source_that_matches_rarely_is_believed_after_many_misses() {
        let mut trust = Trust::new();
        (1..100).for_each(|hit| _ = after(&mut trust, hit.min(50)));
        assert!((0..100).all(|_| after(&mut trust, 50)));
        assert!(after(&mut trust, 300) && !after(&mut trust, 1000));
    }
}
