//! When triggers, messages and events come that nobody asks for.

use evb_core::{Frequency, NodeId, Span, Stream, Time, stream};
use evb_experiment::Plan;
use evb_protocol::Config;
use rand::RngExt;
use rand_distr::{Distribution, Exp1, Poisson};

/// The purpose of the streams of intervals.
const INTERVALS: u64 = 101;
/// Arrivals that are counted one by one at a look. More can only come when nobody looked for long, or faster than they
/// could be counted.
const MOST_SINGLE: u64 = 1000;
/// Picoseconds per second.
const SECOND: f64 = 1e12;

/// What arrives at one node: equally spaced, or as a Poisson process. Times count from the start.
#[derive(Clone, Debug)]
pub struct Arrivals {
    random: Stream,
    poisson: bool,
    /// Mean interval in picoseconds.
    interval: f64,
    /// When the last one was due, unrounded, so that regular intervals do not drift.
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

    /// The triggers of a plan; none when they come as builders ask for events, or with the data.
    pub fn of_triggers(plan: &Plan) -> Option<Self> {
        let rate = plan.trigger.rate?;
        Some(Self::at_rate(plan.run.seed, Config::EVENT_MANAGER, rate, plan.trigger.poisson))
    }

    /// How many come per second.
    pub fn rate_hz(&self) -> f64 {
        SECOND / self.interval
    }

    /// Takes regular arrivals out of step with those at other nodes. To be called before the first.
    pub fn shift(&mut self) {
        if !self.poisson {
            self.due = -self.interval * self.random.random::<f64>();
        }
    }

    /// When the next one comes.
    #[inline]
    pub fn advance(&mut self) -> Time {
        let factor: f64 = if self.poisson { Exp1.sample(&mut self.random) } else { 1.0 };
        self.due += self.interval * factor;
        Time(self.due.round() as u64)
    }

    /// Goes on to the last one that comes before `now`; how many it passes. In a Poisson process their number is drawn, and
    /// what follows does not depend on what was before.
    fn skip(&mut self, now: Time) -> u64 {
        let intervals = ((now.0 as f64 - self.due) / self.interval).max(0.0);
        if self.poisson {
            self.due = now.0 as f64;
            // Only a number of intervals that is not positive makes no distribution.
            return Poisson::new(intervals).map_or(0, |poisson| poisson.sample(&mut self.random) as u64);
        }
        self.due += intervals.floor() * self.interval;
        intervals as u64
    }
}

/// Arrivals for a driver that looks at a clock now and then.
#[derive(Clone, Debug)]
pub struct Clocked {
    arrivals: Arrivals,
    start: Time,
    next: Time,
}

impl Clocked {
    /// Arrivals that begin now.
    pub fn new(mut arrivals: Arrivals, start: Time) -> Self {
        let next = arrivals.advance();
        Self { arrivals, start, next }
    }

    /// When the next one comes.
    pub fn next(&self) -> Time {
        self.start + Span(self.next.0)
    }

    /// How many have come since the last call. Their number is drawn where they are too many to count.
    pub fn due(&mut self, now: Time) -> u64 {
        let now = Time(now.since(self.start).0);
        let mut count = 0;
        while self.next <= now {
            count += 1;
            if count >= MOST_SINGLE {
                count += self.arrivals.skip(now);
            }
            self.next = self.arrivals.advance();
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: u64 = 1000;

    fn arrivals(seed: u64, poisson: bool) -> Arrivals {
        Arrivals::new(seed, Config::EVENT_MANAGER, PERIOD as f64 / SECOND, poisson)
    }

    /// A driver that looks now and then finds the arrivals that a driver in virtual time plans one after the other.
    #[test]
    fn a_clock_finds_the_planned_arrivals() {
        for (seed, poisson) in [(1, false), (1, true), (2, true), (3, true)] {
            let mut planned = arrivals(seed, poisson);
            let mut clocked = Clocked::new(arrivals(seed, poisson), Time(5_000_000));
            let mut next = planned.advance();
            let mut now = Time::ZERO;
            for look in 1..10_000 {
                // Looks of very different spacing, up to half as many arrivals as are counted one by one.
                now = now + Span((look % 97) * (look % 97) * PERIOD / 20);
                let mut come = 0;
                while next <= now {
                    come += 1;
                    next = planned.advance();
                }
                assert_eq!(clocked.due(Time(5_000_000 + now.0)), come, "seed {seed}, look {look}");
                assert_eq!(clocked.next().0, 5_000_000 + next.0, "seed {seed}, look {look}");
            }
        }
    }

    /// However rarely somebody looks, the same regular arrivals have come.
    #[test]
    fn regular_arrivals_are_all_counted() {
        let end = Span::from_millis(10).0;
        let mut often = Clocked::new(arrivals(1, false), Time::ZERO);
        let looked_often: u64 = (0..=10_000).map(|part| often.due(Time(end / 10_000 * part))).sum();
        let mut once = Clocked::new(arrivals(1, false), Time::ZERO);
        assert_eq!((looked_often, once.due(Time(end))), (10_000_000, 10_000_000));
        assert_eq!(once.next(), often.next());
    }

    /// A second of arrivals at 1 GHz costs no more than a thousand draws, and their number is that of a Poisson process.
    #[test]
    fn arrivals_at_random_are_skipped_by_their_number() {
        for seed in 1..=100 {
            let mut clocked = Clocked::new(arrivals(seed, true), Time::ZERO);
            let end = Time(Span::from_secs(1).0);
            let count = clocked.due(end) as f64;
            assert!((count - 1e9).abs() < 6.0 * 1e9_f64.sqrt(), "{count} with seed {seed}");
            assert!(clocked.next() > end, "seed {seed}");
        }
    }
}
