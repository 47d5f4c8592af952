//! How busy the processors of this machine are.

use std::fs;

/// Time that the processors of this machine have worked, and all time, in ticks since it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Processors {
    busy: u64,
    all: u64,
}

impl Processors {
    /// The times now; `None` if the system does not report them.
    pub(crate) fn now() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut ticks =
            text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map_while(|tick| tick.parse().ok());
        // User, nice, system, idle, waiting for disks, interrupts, soft interrupts, stolen; what follows is in these.
        let ticks: [u64; 8] = std::array::from_fn(|_| ticks.next().unwrap_or(0));
        let all = ticks.iter().sum::<u64>();
        Some(Self { busy: all - ticks[3] - ticks[4], all })
    }

    /// Part of the time since then in which they worked; `None` if that was too short.
    pub(crate) fn busy_since(self, then: Self) -> Option<f64> {
        let all = self.all.checked_sub(then.all).filter(|&all| all > 0)?;
        Some(self.busy.saturating_sub(then.busy) as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_waits_for_disks_are_not_work() {
        let then = Processors::parse("cpu  10 0 10 60 20 0 0 0 0 0\ncpu0 1 2 3\n").unwrap();
        let now = Processors::parse("cpu  30 0 20 100 40 5 5 0 0 0\n").unwrap();
        assert_eq!(then, Processors { busy: 20, all: 100 });
        assert_eq!(now.busy_since(then), Some(0.4));
        assert_eq!(then.busy_since(then), None);
        assert_eq!(Processors::parse("intr 1 2"), None);
    }
}
