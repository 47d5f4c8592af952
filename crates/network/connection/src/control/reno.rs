//! Slow start, congestion avoidance and fast recovery (RFC 5681, with the growth by bytes of RFC 3465).

use super::{Acked, CongestionControl};
use evb_core::Time;

/// A congestion window with its threshold, in bytes.
#[derive(Clone, Debug)]
pub(super) struct Window {
    pub(super) segment: f64,
    pub(super) size: f64,
    pub(super) threshold: f64,
    initial: f64,
}

impl Window {
    pub(super) fn new(segment: u64, initial: u64) -> Self {
        let (segment, initial) = (segment as f64, initial as f64);
        Self { segment, size: initial, threshold: f64::INFINITY, initial }
    }

    pub(super) fn is_in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Grows by what was acknowledged, up to the threshold; returns the bytes left for congestion avoidance.
    pub(super) fn grow_in_slow_start(&mut self, bytes: u64) -> f64 {
        let grown = (bytes as f64).min((self.threshold - self.size).max(0.0));
        self.size += grown;
        bytes as f64 - grown
    }

    /// Grows by one segment in each round trip.
    pub(super) fn grow_by_a_segment(&mut self, bytes: f64) {
        self.size += self.segment * bytes / self.size;
    }

    /// Shrinks to this part of what was under way, and no further than two segments.
    pub(super) fn shrink(&mut self, size: f64) {
        self.threshold = size.max(2.0 * self.segment);
        self.size = self.threshold;
    }

    /// One segment alone may go, and the window grows again to the threshold.
    pub(super) fn restart(&mut self, threshold: f64) {
        self.threshold = threshold.max(2.0 * self.segment);
        self.size = self.segment;
    }

    /// Nothing is known any more of the network (RFC 5681, 4.1).
    pub(super) fn forget(&mut self) {
        self.size = self.size.min(self.initial);
    }
}

#[derive(Debug)]
pub(super) struct Reno(pub(super) Window);

impl CongestionControl for Reno {
    fn window(&self) -> u64 {
        self.0.size as u64
    }

    fn acknowledged(&mut self, acked: &Acked) {
        if !acked.may_grow {
            return;
        }
        let left = self.0.grow_in_slow_start(acked.bytes);
        self.0.grow_by_a_segment(left);
    }

    fn lost(&mut self, _: Time, under_way: u64) {
        self.0.shrink(under_way as f64 / 2.0);
    }

    fn timed_out(&mut self, _: Time, outstanding: u64) {
        self.0.restart(outstanding as f64 / 2.0);
    }

    fn was_idle(&mut self) {
        self.0.forget();
    }
}
