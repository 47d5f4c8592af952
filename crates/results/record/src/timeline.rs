//! The rate over time around a fault: how deep it dips, and when it is back.

use evb_core::Time;
use serde::{Deserialize, Serialize};

/// Most times that are kept. When there are more, every second one is dropped.
const MOST_TIMES: usize = 8192;
/// Fewest times of a mean rate: one of them is the uncertainty of the rate.
const FEWEST_TIMES: u64 = 20;
/// Mean rates before a fault that are compared with each other, at least.
const FEWEST_STEPS: u64 = 4;
/// Steps of what is recorded over time.
pub const STEPS: u64 = 64;
/// Part of the rate before a fault from which on the rate counts as recovered.
const RECOVERED: f64 = 0.95;

/// The rate of events or messages over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Length of a step, in seconds. The first one begins with the measurement.
    pub step_s: f64,
    /// The mean rate in each step, per second.
    pub rates_hz: Vec<f64>,
}

/// The rate before, during and after a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dip {
    /// The rate before the fault, per second.
    pub before_hz: f64,
    /// The lowest rate after the fault, per second.
    pub lowest_hz: f64,
    /// Time from the fault until the rate was within 5 % of that before again, in seconds: 0 if it always was, `None` if
    /// it did not recover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_after_s: Option<f64>,
    /// The rate in the last half of the time after the recovery, or after the fault if there is none, per second. What was
    /// held up meanwhile raises the rate at first.
    pub after_hz: f64,
    /// Time of a mean rate, in seconds: shorter dips do not show, and the time of the recovery is known no better.
    pub resolution_s: f64,
}

/// Times at which events ended: of every one, or of every second one, and so on, so that there are never too many. A silence
/// takes no memory.
#[derive(Clone, Debug)]
pub struct EventTimes {
    start: Time,
    /// A time is kept of one event in this many.
    every: u64,
    count: u64,
    times: Vec<Time>,
}

impl EventTimes {
    /// No events since the start.
    pub fn new(start: Time) -> Self {
        Self { start, every: 1, count: 0, times: Vec::new() }
    }

    /// Adds events that end at `now`, which is not before the last ones.
    pub fn add(&mut self, now: Time, count: u64) {
        for _ in 0..count {
            self.count += 1;
            if self.count.is_multiple_of(self.every) {
                self.times.push(now);
            }
            if self.times.len() == MOST_TIMES {
                self.every *= 2;
                self.times = self.times.iter().skip(1).step_by(2).copied().collect();
            }
        }
    }

    /// Mean rate between two times, per second.
    fn rate(&self, from: Time, to: Time) -> f64 {
        let until = |time: Time| self.times.partition_point(|other| *other < time) as u64 * self.every;
        (until(to) - until(from)) as f64 / to.since(from).as_secs_f64()
    }

    /// The rate over time, up to `end`; `None` without any time.
    pub fn timeline(&self, end: Time) -> Option<Timeline> {
        let step = end.since(self.start).0 / STEPS;
        let at = |step_index: u64| Time(self.start.0 + step * step_index);
        (step > 0).then(|| Timeline {
            step_s: step as f64 * 1e-12,
            rates_hz: (0..STEPS).map(|index| self.rate(at(index), at(index + 1))).collect(),
        })
    }

    /// The rate around a fault, up to `end`. `offered` has the arrivals, if these do not follow the events that end: the rate
    /// is not lower because less was offered. `None` if too few events ended before the fault, or the time after it is too
    /// short for a mean rate.
    pub fn dip(&self, fault: Time, end: Time, offered: Option<&Self>) -> Option<Dip> {
        let half = Time(u64::midpoint(self.start.0, fault.0));
        if fault <= half || end <= fault {
            return None;
        }
        let before_hz = self.rate(half, fault);
        let rates = |from: Time, to: Time, step: u64| self.rates(from, to, step, before_hz, offered);
        let mut step = ((FEWEST_TIMES * self.every) as f64 / before_hz * 1e12) as u64;
        // Chance must not look like a dip: before the fault there was none.
        while rates(half, fault, step).iter().any(|part| !part.is_back) && FEWEST_STEPS * step <= fault.since(half).0 {
            step *= 2;
        }
        if step > fault.since(half).0 || step > end.since(fault).0 {
            return None;
        }
        let parts = rates(fault, end, step);
        let low = parts.iter().filter(|part| !part.is_back);
        let lowest = low.min_by(|one, other| one.rate_hz.total_cmp(&other.rate_hz));
        let is_back = |part: &&PartRate| part.is_back && lowest.is_none_or(|lowest| part.from > lowest.from);
        let back = parts.iter().find(is_back).map(|part| part.from);
        let recovered = if lowest.is_none() { Some(fault) } else { back };
        let late = Time(u64::midpoint(recovered.unwrap_or(fault).0, end.0));
        Some(Dip {
            before_hz,
            lowest_hz: lowest.map_or(before_hz, |lowest| lowest.rate_hz),
            recovered_after_s: recovered.map(|time| time.since(fault).as_secs_f64()),
            after_hz: self.rate(late, end),
            resolution_s: step as f64 * 1e-12,
        })
    }

    /// The mean rates of parts of a time in which something was offered, compared with a usual rate.
    fn rates(&self, from: Time, to: Time, step: u64, usual_hz: f64, offered: Option<&Self>) -> Vec<PartRate> {
        let parts = to.since(from).0 / step.max(1);
        let part = |index: u64| {
            let (from, to) = (Time(from.0 + step * index), Time(from.0 + step * (index + 1)));
            let offered_hz = offered.map_or(usual_hz, |offered| offered.rate(from, to).min(usual_hz));
            let rate_hz = self.rate(from, to);
            let uncertainty_hz = self.every as f64 / to.since(from).as_secs_f64();
            let is_back = rate_hz + uncertainty_hz >= RECOVERED * offered_hz;
            (offered_hz > 0.0).then_some(PartRate { from, rate_hz, is_back })
        };
        (0..parts).filter_map(part).collect()
    }
}

/// The mean rate in a part of the time.
struct PartRate {
    from: Time,
    rate_hz: f64,
    /// It is within 5 % of the usual rate, or of what was offered.
    is_back: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    /// An event each 10 us, without those from `from` to `to` in milliseconds.
    fn with_gap(from: u64, to: u64, end: u64) -> EventTimes {
        let mut times = EventTimes::new(Time::ZERO);
        let all = (1..=end * 100).map(|index| index * MS / 100);
        all.filter(|at| !(from * MS..to * MS).contains(at)).for_each(|at| times.add(Time(at), 1));
        times
    }

    #[test]
    fn a_dip_has_its_depth_and_its_end() {
        for end in [100, 1_000] {
            let dip = with_gap(40, 47, end).dip(Time(40 * MS), Time(end * MS), None).expect("there are enough events");
            assert!((dip.before_hz - 1e5).abs() < 2e3, "{dip:?}");
            assert_eq!(dip.lowest_hz, 0.0, "{dip:?}");
            let recovered = dip.recovered_after_s.expect("it is back");
            assert!((recovered - 7e-3).abs() <= 2.0 * dip.resolution_s && dip.resolution_s < 6e-3, "{dip:?}");
            assert!((dip.after_hz - 1e5).abs() < 5e3, "{dip:?}");
        }
    }

    #[test]
    fn a_rate_that_stays_low_has_not_recovered() {
        let dip = with_gap(40, 100, 100).dip(Time(40 * MS), Time(100 * MS), None).expect("there are enough events");
        assert_eq!((dip.lowest_hz, dip.recovered_after_s, dip.after_hz), (0.0, None, 0.0));
        let steady = with_gap(0, 0, 100).dip(Time(40 * MS), Time(100 * MS), None).expect("there are enough events");
        assert_eq!(steady.recovered_after_s, Some(0.0), "{steady:?}");
    }

    #[test]
    fn a_pause_of_the_arrivals_is_no_dip() {
        let events = with_gap(40, 47, 100);
        let dip = events.dip(Time(38 * MS), Time(100 * MS), Some(&events)).expect("there are enough events");
        assert_eq!(dip.recovered_after_s, Some(0.0), "{dip:?}");
    }

    #[test]
    fn too_few_events_tell_nothing() {
        assert_eq!(with_gap(0, 0, 100).dip(Time(MS / 10), Time(100 * MS), None), None);
        assert_eq!(with_gap(0, 0, 100).dip(Time(50 * MS), Time(50 * MS + 1), None), None);
    }

    #[test]
    fn memory_is_bounded_and_a_timeline_has_all_events() {
        let times = with_gap(2_000, 3_000, 10_000);
        assert!(times.times.len() < MOST_TIMES, "{}", times.times.len());
        let timeline = times.timeline(Time(10_000 * MS)).expect("there is time");
        let all = timeline.rates_hz.iter().sum::<f64>() * timeline.step_s;
        assert!((all - 9e5).abs() < 3e3, "{all}");
        assert_eq!(timeline.rates_hz.iter().filter(|rate| **rate == 0.0).count(), 6);
    }

    #[test]
    fn chance_is_no_dip_and_does_not_hide_one() {
        let mut times = EventTimes::new(Time::ZERO);
        // Between 5 and 15 us from one event to the next, and a third of them from 60 to 80 ms.
        let (mut at, mut random) = (0, 1_u64);
        while at < 160 * MS {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            at += MS / 200 + (random >> 33) % (MS / 100);
            if !(60 * MS..80 * MS).contains(&at) || random % 7 < 2 {
                times.add(Time(at), 1);
            }
        }
        let dip = times.dip(Time(60 * MS), Time(160 * MS), None).expect("there are enough events");
        assert!(dip.lowest_hz < 0.6 * dip.before_hz, "{dip:?}");
        let recovered = dip.recovered_after_s.expect("it is back");
        assert!((recovered - 20e-3).abs() <= 2.0 * dip.resolution_s && dip.resolution_s < 10e-3, "{dip:?}");
    }
}
