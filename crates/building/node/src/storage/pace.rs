//! A disk that is slow on purpose.

use evb_core::Bandwidth;
use std::time::{Duration, Instant};

/// A disk that writes at a fixed rate, one request after another.
pub(super) struct Pace {
    rate: Bandwidth,
    free_at: Instant,
}

impl Pace {
    pub(super) fn new(rate: Bandwidth) -> Self {
        Self { rate, free_at: Instant::now() }
    }

    /// Notes that the disk was idle until now.
    pub(super) fn idle_until(&mut self, now: Instant) {
        self.free_at = self.free_at.max(now);
    }

    /// The time at which these bytes are on the disk, after all earlier ones.
    pub(super) fn write(&mut self, bytes: u64) -> Instant {
        self.free_at += self.time(bytes);
        self.free_at
    }

    /// The time that the disk takes for these bytes.
    pub(super) fn time(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.rate.as_bytes_per_second())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_for_the_disk_goes_at_its_rate_and_rest_is_not_made_up_for() {
        let mut pace = Pace::new(Bandwidth(8_000_000));
        let start = Instant::now();
        pace.idle_until(start);
        pace.write(500_000);
        assert_eq!(pace.write(500_000), start + Duration::from_secs(1));
        pace.idle_until(start + Duration::from_millis(100));
        assert_eq!(pace.write(1_000_000), start + Duration::from_secs(2), "it was busy, so it had no rest");
        pace.idle_until(start + Duration::from_secs(5));
        assert_eq!(pace.write(1_000_000), start + Duration::from_secs(6));
    }
}
