//! The times of a node: all of them in a histogram, and an even selection as they were.

use evb_core::Span;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Most samples that are kept as they were. When there are more, every second one is dropped, repeatedly.
pub const MOST_RAW: usize = 8192;

/// Significant digits of values in the histogram, up to 1000 s.
const DIGITS: u8 = 3;
const LONGEST_NS: u64 = 1_000_000_000_000;

/// Times in nanoseconds.
#[derive(Debug)]
pub(crate) struct Samples {
    histogram: Histogram<u64>,
    raw: Vec<u64>,
    /// One in this many samples is kept unchanged.
    stride: u64,
    until_next: u64,
    longest: u64,
    shortest: u64,
}

/// The samples of a node: enough to combine several nodes and launches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleSummary {
    /// Values in nanoseconds with three digits, and their frequencies, in ascending order.
    pub counts: Vec<(u64, u64)>,
    /// An even selection of the samples, in nanoseconds, in the order of measurement.
    pub raw: Vec<u64>,
    /// The shortest time in nanoseconds.
    pub shortest: u64,
    /// The longest time in nanoseconds.
    pub longest: u64,
}

impl Samples {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("the bounds are in order");
        Self { histogram, raw: Vec::with_capacity(MOST_RAW), stride: 1, until_next: 0, longest: 0, shortest: u64::MAX }
    }

    #[inline]
    pub(crate) fn add(&mut self, span: Span) {
        let ns = span.0 / 1000;
        self.histogram.saturating_record(ns);
        (self.longest, self.shortest) = (self.longest.max(ns), self.shortest.min(ns));
        if self.until_next > 0 {
            self.until_next -= 1;
            return;
        }
        if self.raw.len() == MOST_RAW {
            self.thin_out();
        }
        self.raw.push(ns);
        self.until_next = self.stride - 1;
    }

    #[cold]
    fn thin_out(&mut self) {
        let mut index = 0;
        self.raw.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.stride *= 2;
    }

    pub(crate) fn finish(self) -> SampleSummary {
        let recorded = self.histogram.iter_recorded();
        let counts = recorded.map(|step| (step.value_iterated_to(), step.count_at_value())).collect();
        let shortest = if self.shortest == u64::MAX { 0 } else { self.shortest };
        SampleSummary { counts, raw: self.raw, shortest, longest: self.longest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_choice_is_kept() {
        let mut samples = Samples::new();
        let count = 5 * MOST_RAW as u64;
        (0..count).for_each(|ns| samples.add(Span(ns * 1000)));
        let sampled = samples.finish();
        assert_eq!((sampled.shortest, sampled.longest), (0, count - 1));
        assert!(sampled.raw.len() > MOST_RAW / 2 && sampled.raw.len() <= MOST_RAW);
        let steps: Vec<_> = sampled.raw.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.iter().all(|&step| step == steps[0]), "every eighth");
        assert_eq!(sampled.counts.iter().map(|(_, count)| count).sum::<u64>(), count);
    }
}
