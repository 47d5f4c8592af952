//! What a node without work does; the same for all message layers.

use crate::cell::Wait;
use std::thread;

/// Looks without work before a node lets others run, when there is a core for each node.
const SPINS_ALONE: u32 = 2000;
/// The same when nodes share cores.
const SPINS_SHARED: u32 = 20;
/// Times that a node lets others run before it sleeps.
const YIELDS: u32 = 20;

/// How long a node has had no work, and what it does about it.
pub(crate) struct Rest {
    wait: Wait,
    /// Looks, and times that others run, before something else comes.
    spins: u32,
    yields: u32,
    idle: u32,
}

impl Rest {
    pub(crate) fn new(wait: Wait, shares_cores: bool) -> Self {
        Self { wait, spins: if shares_cores { SPINS_SHARED } else { SPINS_ALONE }, yields: YIELDS, idle: 0 }
    }

    /// A node on a simulated network, where no other wants its processor: it sleeps at once, in virtual time.
    pub(crate) fn virtual_time() -> Self {
        Self { wait: Wait::Sleep, spins: 0, yields: 0, idle: 0 }
    }

    /// After a round in which something moved, or not; `sleep` sleeps until something may have come.
    #[inline]
    pub(crate) fn after(&mut self, moved: bool, sleep: impl FnOnce()) {
        self.idle = if moved { 0 } else { self.idle.saturating_add(1) };
        if self.wait == Wait::Spin || self.idle <= self.spins {
            return;
        }
        match self.wait {
            Wait::Sleep if self.idle > self.spins + self.yields => sleep(),
            _ => thread::yield_now(),
        }
    }
}
