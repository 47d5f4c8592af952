//! Yields of a thread that waits, as long as they are short.

use std::{
    thread,
    time::{Duration, Instant},
};

/// Longest yield that is no worse than a sleep. Threads that rest again soon need some microseconds, and one that does not
/// keeps the core for a time slice of milliseconds.
const LONG: Duration = Duration::from_millis(1);

/// Longest time from the end of one long yield to the next one that shows a busy program. A single one may be work of the
/// threads that the yield was for.
const SOON: Duration = Duration::from_millis(20);

/// Time without yields after two such long ones, so that these cost some percent of the time at most.
const PAUSE: Duration = Duration::from_millis(100);

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
    /// End of the last long yield.
    long_until: Option<Instant>,
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
        if end.saturating_duration_since(start) <= LONG {
            return;
        }
        let last = self.long_until.replace(end);
        if last.is_some_and(|last| start.saturating_duration_since(last) < SOON) {
            self.pauses_until = Some(end + PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_no_yield_for_a_while_after_two_long_ones() {
        let (mut yielder, mut now) = (Yielder::default(), Instant::now());
        let mut yields_for = |yielder: &mut Yielder, time| {
            yielder.yielded(now, now + time);
            now += time;
            now
        };
        yields_for(&mut yielder, 2 * LONG);
        let now = yields_for(&mut yielder, LONG);
        assert!(yielder.try_yield(now), "one was not long");
        yields_for(&mut yielder, SOON);
        let now = yields_for(&mut yielder, 2 * LONG);
        assert!(!yielder.try_yield(now) && !yielder.try_yield(now + PAUSE / 2));
        assert!(yielder.try_yield(now + PAUSE));
    }
}
