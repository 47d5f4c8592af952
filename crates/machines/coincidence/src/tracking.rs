//! The place of a clock in the common time, and how it is followed.
//!
//! An alpha-beta filter follows it. All matched hits count alike at first, as in least squares, and then those of the
//! last second or 4096 hits count most. The rate must be known so well that a pause of a second does no harm. A few hits
//! at a high rate do not tell it.

/// Time of matched hits that the filter remembers, in picoseconds.
const MEMORY: f64 = 1e12;
/// Fewest hits that the filter remembers, and most.
const FEWEST: f64 = 32.0;
const MOST: f64 = 4096.0;
/// Hits over which the mean interval is taken.
const INTERVALS: f64 = 64.0;

/// The line from the time of a clock to the common time, both in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    /// The time of the clock at which `shift` holds.
    pub(crate) anchor: i64,
    /// Common time minus time of the clock.
    pub(crate) shift: i64,
    /// Change of the shift per time.
    pub(crate) rate: f64,
}

impl Line {
    /// A clock of the common rate.
    pub(crate) const fn fixed(shift: i64) -> Self {
        Self { anchor: 0, shift, rate: 0.0 }
    }

    /// The common time at a time of the clock.
    #[inline]
    pub(crate) fn time(&self, local: i64) -> i64 {
        let drift = local.saturating_sub(self.anchor) as f64 * self.rate;
        local.saturating_add(self.shift).saturating_add(drift as i64)
    }
}

/// A filter that follows a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracking {
    pub(crate) line: Line,
    /// Hits that the filter remembers.
    hits: f64,
    /// The mean interval between matched hits in picoseconds, 0 if none has come.
    interval: f64,
    last: Option<i64>,
}

impl Tracking {
    /// A line that as many hits have given.
    pub(crate) fn new(line: Line, hits: usize) -> Self {
        Self { line, hits: hits as f64, interval: 0.0, last: None }
    }

    /// Takes a matched hit: its time, and the time of its event minus the time that was expected.
    pub(crate) fn learn(&mut self, local: i64, residual: i64) {
        let Some(last) = self.last.replace(local) else { return };
        let (passed, weight) = (local.saturating_sub(last) as f64, (self.hits + 1.0).min(INTERVALS));
        self.interval += (passed - self.interval) / if self.interval == 0.0 { 1.0 } else { weight };
        if self.interval < 1.0 {
            return;
        }
        let hits = (self.hits + 1.0).min((MEMORY / self.interval).clamp(FEWEST, MOST));
        self.hits = hits;
        let all = hits * (hits + 1.0);
        let (of_shift, of_rate) = ((4.0 * hits - 2.0) / all, 6.0 / all);
        let residual = residual as f64;
        let expected = self.line.time(local);
        self.line.anchor = local;
        self.line.shift = (expected - local).saturating_add((residual * of_shift) as i64);
        self.line.rate += residual * of_rate / self.interval;
    }
}
