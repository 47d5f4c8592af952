//! The synchronisation primitives of mailboxes. The model-checking tests replace them by those of loom.

pub(crate) use std::sync::atomic::{Ordering, fence};

use rustix::thread::futex::{self, Flags, Timespec};
use std::{sync::atomic::AtomicU32, time::Duration};

/// Sleeps until [`wake`], for this time at most, unless the half word has another value. May return early.
pub(crate) fn sleep(half: &AtomicU32, value: u32, time: Duration) {
    let time = Timespec { tv_sec: time.as_secs() as _, tv_nsec: time.subsec_nanos().into() };
    let _ = futex::wait(half, Flags::empty(), value, Some(&time));
}

/// Wakes all that sleep on a half word, in all processes.
pub(crate) fn wake(half: &AtomicU32) {
    let _ = futex::wake(half, Flags::empty(), u32::MAX >> 1);
}
