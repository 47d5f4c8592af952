//! The time after which a TCP segment counts as lost (RFC 6298).

use evb_core::Span;

/// Longest timeout: that of Linux (`TCP_RTO_MAX`). RFC 6298 asks for at least 60 s.
const LONGEST: Span = Span::from_secs(120);

/// Timeout before the first measurement (RFC 6298, 2.1).
const FIRST: Span = Span::from_secs(1);

/// The estimate of the round-trip time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    smoothed: Option<Span>,
    variation: Span,
    least: Span,
    /// Times that the timeout was doubled.
    doubled: u32,
}

impl RoundTrip {
    pub(crate) const fn new(least: Span) -> Self {
        Self { smoothed: None, variation: Span::ZERO, least, doubled: 0 }
    }

    /// Takes a measured round trip. An acknowledgement of new bytes ends the doubling of the timeout.
    pub(crate) fn measure(&mut self, measured: Span) {
        self.doubled = 0;
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.variation) = (Some(measured), Span(measured.0 / 2));
            return;
        };
        let error = smoothed.0.abs_diff(measured.0);
        // Weights of 1/4 and 1/8 (RFC 6298, 2.3).
        self.variation = Span(self.variation.0 - self.variation.0 / 4 + error / 4);
        self.smoothed = Some(Span(smoothed.0 - smoothed.0 / 8 + measured.0 / 8));
    }

    /// The smoothed round-trip time; `None` before the first measurement.
    pub(crate) const fn smoothed(&self) -> Option<Span> {
        self.smoothed
    }

    /// The next timeout is twice as long.
    pub(crate) fn double(&mut self) {
        self.doubled += 1;
    }

    /// The time without an acknowledgement after which a segment counts as lost.
    pub(crate) fn timeout(&self) -> Span {
        let once = self.smoothed.map_or(FIRST, |smoothed| Span(smoothed.0 + 4 * self.variation.0)).max(self.least);
        let doubled = once.0.saturating_mul(1_u64.checked_shl(self.doubled).unwrap_or(u64::MAX));
        Span(doubled.min(LONGEST.0.max(once.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_rules_of_rfc_6298() {
        let mut times = RoundTrip::new(Span::from_millis(1));
        assert_eq!(times.timeout(), Span::from_secs(1));
        times.measure(Span::from_micros(800));
        // 800 + 4 * 400.
        assert_eq!(times.timeout(), Span::from_micros(2400));
        times.measure(Span::from_micros(1600));
        // Smoothed 900, variation 500.
        assert_eq!(times.smoothed(), Some(Span::from_micros(900)));
        assert_eq!(times.timeout(), Span::from_micros(2900));
        times.double();
        times.double();
        assert_eq!(times.timeout(), Span::from_micros(4 * 2900));
        (0..100).for_each(|_| times.double());
        assert_eq!(times.timeout(), LONGEST);
        times.measure(Span::from_micros(900));
        assert_eq!(times.timeout(), Span::from_micros(900 + 4 * 375));
    }
}
