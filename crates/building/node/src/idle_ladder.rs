//! The order in which a thread without work spins, yields and sleeps. Workers of nodes and nodes of benchmarks share it.
//!
//! Both choose their own lengths, and differ in what they do on a step:
//!
//! - A worker yields through a [`Yielder`](evb_transport::Yielder), which sleeps instead on a busy machine, and its sleep
//!   ends with the next deadline of its nodes.
//! - A node of a benchmark yields whatever the load, may never sleep or never yield, and polls several times per round.
//!
//! A [`Parker`](evb_transport::Parker) is the sleep itself: the last step of a message layer that has no file to wait on.

/// The next action of a thread without work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleAction {
    /// Poll again at once.
    Spin,
    /// Yield the core to other threads.
    Yield,
    /// Sleep until there may be work.
    Sleep,
}

/// Counts the rounds without work of a thread.
#[derive(Clone, Copy, Debug)]
pub struct IdleLadder {
    spins: u32,
    yields: u32,
    /// Rounds since the last one with work.
    idle: u32,
}

impl IdleLadder {
    /// A ladder with this number of spins, and then of yields, before the first sleep.
    #[must_use]
    pub const fn new(spins: u32, yields: u32) -> Self {
        Self { spins, yields, idle: 0 }
    }

    /// The next action after a round; `None` if it had work.
    #[inline]
    pub const fn after(&mut self, had_work: bool) -> Option<IdleAction> {
        if had_work {
            self.idle = 0;
            return None;
        }
        self.idle = self.idle.saturating_add(1);
        if self.idle <= self.spins {
            Some(IdleAction::Spin)
        } else if self.idle <= self.spins + self.yields {
            Some(IdleAction::Yield)
        } else {
            Some(IdleAction::Sleep)
        }
    }

    /// Leaves out all steps but this many yields before the sleep.
    #[inline]
    pub fn skip_to_last_yields(&mut self, yields: u32) {
        self.idle = self.idle.max(self.spins + self.yields - yields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use IdleAction::{Sleep, Spin, Yield};

    #[test]
    fn a_thread_spins_then_yields_then_sleeps_until_there_is_work() {
        let mut ladder = IdleLadder::new(2, 3);
        let mut steps = |works: bool, rounds: u32| (0..rounds).filter_map(|_| ladder.after(works)).collect::<Vec<_>>();
        assert_eq!(steps(false, 7), [Spin, Spin, Yield, Yield, Yield, Sleep, Sleep]);
        assert_eq!(steps(true, 1), []);
        assert_eq!(steps(false, 1), [Spin]);
    }

    #[test]
    fn skipped_steps_leave_the_last_yields() {
        let mut ladder = IdleLadder::new(2, 3);
        ladder.skip_to_last_yields(1);
        assert_eq!([ladder.after(false), ladder.after(false)], [Some(Yield), Some(Sleep)]);
        ladder.skip_to_last_yields(1);
        assert_eq!(ladder.after(false), Some(Sleep), "a thread that sleeps stays there");
    }
}
