//! Time as integer picoseconds, the same for virtual and for real time.

use crate::unit::{Unit, text_quantity};
use core::{ops, time::Duration};

/// A moment, in picoseconds since the start of a run. 64 bits reach 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in picoseconds; written with a unit: `"4 us"`, `"1.5 s"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// The end of time: later than every event.
    pub const MAX: Self = Self(u64::MAX);

    /// The time since `earlier`, zero if that is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// A span of zero length.
    pub const ZERO: Self = Self(0);

    /// A span of whole microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000_000)
    }

    /// A span of whole milliseconds.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000_000)
    }

    /// A span of whole seconds.
    pub const fn from_secs(s: u64) -> Self {
        Self(s * 1_000_000_000_000)
    }

    /// The span in seconds.
    pub const fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// The span as the standard library's duration, rounded down to nanoseconds.
    pub const fn as_duration(self) -> Duration {
        Duration::from_nanos(self.0 / 1000)
    }
}

impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos().saturating_mul(1000)).unwrap_or(u64::MAX))
    }
}

impl ops::Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl ops::Add for Span {
    type Output = Self;
    fn add(self, span: Self) -> Self {
        Self(self.0 + span.0)
    }
}

impl ops::Mul<u64> for Span {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0 * factor)
    }
}

/// Picoseconds per unit, largest first, in the order of printing.
const UNITS: &[Unit] = &[
    Unit { name: "s", scale: 1_000_000_000_000 },
    Unit { name: "ms", scale: 1_000_000_000 },
    Unit { name: "us", scale: 1_000_000 },
    Unit { name: "ns", scale: 1_000 },
    Unit { name: "ps", scale: 1 },
];

/// Units that are read but never printed.
const MORE_UNITS: &[Unit] =
    &[Unit { name: "h", scale: 3_600_000_000_000_000 }, Unit { name: "min", scale: 60_000_000_000_000 }];

text_quantity!(Span, "a time", "4 us", printed: UNITS, read: MORE_UNITS);
