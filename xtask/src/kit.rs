//! The front-end kit in C and Python: its own tests, and runs of evb that get everything from it.

use crate::tools;
use std::{process::Command, time::Duration};
use xtask::{
    processes::Limited,
    workspace::{Workspace, is_installed},
};

/// Longest time of all its tests.
const LIMIT: Duration = Duration::from_secs(300);

/// Compiles the kit and runs its tests.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    if let Some(tool) = ["python3", "python3-config"].iter().find(|program| !is_installed(program)) {
        return tools::skip_without(tool);
    }
    let mut command = Command::new("python3");
    command.args(["-m", "unittest", "discover", "-s", "clients/front-end/tests"]).current_dir(&workspace.root);
    command.env("EVB", workspace.evb()).env("PYTHONDONTWRITEBYTECODE", "1");
    let mut tests = Limited::start(&mut command, LIMIT).map_err(|error| format!("python3: {error}"))?;
    let (status, output) = tests.wait()?;
    if status.success() { Ok(()) } else { Err(format!("{status}\n{output}")) }
}
