//! Project tasks: `cargo xtask test` runs everything that must pass.

mod examples;
mod papers;
mod processes;
mod soak;
mod steps;
mod tools;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Project tasks.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check and test everything
    Test {
        /// Make the soak long, ten minutes of each kind instead of seconds, and reproduce the papers with other seeds, too
        #[arg(long)]
        soak: bool,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Test { soak } => steps::test(soak),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
