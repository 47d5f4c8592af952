//! The clocks of a node: a fast one of its own, and one that all processes of a machine share.

use evb_core::Time;
use rustix::time::{ClockId, clock_gettime};

/// Real time as machines see it.
pub(crate) enum Clock {
    /// The processor's counter: cheap to read, from the moment at which the clock was made.
    Own { counter: quanta::Clock, start: u64 },
    /// The system's monotonic clock, from a moment that all nodes of a machine know.
    Shared { start_ns: u64 },
}

impl Clock {
    pub(crate) fn own() -> Self {
        let counter = quanta::Clock::new();
        let start = counter.raw();
        Self::Own { counter, start }
    }

    /// A clock that counts from a time of [`monotonic_ns`], which any process of this machine may have read.
    pub(crate) const fn shared(start_ns: u64) -> Self {
        Self::Shared { start_ns }
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        let ns = match self {
            Self::Own { counter, start } => counter.delta_as_nanos(*start, counter.raw()),
            Self::Shared { start_ns } => monotonic_ns().saturating_sub(*start_ns),
        };
        Time(ns * 1000)
    }
}

/// The system's monotonic clock in nanoseconds: the same for all processes of a machine.
pub(crate) fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Processor time of this thread in nanoseconds, or of the whole process: message systems may have threads of their own.
pub(crate) fn cpu_ns(of_process: bool) -> u64 {
    nanoseconds(if of_process { ClockId::ProcessCPUTime } else { ClockId::ThreadCPUTime })
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
