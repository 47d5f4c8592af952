//! The clocks of a node: a fast one of its own, one that all processes of a machine share, and that of a simulated network.

use evb_core::{Span, Time};
use evb_transport::VirtualTime;
use rustix::time::{ClockId, clock_gettime};

/// How long nodes wait for each other, beside the time that is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Longest time that all nodes may need to be ready, and to end.
    pub(crate) all: Span,
    /// Longest time that a message may come after the news of the end.
    pub(crate) stragglers: Span,
    /// Longest sleep of a node without work.
    pub(crate) sleep: Span,
}

/// In real time others may keep a node from running.
const REAL: Patience =
    Patience { all: Span::from_secs(10), stragglers: Span::from_millis(100), sleep: Span::from_millis(5) };
/// In virtual time nothing does, and a cycle of simulated hardware may take some microseconds: here up to a million.
const VIRTUAL: Patience =
    Patience { all: Span::from_millis(10), stragglers: Span::from_micros(100), sleep: Span::from_micros(1) };

/// Time as machines see it.
pub(crate) enum Clock {
    /// The processor's counter: cheap to read, from the moment at which the clock was made.
    Own { counter: quanta::Clock, start: u64 },
    /// The system's monotonic clock, from a moment that all nodes of a machine know.
    Shared { start_ns: u64 },
    /// That of a simulated network.
    Virtual(VirtualTime),
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

/// Processor time of this thread in nanoseconds, or of the whole process: message systems may have threads of their own.
pub(crate) fn cpu_ns(of_process: bool) -> u64 {
    nanoseconds(if of_process { ClockId::ProcessCPUTime } else { ClockId::ThreadCPUTime })
}

fn nanoseconds(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
