//! The number of events that each builder has under construction: fixed, or found while the run goes.
//!
//! Events that wait for each other leave the caches and become old, and bring nothing. Too few leave cores and network idle.
//! Only the event manager sees all of them: a builder alone would gain by more events at the cost of the others. It tries
//! half as many more, and keeps them if the rate rises by a fifth of that. It tries some fewer, and keeps to them if the
//! rate does not fall. A rate that triggers set, and not the builders, says nothing.

use crate::Config;
use evb_core::{Span, Time};

/// Fewest events by which a rate is measured.
const FEWEST: u64 = 256;
/// Rounds of the events under way by which a rate is measured.
const ROUNDS: u64 = 4;
/// Fewest and most measurements between tries that brought nothing.
const FIRST_REST: u32 = 8;
const LONGEST_REST: u32 = 128;

/// A measured rate of events.
#[derive(Clone, Copy, Debug)]
struct Rate {
    events: u64,
    span: Span,
}

impl Rate {
    /// Returns true if this rate is at least so many hundredths of another one.
    fn reaches(self, percent: u64, of: Self) -> bool {
        let product =
            |events: u64, span: Span, factor: u64| u128::from(events) * u128::from(span.0) * u128::from(factor);
        product(self.events, of.span, 100) >= product(of.events, self.span, percent)
    }
}

/// The purpose of a measurement.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The usual rate, before more events are tried.
    BeforeMore,
    /// The rate with more events than these, which had the other rate.
    More(u32, Rate),
    /// The usual rate, before fewer events are tried.
    BeforeFewer,
    /// The rate with fewer events than these, which had the other rate.
    Fewer(u32, Rate),
}

/// The number of events that each builder may have under construction.
pub(super) struct Pace {
    most: u32,
    limit: u32,
    is_fixed: bool,
    step: Step,
    /// Measurements before the next try, and before the one after it.
    rest: u32,
    pause: u32,
    /// Events that are not counted, since they began before the number was changed.
    earlier: u64,
    since: Time,
    events: u64,
    /// Events that ended while every builder had as many as it may.
    full: u64,
}

impl Pace {
    pub(super) const fn new(config: &Config) -> Self {
        Self::between(config.first_slots, config.builder_slots)
    }

    const fn between(first: u32, most: u32) -> Self {
        Self {
            most,
            limit: first,
            is_fixed: first == most,
            step: Step::BeforeMore,
            rest: 0,
            pause: FIRST_REST,
            earlier: 0,
            since: Time::ZERO,
            events: 0,
            full: 0,
        }
    }

    /// The number of events that each builder may have under construction now.
    pub(super) const fn limit(&self) -> u32 {
        self.limit
    }

    /// Takes note of the end of an event. `under_way` events were under construction, and `is_full` if no builder could
    /// take another one.
    pub(super) fn ended(&mut self, now: Time, under_way: u64, is_full: bool) {
        if self.is_fixed {
            return;
        }
        if self.earlier > 0 {
            self.earlier -= 1;
            self.since = now;
            return;
        }
        self.events += 1;
        self.full += u64::from(is_full);
        let span = now.since(self.since);
        if self.events < FEWEST.max(ROUNDS * under_way) || span == Span::ZERO {
            return;
        }
        let is_limiting = self.full * 2 >= self.events;
        self.go_on(Rate { events: self.events, span }, is_limiting);
        (self.events, self.full, self.earlier) = (0, 0, under_way);
        self.since = now;
    }

    fn go_on(&mut self, rate: Rate, is_limiting: bool) {
        if !is_limiting {
            // The triggers set the rate: whatever is tried changes nothing.
            if let Step::More(before, _) | Step::Fewer(before, _) = self.step {
                self.limit = before;
            }
            self.step = Step::BeforeMore;
            return;
        }
        match self.step {
            Step::BeforeMore | Step::BeforeFewer if self.rest > 0 => self.rest -= 1,
            Step::BeforeMore => self.try_more(rate),
            Step::BeforeFewer => self.try_fewer(rate),
            Step::More(before, usual) if rate.reaches(100 + u64::from(20 * (self.limit - before) / before), usual) => {
                self.pause = FIRST_REST;
                self.try_more(rate);
            }
            Step::More(before, _) => {
                self.limit = before;
                self.step = Step::BeforeFewer;
            }
            Step::Fewer(_, usual) if rate.reaches(99, usual) => self.try_fewer(usual),
            Step::Fewer(before, _) => {
                self.limit = before;
                self.take_rest();
            }
        }
    }

    fn try_more(&mut self, rate: Rate) {
        let before = self.limit;
        self.limit = self.most.min(before + before.div_ceil(2));
        self.step = if self.limit > before { Step::More(before, rate) } else { Step::BeforeFewer };
    }

    fn try_fewer(&mut self, rate: Rate) {
        let before = self.limit;
        self.limit = (before - before.div_ceil(4)).max(1);
        if self.limit < before { self.step = Step::Fewer(before, rate) } else { self.take_rest() }
    }

    /// Waits before the next try, each time for longer.
    fn take_rest(&mut self) {
        self.step = Step::BeforeMore;
        self.rest = self.pause;
        self.pause = LONGEST_REST.min(2 * self.pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit after many events of builders that need `room` events each to be busy: with fewer the rate is as many times
    /// lower.
    fn settle(first: u32, most: u32, room: u32, builders: u64) -> u32 {
        let mut pace = Pace::between(first, most);
        let mut now = 0;
        for _ in 0..1_000_000 {
            now += 1_000_000 * u64::from(room) / u64::from(room.min(pace.limit()));
            pace.ended(Time(now), builders * u64::from(pace.limit()), true);
        }
        pace.limit()
    }

    #[test]
    fn there_are_as_many_as_keep_the_builders_busy() {
        assert_eq!(settle(4, 64, 1000, 8), 64, "no more than the most");
        assert_eq!(settle(16, 64, 1, 8), 1, "one is enough");
        for (first, room) in [(2, 10), (16, 10), (63, 20), (1, 2)] {
            let found = settle(first, 64, room, 4);
            assert!((room..=room + room.div_ceil(2)).contains(&found), "{found} from {first} for {room}");
        }
    }

    #[test]
    fn a_fixed_number_stays() {
        assert_eq!(settle(7, 7, 1000, 8), 7);
        assert_eq!(settle(7, 7, 1, 8), 7);
    }

    #[test]
    fn a_rate_that_triggers_set_says_nothing() {
        let mut pace = Pace::between(4, 64);
        for number in 0..100_000 {
            pace.ended(Time(number * 1_000_000), 2, false);
        }
        assert_eq!(pace.limit(), 4);
    }
}
