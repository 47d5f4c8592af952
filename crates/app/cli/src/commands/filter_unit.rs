//! `evb filter-unit`: a filter in a shared library or a WebAssembly module. Builders start it.

use crate::failure::Failure;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub(crate) struct FilterUnitArgs {
    /// The shared library or the module
    #[arg(value_name = "FILE")]
    path: PathBuf,
    /// The file is a WebAssembly module
    #[arg(long)]
    module: bool,
}

pub(crate) fn run(args: &FilterUnitArgs) -> Result<bool, Failure> {
    let serve = if args.module { evb::serve_module } else { evb::serve_library };
    serve(&args.path).map_err(Failure::new)?;
    Ok(true)
}
