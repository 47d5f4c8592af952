//! `evb filter-unit`: a filter in a shared library. Builders start it.

use crate::failure::Failure;
use clap::Args;
use evb_record::Outcome;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct FilterUnitArgs {
    /// The shared library
    #[arg(value_name = "FILE")]
    path: PathBuf,
}

pub(crate) fn run(args: &FilterUnitArgs) -> Result<Outcome, Failure> {
    evb::serve_library(&args.path).map_err(Failure::new)?;
    Ok(Outcome::Good)
}
