//! The plans that only the simulator can carry out.

use evb_experiment::{Plan, Workload};
use evb_node::{NodeError, RunError};
use evb_protocol::{Shaping, Step};

/// The reason why a plan can be simulated, but not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnlySimulated {
    /// The workload is traffic without an event manager.
    #[error("this file describes traffic, not event building")]
    Traffic,
    /// The buckets of a barrel shifter follow each other as the network interface sends them.
    #[error(
        "no transport tells when a bucket has left its network interface: `shaping.step` of link is only simulated"
    )]
    Step,
}

impl OnlySimulated {
    /// The way out.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Traffic => "use `evb simulate`, or build events with `--set workload.type=event-building`",
            Self::Step => "use `evb simulate`, or run with `--set shaping.step=credit`",
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
    let by_link = |plan: &Plan| matches!(plan.building.shaping, Shaping::BarrelShifter { step: Step::Link, .. });
    if plans.iter().any(by_link) { Err(OnlySimulated::Step) } else { Ok(()) }
}
