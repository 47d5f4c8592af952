//! The primitives of loom under the names that mailbox and bell use.
//!
//! loom treats sequentially consistent loads and stores as acquire and release, and orders only the fences. Here, a
//! sequentially consistent load that follows such a write of its thread passes a fence first. The two are in one order
//! with all other fences then, as the language promises, and neither is if the other is weaker.

pub(crate) use loom::sync::atomic::{Ordering, fence};
use loom::sync::{Condvar, Mutex, atomic};
use std::{cell::Cell, time::Duration};

loom::thread_local! {
    /// True if this thread has written in a sequentially consistent way since its last fence for that.
    static HAS_WRITTEN: Cell<bool> = Cell::new(false);
}

fn before_load(order: Ordering) {
    if order == Ordering::SeqCst && HAS_WRITTEN.with(|written| written.replace(false)) {
        fence(Ordering::SeqCst);
    }
}

fn after_write(order: Ordering) {
    if order == Ordering::SeqCst {
        HAS_WRITTEN.with(|written| written.set(true));
    }
}

/// A word of a segment.
#[derive(Debug, Default)]
pub(crate) struct Word(atomic::AtomicU64);

impl Word {
    pub(crate) fn load(&self, order: Ordering) -> u64 {
        before_load(order);
        self.0.load(order)
    }

    pub(crate) fn store(&self, value: u64, order: Ordering) {
        self.0.store(value, order);
        after_write(order);
    }

    pub(crate) fn swap(&self, value: u64, order: Ordering) -> u64 {
        let old = self.0.swap(value, order);
        after_write(order);
        old
    }

    pub(crate) fn compare_exchange(
        &self,
        old: u64,
        new: u64,
        success: Ordering,
        failure: Ordering,
    ) -> Result<u64, u64> {
        self.0.compare_exchange(old, new, success, failure)
    }
}

/// A half word of a segment, with those that sleep on it.
#[derive(Debug, Default)]
pub(crate) struct Half {
    value: atomic::AtomicU32,
    /// The lock under which the system compares the value and queues a sleeper.
    queue: Mutex<()>,
    woken: Condvar,
}

impl Half {
    pub(crate) fn load(&self, order: Ordering) -> u32 {
        before_load(order);
        self.value.load(order)
    }

    /// A swap, because loom may order a store before a swap of another thread that has read an older value.
    pub(crate) fn store(&self, value: u32, order: Ordering) {
        self.swap(value, order);
    }

    pub(crate) fn swap(&self, value: u32, order: Ordering) -> u32 {
        let old = self.value.swap(value, order);
        after_write(order);
        old
    }
}

/// Sleeps without an end, so that a lost wake-up is a deadlock.
pub(crate) fn sleep(half: &Half, value: u32, _: Duration) {
    let queue = half.queue.lock().unwrap();
    if half.value.load(Ordering::Relaxed) == value {
        drop(half.woken.wait(queue).unwrap());
    }
}

pub(crate) fn wake(half: &Half) {
    let _queue = half.queue.lock().unwrap();
    half.woken.notify_all();
}
