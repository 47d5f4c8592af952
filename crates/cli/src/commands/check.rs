//! `evb check`: the experiment resolved.

use crate::{ExperimentArgs, failure::Failure};
use clap::Args;
use evb_experiment::Plan;
use evb_sources::SourceSpec;

#[derive(Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
}

pub(crate) fn run(args: &CheckArgs) -> Result<bool, Failure> {
    let experiment = args.experiment.load()?;
    print!("{}", experiment.resolved());
    if experiment.plans().iter().any(needs_marks) {
        eprintln!("evb: live front ends are told apart by their event counters alone, unless their frames carry marks");
    }
    Ok(true)
}

/// Whether a live front end could be mistaken in its events without another one noticing.
fn needs_marks(plan: &Plan) -> bool {
    let is_live = |source: &SourceSpec| matches!(source, SourceSpec::Tcp { .. } | SourceSpec::Udp { .. });
    plan.building.numbered.len() > 1 && plan.sources.iter().any(is_live)
}
