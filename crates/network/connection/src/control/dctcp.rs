//! Data Center TCP (RFC 8257): the window shrinks by the part of the bytes that met congestion.

use super::{Acked, CongestionControl, reno::Window};
use evb_core::Time;

/// Weight of the last window in the estimate, g (RFC 8257, 4.2).
const GAIN: f64 = 1.0 / 16.0;

#[derive(Debug)]
pub(super) struct Dctcp {
    window: Window,
    /// The estimated part of bytes that meet congestion; 1 at the start (RFC 8257, 3.3).
    alpha: f64,
    acked: u64,
    marked: u64,
    /// The estimate is made when the bytes before this place are acknowledged.
    window_end: u64,
    /// The window has shrunk for a mark and does so again when the bytes before this place are acknowledged.
    shrunk_until: u64,
}

impl Dctcp {
    pub(super) fn new(window: Window) -> Self {
        Self { window, alpha: 1.0, acked: 0, marked: 0, window_end: 0, shrunk_until: 0 }
    }

    fn estimate(&mut self, acked: &Acked) {
        self.acked += acked.bytes;
        self.marked += if acked.is_marked { acked.bytes } else { 0 };
        if acked.expected <= self.window_end {
            return;
        }
        if self.acked > 0 {
            self.alpha = (1.0 - GAIN) * self.alpha + GAIN * self.marked as f64 / self.acked as f64;
        }
        (self.acked, self.marked) = (0, 0);
        self.window_end = acked.next;
    }
}

impl CongestionControl for Dctcp {
    fn window(&self) -> u64 {
        self.window.size as u64
    }

    fn acknowledged(&mut self, acked: &Acked) {
        self.estimate(acked);
        if acked.is_marked && acked.expected > self.shrunk_until && !acked.is_recovering {
            self.shrunk_until = acked.next;
            return self.window.shrink(self.window.size * (1.0 - self.alpha / 2.0));
        }
        // While the window shrinks it does not grow (RFC 3168, 6.1.2).
        if !acked.may_grow || acked.expected <= self.shrunk_until {
            return;
        }
        let left = self.window.grow_in_slow_start(acked.bytes);
        self.window.grow_by_a_segment(left);
    }

    fn lost(&mut self, _: Time, under_way: u64) {
        self.window.shrink(under_way as f64 / 2.0);
    }

    fn timed_out(&mut self, _: Time, outstanding: u64) {
        self.window.restart(outstanding as f64 / 2.0);
    }

    fn was_idle(&mut self) {
        self.window.forget();
    }
}
