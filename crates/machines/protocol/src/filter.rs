//! The decision after the first phase of an event, in place of a filter that reads the fragments.

use evb_core::{EventId, NodeId, stream};
use rand_xoshiro::rand_core::Rng;
use serde::{Deserialize, Serialize};

/// Purpose of the random stream of decisions.
const DECISIONS: u64 = 2;

/// A stand-in for a filter. It accepts a part of the events, drawn by seed and event. So every builder and every driver
/// decides alike, however often they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// Seed of the run.
    pub seed: u64,
    /// Part of the events that is accepted, from 0 to 1.
    pub accept: f64,
}

impl Filter {
    /// Returns true if the other fragments of `event` are wanted. `complete` says that every fragment of its first
    /// phase is there and good. An incomplete event is always accepted: nothing is rejected unseen.
    pub fn accepts(&self, event: EventId, complete: bool) -> bool {
        let draw = || stream(self.seed ^ event.0.wrapping_mul(0x9e37_79b9_7f4a_7c15), NodeId(0), DECISIONS).next_u64();
        // 53 bits are what a number in 0..1 can hold.
        !complete || ((draw() >> 11) as f64) < self.accept * (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(seed: u64, accept: f64) -> usize {
        let filter = Filter { seed, accept };
        (1..=10_000).filter(|&event| filter.accepts(EventId(event), true)).count()
    }

    #[test]
    fn the_configured_part_is_accepted() {
        for seed in 0..20 {
            assert_eq!((accepted(seed, 0.0), accepted(seed, 1.0)), (0, 10_000));
            // Five standard deviations of a binomial distribution.
            assert!(accepted(seed, 0.2).abs_diff(2000) < 200, "seed {seed}: {}", accepted(seed, 0.2));
        }
    }

    #[test]
    fn it_depends_on_the_seed_and_never_rejects_what_it_cannot_see() {
        let decisions =
            |seed| (1..=100).map(EventId).map(move |event| Filter { seed, accept: 0.5 }.accepts(event, true));
        assert!(decisions(1).eq(decisions(1)) && !decisions(1).eq(decisions(2)));
        assert!((1..=100).all(|event| Filter { seed: 1, accept: 0.0 }.accepts(EventId(event), false)));
    }
}
