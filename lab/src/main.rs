//! Measurements of evb: beside other tools, under load, and on networks of namespaces. None of them is part of the checks, since
//! times depend on the machine.

mod blocking;
mod bond;
mod busy;
mod caminos;
mod evb;
mod fabric;
mod flood;
mod machines;
mod nodes;
mod parts;
mod peers;
mod profile;
mod shaping;
mod spread;
mod tail;
mod twin;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Measurements of evb. The checks of the project are in `cargo xtask`.
#[derive(Parser)]
#[command(bin_name = "cargo lab")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Compare message layers and event building with other tools, in turns on the same cores
    Peers(peers::Options),
    /// Compare the simulator with CAMINOS, another simulator, on the same networks
    Caminos(caminos::Options),
    /// Count the instructions of a fragment and of a packet-hop by place in the source, with callgrind; needs valgrind
    Profile(profile::Options),
    /// Measure the times of the slowest events at half of the possible rate, beside the gaps of an empty loop
    Tail(tail::Options),
    /// Measure one simulation on two threads, beside two simulations at a time on one and on two threads each
    Parts(parts::Options),
    /// Measure the rates of runs and simulations while other programs keep cores busy
    Busy(busy::Options),
    /// Measure what a flood of connections costs a run, beside a flood at a port without a listener
    Flood(flood::Options),
    /// Compare traffic shapings over slow links in network namespaces, run and simulated; needs root
    Shaping(shaping::Options),
    /// Predict event building on this machine from small runs, and hold runs of 36 kinds against it
    Twin(twin::Options),
    /// Predict event building on two machines from the costs of one, and hold runs in network namespaces against it; needs root
    Machines(machines::Options),
    /// Test in network namespaces whether `evb bench all-pairs` names a bad link, and only a bad link; needs root
    Fabric(fabric::Options),
    /// Measure senders that share receivers, over links of 100 Mbit/s in network namespaces; needs root
    Blocking(blocking::Options),
    /// Measure two links as one beside a single link, in network namespaces, and cut one during a run; needs root
    Bond(bond::Options),
}

fn main() -> ExitCode {
    let result = match Cli::parse().task {
        Task::Peers(options) => peers::compare(&options),
        Task::Caminos(options) => caminos::compare(&options),
        Task::Profile(options) => profile::profile(&options),
        Task::Tail(options) => tail::measure(&options),
        Task::Parts(options) => parts::measure(&options),
        Task::Busy(options) => busy::measure(&options),
        Task::Flood(options) => flood::measure(&options),
        Task::Shaping(options) => shaping::compare(&options),
        Task::Twin(options) => twin::compare(&options),
        Task::Machines(options) => machines::compare(&options),
        Task::Fabric(options) => fabric::test(&options),
        Task::Blocking(options) => blocking::measure(&options),
        Task::Bond(options) => bond::measure(&options),
    };
    xtask::exit("lab", result)
}
