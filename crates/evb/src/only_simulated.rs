//! The plans that only the simulator can carry out.

use evb_experiment::{Plan, Workload};
use evb_node::{NodeError, RunError};
use evb_protocol::Shaping;

/// The reason why a plan can be simulated, but not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnlySimulated {
    /// The workload is traffic without an event manager.
    #[error("this file describes traffic, not event building")]
    Traffic,
    /// The readout units send in time slots.
    #[error("a real run does not know the shaping of this file: barrel shifter and rate division are only simulated")]
    Shaping,
}

impl OnlySimulated {
    /// The way out.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Traffic => "use `evb simulate`, or build events with `--set workload.type=event-building`",
            Self::Shaping => {
                "use `evb simulate`, or run with `--set shaping.type=none` or `--set shaping.type=grouping`"
            }
        }
    }
}

impl From<OnlySimulated> for RunError {
    fn from(reason: OnlySimulated) -> Self {
        NodeError { message: reason.to_string(), hint: Some(reason.hint().into()) }.into()
    }
}

/// Refuses plans that can only be simulated. A run that differs from its plan would be worth nothing.
///
/// # Errors
/// The first reason that one of the plans gives.
pub fn check_runnable(plans: &[Plan]) -> Result<(), OnlySimulated> {
    if plans.iter().any(|plan| matches!(plan.workload, Workload::Traffic(_))) {
        return Err(OnlySimulated::Traffic);
    }
    let slots =
        |plan: &Plan| matches!(plan.building.shaping, Shaping::BarrelShifter { .. } | Shaping::RateDivision { .. });
    if plans.iter().any(slots) { Err(OnlySimulated::Shaping) } else { Ok(()) }
}
