//! Two machines, predicted from the costs of one: the costs of a single core are fitted, a network of two hosts with a core each is
//! simulated with them, and runs on two network namespaces are held against it.
//!
//! Each namespace is bound to a core of its own. One carries the event manager and a unit of each kind, the other a unit of each
//! kind. Run control is on the bridge between them. Needs root, `ip`, `tc` and `taskset`.

use crate::{evb, nodes::Launcher, spread};
use serde_json::Value;
use std::{path::PathBuf, process::Command, time::Duration};
use xtask::{namespaces::Namespaces, workspace::Workspace};

const BRIDGE: &str = "evb-two";
const NETWORK: &str = "10.78.0";
const NAMES: [&str; 2] = ["evb-m0", "evb-m1"];
/// The machine of each node, and its core.
const ROLES: [(&str, usize); 5] = [("evm", 0), ("ru0", 0), ("bu0", 0), ("ru1", 1), ("bu1", 1)];
const CORES: [&str; 2] = ["0", "1"];
/// The link of each machine, for `tc` and for the simulation.
const RATE: (&str, &str) = ("1gbit", "1 Gbit/s");
/// The bucket of a link, for `tc`.
const BURST: &str = "64kb";
/// Bytes of the queue of the switch to a machine, and of a machine's own queue.
const QUEUES: [&str; 2] = ["300000", "2000000"];
const PROTOCOLS: [&str; 2] = ["push", "pull"];
const SIZES: [&str; 4] = ["256 B", "2 KiB", "16 KiB", "64 KiB"];
const BLOCKS: [&str; 2] = ["1", "\"auto\""];
const FILE: &str = "experiments/two-by-two.toml";
/// What a run and its simulation have in common.
const COMMON: [&str; 2] = ["transport={ type = \"tcp\", congestion_control = \"cubic\" }", "storage.keep=\"none\""];
/// The network of two hosts. TCP has 1448 bytes of 1500, and its headers and those of Ethernet 90.
const HOSTS: [&str; 4] = [
    "network.topology={ type = \"crossbar\", ports = 2 }",
    "network.cpu.computers=\"each-host\"",
    "network.placement={ manager = 0, readout = 0, builder = 0 }",
    "network.nic={ packet = \"1448 B\", header = \"90 B\" }",
];
/// Longest time of a fit, a run or a simulation.
const LIMIT: Duration = Duration::from_secs(300);

/// Predicts two machines from the fit of one.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Runs of each row; the table has their median, minimum and maximum
    #[arg(long, default_value_t = 3)]
    turns: usize,
    /// Use this fit of a single core in place of a new one
    #[arg(long)]
    fit: Option<PathBuf>,
}

pub(crate) fn compare(options: &Options) -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    let fit = match &options.fit {
        Some(fit) => fit.clone(),
        None => evb::fit(&workspace, &["taskset", "-c", CORES[0]], "tcp", "one-core")?,
    };
    let network = Namespaces::create(BRIDGE, NETWORK, NAMES.map(str::to_owned))?;
    network.shape(RATE.0, BURST, QUEUES)?;
    println!("{:<6} {:<8} {:<7} {:>26} {:>10} {:>6}", "", "size", "block", "run", "simulated", "ratio");
    for (protocol, size, block) in rows() {
        let changes = changes(protocol, size, block);
        let runs = (0..options.turns.max(1)).map(|_| rate(&build(&network, &workspace, &changes)?));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        let simulated = rate(&simulate(&workspace, &fit, &changes)?)?;
        let ratio = simulated / spread::median(&runs).unwrap_or(f64::NAN);
        let (run, simulated) = (spread::spread(&runs, 1e3), simulated / 1e3);
        println!("{protocol:<6} {size:<8} {block:<7} {run:>26} {simulated:>10.1} {ratio:>6.2}");
    }
    println!("\nkHz of events of two fragments, over links of {}", RATE.1);
    Ok(())
}

fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let of_protocol = |protocol| SIZES.into_iter().flat_map(move |size| BLOCKS.map(|block| (protocol, size, block)));
    PROTOCOLS.into_iter().flat_map(of_protocol)
}

fn changes(protocol: &str, size: &str, block: &str) -> Vec<String> {
    let own = [
        format!("protocol={{ type = \"{protocol}\" }}"),
        format!("readout.source={{ type = \"fixed\", size = \"{size}\" }}"),
        format!("trigger.block={block}"),
    ];
    COMMON.map(str::to_owned).into_iter().chain(own).collect()
}

fn simulate(workspace: &Workspace, fit: &PathBuf, changes: &[String]) -> Result<Value, String> {
    let mut command = command(workspace, "simulate", changes, "100 ms");
    let link = format!("network.link.rate=\"{}\"", RATE.1);
    command.args(HOSTS.iter().copied().chain([&*link]).flat_map(|change| ["--set", change]));
    evb::record(command.arg("--network").arg(fit), LIMIT)
}

/// Builds events on the two machines. Returns the record.
fn build(network: &Namespaces, workspace: &Workspace, changes: &[String]) -> Result<Value, String> {
    let launcher = Launcher::new(workspace.evb(), NETWORK, LIMIT)?;
    let nodes = ROLES
        .map(|(role, machine)| launcher.start_as(role, &["taskset", "-c", CORES[machine]], &network.nodes()[machine]));
    let mut run = command(workspace, "run", changes, "600 ms");
    let record = evb::record(launcher.controlled_by(&mut run), LIMIT);
    drop(nodes);
    record
}

fn command(workspace: &Workspace, verb: &str, changes: &[String], duration: &str) -> Command {
    let mut command = Command::new(workspace.evb());
    command.current_dir(&workspace.root).args([verb, FILE, "--json", "--quiet"]);
    let duration = format!("trigger.duration=\"{duration}\"");
    command.args(changes.iter().chain([&duration]).flat_map(|change| ["--set", change]));
    command
}

fn rate(record: &Value) -> Result<f64, String> {
    match record["good"].as_bool() {
        Some(true) => record["event_rate_hz"].as_f64().ok_or_else(|| "a record without event rate".into()),
        _ => Err(format!("a run is not good: {}", record["findings"])),
    }
}
