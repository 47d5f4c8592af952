//! `cargo xtask hw trace`: every signal of two nodes that exchange messages, in files for a wave viewer such as GTKWave.

use crate::{Hardware, bench::TRACE, files};
use std::{process::Command, time::Duration};
use xtask::processes::Limited;

/// Longest time.
const LIMIT: Duration = Duration::from_secs(60);

/// Writes the files below cargo's target folder. Returns what happened when, and the paths of the files. `errors` is the
/// percentage of frames with an error.
pub(crate) fn trace(hardware: &Hardware, messages: u32, errors: f64) -> Result<String, String> {
    let program = TRACE.program(hardware, &hardware.sources, &hardware.built)?;
    let folder = hardware.built.join("waves");
    files::renew(&folder)?;
    let mut command = Command::new(&program);
    command.args(["--count", &messages.to_string(), "--errors", &errors.to_string()]).current_dir(&folder);
    let (status, output) = Limited::start(&mut command, LIMIT).map_err(|error| error.to_string())?.wait()?;
    if !status.success() {
        return Err(format!("{}: {status}", program.display()));
    }
    let files = files::list(&folder, &["vcd"])?;
    Ok(files.iter().fold(output, |text, file| format!("{text}{}\n", file.display())))
}
