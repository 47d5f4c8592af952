//! The behaviour of a node without work; the same for all message layers.

use evb_node::{IdleAction, IdleLadder};
use serde::{Deserialize, Serialize};
use std::thread;

/// Polls in a round of an idle node, if there is a core for each node.
const POLLS_ALONE: u32 = 16;
/// Rounds without work before a node yields, if there is a core for each node.
const SPINS_ALONE: u32 = 125;
/// Rounds without work before a node yields, if nodes share cores.
const SPINS_SHARED: u32 = 20;
/// Yields of a node before it sleeps.
const YIELDS: u32 = 20;

/// Behaviour of a node without work. It is the same for all message layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// Polls again at once. With more nodes than cores it keeps others from working.
    Spin,
    /// Polls some times, then yields to others each time.
    Yield,
    /// Polls some times, yields some times, then sleeps until the layer wakes it.
    Sleep,
}

impl Wait {
    /// The name in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin",
            Self::Yield => "yield",
            Self::Sleep => "sleep",
        }
    }
}

/// The time without work of a node, and its reaction.
pub(crate) struct IdlePolicy {
    wait: Wait,
    /// Polls in a round without work.
    polls: u32,
    ladder: IdleLadder,
}

impl IdlePolicy {
    pub(crate) fn new(wait: Wait, shares_cores: bool) -> Self {
        let (polls, spins) = if shares_cores { (1, SPINS_SHARED) } else { (POLLS_ALONE, SPINS_ALONE) };
        Self { wait, polls, ladder: IdleLadder::new(spins, YIELDS) }
    }

    /// A node on a simulated network, where no other needs its processor: it sleeps at once, in virtual time.
    pub(crate) const fn virtual_time() -> Self {
        Self { wait: Wait::Sleep, polls: 1, ladder: IdleLadder::new(0, 0) }
    }

    /// Number of polls in a round of a node that had no work in the last one.
    #[inline]
    pub(crate) const fn polls(&self) -> u32 {
        self.polls
    }

    /// Ends a round with or without progress; `sleep` sleeps until something may have arrived. Returns true if it slept.
    #[inline]
    pub(crate) fn after(&mut self, moved: bool, sleep: impl FnOnce()) -> bool {
        match (self.ladder.after(moved), self.wait) {
            (None | Some(IdleAction::Spin), _) | (_, Wait::Spin) => false,
            (Some(IdleAction::Sleep), Wait::Sleep) => {
                sleep();
                true
            }
            _ => {
                thread::yield_now();
                false
            }
        }
    }
}
