//! NSCC: the window of an Ultra Ethernet sender follows delays and marks. The four cases, and the reset of the window to
//! what arrived, are those of Hoefler et al., arXiv:2508.08906, section on congestion control; the laws of the window are
//! those of Bonato et al., SMaRTT-REPS, arXiv:2404.01630, section 3, with the values that csg-htsim uses.

use super::{Acked, CongestionControl};
use crate::config::usual_window;
use evb_core::{Bandwidth, Span, Time};

/// The network that the constants below were chosen for: 100 Gbit/s, and a round trip of 12 us.
const REFERENCE_ROUND_TRIP: Span = Span::from_micros(12);
const REFERENCE_BYTES: f64 = 150_000.0;

/// Growth per round trip in an empty network, in segments.
const PROPORTIONAL: f64 = 4.0;
/// Growth per round trip while the delay falls, in segments.
const FAIR: f64 = 5.0;
/// Growth per adjustment, in segments.
const STEADY: f64 = 0.15;
/// Growth by this part of the bytes that arrive, once a whole window met no queue.
const FAST: f64 = 0.25;
/// Below this delay a queue counts as empty.
const NO_DELAY: Span = Span::from_micros(1);
/// The most that is taken away of the window per round trip is a half, and this part of the excess delay.
const DECREASE: f64 = 0.8;
/// Weight of a delay in the average.
const WEIGHT: f64 = 0.0125;
/// Bytes after which the growth is applied, in segments.
const ADJUST_AFTER: f64 = 8.0;
/// The window is reset if less than this part of the largest one arrived.
const FEW: f64 = 0.125;
/// Delay, in targets, that asks for a reset.
const LONG_DELAY: u64 = 4;

/// The window of a sender.
#[derive(Debug)]
pub(super) struct Nscc {
    target: Span,
    segment: f64,
    link: Bandwidth,
    /// The shortest round trip.
    base: Span,
    /// The largest window; `None` for 1.5 times the bytes of a round trip.
    most: Option<u64>,
    window: f64,
    /// Times the growth of the reference network.
    scale: f64,
    /// The average delay.
    average: f64,
    /// Growth that was not applied yet, times the window.
    growth: f64,
    /// Bytes that arrived, and time, since the growth was applied.
    unadjusted: f64,
    adjusted_at: Time,
    decreased_at: Time,
    /// Bytes that arrived in a row without a delay.
    without_delay: f64,
    reset: Reset,
}

/// The reset of the window to the bytes that arrived in an interval (quick adapt).
#[derive(Debug, Default)]
struct Reset {
    /// The end of the interval.
    at: Time,
    arrived: f64,
    /// A segment was trimmed or lost in the interval.
    is_due: bool,
    /// Answers to this many bytes are about the time before the last reset.
    stale: f64,
}

impl Nscc {
    /// A sender whose round trip takes `base` or less. It begins with its largest window: `most`, or 1.5 times the bytes of
    /// a round trip.
    pub(super) fn new(segment: u64, link: Bandwidth, base: Span, target: Span, most: Option<u64>) -> Self {
        let mut nscc = Self {
            target,
            segment: segment as f64,
            link,
            base,
            most,
            window: 0.0,
            scale: link.as_bytes_per_second() * base.as_secs_f64() / REFERENCE_BYTES,
            average: 0.0,
            growth: 0.0,
            unadjusted: 0.0,
            adjusted_at: Time::ZERO,
            decreased_at: Time::ZERO,
            without_delay: 0.0,
            reset: Reset::default(),
        };
        nscc.window = nscc.largest();
        nscc
    }

    fn largest(&self) -> f64 {
        self.most.map_or_else(|| usual_window(self.link, self.base), |most| most as f64)
    }

    fn bound(&mut self) {
        self.window = self.window.min(self.largest()).max(self.segment);
    }

    /// Averages the delay. A long one without a mark comes from one bad path of many, and counts as a short one.
    fn note_delay(&mut self, delay: Span, is_marked: bool) {
        let is_of_one_path = !is_marked && delay > self.target && delay.0 <= 5 * self.base.0;
        let counted = if is_of_one_path { self.base.as_secs_f64() / 4.0 } else { delay.as_secs_f64() };
        self.average += WEIGHT * (counted - self.average);
    }

    /// Resets the window if little arrived in an interval with losses or long delays. Returns true if the answer says
    /// nothing about the present window.
    fn reset(&mut self, now: Time, delay: Span, under_way: u64) -> bool {
        if now >= self.reset.at {
            let is_due = self.reset.is_due || delay.0 > LONG_DELAY * self.target.0;
            if self.reset.at > Time::ZERO && is_due && self.reset.arrived < FEW * self.largest() {
                self.window = self.reset.arrived;
                self.reset.stale = under_way as f64;
                self.bound();
            }
            let at = Time(now.0 + self.base.0 + self.target.0);
            self.reset = Reset { at, stale: self.reset.stale, ..Reset::default() };
        }
        self.reset.stale > 0.0
    }

    /// The growth that the answers since the last adjustment ask for (SMaRTT, 3.1): the same number of bytes for each window,
    /// so that small ones catch up.
    fn adjust(&mut self, now: Time) {
        self.window += self.growth / self.window + STEADY * self.segment * self.scale;
        (self.growth, self.unadjusted, self.adjusted_at) = (0.0, 0.0, now);
        self.bound();
    }

    /// Grows by the room that the delay leaves below its target.
    fn grow_in_proportion(&mut self, delay: Span, bytes: f64) {
        self.without_delay = if delay < NO_DELAY { self.without_delay + bytes } else { 0.0 };
        if self.without_delay > self.window {
            self.window += FAST * self.scale * bytes;
            return self.bound();
        }
        let room = (self.target.0 - delay.0) as f64 / REFERENCE_ROUND_TRIP.0 as f64;
        self.growth += PROPORTIONAL * self.segment * self.scale * bytes * room;
    }

    /// Shrinks by the part of the average delay that is beyond its target, once in a round trip.
    fn shrink(&mut self, now: Time) {
        let excess = 1.0 - self.target.as_secs_f64() / self.average;
        if excess > 0.0 && now.since(self.decreased_at) > self.base {
            self.window *= (1.0 - DECREASE * excess).max(0.5);
            self.decreased_at = now;
            self.bound();
        }
    }
}

impl CongestionControl for Nscc {
    fn window(&self) -> u64 {
        self.window as u64
    }

    fn acknowledged(&mut self, acked: &Acked) {
        let &Acked { now, is_marked, sample, under_way, .. } = acked;
        let bytes = acked.bytes as f64;
        self.base = self.base.min(sample);
        let delay = Span(sample.0 - self.base.0);
        self.note_delay(delay, is_marked);
        self.reset.arrived += bytes;
        self.reset.stale -= bytes;
        self.unadjusted += bytes;
        if self.reset(now, delay, under_way) {
            return;
        }
        match (is_marked, delay < self.target) {
            (false, true) => self.grow_in_proportion(delay, bytes),
            (false, false) => self.growth += FAIR * self.segment * self.scale * bytes,
            (true, false) => self.shrink(now),
            // One path is congested: another one will do.
            (true, true) => {}
        }
        if self.unadjusted > ADJUST_AFTER * self.segment || now.since(self.adjusted_at) > self.base {
            self.adjust(now);
        }
    }

    fn trimmed(&mut self, now: Time, bytes: u64, under_way: u64) {
        self.reset.is_due = true;
        self.reset.stale -= bytes as f64;
        if !self.reset(now, Span::ZERO, under_way) {
            self.window -= bytes as f64;
            self.bound();
        }
    }

    fn lost(&mut self, _: Time, _: u64) {
        self.reset.is_due = true;
    }

    fn timed_out(&mut self, _: Time, _: u64) {
        self.reset.is_due = true;
    }
}
