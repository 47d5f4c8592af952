//! What is known of a run when it begins, for its files.

use crate::node::Clock;
use evb_core::Time;
use serde::{Deserialize, Serialize};
use std::time::{SystemTime, UNIX_EPOCH};

/// The clock of the times in event files, in words.
pub(crate) const CLOCK: &str = "system clock of the host at the start of the run, then its monotonic clock";

/// A run, as run control describes it to the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunInfo {
    /// Its number.
    pub(crate) number: u64,
    /// Its start by the clock of run control, in nanoseconds since 1970-01-01 UTC.
    pub(crate) start: u64,
    /// Its type, as the operator named it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) run_type: String,
    /// The comment of the operator.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) comment: String,
}

/// The system clock, in nanoseconds since 1970-01-01 UTC.
pub(crate) fn system_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// The time of a worker in the time of its host. It is fixed when a run begins, so that times within a run never go
/// back, even if the system clock is set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostClock {
    /// The system time at which the clock of the worker began.
    zero: u64,
}

impl HostClock {
    /// The present relation of a worker's clock to the system clock.
    pub(crate) fn of(clock: Clock) -> Self {
        Self { zero: system_time().saturating_sub(nanoseconds(clock.now())) }
    }

    /// A time of the worker in nanoseconds since 1970-01-01 UTC.
    pub(crate) const fn at(self, time: Time) -> u64 {
        self.zero.saturating_add(nanoseconds(time))
    }
}

const fn nanoseconds(time: Time) -> u64 {
    time.0 / 1000
}

/// A run as a node begins it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunStart {
    pub(crate) info: RunInfo,
    pub(crate) clock: HostClock,
}
