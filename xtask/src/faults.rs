//! Schedules of faults: the state machines of the protocol in virtual time keep their promises under all faults.

use std::time::Instant;
use xtask::workspace::{Profile, Workspace, cargo, run};

/// The test that runs the schedules.
const TEST: &str = "faults::promises_hold_under_any_faults";

/// Runs the protocol through schedules of faults.
#[derive(clap::Args)]
pub(crate) struct Faults {
    /// Number of schedules
    #[arg(long, default_value_t = 10_000)]
    seeds: u64,
    /// The seed of the first schedule: `--first SEED --seeds 1` repeats one
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Plant a bug, which must then be found
    #[arg(long, value_parser = ["clear", "reassignment", "asking", "pause", "run"])]
    bug: Option<String>,
}

/// Runs the schedules. The error names the seed of the first that breaks a promise.
pub(crate) fn run_all(faults: &Faults) -> Result<(), String> {
    let (workspace, start) = (Workspace::find(Profile::Dev)?, Instant::now());
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
