//! The number of events under construction: fixed, or found during the run.
//!
//! Every builder has as many as the others, or where that is too much, only some builders have one at a time. Events
//! that wait for each other leave the caches and become old, and bring nothing. Too few leave cores and network idle.
//! Only the event manager sees all of them: a builder alone would gain by more events at the cost of the others. It
//! tries half of them, then some fewer, and keeps to what hardly lowers the rate, since latency falls with their
//! number. It tries half as many more, and keeps them if the rate rises by a fifth of that. A rate that triggers set,
//! and not the builders, says nothing.
//!
//! Half comes first because the rate has a plateau: 128 x 128 units on two cores are as slow with three quarters of far
//! too many events. The latency relative to the shortest one, by which TCP Vegas judges, depends on the sizes of
//! events, and stopped at half of the rate in simulations. Shaped traffic keeps all its slots, because few events leave
//! its buckets empty.

use crate::Config;
use evb_core::{Span, Time};

/// Fewest fragments and events by which a rate is measured.
const FRAGMENTS: u64 = 16_384;
const EVENTS: u64 = 64;
/// Rounds of the events under way by which a rate is measured.
const ROUNDS: u64 = 4;
/// Times that another number must be good enough beside the usual one, measured in turns: a single measurement may be
/// luck.
const PAIRS: u32 = 3;
/// Events of each builder that are not measured, and measurements before the first try: memory that is new is slow.
const WARM_EVENTS: u64 = 16;
const WARM_UP: u32 = 4;
/// Part of the usual rate, in percent, that fewer events under way must reach.
const WORTH: u64 = 98;
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
    /// Returns true if this rate is at least this percentage of another one.
    fn reaches(self, percent: u64, of: Self) -> bool {
        let product =
            |events: u64, span: Span, factor: u64| u128::from(events) * u128::from(span.0) * u128::from(factor);
        product(self.events, of.span, 100) >= product(of.events, self.span, percent)
    }
}

/// The number of events that is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trial {
    /// Half of them. While they are far too many for the caches, some fewer make no difference that can be measured.
    Half,
    /// Three of four.
    Fewer,
    /// Three for each two.
    More,
}

/// The purpose of a measurement.
#[derive(Clone, Copy, Debug)]
enum Measurement {
    /// None: this many follow before the next try.
    Rest(u32),
    /// The usual rate, before another number is tried, which has been as good this many times.
    Usual(Trial, u32),
    /// The rate with another number of events. The usual number and its rate are given.
    Tried { trial: Trial, passed: u32, from: u64, usual: Rate },
}

/// The number of events that all builders together may have under construction: a multiple of the number of builders,
/// or less than that.
pub(super) struct Pace {
    builders: u64,
    /// Events by which a rate is measured at least.
    enough: u64,
    most: u64,
    limit: u64,
    is_fixed: bool,
    step: Measurement,
    /// Measurements of the next rest.
    pause: u32,
    /// Events that are not counted, since they began before the number was changed.
    earlier: u64,
    since: Time,
    events: u64,
    /// Events that ended while others waited for a builder.
    awaited: u64,
}

impl Pace {
    pub(super) fn new(config: &Config) -> Self {
        let (builders, events) = (u64::from(config.builder_units), FRAGMENTS / u64::from(config.readout_units));
        let most = u64::from(config.builder_slots) * builders;
        let first = config.first_under_way.map_or(most, |first| u64::from(first).clamp(1, most));
        Self::between([first, most], builders, events)
    }

    /// The first and the largest number of events of all builders, and the number of events by which a rate is
    /// measured.
    fn between([first, most]: [u64; 2], builders: u64, events: u64) -> Self {
        Self {
            builders,
            enough: events.max(EVENTS),
            most,
            limit: first,
            is_fixed: first == most,
            step: Measurement::Rest(WARM_UP),
            pause: FIRST_REST,
            earlier: WARM_EVENTS * builders,
            since: Time::ZERO,
            events: 0,
            awaited: 0,
        }
    }

    /// The number of events that all builders together may have under construction now.
    pub(super) const fn limit(&self) -> u64 {
        self.limit
    }

    /// Returns true if the number never changes. Then ended events need not be reported to it.
    pub(super) const fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// Takes note of the end of an event. `is_awaited` means that others waited for a builder.
    pub(super) fn ended(&mut self, now: Time, is_awaited: bool) {
        if self.earlier > 0 {
            self.earlier -= 1;
            self.since = now;
            return;
        }
        self.events += 1;
        self.awaited += u64::from(is_awaited);
        let span = now.since(self.since);
        if self.events < self.enough.max(ROUNDS * self.limit) || span == Span::ZERO {
            return;
        }
        let (before, is_limiting) = (self.limit, self.awaited * 2 >= self.events);
        self.advance(Rate { events: self.events, span }, is_limiting);
        self.begin_measurement(before);
        self.since = now;
    }

    /// Begins the measurement anew: events take another time from now on. A number that is being tried is given up.
    pub(super) fn restart(&mut self) {
        let before = self.limit;
        self.give_up(Measurement::Usual(Trial::Half, 0));
        self.begin_measurement(before);
    }

    /// Begins a measurement. Events that began before it, with the number `before` or the present one, are not counted.
    fn begin_measurement(&mut self, before: u64) {
        self.events = 0;
        self.awaited = 0;
        self.earlier = before.max(self.limit);
    }

    fn advance(&mut self, rate: Rate, is_limiting: bool) {
        match self.step {
            // The triggers set the rate: no trial changes it.
            _ if !is_limiting => self.give_up(Measurement::Usual(Trial::Half, 0)),
            Measurement::Rest(0) => self.step = Measurement::Usual(Trial::Half, 0),
            Measurement::Rest(more) => self.step = Measurement::Rest(more - 1),
            Measurement::Usual(trial, passed) => self.try_another(trial, passed, rate),
            Measurement::Tried { trial, passed, from, usual } if self.is_worth_it(from, usual, rate) => {
                if passed + 1 < PAIRS {
                    return self.give_up(Measurement::Usual(trial, passed + 1));
                }
                self.step = Measurement::Usual(trial, 0);
                self.pause = FIRST_REST;
            }
            Measurement::Tried { trial: Trial::Half, .. } => self.give_up(Measurement::Usual(Trial::Fewer, 0)),
            Measurement::Tried { trial: Trial::Fewer, .. } => self.give_up(Measurement::Usual(Trial::More, 0)),
            Measurement::Tried { trial: Trial::More, .. } => {
                let rest = self.rest();
                self.give_up(rest);
            }
        }
    }

    /// Returns true if the number of events that is tried is better than the usual one.
    fn is_worth_it(&self, from: u64, usual: Rate, rate: Rate) -> bool {
        let more = self.limit.saturating_sub(from);
        rate.reaches(if more > 0 { 100 + 20 * more / from } else { WORTH }, usual)
    }

    /// Goes back to the usual number of events.
    fn give_up(&mut self, step: Measurement) {
        if let Measurement::Tried { from, .. } = self.step {
            self.limit = from;
        }
        self.step = step;
    }

    fn try_another(&mut self, trial: Trial, passed: u32, usual: Rate) {
        let (from, builders) = (self.limit, self.builders);
        // Those of each builder, where all have some.
        let each = from / builders;
        self.limit = match trial {
            Trial::Half if from <= builders => from.div_ceil(2),
            Trial::Half => builders * each.div_ceil(2),
            Trial::Fewer if from <= builders => (from - from.div_ceil(4)).max(1),
            Trial::Fewer => from - builders * each.div_ceil(4),
            Trial::More if from < builders => builders.min(from + from.div_ceil(2)),
            Trial::More => self.most.min(from + builders * each.div_ceil(2)),
        };
        self.step = match trial {
            _ if self.limit != from => Measurement::Tried { trial, passed, from, usual },
            Trial::Half => Measurement::Usual(Trial::Fewer, 0),
            Trial::Fewer => Measurement::Usual(Trial::More, 0),
            Trial::More => self.rest(),
        };
    }

    /// The wait before the next try, each time longer.
    fn rest(&mut self) -> Measurement {
        let rest = self.pause;
        self.pause = LONGEST_REST.min(2 * rest);
        Measurement::Rest(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The usual number after many events of builders that together need `room` events to be busy: with fewer the rate
    /// is as many times lower.
    fn settle(first: u64, most: u64, builders: u64, room: u64) -> u64 {
        settle_at(Pace::between([first * builders, most * builders], builders, 256), |limit| {
            1_000_000 * room / room.min(limit)
        })
    }

    /// The usual number after many events, each of which takes a time that depends on the number under way.
    fn settle_at(mut pace: Pace, span: impl Fn(u64) -> u64) -> u64 {
        let mut now = 0;
        for _ in 0..1_000_000 {
            now += span(pace.limit());
            if !pace.is_fixed() {
                pace.ended(Time(now), true);
            }
        }
        match pace.step {
            Measurement::Tried { from, .. } => from,
            _ => pace.limit(),
        }
    }

    #[test]
    fn a_plateau_of_too_many_is_left() {
        // Above 40 events some fewer only cost a little; with 40 or less all is in the caches.
        let span = |limit: u64| if limit > 40 { 2_000_000 - limit } else { 1_000_000 * 20 / limit.min(20) };
        let found = settle_at(Pace::between([64, 128], 1, 256), span);
        assert!((20..=40).contains(&found), "{found}");
    }

    #[test]
    fn there_are_as_many_as_keep_the_builders_busy() {
        assert_eq!(settle(4, 64, 8, 10_000), 64 * 8, "no more than the most");
        assert_eq!(settle(16, 64, 1, 1), 1, "one is enough");
        for (first, room) in [(2, 10), (16, 10), (63, 20), (1, 2)] {
            let found = settle(first, 64, 4, 4 * room);
            assert_eq!(found % 4, 0, "all have as many");
            assert!((room..=room + room.div_ceil(2)).contains(&(found / 4)), "{found} from {first} for {room}");
        }
    }

    #[test]
    fn some_builders_may_be_enough() {
        for (first, builders, room) in [(2, 64, 10), (1, 128, 16), (16, 64, 60)] {
            let found = settle(first, 64, builders, room);
            assert!((room..=room + room.div_ceil(2)).contains(&found), "{found} from {first} for {room}");
        }
    }

    #[test]
    fn rates_of_different_events_are_not_compared() {
        let mut pace = Pace::between([16, 64], 1, 256);
        let mut now = 0;
        while !matches!(pace.step, Measurement::Tried { .. }) {
            now += 1_000_000;
            pace.ended(Time(now), true);
        }
        assert_eq!(pace.limit(), 8, "half is tried");
        // Events are faster from now on: half of them would seem to be better.
        pace.restart();
        assert_eq!(pace.limit(), 16);
        let found = settle_at(pace, |limit| 100_000 * 16 / limit.min(16));
        assert!((16..=24).contains(&found), "{found}");
    }

    #[test]
    fn a_fixed_number_stays() {
        assert_eq!(settle(7, 7, 8, 1000), 7 * 8);
        assert_eq!(settle(7, 7, 8, 1), 7 * 8);
    }

    #[test]
    fn a_rate_that_triggers_set_says_nothing() {
        let mut pace = Pace::between([8, 128], 2, 256);
        for number in 0..100_000 {
            pace.ended(Time(number * 1_000_000), false);
        }
        assert_eq!(pace.limit(), 4 * 2);
    }
}
