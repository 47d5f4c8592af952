//! Arrivals of triggers, messages and events that come without a request.

use evb_core::{Frequency, NodeId, Stream, Time, stream};
use evb_experiment::Plan;
use evb_protocol::Config;
use rand::RngExt;
use rand_distr::{Distribution, Exp1, Poisson};

/// The purpose of the streams of intervals.
const INTERVALS: u64 = 101;
/// Most arrivals that are counted one by one at a look. More come only after a long time without a look, or faster than
/// they can be counted.
const MOST_SINGLE: u64 = 1000;
/// Picoseconds per second.
const SECOND: f64 = 1e12;

/// Arrivals at one node: equally spaced, or as a Poisson process. Times count from the start.
#[derive(Clone, Debug)]
pub struct Arrivals {
    random: Stream,
    poisson: bool,
    /// Mean interval in picoseconds.
    interval: f64,
    /// Time of the present arrival, unrounded, so that regular intervals do not drift.
    due: f64,
}

impl Arrivals {
    /// Arrivals whose mean interval is given in seconds.
    pub fn new(seed: u64, node: NodeId, interval_s: f64, poisson: bool) -> Self {
        Self { random: stream(seed, node, INTERVALS), poisson, interval: interval_s * SECOND, due: 0.0 }
    }

    /// Arrivals at a rate.
    pub fn at_rate(seed: u64, node: NodeId, rate: Frequency, poisson: bool) -> Self {
        Self { interval: SECOND / rate.as_hertz(), ..Self::new(seed, node, 0.0, poisson) }
    }

    /// The triggers of a plan; none if they come as builders ask for events, or with the data.
    pub fn of_triggers(plan: &Plan) -> Option<Self> {
        let rate = plan.trigger.rate?;
        Some(Self::at_rate(plan.run.seed, Config::EVENT_MANAGER, rate, plan.trigger.poisson))
    }

    /// Arrivals per second.
    pub fn rate_hz(&self) -> f64 {
        SECOND / self.interval
    }

    /// Takes regular arrivals out of step with those at other nodes. It must be called before the first arrival.
    pub fn shift(&mut self) {
        if !self.poisson {
            self.due = -self.interval * self.random.random::<f64>();
        }
    }

    /// Goes on to the next arrival and returns its time, for a driver that plans arrivals one after the other.
    #[inline]
    pub fn advance(&mut self) -> Time {
        let factor: f64 = if self.poisson { Exp1.sample(&mut self.random) } else { 1.0 };
        self.due += self.interval * factor;
        self.at()
    }

    /// Time of the present arrival.
    pub fn at(&self) -> Time {
        Time(self.due.round() as u64)
    }

    /// Goes on to the first arrival after `now` and returns the number of those passed, for a driver that looks at a
    /// clock now and then. The number is drawn if there are too many to count.
    pub fn pass(&mut self, now: Time) -> u64 {
        let mut count = 0;
        while self.at() <= now {
            count += 1;
            if count >= MOST_SINGLE {
                count += self.skip(now);
            }
            self.advance();
        }
        count
    }

    /// Goes on to the last arrival before `now` and returns the number of those passed. In a Poisson process this
    /// number is drawn, and later arrivals do not depend on earlier ones.
    fn skip(&mut self, now: Time) -> u64 {
        let intervals = ((now.0 as f64 - self.due) / self.interval).max(0.0);
        if self.poisson {
            self.due = now.0 as f64;
            // The distribution fails only for a mean that is not positive.
            return Poisson::new(intervals).map_or(0, |poisson| poisson.sample(&mut self.random) as u64);
        }
        self.due += intervals.floor() * self.interval;
        intervals as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_core::Span;

    const PERIOD: u64 = 1000;

    fn arrivals(seed: u64, poisson: bool) -> Arrivals {
        let mut arrivals = Arrivals::new(seed, Config::EVENT_MANAGER, PERIOD as f64 / SECOND, poisson);
        arrivals.advance();
        arrivals
    }

    /// A driver that looks now and then finds the arrivals that a driver in virtual time plans one after the other.
    #[test]
    fn a_clock_finds_the_planned_arrivals() {
        for (seed, poisson) in [(1, false), (1, true), (2, true), (3, true)] {
            let (mut planned, mut clocked) = (arrivals(seed, poisson), arrivals(seed, poisson));
            let mut now = Time::ZERO;
            for look in 1..10_000 {
                // Looks of very different spacing, up to half as many arrivals as are counted one by one.
                now = now + Span((look % 97) * (look % 97) * PERIOD / 20);
                let mut come = 0;
                while planned.at() <= now {
                    come += 1;
                    planned.advance();
                }
                assert_eq!((clocked.pass(now), clocked.at()), (come, planned.at()), "seed {seed}, look {look}");
            }
        }
    }

    /// However rarely somebody looks, the same regular arrivals have come.
    #[test]
    fn regular_arrivals_are_all_counted() {
        let end = Span::from_millis(10).0;
        let (mut often, mut once) = (arrivals(1, false), arrivals(1, false));
        let looked_often: u64 = (0..=10_000).map(|part| often.pass(Time(end / 10_000 * part))).sum();
        assert_eq!((looked_often, once.pass(Time(end))), (10_000_000, 10_000_000));
        assert_eq!(once.at(), often.at());
    }

    /// A second of arrivals at 1 GHz costs at most a thousand draws, and their number is that of a Poisson process.
    #[test]
    fn arrivals_at_random_are_skipped_by_their_number() {
        for seed in 1..=100 {
            let mut clocked = arrivals(seed, true);
            let end = Time(Span::from_secs(1).0);
            let count = clocked.pass(end) as f64;
            assert!((count - 1e9).abs() < 6.0 * 1e9_f64.sqrt(), "{count} with seed {seed}");
            assert!(clocked.at() > end, "seed {seed}");
        }
    }
}
