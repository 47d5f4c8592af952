//! A bell between processes: one process sleeps until another has something for it. The other reads a word that only
//! the sleeper writes, and rings with a byte on a socket, once for each sleep.
//!
//! The word is a count, odd during a sleep. The argument is that of [`doorbell`](evb_transport::doorbell): the ringer publishes
//! its news, passes a sequentially consistent fence and loads the word; the sleeper stores the word, passes such a
//! fence and checks for news once more. Whichever fence is first, the news is seen or the bell is rung. A byte that
//! comes too late ends a later sleep early, which is allowed. `tests/lane.rs` has the model check.

use crate::sync::{AtomicU64, Ordering, fence};

/// Index of the word of an endpoint's page that counts its signs of life, on its own cache line.
pub(crate) const PULSE: usize = 16;

/// Begins a sleep. The caller checks for news after this, and sleeps only if there is none.
pub(crate) fn fall_asleep(word: &AtomicU64) {
    word.store(word.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
    fence(Ordering::SeqCst);
}

/// Ends a sleep.
pub(crate) fn wake_up(word: &AtomicU64) {
    let count = word.load(Ordering::Relaxed);
    word.store(count + (count & 1), Ordering::Relaxed);
}

/// State of a ringer: the last sleep that it has ended.
#[derive(Debug, Default)]
pub(crate) struct Ringer {
    rung: AtomicU64,
}

impl Ringer {
    /// Returns true if the sleeper must be rung. The caller has published news and passed a sequentially consistent
    /// fence.
    #[inline]
    pub(crate) fn must_ring(&self, word: &AtomicU64) -> bool {
        let count = word.load(Ordering::Relaxed);
        count & 1 == 1 && self.rung.swap(count, Ordering::Relaxed) != count
    }
}
