//! Arrivals of triggers, messages and events that come without a request.

use evb_core::{Frequency, NodeId, Stream, Time, stream};
use evb_experiment::Plan;
use evb_protocol::Config;
use rand::RngExt;
use rand_distr::{Binomial, Distribution, Exp1, Geometric, Poisson};

/// The purpose of the streams of intervals.
const INTERVALS: u64 = 101;
/// Most arrivals that are counted one by one at a look. More come only after a long time without a look, or faster than
/// they can be counted.
const MOST_SINGLE: u64 = 1000;
/// Picoseconds per second.
const SECOND: f64 = 1e12;

/// Arrivals at one node: equally spaced, as a Poisson process, or in time slots. Times count from the start.
#[derive(Clone, Debug)]
pub struct Arrivals {
    random: Stream,
    intervals: Intervals,
    /// Mean interval in picoseconds; in slots, the length of a slot.
    interval: f64,
    /// Time of the present arrival, unrounded, so that regular intervals do not drift.
    due: f64,
}

/// The intervals between arrivals.
#[derive(Clone, Copy, Debug)]
enum Intervals {
    /// Equal ones.
    Equal,
    /// Exponential ones: a Poisson process.
    Exponential,
    /// Whole numbers of slots, in each of which something arrives with a probability: a Bernoulli process.
    Slots(Geometric, f64),
}

impl Arrivals {
    /// Arrivals whose mean interval is given in seconds.
    pub fn new(seed: u64, node: NodeId, interval_s: f64, poisson: bool) -> Self {
        let intervals = if poisson { Intervals::Exponential } else { Intervals::Equal };
        Self { random: stream(seed, node, INTERVALS), intervals, interval: interval_s * SECOND, due: 0.0 }
    }

    /// Arrivals at the beginnings of time slots, the length of which is given in seconds: one in each slot with this
    /// probability, which is above 0 and counts as 1 above that. The slots of all nodes begin at the same times.
    pub fn in_slots(seed: u64, node: NodeId, slot_s: f64, probability: f64) -> Self {
        let probability = probability.min(1.0);
        // The distribution fails only for a number that is not a probability.
        let intervals =
            Geometric::new(probability).map_or(Intervals::Equal, |gaps| Intervals::Slots(gaps, probability));
        Self { intervals, ..Self::new(seed, node, slot_s, false) }
    }

    /// Arrivals at a rate.
    pub fn at_rate(seed: u64, node: NodeId, rate: Frequency, poisson: bool) -> Self {
        Self { interval: SECOND / rate.as_hertz(), ..Self::new(seed, node, 0.0, poisson) }
    }

    /// The triggers of a plan, or `None` if they come as builders ask for events, or with the data.
    pub fn of_triggers(plan: &Plan) -> Option<Self> {
        let rate = plan.trigger.rate?;
        Some(Self::at_rate(plan.run.seed, Config::EVENT_MANAGER, rate, plan.trigger.poisson))
    }

    /// Arrivals per second.
    pub fn rate_hz(&self) -> f64 {
        match self.intervals {
            Intervals::Slots(_, probability) => probability * SECOND / self.interval,
            Intervals::Equal | Intervals::Exponential => SECOND / self.interval,
        }
    }

    /// Takes regular arrivals out of step with those at other nodes. It must be called before the first arrival.
    pub fn shift(&mut self) {
        if matches!(self.intervals, Intervals::Equal) {
            self.due = -self.interval * self.random.random::<f64>();
        }
    }

    /// Advances to the next arrival and returns its time, for a driver that plans arrivals one after the other.
    #[inline]
    pub fn advance(&mut self) -> Time {
        let factor: f64 = match self.intervals {
            Intervals::Equal => 1.0,
            Intervals::Exponential => Exp1.sample(&mut self.random),
            Intervals::Slots(empty, _) => 1.0 + empty.sample(&mut self.random) as f64,
        };
        self.due += self.interval * factor;
        self.at()
    }

    /// Time of the present arrival.
    pub fn at(&self) -> Time {
        Time(self.due.round() as u64)
    }

    /// Advances to the first arrival after `now` and returns the number of those passed, for a driver that looks at a
    /// clock now and then. The number is drawn if there are too many to count.
    pub fn pass(&mut self, now: Time) -> u64 {
        let mut all = 0;
        self.pass_each(now, |_, count| all += count);
        all
    }

    /// Advances to the first arrival after `now`. `take` gets the time of each of those passed. Too many to count come
    /// all at once in the end, with their number.
    pub fn pass_each(&mut self, now: Time, mut take: impl FnMut(Time, u64)) {
        let mut count = 0;
        while self.at() <= now {
            take(self.at(), 1);
            count += 1;
            if count >= MOST_SINGLE {
                take(now, self.skip(now));
            }
            self.advance();
        }
    }

    /// Advances to the last arrival before `now` and returns the number of those passed. At random, this number is
    /// drawn, and later arrivals do not depend on earlier ones.
    fn skip(&mut self, now: Time) -> u64 {
        let intervals = ((now.0 as f64 - self.due) / self.interval).max(0.0);
        if let Intervals::Exponential = self.intervals {
            self.due = now.0 as f64;
            // The distribution fails only for a mean that is not positive.
            return Poisson::new(intervals).map_or(0, |poisson| poisson.sample(&mut self.random) as u64);
        }
        self.due += intervals.floor() * self.interval;
        match self.intervals {
            // The distribution fails only for a number that is not a probability.
            Intervals::Slots(_, probability) => {
                Binomial::new(intervals as u64, probability).map_or(0, |binomial| binomial.sample(&mut self.random))
            }
            Intervals::Equal | Intervals::Exponential => intervals as u64,
        }
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
                let (mut expected, mut come) = (Vec::new(), Vec::new());
                while planned.at() <= now {
                    expected.push((planned.at(), 1));
                    planned.advance();
                }
                clocked.pass_each(now, |at, count| come.push((at, count)));
                assert_eq!((come, clocked.at()), (expected, planned.at()), "seed {seed}, look {look}");
            }
        }
    }

    /// In a fifth of the slots nothing comes, and never two at once; the slots of two nodes begin together.
    #[test]
    fn arrivals_in_slots_keep_to_them() {
        const SLOTS: u64 = 1_000_000;
        for (seed, node) in [(1, NodeId(3)), (2, NodeId(3)), (2, NodeId(4))] {
            let mut planned = Arrivals::in_slots(seed, node, PERIOD as f64 / SECOND, 0.8);
            assert!((planned.rate_hz() - 0.8e9).abs() < 1.0);
            let mut last = Time::ZERO;
            let mut count = 0_u64;
            while last.0 < SLOTS * PERIOD {
                let next = planned.advance();
                assert!(next > last && next.0.is_multiple_of(PERIOD), "{next:?} after {last:?}, seed {seed}");
                last = next;
                count += 1;
            }
            let error = count as f64 - 0.8 * SLOTS as f64;
            assert!(error.abs() < 5.0 * (0.16 * SLOTS as f64).sqrt(), "{count} arrivals, seed {seed}");
            let counted = Arrivals::in_slots(seed, node, PERIOD as f64 / SECOND, 0.8).pass(Time(SLOTS * PERIOD));
            let error = counted as f64 - 0.8 * SLOTS as f64;
            assert!(error.abs() < 5.0 * (0.16 * SLOTS as f64).sqrt(), "{counted} counted, seed {seed}");
        }
        let mut full = Arrivals::in_slots(1, NodeId(1), PERIOD as f64 / SECOND, 1.0);
        assert!((1..100).all(|slot| full.advance() == Time(slot * PERIOD)), "at full load one comes in each slot");
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
