//! CUBIC (RFC 9438): the window grows with the cube of the time since the last loss.

use super::{Acked, CongestionControl, hystart::HyStart, reno::Window};
use evb_core::Time;

/// Part of the window that is left after a loss (RFC 9438, 4.6).
const BETA: f64 = 0.7;
/// Segments per second cubed (RFC 9438, 5).
const C: f64 = 0.4;
/// Growth of the estimate of Reno's window (RFC 9438, 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

#[derive(Debug)]
pub(super) struct Cubic {
    window: Window,
    /// What ends slow start before a loss; `None` if only a loss does.
    hystart: Option<HyStart>,
    /// The window at the last loss, in segments.
    most: f64,
    epoch: Option<Epoch>,
}

/// The time since congestion avoidance began.
#[derive(Debug)]
struct Epoch {
    began: Time,
    /// The window to which it grows first, in segments.
    most: f64,
    /// Seconds from there until the window is as large as at the last loss, K.
    until_most: f64,
    /// The window that Reno would have, in segments.
    reno: f64,
}

impl Cubic {
    pub(super) fn new(window: Window, hystart: Option<HyStart>) -> Self {
        Self { window, hystart, most: 0.0, epoch: None }
    }

    fn segments(&self) -> f64 {
        self.window.size / self.window.segment
    }

    /// Congestion avoidance.
    fn grow(&mut self, acked: &Acked, bytes: f64) {
        let size = self.segments();
        let most = self.most.max(size);
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            began: acked.now,
            most,
            until_most: ((most - size) / C).cbrt(),
            reno: size,
        });
        let after = acked.now.since(epoch.began).as_secs_f64() + acked.round_trip.as_secs_f64();
        let cubic = C * (after - epoch.until_most).powi(3) + epoch.most;
        let acked_segments = bytes / self.window.segment;
        // As fast as Reno from where the window was at the last loss (RFC 9438, 4.3).
        let alpha = if epoch.reno < self.most { ALPHA } else { 1.0 };
        epoch.reno += alpha * acked_segments / size;
        let target = cubic.clamp(size, 1.5 * size);
        let grown = size + (target - size) / size * acked_segments;
        self.window.size = grown.max(epoch.reno) * self.window.segment;
    }

    /// Slow start ends when HyStart sees that the window fills the path.
    fn end_slow_start(&mut self, acked: &Acked) {
        let (size, segments) = (self.window.size, self.segments());
        if self.window.is_in_slow_start()
            && let Some(hystart) = &mut self.hystart
            && hystart.shows_full(acked, size, segments)
        {
            self.window.threshold = size;
        }
    }

    fn shrink(&mut self) {
        let size = self.segments();
        // Fast convergence (RFC 9438, 4.7).
        self.most = if size < self.most { size * (1.0 + BETA) / 2.0 } else { size };
        self.epoch = None;
    }
}

impl CongestionControl for Cubic {
    fn window(&self) -> u64 {
        self.window.size as u64
    }

    fn acknowledged(&mut self, acked: &Acked) {
        self.end_slow_start(acked);
        if !acked.may_grow {
            return;
        }
        let left = self.window.grow_in_slow_start(acked.bytes);
        if left > 0.0 && !self.window.is_in_slow_start() {
            self.grow(acked, left);
        }
    }

    fn lost(&mut self, _: Time, under_way: u64) {
        self.shrink();
        self.window.shrink(BETA * under_way as f64);
    }

    fn timed_out(&mut self, _: Time, outstanding: u64) {
        self.shrink();
        self.window.restart(BETA * outstanding as f64);
    }

    /// HyStart and proportional recoveries are what Linux adds to CUBIC, one with the other.
    fn reduces_rate(&self) -> bool {
        self.hystart.is_some()
    }

    fn was_idle(&mut self) {
        self.window.forget();
        self.epoch = None;
    }
}
