//! Yields of a thread that waits, as long as they are short.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Longest yield that is no worse than a sleep. Threads that rest again soon need some microseconds, and one that does not
/// keeps the core for a time slice of milliseconds.
const LONG: Duration = Duration::from_millis(1);

/// Time in which long yields show a busy program if they take more than half of it. A few may be work of the threads that the
/// yields were for.
const WINDOW: Duration = Duration::from_millis(40);

/// Time without yields after that, so that the next long one costs some percent of the time at most.
const PAUSE: Duration = Duration::from_millis(100);

/// Time after a pause in which a single long yield shows that the program is still there.
const SOON: Duration = Duration::from_millis(20);

/// Yields of a thread that waits, unless another program keeps its core.
///
/// A thread that yields lets the others on its core go on, and comes back when they rest. A busy program does not rest: it
/// keeps the core for a time slice after each yield. A thread that sleeps instead gets the core soon after it is woken,
/// since it has had less of it than the other.
///
/// ```
/// use evb_transport::Yielder;
/// use std::{thread, time::{Duration, Instant}};
///
/// let work = thread::spawn(|| 42);
/// let mut yielder = Yielder::default();
/// while !work.is_finished() {
///     if !yielder.try_yield(Instant::now()) {
///         thread::sleep(Duration::from_micros(10));
///     }
/// }
/// # assert_eq!(work.join().unwrap(), 42);
/// ```
#[derive(Debug, Default)]
pub struct Yielder {
    /// Begin of the window, and the time that long yields took in it.
    begin: Option<Instant>,
    lost: Duration,
    /// Time until which the thread does not yield.
    pauses_until: Option<Instant>,
}

impl Yielder {
    /// Yields at `now`. Returns false at once if a sleep is better, because yields were long of late.
    #[must_use]
    pub fn try_yield(&mut self, now: Instant) -> bool {
        if self.pauses_until.is_some_and(|until| now < until) {
            return false;
        }
        thread::yield_now();
        self.yielded(now, Instant::now());
        true
    }

    fn yielded(&mut self, start: Instant, end: Instant) {
        let took = end.saturating_duration_since(start);
        if took <= LONG {
            return;
        }
        if self.begin.is_none_or(|begin| end.saturating_duration_since(begin) > WINDOW) {
            (self.begin, self.lost) = (Some(start), Duration::ZERO);
        }
        self.lost += took;
        if self.lost > WINDOW / 2 || self.pauses_until.is_some_and(|until| start < until + SOON) {
            (self.begin, self.pauses_until) = (None, Some(end + PAUSE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_yield_for_a_while_after_many_long_ones() {
        let (mut yielder, mut now) = (Yielder::default(), Instant::now());
        let mut yields_for = |yielder: &mut Yielder, time| {
            yielder.yielded(now, now + time);
            now += time;
            now
        };
        let half = WINDOW / 2;
        yields_for(&mut yielder, half);
        let now = yields_for(&mut yielder, LONG);
        assert!(yielder.try_yield(now), "the last one was not long");
        // The time of the first one is over.
        yields_for(&mut yielder, half);
        assert!(yielder.pauses_until.is_none());
        let now = yields_for(&mut yielder, 2 * LONG);
        assert!(!yielder.try_yield(now) && !yielder.try_yield(now + PAUSE / 2));
        let after = now + PAUSE;
        assert!(yielder.try_yield(after));
        yielder.yielded(after, after + 2 * LONG);
        assert!(!yielder.try_yield(after + 2 * LONG), "the program is still there");
        let late = after + 2 * PAUSE + SOON;
        yielder.yielded(late, late + 2 * LONG);
        assert!(yielder.try_yield(late + 2 * LONG), "it is gone");
    }
}
