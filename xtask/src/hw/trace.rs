//! `cargo xtask hw trace`: some messages between two nodes, with every signal in files for a wave viewer such as GTKWave.

use super::bench::{self, Runtime, TRACE};
use crate::{processes::Limited, workspace::Workspace};
use std::{process::Command, time::Duration};

/// Longest time.
const LIMIT: Duration = Duration::from_secs(60);

/// Writes the files below cargo's target folder, and says what happened when and where they are. So many messages, of 8 and
/// 64 B, with an error in so many per cent of the frames.
pub(crate) fn trace(workspace: &Workspace, messages: u32, errors: f64) -> Result<String, String> {
    let (hardware, built) = (workspace.root.join("velo/hardware"), bench::built(workspace));
    let runtime = Runtime::prepare(&built.join("runtime"))?;
    let program = TRACE.program(&hardware, &built, &runtime)?;
    let folder = built.join("waves");
    bench::renew(&folder)?;
    let mut command = Command::new(&program);
    command.args(["--count", &messages.to_string(), "--errors", &errors.to_string()]).current_dir(&folder);
    let (status, output) = Limited::start(&mut command, LIMIT).map_err(|error| error.to_string())?.wait()?;
    if !status.success() {
        return Err(format!("{}: {status}", program.display()));
    }
    let files = bench::files(&folder, &["vcd"])?;
    Ok(files.iter().fold(output, |text, file| format!("{text}{}\n", file.display())))
}
