//! Waiting where the system has no wait: poll, yield, sleep.

use evb_transport::{Waker, Yielder, doorbell::Doorbell};
use std::{
    hint, iter,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Polls in a row before the first yield.
const SPINS: usize = 64;
/// Yields before the first sleep.
const YIELDS: usize = 64;
/// The first sleep; each sleep is twice as long as the one before.
const FIRST_SLEEP: Duration = Duration::from_micros(10);
/// The longest sleep.
const LONGEST_SLEEP: Duration = Duration::from_millis(1);

/// The bell that ends a wait from outside.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    called: AtomicBool,
    doorbell: Doorbell,
    /// Of the one thread that waits.
    yielder: Mutex<Yielder>,
}

impl Bell {
    /// A handle that ends the current wait or else the next.
    pub(crate) fn waker(bell: &Arc<Self>) -> Waker {
        let bell = Arc::clone(bell);
        Arc::new(move || {
            bell.called.store(true, Ordering::Release);
            bell.doorbell.call();
        })
    }

    /// Polls until `ready` holds, the waker was called, or the time is over.
    pub(crate) fn wait(&self, timeout: Duration, mut ready: impl FnMut() -> bool) {
        let start = Instant::now();
        let mut yielder = self.yielder.lock().unwrap_or_else(PoisonError::into_inner);
        let mut steps = steps();
        while !ready() && !self.called.load(Ordering::Relaxed) {
            let now = Instant::now();
            let left = timeout.saturating_sub(now - start);
            match steps.next() {
                _ if left.is_zero() => break,
                Some(WaitStep::Spin) => hint::spin_loop(),
                Some(WaitStep::Yield) if yielder.try_yield(now) => {}
                Some(WaitStep::Yield) => self.doorbell.wait(FIRST_SLEEP.min(left), || false),
                Some(WaitStep::Sleep(time)) => self.doorbell.wait(time.min(left), || false),
                None => unreachable!("the last step goes on for good"),
            }
        }
        self.called.swap(false, Ordering::Acquire);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitStep {
    Spin,
    Yield,
    Sleep(Duration),
}

fn steps() -> impl Iterator<Item = WaitStep> {
    let sleeps = iter::successors(Some(FIRST_SLEEP), |&last| Some((2 * last).min(LONGEST_SLEEP)));
    iter::repeat_n(WaitStep::Spin, SPINS)
        .chain(iter::repeat_n(WaitStep::Yield, YIELDS))
        .chain(sleeps.map(WaitStep::Sleep))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn a_wait_ends_by_a_call_by_what_is_ready_and_by_time() {
        let bell = Arc::new(Bell::default());
        let long = Duration::from_secs(3600);
        Bell::waker(&bell)();
        bell.wait(long, || false);
        let mut looks = 0;
        bell.wait(long, || {
            looks += 1;
            looks == SPINS + YIELDS + 3
        });
        bell.wait(Duration::from_micros(100), || false);
        let waker = Bell::waker(&bell);
        let caller = thread::spawn(move || waker());
        bell.wait(long, || false);
        caller.join().unwrap();
    }

    #[test]
    fn sleeps_become_longer_up_to_the_limit() {
        let steps: Vec<_> = steps().skip(SPINS + YIELDS).take(20).collect();
        assert_eq!(steps[..2], [WaitStep::Sleep(FIRST_SLEEP), WaitStep::Sleep(2 * FIRST_SLEEP)]);
        assert_eq!(steps[19], WaitStep::Sleep(LONGEST_SLEEP));
    }
}
