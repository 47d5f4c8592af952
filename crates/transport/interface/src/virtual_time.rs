//! The time of a simulated network, as its nodes see it.

use evb_core::Time;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// A clock that all nodes of a simulated network share. The simulator sets it; copies show the same time.
#[derive(Clone, Debug, Default)]
pub struct VirtualTime(Arc<AtomicU64>);

impl VirtualTime {
    /// The time since the network began.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Time {
        Time(self.0.load(Ordering::Acquire))
    }

    /// Sets the time to `now`. Earlier writes are visible to threads that see this time.
    pub fn set(&self, now: Time) {
        self.0.store(now.0, Ordering::Release);
    }
}
