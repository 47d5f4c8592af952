//! `cargo xtask hw`: the hardware of the message engine, in `velo/hardware`.

mod bench;
mod files;
mod measure;
mod mutate;
mod parallel;
mod prove;
mod simulate;
mod trace;

use bench::Runtime;
use clap::{Parser, Subcommand};
use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::OnceLock,
};
use xtask::{
    cache::{Cache, Inputs},
    workspace::{Profile, Workspace},
};

/// Programs whose version is an input of every check, and the option that prints it.
const TOOLS: &[(&str, &str)] =
    &[("verilator", "--version"), ("yosys", "-V"), ("iverilog", "-V"), ("c++", "--version"), ("git", "--version")];

/// Checks, proves and measures the hardware of the message engine.
#[derive(Parser)]
#[command(bin_name = "cargo xtask hw")]
struct Cli {
    #[command(subcommand)]
    task: Task,
    /// Repeat checks that have passed with the same inputs
    #[arg(long, global = true)]
    fresh: bool,
}

#[derive(Subcommand)]
enum Task {
    /// Run everything that must pass: benches, measurements, proofs and mutations
    All {
        /// Prove more cycles where their number is limited; takes minutes
        #[arg(long)]
        long: bool,
    },
    /// Check the sources and run all benches
    Test {
        /// Send fewer messages
        #[arg(long)]
        quick: bool,
    },
    /// Prove the properties in `velo/hardware/formal`
    Prove {
        /// Prove more cycles where their number is limited; takes minutes
        #[arg(long)]
        long: bool,
    },
    /// Show that benches and proofs find the faults in `velo/hardware/mutations`
    Mutate,
    /// Run all benches and the synthesis, and write the measurements for `evb paper`
    Measure,
    /// Write every signal of two nodes that exchange messages, for a wave viewer
    Trace {
        /// Number of messages, of 8 and 64 B
        #[arg(long, default_value_t = 4)]
        messages: u32,
        /// Percentage of frames with an error
        #[arg(long, default_value_t = 0.0)]
        errors: f64,
    },
}

/// The sources of the hardware, the folder in which it is built, and the results of its checks.
struct Hardware {
    sources: PathBuf,
    built: PathBuf,
    /// The stored measurements of the paper.
    measured: PathBuf,
    cache: Cache,
    tools: Inputs,
    runtime: OnceLock<Result<Runtime, String>>,
}

impl Hardware {
    fn find(workspace: &Workspace, fresh: bool) -> Result<Self, String> {
        let built = workspace.target.join("hw");
        let version = |(tool, option): &(&str, &str)| files::output(Command::new(tool).arg(option)).unwrap_or_default();
        Ok(Self {
            sources: workspace.root.join("velo/hardware"),
            measured: workspace.root.join("papers/velo-2008/measured.jsonl"),
            cache: Cache::open(built.join("passed"), fresh)?,
            tools: Inputs::default().and(TOOLS.iter().map(version).collect::<Vec<_>>()),
            runtime: OnceLock::new(),
            built,
        })
    }

    /// Inputs of a check: the versions of the tools, and the files in some folders of `sources` with some endings.
    fn inputs(&self, sources: &Path, folders: &[(&str, &[&str])]) -> Result<Inputs, String> {
        let mut inputs = self.tools.clone();
        for (folder, endings) in folders {
            for path in files::list(&sources.join(folder), endings)? {
                inputs = inputs.and_file(&path)?;
            }
        }
        Ok(inputs)
    }

    /// The compiled runtime of Verilator.
    fn runtime(&self) -> Result<&Runtime, String> {
        let runtime = self.runtime.get_or_init(|| Runtime::prepare(&self.built.join("runtime"), &self.tools.hash()));
        runtime.as_ref().map_err(Clone::clone)
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let hardware = Workspace::find(Profile::Dev).and_then(|workspace| Hardware::find(&workspace, cli.fresh));
    xtask::exit("hw", hardware.and_then(|hardware| run(&hardware, cli.task)))
}

fn run(hardware: &Hardware, task: Task) -> Result<(), String> {
    match task {
        Task::All { long } => {
            simulate::test(hardware, false)?;
            measure::compare(hardware)?;
            prove::prove(hardware, long)?;
            trace::trace(hardware, 4, 0.0)?;
            mutate::mutate(hardware)
        }
        Task::Test { quick } => simulate::test(hardware, quick),
        Task::Prove { long } => prove::prove(hardware, long),
        Task::Mutate => mutate::mutate(hardware),
        Task::Measure => {
            simulate::test(hardware, true)?;
            measure::store(hardware)
        }
        Task::Trace { messages, errors } => trace::trace(hardware, messages, errors).map(|text| print!("{text}")),
    }
}
