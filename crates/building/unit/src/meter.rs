//! Counts of a node over the time since the run began.

use evb_core::Time;
use evb_record::steady::Series;

/// The counts of a node over time. Nodes start within a moment of each other, so their times are compared as they are.
#[derive(Default)]
pub(crate) struct Meter {
    /// Time at which the node was started, and the counts since then.
    running: Option<(Time, Series)>,
}

impl Meter {
    /// The run begins.
    pub(crate) fn start(&mut self, now: Time, counts: &[u64]) {
        self.running = Some((now, Series::new(Time::ZERO, counts)));
    }

    /// Marks the time. It must be called before anything is counted that happens now.
    #[inline]
    pub(crate) fn pass<const N: usize>(&mut self, now: Time, counts: impl FnOnce() -> [u64; N]) {
        let Some((start, series)) = &mut self.running else { return };
        let now = Time::ZERO + now.since(*start);
        if series.is_due(now) {
            series.mark(now, &counts());
        }
    }

    /// The trigger was stopped before it had ended by itself.
    pub(crate) fn stop(&mut self, now: Time, counts: &[u64]) {
        if let Some((start, series)) = &mut self.running {
            series.stop(Time::ZERO + now.since(*start), counts);
        }
    }

    /// All counts until now; empty before the start.
    pub(crate) fn series(&self, now: Time, counts: &[u64]) -> Series {
        let Some((start, series)) = &self.running else { return Series::default() };
        let mut series = series.clone();
        series.end(Time::ZERO + now.since(*start), counts);
        series
    }
}
