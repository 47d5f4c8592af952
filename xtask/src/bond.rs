//! Two links as one, in network namespaces: their rate beside that of one, and a run of an event builder in which one of
//! them dies. Needs root, `ip` and `tc`.

mod death;
mod links;

use crate::{
    namespaces::{Namespace, control},
    processes::Limited,
    workspace::Workspace,
};
use links::{Links, NETWORKS};
use serde_json::Value;
use std::{process::Command, time::Duration};

/// Longest time of the measurements.
const LIMIT: Duration = Duration::from_secs(400);
/// Part of two links that a bond has at least, of one link.
const LEAST: f64 = 1.9;

/// Measures two links as one.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Rate of each link in Mbit/s
    #[arg(long, default_value_t = 200)]
    megabits: u32,
    /// Sizes of the messages, as for `evb bench`
    #[arg(long, default_value = "2 kB,64 KiB,1 MiB")]
    sizes: String,
    /// Seconds of each measurement in each launch
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Seconds of a run before its link dies, and after that
    #[arg(long, default_value_t = 8)]
    run_seconds: u64,
}

/// Bytes of a segment.
const SEGMENT_BYTES: u64 = 44 << 10;

/// A kind of link: the transport over the first one alone, and the links of the bond.
struct Kind {
    single: &'static str,
    links: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind { single: "tcp", links: "tcp@10.78.0.0/24+tcp@10.78.1.0/24" },
    Kind { single: "ethernet:e0", links: "ethernet:e0+ethernet:e1" },
    Kind { single: "ofi:tcp", links: "ofi:tcp@10.78.0.0/24+ofi:tcp@10.78.1.0/24" },
];
/// Layers that spread in the ways that use both links for one pair of nodes.
const LAYERS: [&str; 2] = ["bond", "bond-size"];

pub(crate) fn measure(options: &Options) -> Result<(), String> {
    let workspace = Workspace::find()?;
    workspace.cargo(&["build", "--release", "--quiet", "--package", "evb-cli"])?;
    let mut below = 0;
    {
        let links = Links::make(&["evb-x0", "evb-x1"], options.megabits)?;
        for kind in &KINDS {
            below += compare(&workspace, options, links.nodes(), kind)?;
        }
    }
    for kind in &KINDS {
        death::run(&workspace, options, kind.links)?;
    }
    match below {
        0 => Ok(()),
        _ => Err(format!("{below} rates are below {LEAST} times that of one link")),
    }
}

/// Measures one link and both, in turn. Returns how many bonds are too slow.
fn compare(workspace: &Workspace, options: &Options, nodes: &[Namespace], kind: &Kind) -> Result<usize, String> {
    let bonds = LAYERS.map(|layer| format!("{layer}:{}", kind.links));
    let layers = [kind.single, &bonds[0], &bonds[1]].join(",");
    let records = one_way(workspace, options, nodes, &layers)?;
    let rate = |record: &Value| record["bytes_per_s"].as_f64().unwrap_or(f64::NAN);
    let mut below = 0;
    for record in records.iter().filter(|record| uses_both(record)) {
        let is_single =
            |other: &&Value| other["transport"] == kind.single && other["size_bytes"] == record["size_bytes"];
        let single = records.iter().find(is_single).map_or(f64::NAN, rate);
        let (bond, times) = (rate(record), rate(record) / single);
        let (name, bytes) = (record["transport"].as_str().unwrap_or_default(), &record["size_bytes"]);
        let verdict = if times >= LEAST && record["good"] == true { "" } else { "  BELOW" };
        below += usize::from(!verdict.is_empty());
        println!(
            "{name:<52} {bytes:>8} B {:>7.2} MB/s, one {:>7.2}: {times:.2} times{verdict}",
            bond / 1e6,
            single / 1e6
        );
    }
    Ok(below)
}

/// True for a bond that uses both links for these messages: segments are for long ones only.
fn uses_both(record: &Value) -> bool {
    let (name, bytes) = (record["transport"].as_str().unwrap_or_default(), record["size_bytes"].as_u64());
    name.starts_with("bond:") || name.starts_with("bond-size:") && bytes > Some(SEGMENT_BYTES)
}

/// Records of messages from the first node to the second over these layers.
fn one_way(workspace: &Workspace, options: &Options, nodes: &[Namespace], layers: &str) -> Result<Vec<Value>, String> {
    let hosts = nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(",");
    let mut evb = Command::new(workspace.evb());
    evb.args(["bench", "one-way", "--json", "--quiet", "--no-pin", "--nodes", "2"]);
    evb.args(["--transport", layers, "--sizes", &options.sizes, "--time", &format!("{} s", options.seconds)]);
    evb.args(["--hosts", &hosts, "--shell", "ip netns exec", "--listen", &control(NETWORKS[0])]);
    let (_, output) = Limited::start(&mut evb, LIMIT).map_err(|error| format!("evb: {error}"))?.wait()?;
    let records = output.lines().map(serde_json::from_str::<Value>).collect::<Result<Vec<_>, _>>();
    let records = records.map_err(|error| format!("evb gave no records: {error}"))?;
    Ok(records.into_iter().filter(|record| record["bytes_per_s"].is_number()).collect())
}
