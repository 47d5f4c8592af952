//! The soak test: the memory of a run at full rate does not grow.

use crate::steps::Options;
use std::{process::Command, thread, time::Duration};
use xtask::{processes::Limited, workspace::Workspace};

/// Most that the memory of all processes together may grow in the second half, in KiB.
const GROWTH_KIB: u64 = 8 << 10;

/// Number of runs that must all grow. When the machine stalls for a moment, more events are in flight than before, and the
/// pools keep the memory for them. A leak grows each time.
const ATTEMPTS: usize = 2;

/// Runs the demonstrator in threads and in processes, for seconds or for ten minutes each.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<(), String> {
    let seconds = if options.long { 600 } else { 12 };
    for (name, mode) in [("threads", None), ("processes", Some("--processes"))] {
        let mut attempts = (0..ATTEMPTS).map(|_| growth(workspace, name, mode, seconds));
        let grown = attempts.find(|grown| !matches!(grown, Ok(kib) if *kib > GROWTH_KIB));
        match grown {
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(format!("{name}: {error}")),
            None => {
                return Err(format!(
                    "{name}: memory grew by more than {GROWTH_KIB} KiB in {} s, {ATTEMPTS} times",
                    seconds / 2
                ));
            }
        }
    }
    Ok(())
}

/// The growth of the memory in the second half, in KiB.
fn growth(workspace: &Workspace, name: &str, mode: Option<&str>, seconds: u64) -> Result<u64, String> {
    let (half, end) = memory(workspace, mode, seconds)?;
    eprintln!("  {name}: {half} KiB after half of {seconds} s, {end} KiB at the end");
    Ok(end.saturating_sub(half))
}

/// The resident memory in KiB, half way and shortly before the end.
fn memory(workspace: &Workspace, mode: Option<&str>, seconds: u64) -> Result<(u64, u64), String> {
    let mut command = Command::new(workspace.evb());
    command.args(["run", "--json", "--quiet"]).args(mode).arg(workspace.root.join("experiments/demonstrator-8x8.toml"));
    command.args(["--set", "storage.keep=none", "--set", "trigger.events=1000000000000"]);
    command.args(["--set", &format!("trigger.duration=\"{seconds} s\"")]);
    let mut run =
        Limited::start(&mut command, Duration::from_secs(seconds + 120)).map_err(|error| error.to_string())?;
    let after = |part: Duration| {
        thread::sleep(part);
        run.resident_kib().ok_or("it ended early, or /proc does not show its memory")
    };
    let whole = Duration::from_secs(seconds);
    let (half, end) = (after(whole / 2)?, after(whole / 2 - whole / 12)?);
    let (status, output) = run.wait()?;
    if status.success() { Ok((half, end)) } else { Err(format!("{status}\n{output}")) }
}
