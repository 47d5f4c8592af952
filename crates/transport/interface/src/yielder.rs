//! Yields of a thread that waits, as long as they are short.

use evb_core::{LongYields, Time};
use std::{thread, time::Instant};

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
#[derive(Debug)]
pub struct Yielder {
    start: Instant,
    yields: LongYields,
}

impl Default for Yielder {
    fn default() -> Self {
        Self { start: Instant::now(), yields: LongYields::default() }
    }
}

impl Yielder {
    /// Yields at `now`. Returns false at once if a sleep is better, because yields were long of late.
    #[must_use]
    pub fn try_yield(&mut self, now: Instant) -> bool {
        let start = self.time(now);
        if !self.yields.may_yield(start) {
            return false;
        }
        thread::yield_now();
        let end = self.time(Instant::now());
        self.yields.yielded(start, end);
        true
    }

    fn time(&self, now: Instant) -> Time {
        Time::ZERO + now.saturating_duration_since(self.start).into()
    }
}
