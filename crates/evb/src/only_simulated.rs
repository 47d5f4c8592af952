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
            Self::Step => {
                "use `evb simulate`, or give `shaping.step`, or `first_stage.shaping.step`, another value, such as credit"
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
    let by_link = |plan: &Plan| matches!(plan.building.shaping, Shaping::BarrelShifter { step: Step::Link, .. });
    if plans.iter().flat_map(Plan::event_builders).any(by_link) { Err(OnlySimulated::Step) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_experiment::Experiment;

    #[test]
    fn what_is_only_simulated_is_refused_in_either_stage() {
        let file = "[trigger]\nevents = 1\n[readout]\nunits = 1\nsource = { type = \"fixed\", size = \"1 kB\" }\n[builder]\nunits = 1\n";
        let shaped = "{ type = \"barrel-shifter\", step = \"link\" }";
        let check = |key: &str| {
            let changes = ["first_stage.slices=1".to_owned(), format!("{key}={shaped}")];
            check_runnable(Experiment::parse(file, "file.toml", &changes).expect("a good file").plans())
        };
        assert_eq!(check("shaping"), Err(OnlySimulated::Step));
        assert_eq!(check("first_stage.shaping"), Err(OnlySimulated::Step));
    }
}
