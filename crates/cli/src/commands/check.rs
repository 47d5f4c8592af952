//! `evb check`: the experiment resolved.

use crate::{ExperimentArgs, failure::Failure};
use clap::Args;

#[derive(Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    experiment: ExperimentArgs,
}

pub(crate) fn run(args: &CheckArgs) -> Result<bool, Failure> {
    print!("{}", args.experiment.load()?.resolved());
    Ok(true)
}
