//! The checks of the project. `cargo xtask check` takes minutes and needs only cargo; `cargo xtask test` runs everything that
//! must pass before a change lands. Measurements are in `cargo lab`.

mod deployment;
mod editors;
mod examples;
mod faults;
mod kit;
mod packages;
mod papers;
mod python;
mod slurm;
mod soak;
mod steps;
mod tools;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The checks of the project. Measurements are in `cargo lab`.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check the format, run the lints and the fast tests; installs nothing
    Check,
    /// Run all checks and tests; installs missing tools with rustup and apt-get
    Test(steps::Options),
    /// Reproduce the papers and compare the results with the stored ones; `UPDATE_PAPERS=1` stores them
    Papers {
        /// Vary the parameters of the papers and compare what moves with the stored list; takes minutes
        #[arg(long)]
        sensitivity: bool,
    },
    /// Run the protocol through schedules of faults: deaths, silence, partitions, loss, slow disks
    Faults(faults::Faults),
    /// Run a service, nodes, a filter and Prometheus in five network namespaces, cut links and kill nodes; needs root
    Deployment(deployment::Options),
    /// Run sweeps on a cluster of this machine, with the daemons of Slurm, and kill tasks
    Slurm,
    /// Test the Python package as a user has it, installed from its wheel, and build the site
    Python,
    /// Build the site of all pages, and execute its notebooks
    Site,
    /// Build the wheel of the Python package, with the `evb` program in it
    Wheel,
    /// Build the archive of the program, its manual pages and completions
    Archive,
    /// Build the Debian package of the same files; needs Debian's dpkg-dev
    Deb,
    /// Check, prove and measure the hardware of the message engine
    #[command(disable_help_flag = true)]
    Hw {
        /// The task and its options; `--help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Check => steps::check(),
        Task::Test(options) => steps::test(options),
        Task::Papers { sensitivity } => steps::papers(sensitivity),
        Task::Faults(faults) => faults::run_all(&faults),
        Task::Deployment(options) => deployment::test(options),
        Task::Slurm => slurm::test(),
        Task::Python => steps::python(),
        Task::Site => python::site(),
        Task::Wheel => python::wheel(),
        Task::Archive => packages::archive(),
        Task::Deb => packages::deb(),
        Task::Hw { arguments } => steps::hardware(&arguments),
    };
    xtask::exit("xtask", result)
}
