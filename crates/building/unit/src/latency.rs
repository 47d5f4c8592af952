//! Latencies of events.
//!
//! A latency begins with the trigger. An event manager that gets its processor late finds several triggers at once, and
//! takes for each the time at which it came.

use crate::Distribution;
use evb_core::Span;
use evb_record::Latency;
use hdrhistogram::Histogram;

/// Longest latency that is resolved, in nanoseconds: ten minutes.
const LONGEST_NS: u64 = 600_000_000_000;

/// Times from the beginning of something to its end.
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST_NS, 3).expect("the bounds are valid"))
    }
}

impl Latencies {
    /// Counts one latency several times.
    #[inline]
    pub fn record(&mut self, latency: Span, times: u64) {
        self.0.saturating_record_n((latency.0 / 1000).max(1), times);
    }

    /// Adds the counts of another one.
    pub fn join(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both count up to the same latency");
    }

    /// Clears the counts.
    pub fn reset(&mut self) {
        self.0.reset();
    }

    /// The times as a distribution, in nanoseconds.
    pub fn distribution(&self) -> Distribution {
        let mut all = Distribution::default();
        self.0.iter_recorded().for_each(|step| all.count_many(step.value_iterated_to(), step.count_at_value()));
        all
    }

    /// The mean and the quantiles of a record.
    pub fn summary(&self) -> Latency {
        if self.0.is_empty() {
            return Latency::default();
        }
        let at = |quantile| self.0.value_at_quantile(quantile) as f64 / 1000.0;
        let mean = self.0.mean() / 1000.0;
        Latency { mean: Some(mean), p50: at(0.5), p99: at(0.99), p999: at(0.999), max: self.0.max() as f64 / 1000.0 }
    }
}
