//! Traffic shaping on real links: event building in network namespaces, beside simulations of the same file.
//!
//! Each node has a namespace with a link of 100 Mbit/s to a bridge, in both directions a token bucket filter with a shallow
//! queue towards the nodes. Run control is on the bridge. Needs root, `ip` and `tc`.

use crate::{
    evb,
    nodes::{Node, token},
    spread,
};
use serde_json::Value;
use std::{fmt::Write as _, process::Command, time::Duration};
use xtask::{
    namespaces::{Namespaces, control},
    workspace::Workspace,
};

/// Readout units, and builders.
const UNITS: usize = 4;
/// Rate of a link for `tc`, and in bytes per second.
const RATE: (&str, f64) = ("100mbit", 12.5e6);
/// Bytes of the queue of the switch to a node, and of a node's own queue.
const QUEUES: [&str; 2] = ["30000", "1000000"];
/// Longest time of a run beyond its duration.
const LIMIT: Duration = Duration::from_secs(60);
const BRIDGE: &str = "evb-switch";
const NETWORK: &str = "10.77.0";
/// The name of a namespace is this prefix and the role of its node.
const PREFIX: &str = "evb-";
const FILE: &str = "experiments/shaped-links.toml";

/// Traffic shapings, as values of `shaping`.
const SHAPINGS: [(&str, &str); 6] = [
    ("none", "{ type = \"none\" }"),
    ("grouping", "{ type = \"grouping\", packet = \"32 KiB\" }"),
    ("rate-division", "{ type = \"rate-division\", packet = \"1448 B\" }"),
    (
        "barrel-shifter, credit",
        "{ type = \"barrel-shifter\", step = \"credit\", bucket = \"64 KiB\", lead = \"16 KiB\" }",
    ),
    (
        "barrel-shifter, barrier",
        "{ type = \"barrel-shifter\", step = \"barrier\", bucket = \"64 KiB\", lead = \"8 KiB\" }",
    ),
    (
        "barrel-shifter, clock",
        "{ type = \"barrel-shifter\", step = \"clock\", bucket = \"64 KiB\", rate = \"11.7 MB/s\", guard = \"100 us\" }",
    ),
];

/// Sizes of fragments, as values of `readout.source`.
const SIZES: [(&str, &str); 2] = [
    ("fixed", "{ type = \"fixed\", size = \"2 kB\" }"),
    ("log-normal", "{ type = \"log-normal\", mean = \"2 kB\", rms = \"2 kB\" }"),
];

/// Compares real and simulated event building over links of 100 Mbit/s.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each run
    #[arg(long, default_value_t = 6)]
    seconds: u64,
    /// Runs of each row; the table has their median, minimum and maximum
    #[arg(long, default_value_t = 3)]
    turns: usize,
}

pub(crate) fn compare(options: &Options) -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    let network = create_network()?;
    let mut rows = vec![Vec::new(); SHAPINGS.len() * SIZES.len()];
    for _ in 0..options.turns.max(1) {
        for (row, [shaping, source]) in rows.iter_mut().zip(changes()) {
            row.push(throughput(&build(&network, &workspace, options, &[shaping, source])?)?);
        }
    }
    let mut table = format!("{:<24} {:<10} {:>22} {:>10} {:>8}\n", "shaping", "sizes", "run", "simulated", "of wire");
    for (index, (row, changes)) in rows.iter().zip(changes()).enumerate() {
        let simulated =
            throughput(&evb::record(&mut command(&workspace, "simulate", options, &changes), limit(options))?)?;
        let (shaping, sizes) = (SHAPINGS[index / SIZES.len()].0, SIZES[index % SIZES.len()].0);
        let median = spread::median(row).unwrap_or(f64::NAN);
        let (run, wire) = (spread::spread(row, 1e6), RATE.1 * UNITS as f64);
        let (simulated, part) = (simulated / 1e6, 100.0 * median / wire);
        let _infallible = writeln!(table, "{shaping:<24} {sizes:<10} {run:>22} {simulated:>10.1} {part:>7.1}%");
    }
    println!("{table}\nMB/s of payload at all builders; the wire carries {:.0} MB/s.", RATE.1 * UNITS as f64 / 1e6);
    Ok(())
}

/// The changes to the file for each row.
fn changes() -> impl Iterator<Item = [String; 2]> {
    SHAPINGS.into_iter().flat_map(|(_, shaping)| {
        SIZES.into_iter().map(move |(_, source)| [format!("shaping={shaping}"), format!("readout.source={source}")])
    })
}

fn throughput(record: &Value) -> Result<f64, String> {
    match record["good"].as_bool() {
        Some(true) => record["throughput_bytes_per_s"].as_f64().ok_or_else(|| "a record without throughput".into()),
        _ => Err(format!("a run is not good: {}", record["findings"])),
    }
}

fn command(workspace: &Workspace, verb: &str, options: &Options, changes: &[String]) -> Command {
    let mut command = Command::new(workspace.evb());
    command.current_dir(&workspace.root).args([verb, FILE, "--json", "--quiet"]);
    let duration = format!("trigger.duration=\"{} s\"", options.seconds);
    command.args(changes.iter().chain([&duration]).flat_map(|change| ["--set", change]));
    command
}

/// A namespace for each node, whose links have the rate.
fn create_network() -> Result<Namespaces, String> {
    let units = (0..UNITS).flat_map(|unit| [format!("ru{unit}"), format!("bu{unit}")]);
    let names = std::iter::once("evm".to_owned()).chain(units).map(|role| format!("{PREFIX}{role}"));
    let network = Namespaces::create(BRIDGE, NETWORK, names)?;
    network.shape(RATE.0, QUEUES)?;
    Ok(network)
}

/// Longest time of a run with its nodes.
fn limit(options: &Options) -> Duration {
    LIMIT + 2 * Duration::from_secs(options.seconds)
}

/// Builds events in the namespaces. Returns the record.
fn build(network: &Namespaces, workspace: &Workspace, options: &Options, changes: &[String]) -> Result<Value, String> {
    let (token, control) = (token()?, format!("{}:7000", control(NETWORK)));
    let start = |node| Node::start(&workspace.evb(), node, PREFIX, &control, &token, limit(options));
    let nodes: Vec<_> = network.nodes().iter().map(start).collect();
    let mut run = command(workspace, "run", options, changes);
    let record = evb::record(run.args(["--listen", &control]).env("EVB_TOKEN", &token), limit(options));
    drop(nodes);
    record
}
