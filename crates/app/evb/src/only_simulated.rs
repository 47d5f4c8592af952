//! The plans that only the simulator can carry out.

use evb_bench::LayerChoice;
use evb_experiment::{Cores, Load, Plan, Workload};
use evb_node::{NodeError, RunError};
use evb_patterns::Pattern;
use evb_protocol::{Shaping, ShapingStep};

/// The reason why a plan can be simulated, but not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OnlySimulated {
    /// The load of traffic is a part of the rate of a link, which only a simulated network knows.
    #[error("`workload.load` is a part of the rate of a simulated link, and the rate of a real link is unknown")]
    Load,
    /// No node knows when an event has been gathered everywhere.
    #[error("events are gathered as fast as it goes in a simulation only: no real node knows when the others are done")]
    Gather,
    /// The nodes of traffic have no faults on purpose.
    #[error("the nodes of traffic have no faults on purpose in a real run")]
    Fault,
    /// The nodes of traffic have no places.
    #[error("the nodes of traffic are not bound to cores by `run.placement`")]
    Placement,
    /// Messages of the pattern do not go over the transport.
    #[error("no traffic goes over the transport {0}")]
    Transport(&'static str),
    /// The buckets of a barrel shifter follow each other as the network interface sends them.
    #[error(
        "no transport reports when a bucket has left its network interface: `shaping.step` of link is only simulated"
    )]
    Step,
    /// A real network carries what it carries.
    #[error("a real network carries what others send: `[[background]]` is only simulated")]
    Background,
    /// The clocks of real units have errors of their own.
    #[error("real readout units have errors of their own: `shaping.skew` and `shaping.jitter` are only simulated")]
    SlotErrors,
}

impl OnlySimulated {
    /// Advice to the user.
    #[must_use]
    pub const fn hint(self) -> &'static str {
        match self {
            Self::Load => {
                "use `evb simulate`, or give a rate, such as `--set workload.rate=\"10 kHz\"`, in place of the load"
            }
            Self::Gather => "use `evb simulate`, or give the rate of events, such as `--set workload.rate=\"10 kHz\"`",
            Self::Fault => "use `evb simulate`, or leave out `[[fault]]`",
            Self::Placement => "leave it out: `evb bench` binds the nodes of a benchmark",
            Self::Transport(_) => "use another one, such as `--set transport.type=tcp`",
            Self::Step => {
                "use `evb simulate`, or give `shaping.step`, or `first_stage.shaping.step`, another value, such as credit"
            }
            Self::Background => "use `evb simulate`, or leave out `[[background]]`",
            Self::SlotErrors => {
                "use `evb simulate`, or leave out `skew` and `jitter` of `shaping` and `first_stage.shaping`"
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
/// The first reason of any of the plans.
pub fn check_runnable(plans: &[Plan]) -> Result<(), OnlySimulated> {
    plans.iter().try_for_each(check_traffic)?;
    let by_link = |plan: &Plan| matches!(plan.building.shaping, Shaping::BarrelShifter { step: ShapingStep::Link, .. });
    let has_errors = |plan: &Plan| !plan.network.slot_errors.is_none();
    let builders = || plans.iter().flat_map(Plan::event_builders);
    match () {
        () if plans.iter().any(|plan| !plan.background.is_empty()) => Err(OnlySimulated::Background),
        () if builders().any(by_link) => Err(OnlySimulated::Step),
        () if builders().any(has_errors) => Err(OnlySimulated::SlotErrors),
        () => Ok(()),
    }
}

fn check_traffic(plan: &Plan) -> Result<(), OnlySimulated> {
    let Workload::Traffic(traffic) = &plan.workload else { return Ok(()) };
    match (traffic.load, &traffic.config.pattern) {
        (Load::Fraction { .. } | Load::Slots { .. }, _) => Err(OnlySimulated::Load),
        (Load::Saturating, Pattern::Gather { .. }) => Err(OnlySimulated::Gather),
        _ if !plan.faults.is_empty() => Err(OnlySimulated::Fault),
        _ if plan.run.cores != Cores::None => Err(OnlySimulated::Placement),
        _ if LayerChoice::of(&plan.transport).is_none() => Err(OnlySimulated::Transport(plan.transport.info().name)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_experiment::Experiment;

    #[test]
    fn background_traffic_is_rejected() {
        let file = r#"
[trigger]
events = 1
[readout]
units = 1
source = { type = "fixed", size = "1 kB" }
[builder]
units = 1
[[background]]
name = "storage"
senders = { on = "builders" }
receivers = { on = "hosts" }
message = { type = "fixed", size = "1 MB" }
"#;
        let experiment = Experiment::parse(file, "file.toml", &[]).expect("a good file");
        assert_eq!(check_runnable(experiment.plans()), Err(OnlySimulated::Background));
    }

    #[test]
    fn keys_for_simulations_only_are_rejected_in_either_stage() {
        let file = "[trigger]\nevents = 1\n[readout]\nunits = 1\nsource = { type = \"fixed\", size = \"1 kB\" }\n[builder]\nunits = 1\n";
        let check = |stage: &str, keys: &str| {
            let shaping = format!("{stage}={{ type = \"barrel-shifter\", {keys} }}");
            let changes = ["first_stage.slices=1".to_owned(), shaping];
            check_runnable(Experiment::parse(file, "file.toml", &changes).expect("a good file").plans())
        };
        for stage in ["shaping", "first_stage.shaping"] {
            assert_eq!(check(stage, "step = \"link\""), Err(OnlySimulated::Step));
            assert_eq!(check(stage, "skew = \"1 us\""), Err(OnlySimulated::SlotErrors));
            assert_eq!(check(stage, "jitter = { mean = \"1 us\" }"), Err(OnlySimulated::SlotErrors));
            assert_eq!(check(stage, "skew = \"0 us\", jitter = { mean = \"0 us\" }"), Ok(()));
        }
    }
}
