//! Two links as one, in network namespaces: their rate beside the rate of a single link, and a run of an event builder in which
//! one of them dies. Needs root, `ip` and `tc`.

mod death;
mod links;

use crate::evb;
use links::{Links, NETWORKS};
use serde_json::Value;
use std::{process::Command, time::Duration};
use xtask::{
    namespaces::{Namespace, control},
    workspace::Workspace,
};

/// Longest time of the measurements.
const LIMIT: Duration = Duration::from_secs(400);
/// The least rate of a bond of two links, as a multiple of the rate of one.
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
    /// Seconds of a run before its link dies, and afterwards
    #[arg(long, default_value_t = 8)]
    run_seconds: u64,
}

/// Bytes of a segment.
const SEGMENT_BYTES: u64 = 44 << 10;

/// A transport over the first link alone, and over both as a bond.
struct LinkType {
    single: &'static str,
    links: &'static str,
}

const LINK_TYPES: [LinkType; 3] = [
    LinkType { single: "tcp", links: "tcp@10.78.0.0/24+tcp@10.78.1.0/24" },
    LinkType { single: "ethernet:e0", links: "ethernet:e0+ethernet:e1" },
    LinkType { single: "ofi:tcp", links: "ofi:tcp@10.78.0.0/24+ofi:tcp@10.78.1.0/24" },
];
/// The bonds that use both links for one pair of nodes.
const LAYERS: [&str; 2] = ["bond", "bond-size"];

pub(crate) fn measure(options: &Options) -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    let mut below = 0;
    {
        let links = Links::create(&["evb-x0", "evb-x1"], options.megabits)?;
        for kind in &LINK_TYPES {
            below += compare(&workspace, options, links.nodes(), kind)?;
        }
    }
    for kind in &LINK_TYPES {
        death::run(&workspace, options, kind.links)?;
    }
    if below == 0 { Ok(()) } else { Err(format!("{below} rates are below {LEAST} times the rate of one link")) }
}

/// Measures one link and both, in turns. Returns the number of bonds that are too slow.
fn compare(workspace: &Workspace, options: &Options, nodes: &[Namespace], kind: &LinkType) -> Result<usize, String> {
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

/// True for a bond that uses both links for these messages: only long ones are sent in segments.
fn uses_both(record: &Value) -> bool {
    let (name, bytes) = (record["transport"].as_str().unwrap_or_default(), record["size_bytes"].as_u64());
    name.starts_with("bond:") || name.starts_with("bond-size:") && bytes > Some(SEGMENT_BYTES)
}

/// The records of messages from the first node to the second over these layers.
fn one_way(workspace: &Workspace, options: &Options, nodes: &[Namespace], layers: &str) -> Result<Vec<Value>, String> {
    let mut command = Command::new(workspace.evb());
    command.args(["bench", "one-way", "--nodes", "2", "--transport", layers, "--sizes", &options.sizes]);
    command.args(["--time", &format!("{} s", options.seconds)]);
    let records = evb::records(evb::in_namespaces(&mut command, nodes, &control(NETWORKS[0])), LIMIT)?;
    Ok(records.into_iter().filter(|record| record["bytes_per_s"].is_number()).collect())
}
