//! The time of a round trip, measured, and how long an acknowledgement is waited for (RFC 6298).

use evb_core::Span;

/// Shortest and longest time that an acknowledgement is waited for. A receiver that computes acknowledges within some
/// milliseconds by its service thread.
const SHORTEST: Span = Span::from_millis(5);
const LONGEST: Span = Span::from_millis(200);
/// The estimate before the first measurement.
const FIRST: Span = Span::from_millis(1);

/// Mean and deviation of round trips.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    mean: Span,
    deviation: Span,
    is_measured: bool,
}

impl RoundTrip {
    pub(super) const fn new() -> Self {
        Self { mean: FIRST, deviation: FIRST, is_measured: false }
    }

    pub(super) fn measure(&mut self, sample: Span) {
        if !std::mem::replace(&mut self.is_measured, true) {
            (self.mean, self.deviation) = (sample, Span(sample.0 / 2));
            return;
        }
        self.deviation = Span((3 * self.deviation.0 + self.mean.0.abs_diff(sample.0)) / 4);
        self.mean = Span((7 * self.mean.0 + sample.0) / 8);
    }

    pub(super) const fn mean(&self) -> Span {
        self.mean
    }

    /// Time to wait for an acknowledgement, after this number of waits in vain.
    pub(super) fn patience(&self, in_vain: u32) -> Span {
        let one = Span(self.mean.0 + 4 * self.deviation.0).max(SHORTEST);
        Span(one.0 << in_vain.min(8)).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patience_follows_the_round_trips_within_its_bounds() {
        let mut trip = RoundTrip::new();
        (0..50).for_each(|_| trip.measure(Span::from_micros(20)));
        assert_eq!((trip.mean(), trip.patience(0)), (Span::from_micros(20), SHORTEST));
        assert_eq!((trip.patience(1), trip.patience(100)), (Span::from_millis(10), LONGEST));
        (0..50).for_each(|_| trip.measure(Span::from_millis(20)));
        assert!(trip.patience(0) > Span::from_millis(19) && trip.patience(0) < Span::from_millis(60));
    }
}
