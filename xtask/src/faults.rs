//! The fault schedules: the protocol's machines in virtual time, and their promises under all faults.

use crate::workspace::{Workspace, cargo, run};
use std::time::Instant;

/// The test that runs the schedules.
const TEST: &str = "faults::promises_hold_under_any_faults";

/// Which schedules are run.
#[derive(clap::Args)]
pub(crate) struct Faults {
    /// How many schedules
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The seed of the first one: `--first SEED --seeds 1` runs one again
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Plant a mistake, which must then be found
    #[arg(long, value_parser = ["clear", "reassignment", "asking", "pause", "run"])]
    bug: Option<String>,
}

/// Runs the schedules; the first that breaks a promise is told with its seed.
pub(crate) fn run_all(faults: &Faults) -> Result<(), String> {
    let (workspace, start) = (Workspace::find()?, Instant::now());
    let arguments = ["test", "--quiet", "--package", "evb-protocol", "--test", "virtual_time", "--"];
    let mut command = cargo(&workspace.root, &[&arguments[..], &["--exact", TEST, "--nocapture"]].concat());
    command.env("EVB_SEEDS", faults.seeds.to_string()).env("EVB_FIRST_SEED", faults.first.to_string());
    if let Some(bug) = &faults.bug {
        command.env("EVB_BUG", bug);
    }
    run(&mut command)?;
    eprintln!("xtask: all promises hold in {} schedules, {:.0} s", faults.seeds, start.elapsed().as_secs_f64());
    Ok(())
}
