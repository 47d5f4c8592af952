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
use std::{process::Command, time::Duration};
use xtask::{
    namespaces::{Namespaces, control},
    workspace::{Profile, Workspace},
};

/// Rate of a link for `tc`, and in bytes per second.
const RATE: (&str, f64) = ("100mbit", 12.5e6);
/// Bytes of the queue of the switch to a node, and of a node's own queue.
const QUEUES: [&str; 2] = ["30000", "2000000"];
/// Longest time of a run beyond its duration.
const LIMIT: Duration = Duration::from_secs(60);
const BRIDGE: &str = "evb-switch";
const NETWORK: &str = "10.77.0";
/// The name of a namespace is this prefix and the role of its node.
const PREFIX: &str = "evb-";
const FILE: &str = "experiments/shaped-links.toml";

/// Ways of sending, as changes to the file.
const WAYS: [(&str, &[&str]); 8] = [
    ("push", &[NO_SHAPING]),
    ("pull", &[NO_SHAPING, "protocol={ type = \"pull\" }"]),
    ("pull, window of 2", &[NO_SHAPING, "protocol={ type = \"pull\", window = 2 }"]),
    ("grouping", &["shaping={ type = \"grouping\", packet = \"32 KiB\" }"]),
    (
        "rate-division",
        &["shaping={ type = \"rate-division\", packet = \"1448 B\" }", "network.transport={ type = \"none\" }"],
    ),
    (
        "barrel-shifter, credit",
        &["shaping={ type = \"barrel-shifter\", step = \"credit\", bucket = \"64 KiB\", lead = \"16 KiB\" }"],
    ),
    (
        "barrel-shifter, barrier",
        &["shaping={ type = \"barrel-shifter\", step = \"barrier\", bucket = \"64 KiB\", lead = \"8 KiB\" }"],
    ),
    (
        "barrel-shifter, clock",
        &[
            "shaping={ type = \"barrel-shifter\", step = \"clock\", bucket = \"64 KiB\", rate = \"11.7 MB/s\", guard = \"100 us\" }",
        ],
    ),
];
const NO_SHAPING: &str = "shaping={ type = \"none\" }";

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
    /// Readout units
    #[arg(long, default_value_t = 4)]
    readouts: u16,
    /// Builder units; 1 is an incast
    #[arg(long, default_value_t = 4)]
    builders: u16,
    /// Only the ways of sending whose names begin with this
    #[arg(long, default_value = "")]
    only: String,
}

pub(crate) fn compare(options: &Options) -> Result<(), String> {
    // The wire decides, and not the program.
    let workspace = Workspace::find(Profile::Dev)?;
    workspace.cargo(&["build", "--quiet", "--package", "evb-cli"])?;
    let network = create_network(options)?;
    let wire = RATE.1 * f64::from(options.readouts.min(options.builders));
    println!("{:<24} {:<10} {:>22} {:>10} {:>6} {:>8}", "way", "sizes", "run", "simulated", "ratio", "of wire");
    for (way, sizes, changes) in rows(options) {
        let runs = (0..options.turns.max(1)).map(|_| throughput(&build(&network, &workspace, options, &changes)?));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let simulated =
            throughput(&evb::record(&mut command(&workspace, "simulate", options, &changes), limit(options))?)?;
        let median = spread::median(&runs).unwrap_or(f64::NAN);
        let (run, ratio, part) = (spread::spread(&runs, 1e6), simulated / median, 100.0 * median / wire);
        println!("{way:<24} {sizes:<10} {run:>22} {:>10.1} {ratio:>6.2} {part:>7.1}%", simulated / 1e6);
    }
    println!("\nMB/s of payload at all builders; the wire carries {:.0} MB/s.", wire / 1e6);
    Ok(())
}

/// The names of each row, and its changes to the file.
fn rows(options: &Options) -> impl Iterator<Item = (&'static str, &'static str, Vec<String>)> {
    let (readouts, builders) = (options.readouts, options.builders);
    let hosts = readouts + builders + 1;
    let units = [
        format!("readout.units={readouts}"),
        format!("builder.units={builders}"),
        format!("network.topology={{ type = \"crossbar\", ports = {hosts} }}"),
    ];
    let ways = WAYS.into_iter().filter(|(way, _)| way.starts_with(&options.only));
    ways.flat_map(move |(way, changes)| {
        let units = units.clone();
        SIZES.into_iter().map(move |(sizes, source)| {
            let changes = changes.iter().map(|&change| change.to_owned());
            let all = changes.chain(units.clone()).chain([format!("readout.source={source}")]);
            (way, sizes, all.collect())
        })
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
fn create_network(options: &Options) -> Result<Namespaces, String> {
    let readouts = (0..options.readouts).map(|unit| format!("ru{unit}"));
    let builders = (0..options.builders).map(|unit| format!("bu{unit}"));
    let names = std::iter::once("evm".to_owned()).chain(readouts).chain(builders).map(|role| format!("{PREFIX}{role}"));
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
