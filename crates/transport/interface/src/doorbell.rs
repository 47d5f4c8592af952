//! A doorbell: one thread sleeps until another has something for it, at the price of a fence and a load if nobody
//! sleeps.
//!
//! A worker hosts many endpoints and sleeps on one [`Doorbell`] for all of them.
//!
//! # Why no wake-up is lost
//! The ringer publishes its data, passes a sequentially consistent fence and loads `sleeping`. The sleeper stores
//! `sleeping`, passes such a fence and asks `ready` for the data. Fences of this kind have one total order:
//! - the ringer's fence is first: `ready` sees the data, and the sleeper does not park;
//! - the sleeper's fence is first: the ringer's load sees `sleeping` set, or a later value. A later value was written
//!   by another ringer, which unparks the sleeper, or by the sleeper itself, which is awake.
//!
//! An unpark before the park makes the park return at once. An unpark that comes too late makes a later park return
//! early, which [`Doorbell::wait`] allows. `tests/doorbell.rs` checks this with a model checker.

use crate::sync::{AtomicBool, Mutex, Ordering, Thread, current, fence, park_timeout};
use std::time::Duration;

/// A doorbell: one thread sleeps on it, and any thread rings it.
#[derive(Debug)]
pub struct Doorbell {
    sleeping: AtomicBool,
    called: AtomicBool,
    sleeper: Mutex<Option<Thread>>,
}

impl Doorbell {
    /// A doorbell without a sleeper.
    #[must_use]
    pub fn new() -> Self {
        Self { sleeping: AtomicBool::new(false), called: AtomicBool::new(false), sleeper: Mutex::new(None) }
    }

    /// Wakes the sleeper, if there is one. The caller must first publish the data that the sleeper's `ready` checks.
    #[inline]
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed) {
            self.rouse();
        }
    }

    /// Ends the current [`wait`](Doorbell::wait), or else the next one, whatever its `ready` returns.
    pub fn call(&self) {
        self.called.store(true, Ordering::Release);
        self.ring();
    }

    /// Sleeps until `ready` holds after a ring, a call, or the `timeout`; may return early. Returns at once if `ready`
    /// holds already. Only one thread at a time may wait on a doorbell.
    pub fn wait(&self, timeout: Duration, ready: impl Fn() -> bool) {
        let awake = || ready() || self.called.load(Ordering::Relaxed);
        if !awake() {
            *self.sleeper.lock().expect("no code panics under this lock") = Some(current());
            // A swap like the ringers', so that all changes of this flag are in one chain.
            self.sleeping.swap(true, Ordering::AcqRel);
            fence(Ordering::SeqCst);
            if !awake() {
                park_timeout(timeout);
            }
            self.sleeping.swap(false, Ordering::AcqRel);
        }
        self.called.swap(false, Ordering::Acquire);
    }

    #[cold]
    fn rouse(&self) {
        if self.sleeping.swap(false, Ordering::AcqRel)
            && let Some(thread) = &*self.sleeper.lock().expect("no code panics under this lock")
        {
            thread.unpark();
        }
    }
}

impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}
