//! The gate of a writer. It is shut while it is held, while its node is away, and for good behind the fence.
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

/// The gate between a node and its writer. All functions except [`ran`](WriteLease::ran) and [`is_held`](WriteLease::is_held) are
/// called under one lock: a writer that found its node away cannot shut the gate after a release.
pub(super) struct WriteLease {
    /// Longest absence of the node in nanoseconds; none if its peers never give it up.
    lease: Option<u64>,
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
    pub(super) fn new(lease: Option<Duration>) -> Self {
        Self {
            lease: lease.map(|lease| lease.as_nanos() as u64),
            alive: AtomicU64::new(0),
            held: AtomicBool::new(false),
            fenced: AtomicBool::new(false),
        }
    }

    /// Notes that the node's loop runs. A node that was away for longer than its lease finds the gate held.
    pub(super) fn ran(&self, now: impl FnOnce() -> u64) {
        if self.lease.is_some() {
            let now = now();
            self.look(now);
            self.alive.store(now, Ordering::SeqCst);
        }
    }

    /// The current permission of the writer.
    pub(super) fn way(&self, now: u64) -> LeaseState {
        self.look(now);
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

    /// Shuts the gate if the node is away.
    fn look(&self, now: u64) {
        let alive = self.alive.load(Ordering::SeqCst);
        let is_away = |lease: u64| alive > 0 && now.saturating_sub(alive) > lease;
        if self.lease.is_some_and(is_away) {
            self.hold();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate() -> WriteLease {
        WriteLease::new(Some(Duration::from_nanos(100)))
    }

    #[test]
    fn a_node_may_be_away_for_its_lease_and_no_longer() {
        let gate = gate();
        gate.ran(|| 1000);
        assert_eq!((gate.way(1050), gate.way(1100)), (LeaseState::Open, LeaseState::Open));
        assert_eq!(gate.way(1101), LeaseState::Held);
    }

    #[test]
    fn a_node_that_comes_back_is_held_until_it_is_released() {
        let gate = gate();
        gate.ran(|| 1000);
        gate.ran(|| 1101);
        assert_eq!(gate.way(1101), LeaseState::Held, "the writer itself has not looked meanwhile");
        gate.ran(|| 1150);
        assert_eq!(gate.way(1160), LeaseState::Held, "to run again is not enough");
        gate.release();
        assert_eq!(gate.way(1160), LeaseState::Open);
    }

    #[test]
    fn a_node_that_has_not_begun_is_not_away() {
        let gate = gate();
        assert_eq!(gate.way(5000), LeaseState::Open);
        gate.ran(|| 6000);
        assert_eq!(gate.way(6100), LeaseState::Open);
    }

    #[test]
    fn without_a_lease_nobody_is_away() {
        let gate = WriteLease::new(None);
        gate.ran(|| 1);
        assert_eq!(gate.way(u64::MAX), LeaseState::Open);
    }

    #[test]
    fn behind_the_fence_a_release_opens_nothing() {
        let gate = gate();
        gate.hold();
        gate.fence();
        gate.release();
        assert_eq!(gate.way(1), LeaseState::Fenced);
    }
}
