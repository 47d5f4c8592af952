//! `cargo xtask hw`: the hardware of the message engine, in `velo/hardware`.

mod bench;
mod measure;
mod mutate;
mod package;
mod prove;
mod simulate;
mod trace;
mod vectors;

use crate::{tools::is_there, workspace::Workspace};
use clap::Subcommand;
use std::fs;

/// The hardware of the message engine.
#[derive(Subcommand)]
pub(crate) enum Hw {
    /// Write the constants of crate `evb-velo` as a package of SystemVerilog
    Header {
        /// Write nothing, and fail if the file is not what it would be
        #[arg(long)]
        check: bool,
    },
    /// Write test vectors, with what the model of crate `evb-velo` answers
    Vectors {
        /// Write nothing, and fail if a file is not what it would be
        #[arg(long)]
        check: bool,
    },
    /// Check the sources and run all benches
    Test {
        /// Send fewer messages
        #[arg(long)]
        quick: bool,
    },
    /// Prove the properties in `velo/hardware/formal`
    Prove {
        /// Look farther where time is bounded: minutes instead of seconds
        #[arg(long)]
        long: bool,
    },
    /// Run all benches and the synthesis, and write what they measured for `evb paper`
    Measure,
    /// Write every signal of two nodes that send some messages, for a wave viewer
    Trace {
        /// Number of messages, of 8 and 64 B
        #[arg(long, default_value_t = 4)]
        messages: u32,
        /// Frames with an error, in per cent
        #[arg(long, default_value_t = 0.0)]
        errors: f64,
    },
    /// Show that benches and proofs see the faults in `velo/hardware/mutations`
    Mutate,
}

/// Does one of these tasks.
pub(crate) fn run(task: Hw) -> Result<(), String> {
    match task {
        Hw::Header { check } => keep("rtl/velo_pkg.sv", &package::text(), check, "header"),
        Hw::Vectors { check } => {
            let files = vectors::files();
            files.iter().try_for_each(|(name, text)| keep(&format!("vectors/{name}"), text, check, "vectors"))
        }
        Hw::Test { quick } => simulate::test(&Workspace::find()?, quick),
        Hw::Prove { long } => prove::prove(&Workspace::find()?, long),
        Hw::Measure => {
            let workspace = Workspace::find()?;
            simulate::test(&workspace, true)?;
            measure::measure(&workspace, false)
        }
        Hw::Trace { messages, errors } => {
            trace::trace(&Workspace::find()?, messages, errors).map(|what| print!("{what}"))
        }
        Hw::Mutate => mutate::mutate(&Workspace::find()?),
    }
}

/// Programs without which no bench can be built or no source checked.
const NEEDED: &[&str] = &["verilator", "yosys", "c++"];

/// All benches, what they measure, all proofs, which look farther when `long`, and all mutations.
pub(crate) fn test_all(workspace: &Workspace, long: bool) -> Result<(), String> {
    let missing: Vec<_> = NEEDED.iter().filter(|program| !is_there(program)).copied().collect();
    if !missing.is_empty() {
        eprintln!("  skipped: there is no {}", missing.join(", no "));
        return Ok(());
    }
    simulate::test(workspace, false)?;
    measure::measure(workspace, true)?;
    prove::prove(workspace, long)?;
    trace::trace(workspace, 4, 0.0)?;
    mutate::mutate(workspace)
}

/// Writes a file of `velo/hardware`, or says whether it is this text.
fn keep(name: &str, text: &str, check: bool, task: &str) -> Result<(), String> {
    let path = Workspace::find()?.root.join("velo/hardware").join(name);
    if !check {
        let folder = path.parent().expect("a file has a folder");
        return fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| format!("{}: {error}", path.display()));
    }
    let hint = format!("hint: write it with `cargo xtask hw {task}`, and read the change");
    match fs::read_to_string(&path) {
        Ok(found) if found == text => Ok(()),
        Ok(_) => Err(format!("velo/hardware/{name} is stale\n{hint}")),
        Err(error) => Err(format!("velo/hardware/{name}: {error}\n{hint}")),
    }
}
