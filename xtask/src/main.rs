//! Project tasks. `cargo xtask check` is quick and needs nothing but cargo. `cargo xtask test` runs everything that
//! must pass. `cargo xtask faults` tries schedules of faults. `cargo xtask peers` compares evb with other tools.
//! `cargo xtask caminos` compares the simulator with another one.
//! `cargo xtask shaping` compares traffic shapings over slow links. `cargo xtask fabric` tests the test of fabrics.
//! `cargo xtask busy` measures runs and simulations beside busy programs.
//! `cargo xtask blocking` measures senders that share receivers. `cargo xtask bond` measures two links as one. `cargo xtask
//! deployment` runs a service on five machines.
//! `cargo xtask flood` measures what a flood of connections costs a run.
//! `cargo xtask hw` checks the hardware and generates its files from the crates.

mod api;
mod blocking;
mod bond;
mod busy;
mod caminos;
mod deployment;
mod examples;
mod fabric;
mod faults;
mod flood;
mod hw;
mod namespaces;
mod nodes;
mod papers;
mod parts;
mod peers;
mod processes;
mod profile;
mod shaping;
mod soak;
mod spread;
mod steps;
mod tail;
mod tools;
mod workspace;

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
    /// Format, lints and the fast tests; installs nothing
    Check,
    /// Check and test everything; with apt-get, installs the programs that tests use and that are missing
    Test {
        /// Make the soak long, ten minutes of each kind instead of seconds, reproduce the papers with other seeds, too, and
        /// test WebAssembly filters
        #[arg(long)]
        soak: bool,
    },
    /// Reproduce the papers, and compare the results with the stored ones; `UPDATE_PAPERS=1` stores them
    Papers {
        /// Vary their parameters instead, which takes minutes, and compare what moves with what is stored
        #[arg(long)]
        sensitivity: bool,
    },
    /// Run the protocol through schedules of faults: deaths, silence, partitions, loss, slow disks
    Faults(faults::Faults),
    /// Compare message layers and event building with other people's tools, in turns on the same cores
    Peers {
        /// Measure fewer times and for a shorter time
        #[arg(long)]
        quick: bool,
        /// Measure only what has this text in its name, such as "2 x 2, Open MPI"
        #[arg(long, value_name = "TEXT")]
        only: Option<String>,
    },
    /// Compare the simulator with CAMINOS, another one, on the same networks: lab/caminos.md
    Caminos(caminos::Options),
    /// Count where the instructions of a fragment and of a packet-hop go, with callgrind; needs valgrind
    Profile(profile::Options),
    /// Measure how long the slowest events take at half of the possible rate, beside the gaps of an empty loop
    Tail(tail::Options),
    /// Measure one simulation on two threads, beside two simulations at a time on one each and on two each
    Parts(parts::Options),
    /// Measure what is left of the rates of runs and simulations when other programs keep cores busy
    Busy(busy::Options),
    /// Compare traffic shapings over links of 100 Mbit/s in network namespaces, run and simulated; needs root
    Shaping(shaping::Options),
    /// Test that `evb bench all-pairs` names a bad link in network namespaces, and none when there is none; needs root
    Fabric(fabric::Options),
    /// Measure senders that share receivers, over links of 100 Mbit/s in network namespaces; needs root
    Blocking(blocking::Options),
    /// Measure two links as one beside one of them, in network namespaces, and take one away during a run; needs root
    Bond(bond::Options),
    /// Run a service, nodes, a filter and Prometheus on five machines in network namespaces, and shape and cut their links, kill
    /// nodes and give commands; needs root
    Deployment(deployment::Options),
    /// Measure what a flood of connections from this machine costs a run, beside one at a port where nobody listens
    Flood(flood::Options),
    /// The hardware of the message engine: its checks, and what of it comes from the crates
    #[command(subcommand)]
    Hw(hw::Hw),
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Check => steps::check(),
        Task::Test { soak } => steps::test(soak),
        Task::Papers { sensitivity } => steps::papers(sensitivity),
        Task::Faults(faults) => faults::run_all(&faults),
        Task::Peers { quick, only } => peers::run(quick, only.as_deref().unwrap_or_default()),
        Task::Caminos(options) => caminos::compare(&options),
        Task::Profile(options) => profile::profile(&options),
        Task::Tail(options) => tail::measure(&options),
        Task::Parts(options) => parts::measure(&options),
        Task::Busy(options) => busy::measure(&options),
        Task::Shaping(options) => shaping::compare(&options),
        Task::Fabric(options) => fabric::test(&options),
        Task::Blocking(options) => blocking::measure(&options),
        Task::Bond(options) => bond::measure(&options),
        Task::Deployment(options) => deployment::test(options),
        Task::Flood(options) => flood::measure(&options),
        Task::Hw(task) => hw::run(task),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
