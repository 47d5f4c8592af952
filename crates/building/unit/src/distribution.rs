//! Distributions of sizes and times, in steps of a quarter of a factor of two.

use serde::{Deserialize, Serialize};

/// Steps in a factor of two, as a power of two.
const STEP_BITS: u32 = 2;

/// A distribution of whole numbers. Each step is at most a quarter wide, and numbers below four have a step each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Distribution {
    /// Counts from the first step on, as far as there are any.
    counts: Vec<u64>,
}

impl Distribution {
    /// Counts one value.
    #[inline]
    pub fn count(&mut self, value: u64) {
        self.count_many(value, 1);
    }

    /// Counts a value `times` times.
    #[inline]
    pub fn count_many(&mut self, value: u64, times: u64) {
        let step = step_of(value);
        match self.counts.get_mut(step) {
            Some(count) => *count += times,
            None => self.grow(step, times),
        }
    }

    #[cold]
    fn grow(&mut self, step: usize, times: u64) {
        self.counts.resize(step, 0);
        self.counts.push(times);
    }

    /// Adds the counts of another distribution.
    pub fn add(&mut self, other: &Self) {
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        self.counts.iter_mut().zip(&other.counts).for_each(|(all, one)| *all += one);
    }

    /// The steps from the first to the last that has a count: the lower end, the upper end, which does not belong to
    /// it, and the count.
    pub fn steps(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        let empty = self.counts.iter().take_while(|&&count| count == 0).count();
        let steps = self.counts.iter().enumerate().skip(empty);
        steps.map(|(step, &count)| (lower_end(step), lower_end(step + 1), count))
    }
}

/// The step of a value.
#[inline]
const fn step_of(value: u64) -> usize {
    let Some(log) = value.checked_ilog2() else { return 0 };
    if log < STEP_BITS {
        return value as usize;
    }
    let part = (value >> (log - STEP_BITS)) & ((1 << STEP_BITS) - 1);
    (((log - STEP_BITS + 1) << STEP_BITS) as u64 + part) as usize
}

/// The least value of a step.
const fn lower_end(step: usize) -> u64 {
    let (octave, part) = (step >> STEP_BITS, (step & ((1 << STEP_BITS) - 1)) as u64);
    match octave {
        0 => part,
        1..=62 => (part | 1 << STEP_BITS) << (octave - 1),
        _ => u64::MAX,
    }
}

/// The sizes that a builder unit sees, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Sizes of fragments.
    pub fragments: Distribution,
    /// Sizes of events: the sum of their fragments.
    pub events: Distribution,
}

impl Sizes {
    /// Adds the sizes that another builder saw.
    pub fn add(&mut self, other: &Self) {
        self.fragments.add(&other.fragments);
        self.events.add(&other.events);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_its_step_and_steps_join() {
        for value in (0..5000).chain((0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1])) {
            let step = step_of(value);
            assert!(lower_end(step) <= value, "{value}");
            assert!(value < lower_end(step + 1) || lower_end(step + 1) <= lower_end(step), "{value}");
        }
        for step in 0..200 {
            let (low, high) = (lower_end(step), lower_end(step + 1));
            assert!(low < high && (high - low) * 4 <= high.max(4), "step {step}: {low} {high}");
        }
    }

    #[test]
    fn steps_have_the_counts_and_sums_add_them() {
        let mut one = Distribution::default();
        one.count(100);
        one.count_many(1000, 3);
        let mut all = Distribution::default();
        all.add(&one);
        all.add(&one);
        let seen: Vec<_> = all.steps().filter(|(.., count)| *count > 0).collect();
        assert_eq!(seen, [(96, 112, 2), (896, 1024, 6)]);
        assert_eq!(all.steps().next().unwrap().0, 96);
    }
}
