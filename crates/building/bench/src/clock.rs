//! The clocks of a node: a fast private one, one that all processes of a machine share, and that of a simulated network.

use evb_core::{Span, Time};
use evb_transport::VirtualTime;
use rustix::time::{ClockId, clock_gettime};

/// Limits on the waits of nodes for each other, beside the measured time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Longest time until all nodes are ready, and until all have ended.
    pub(crate) all: Span,
    /// Longest time until what was begun is done, after the time of the measurement is over.
    pub(crate) drain: Span,
    /// Longest delay of a message after the report of the end.
    pub(crate) stragglers: Span,
    /// Longest sleep of a node without work.
    pub(crate) sleep: Span,
}

/// Limits in real time, where other processes may delay a node.
const REAL: Patience = Patience {
    all: Span::from_secs(10),
    drain: Span::from_secs(3),
    stragglers: Span::from_millis(100),
    sleep: Span::from_millis(5),
};
/// Limits in virtual time, where nothing delays a node. A cycle of simulated hardware may take some microseconds: here
/// up to a million.
const VIRTUAL: Patience = Patience {
    all: Span::from_millis(10),
    drain: Span::from_millis(3),
    stragglers: Span::from_micros(100),
    sleep: Span::from_micros(1),
};

/// The time of the machines.
pub(crate) enum Clock {
    /// The processor's counter, which is cheap to read, from the creation of the clock.
    Own { counter: quanta::Clock, start: u64 },
    /// The system's monotonic clock, from a moment that all nodes of a machine know.
    Shared { start_ns: u64 },
    /// The time of a simulated network.
    Virtual(VirtualTime),
}

impl Clock {
    pub(crate) fn own() -> Self {
        let counter = quanta::Clock::new();
        let start = counter.raw();
        Self::Own { counter, start }
    }

    /// A clock that counts from a value of [`monotonic_ns`], which any process of this machine may have read.
    pub(crate) const fn shared(start_ns: u64) -> Self {
        Self::Shared { start_ns }
    }

    pub(crate) const fn is_virtual(&self) -> bool {
        matches!(self, Self::Virtual(_))
    }

    pub(crate) const fn patience(&self) -> Patience {
        if self.is_virtual() { VIRTUAL } else { REAL }
    }

    #[inline]
    pub(crate) fn now(&self) -> Time {
        let ns = match self {
            Self::Own { counter, start } => counter.delta_as_nanos(*start, counter.raw()),
            Self::Shared { start_ns } => monotonic_ns().saturating_sub(*start_ns),
            Self::Virtual(time) => return time.now(),
        };
        Time(ns * 1000)
    }
}

/// The system's monotonic clock in nanoseconds: the same for all processes of a machine.
pub(crate) fn monotonic_ns() -> u64 {
    nanoseconds(ClockId::Monotonic)
}

/// Processor time of this thread in nanoseconds, or of the whole process: message systems may have more threads.
pub(crate) fn cpu_ns(of_process: bool) -> u64 {
    nanoseconds(if of_process { ClockId::ProcessCPUTime } else { ClockId::ThreadCPUTime })
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
