//! DCQCN: rate-based congestion control of RoCE (Zhu et al., SIGCOMM 2015, section 3.1 and its figures 5 and 7).

use super::{Acked, CongestionControl};
use crate::config::Dcqcn;
use evb_core::{Bandwidth, Time};

/// The reaction point: the rate of a sender.
#[derive(Debug)]
pub(super) struct RatePoint {
    config: Dcqcn,
    window: u64,
    line: f64,
    /// The present rate, R_C, in bit/s.
    current: f64,
    /// The target rate, R_T.
    target: f64,
    /// The estimate of congestion.
    alpha: f64,
    /// The timers run once there was a notice.
    timers: Option<Timers>,
    /// Bytes since the byte counter was zero.
    bytes: u64,
    /// Times that the timer, and the byte counter, ended since the last notice.
    timer_steps: u16,
    byte_steps: u16,
}

/// The next times at which the estimate falls and the rate grows.
#[derive(Clone, Copy, Debug)]
struct Timers {
    alpha_at: Time,
    increase_at: Time,
}

impl RatePoint {
    pub(super) fn new(config: Dcqcn, link: Bandwidth, window: u64) -> Self {
        let line = link.0 as f64;
        Self {
            config,
            window,
            line,
            current: line,
            target: line,
            alpha: 1.0,
            timers: None,
            bytes: 0,
            timer_steps: 0,
            byte_steps: 0,
        }
    }

    /// A step of fast recovery, additive or hyper increase (equations 3 and 4, and figure 7).
    fn increase(&mut self) {
        let (least, most) = (self.timer_steps.min(self.byte_steps), self.timer_steps.max(self.byte_steps));
        let steps = self.config.recovery_steps;
        if least > steps {
            self.target += self.config.hyper.0 as f64 * f64::from(least - steps);
        } else if most > steps {
            self.target += self.config.additive.0 as f64;
        }
        self.target = self.target.min(self.line);
        self.current = ((self.target + self.current) / 2.0).min(self.line);
    }
}

impl CongestionControl for RatePoint {
    fn window(&self) -> u64 {
        self.window
    }

    fn rate(&self) -> Option<Bandwidth> {
        (self.current < self.line).then_some(Bandwidth(self.current as u64))
    }

    fn sent(&mut self, _: Time, bytes: u64) {
        if self.timers.is_none() {
            return;
        }
        self.bytes += bytes;
        if self.bytes >= self.config.increase_bytes.0 {
            self.bytes = 0;
            self.byte_steps = self.byte_steps.saturating_add(1);
            self.increase();
        }
    }

    fn acknowledged(&mut self, _: &Acked) {}

    fn lost(&mut self, _: Time, _: u64) {}

    fn timed_out(&mut self, _: Time, _: u64) {}

    fn notified(&mut self, now: Time) {
        // Equation 1.
        self.target = self.current;
        self.current = (self.current * (1.0 - self.alpha / 2.0)).max(self.config.least_rate.0 as f64);
        self.alpha = (1.0 - self.config.gain) * self.alpha + self.config.gain;
        (self.timer_steps, self.byte_steps, self.bytes) = (0, 0, 0);
        let after = |span: evb_core::Span| Time(now.0 + span.0);
        let (alpha_at, increase_at) = (after(self.config.alpha_timer), after(self.config.increase_timer));
        self.timers = Some(Timers { alpha_at, increase_at });
    }

    fn deadline(&self) -> Option<Time> {
        self.timers.map(|timers| timers.alpha_at.min(timers.increase_at))
    }

    fn handle_deadline(&mut self, now: Time) {
        let Some(mut timers) = self.timers else { return };
        if timers.alpha_at <= now {
            // Equation 2.
            self.alpha *= 1.0 - self.config.gain;
            timers.alpha_at = Time(now.0 + self.config.alpha_timer.0);
        }
        if timers.increase_at <= now {
            self.timer_steps = self.timer_steps.saturating_add(1);
            timers.increase_at = Time(now.0 + self.config.increase_timer.0);
            self.increase();
        }
        // At the full rate there is nothing left to grow; the next notice starts the timers again.
        self.timers = (self.current < self.line * 0.999_999).then_some(timers);
        if self.timers.is_none() {
            (self.current, self.target) = (self.line, self.line);
        }
    }
}
