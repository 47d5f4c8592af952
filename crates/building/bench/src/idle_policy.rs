//! The behaviour of a node without work; the same for all message layers.

use crate::measurement::Wait;
use std::thread;

/// Polls in a round of an idle node, if there is a core for each node.
const POLLS_ALONE: u32 = 16;
/// Rounds without work before a node yields, if there is a core for each node.
const SPINS_ALONE: u32 = 125;
/// Rounds without work before a node yields, if nodes share cores.
const SPINS_SHARED: u32 = 20;
/// Yields of a node before it sleeps.
const YIELDS: u32 = 20;

/// The time without work of a node, and its reaction.
pub(crate) struct IdlePolicy {
    wait: Wait,
    /// Polls in a round without work.
    polls: u32,
    /// Rounds, and yields, before the next step.
    spins: u32,
    yields: u32,
    idle: u32,
}

impl IdlePolicy {
    pub(crate) fn new(wait: Wait, shares_cores: bool) -> Self {
        let (polls, spins) = if shares_cores { (1, SPINS_SHARED) } else { (POLLS_ALONE, SPINS_ALONE) };
        Self { wait, polls, spins, yields: YIELDS, idle: 0 }
    }

    /// A node on a simulated network, where no other needs its processor: it sleeps at once, in virtual time.
    pub(crate) fn virtual_time() -> Self {
        Self { wait: Wait::Sleep, polls: 1, spins: 0, yields: 0, idle: 0 }
    }

    /// Number of polls in a round of a node that had no work in the last one.
    #[inline]
    pub(crate) const fn polls(&self) -> u32 {
        self.polls
    }

    /// Ends a round with or without progress; `sleep` sleeps until something may have arrived. Returns true if it slept.
    #[inline]
    pub(crate) fn after(&mut self, moved: bool, sleep: impl FnOnce()) -> bool {
        self.idle = if moved { 0 } else { self.idle.saturating_add(1) };
        if self.wait == Wait::Spin || self.idle <= self.spins {
            return false;
        }
        let sleeps = self.wait == Wait::Sleep && self.idle > self.spins + self.yields;
        if sleeps {
            sleep()
        } else {
            thread::yield_now()
        }
        sleeps
    }
}
