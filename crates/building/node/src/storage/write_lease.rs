//! The permission of a writer to write. It is suspended while the node is away, and ends for good at the fence.
//!
//! A builder whose loop stood still for longer than its peers wait may have been given up, and its events may be built
//! elsewhere. So its storage is held until the event manager confirms it or fences it off. Behind the fence, unreported
//! events are removed from its file.

use std::{
    sync::{
        LazyLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// The permission of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseState {
    /// Write, and report events as stored.
    Open,
    /// Wait.
    Held,
    /// Write nothing from now on.
    Fenced,
}

/// The permission that a node gives to its writer. All functions except [`renew`](Self::renew) and
/// [`is_held`](Self::is_held) are called under one lock, so that a writer that found its node away cannot hold the lease
/// after a release.
pub(super) struct WriteLease {
    /// Longest absence of the node in nanoseconds; `None` if its peers never give it up.
    longest_absence: Option<u64>,
    /// Time of the last round of the node's loop, in nanoseconds of [`now`]; 0 before the first one.
    alive: AtomicU64,
    held: AtomicBool,
    fenced: AtomicBool,
}

/// Nanoseconds of a monotonic clock, more than 0.
pub(super) fn now() -> u64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    START.elapsed().as_nanos() as u64 + 1
}

impl WriteLease {
    pub(super) fn new(longest_absence: Option<Duration>) -> Self {
        Self {
            longest_absence: longest_absence.map(|absence| absence.as_nanos() as u64),
            alive: AtomicU64::new(0),
            held: AtomicBool::new(false),
            fenced: AtomicBool::new(false),
        }
    }

    /// Renews the lease: the node's loop runs. The lease of a node that was away for too long is held.
    pub(super) fn renew(&self, now: impl FnOnce() -> u64) {
        if self.longest_absence.is_some() {
            let now = now();
            self.check(now);
            self.alive.store(now, Ordering::SeqCst);
        }
    }

    /// The current permission of the writer.
    pub(super) fn state(&self, now: u64) -> LeaseState {
        self.check(now);
        match (self.fenced.load(Ordering::SeqCst), self.is_held()) {
            (true, _) => LeaseState::Fenced,
            (false, true) => LeaseState::Held,
            (false, false) => LeaseState::Open,
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.held.load(Ordering::SeqCst)
    }

    pub(super) fn hold(&self) {
        self.held.store(true, Ordering::SeqCst);
    }

    pub(super) fn release(&self) {
        self.held.store(false, Ordering::SeqCst);
    }

    pub(super) fn fence(&self) {
        self.fenced.store(true, Ordering::SeqCst);
    }

    /// Holds the lease if the node is away.
    fn check(&self, now: u64) {
        let alive = self.alive.load(Ordering::SeqCst);
        let is_away = |longest: u64| alive > 0 && now.saturating_sub(alive) > longest;
        if self.longest_absence.is_some_and(is_away) {
            self.hold();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease() -> WriteLease {
        WriteLease::new(Some(Duration::from_nanos(100)))
    }

    #[test]
    fn a_node_may_be_away_for_its_lease_and_no_longer() {
        let lease = lease();
        lease.renew(|| 1000);
        assert_eq!((lease.state(1050), lease.state(1100)), (LeaseState::Open, LeaseState::Open));
        assert_eq!(lease.state(1101), LeaseState::Held);
    }

    #[test]
    fn a_node_that_comes_back_is_held_until_it_is_released() {
        let lease = lease();
        lease.renew(|| 1000);
        lease.renew(|| 1101);
        assert_eq!(lease.state(1101), LeaseState::Held, "the writer has not checked meanwhile");
        lease.renew(|| 1150);
        assert_eq!(lease.state(1160), LeaseState::Held, "to run again does not suffice");
        lease.release();
        assert_eq!(lease.state(1160), LeaseState::Open);
    }

    #[test]
    fn a_node_that_has_not_begun_is_not_away() {
        let lease = lease();
        assert_eq!(lease.state(5000), LeaseState::Open);
        lease.renew(|| 6000);
        assert_eq!(lease.state(6100), LeaseState::Open);
    }

    #[test]
    fn without_a_longest_absence_no_node_is_away() {
        let lease = WriteLease::new(None);
        lease.renew(|| 1);
        assert_eq!(lease.state(u64::MAX), LeaseState::Open);
    }

    #[test]
    fn a_release_opens_no_fenced_lease() {
        let lease = lease();
        lease.hold();
        lease.fence();
        lease.release();
        assert_eq!(lease.state(1), LeaseState::Fenced);
    }
}
