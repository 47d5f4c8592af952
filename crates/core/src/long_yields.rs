//! When a thread that waits should sleep instead of yielding.

use crate::{Span, Time};

/// A yield up to this long costs no more than a sleep. A thread with little to do returns the core after a few microseconds;
/// a busy one keeps it for a time slice of several milliseconds.
const LONG: Span = Span::from_millis(1);

/// Time in which long yields show a busy program if they take more than half of it. A few may be work of the threads that the
/// yields were for.
const WINDOW: Span = Span::from_millis(40);

/// Time without yields after that, so that the next long one costs some percent of the time at most.
const PAUSE: Span = Span::from_millis(100);

/// Time after a pause in which a single long yield shows that the program is still there.
const SOON: Span = Span::from_millis(20);

/// The long yields of a thread, by which it knows that a busy program shares its core. Then it should sleep instead: that one
/// keeps the core for a time slice after each yield, and a thread that slept gets it soon after it is woken.
#[derive(Clone, Copy, Debug, Default)]
pub struct LongYields {
    /// Begin of the window, and the time that long yields took in it.
    begin: Option<Time>,
    lost: Span,
    /// Time until which the thread does not yield.
    pauses_until: Option<Time>,
}

impl LongYields {
    /// True if a yield at `now` is no worse than a sleep.
    #[must_use]
    pub fn may_yield(&self, now: Time) -> bool {
        self.pauses_until.is_none_or(|until| now >= until)
    }

    /// Takes note of a yield.
    pub fn yielded(&mut self, start: Time, end: Time) {
        let took = end.since(start);
        if took <= LONG {
            return;
        }
        if self.begin.is_none_or(|begin| end.since(begin) > WINDOW) {
            (self.begin, self.lost) = (Some(start), Span::ZERO);
        }
        self.lost = self.lost + took;
        if self.lost > Span(WINDOW.0 / 2) || self.pauses_until.is_some_and(|until| start < until + SOON) {
            (self.begin, self.pauses_until) = (None, Some(end + PAUSE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_yield_for_a_while_after_many_long_ones() {
        let (mut yields, mut now) = (LongYields::default(), Time::ZERO);
        let mut yields_for = |yields: &mut LongYields, time| {
            yields.yielded(now, now + time);
            now = now + time;
            now
        };
        let half = Span(WINDOW.0 / 2);
        yields_for(&mut yields, half);
        let now = yields_for(&mut yields, LONG);
        assert!(yields.may_yield(now), "the last one was not long");
        // The time of the first one is over.
        yields_for(&mut yields, half);
        assert!(yields.pauses_until.is_none());
        let now = yields_for(&mut yields, Span(2 * LONG.0));
        assert!(!yields.may_yield(now) && !yields.may_yield(now + Span(PAUSE.0 / 2)));
        let after = now + PAUSE;
        assert!(yields.may_yield(after));
        yields.yielded(after, after + Span(2 * LONG.0));
        assert!(!yields.may_yield(after + Span(2 * LONG.0)), "the program is still there");
        let late = after + Span(2 * PAUSE.0) + SOON;
        yields.yielded(late, late + Span(2 * LONG.0));
        assert!(yields.may_yield(late + Span(2 * LONG.0)), "it is gone");
    }
}
