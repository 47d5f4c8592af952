//! `cargo xtask hw`: the hardware of the message engine, in `hw/velo`.

mod bench;
mod mutate;
mod simulate;

use crate::steps::Workspace;
use clap::Subcommand;

/// The hardware of the message engine.
#[derive(Subcommand)]
pub(crate) enum Hw {
    /// Check the sources and run all benches
    Test {
        /// Send fewer messages
        #[arg(long)]
        quick: bool,
    },
    /// Show that the benches see the faults in `hw/velo/mutations`
    Mutate,
}

/// Does one of these tasks.
pub(crate) fn run(task: Hw) -> Result<(), String> {
    match task {
        Hw::Test { quick } => simulate::test(&Workspace::find()?, quick),
        Hw::Mutate => mutate::mutate(&Workspace::find()?),
    }
}
