//! Blocking on real links: senders that share a receiver share its link. The nodes are in network namespaces on a bridge, with
//! links of 100 Mbit/s. Needs root, `ip` and `tc`.

use crate::evb;
use serde_json::Value;
use std::{process::Command, time::Duration};
use xtask::{
    namespaces::{Namespace, Namespaces, control},
    workspace::Workspace,
};

const BRIDGE: &str = "evb-blocking";
const NETWORK: &str = "10.79.0";
/// Longest time of a measurement.
const LIMIT: Duration = Duration::from_secs(300);
/// Rate of a link for `tc`, and in bytes per second.
const RATE: (&str, f64) = ("100mbit", 12.5e6);
/// Bytes that a link may send at once, for `tc`.
const BURST: &str = "5kb";
/// Bytes of the queue of the bridge to a node, and of a node's own queue.
const QUEUES: [&str; 2] = ["30000", "30000"];
/// Receivers of the senders, as for `evb bench assigned --to`.
const MAPS: [&str; 6] = ["0", "0,0", "0,0,0", "0,0,0,0", "0,0,1,1", "0,1,2,3"];

/// Measures senders that share receivers.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seconds of each measurement in each launch
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Number of launches of the nodes
    #[arg(long, default_value_t = 5)]
    launches: u32,
    /// Message layers, as for `evb bench`; the interface of a node is `e0`
    #[arg(long, default_value = "tcp,ethernet:e0")]
    transport: String,
}

pub(crate) fn measure(options: &Options) -> Result<(), String> {
    let workspace = Workspace::with_evb()?;
    let most = MAPS.iter().map(|map| nodes(map)).max().unwrap_or(0);
    let network = Namespaces::create(BRIDGE, NETWORK, (0..most).map(|node| format!("evb-k{node}")))?;
    network.shape(RATE.0, BURST, QUEUES)?;
    println!("{:<10} {:<16} part of a link for each sender", "receivers", "layer");
    for map in MAPS {
        for record in assigned(&workspace, options, &network.nodes()[..nodes(map)], map)? {
            println!("{map:<10} {}", row(&record)?);
        }
    }
    Ok(())
}

/// The number of nodes of a map: as many receivers as senders, some of which receive nothing.
fn nodes(map: &str) -> usize {
    2 * map.split(',').count()
}

/// The layer, and the median of the launches with the least and the most.
fn row(record: &Value) -> Result<String, String> {
    if record["good"] != true {
        return Err(format!("messages were lost: {record}"));
    }
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let senders = number(&record["nodes"]) / 2.0;
    let part = |rate: &Value| number(rate) * number(&record["size_bytes"]) / senders / RATE.1;
    let launches = record["launches"]["values"].as_array().map_or(&[][..], Vec::as_slice);
    let parts = launches.iter().map(part);
    let (least, most) = (parts.clone().fold(f64::INFINITY, f64::min), parts.fold(0.0, f64::max));
    let layer = record["transport"].as_str().unwrap_or_default();
    Ok(format!("{layer:<16} {:.2} ({least:.2} to {most:.2})", part(&record["launches"]["median"])))
}

fn assigned(workspace: &Workspace, options: &Options, nodes: &[Namespace], map: &str) -> Result<Vec<Value>, String> {
    let mut command = Command::new(workspace.evb());
    command.args(["bench", "assigned", "--to", map, "--sizes", "8kB", "--wait", "sleep"]);
    command.args(["--nodes", &nodes.len().to_string(), "--transport", &options.transport]);
    command.args(["--time", &format!("{} s", options.seconds), "--warmup", "500 ms"]);
    command.args(["--launches", &options.launches.to_string()]);
    let records = evb::records(evb::in_namespaces(&mut command, nodes, &control(NETWORK)), LIMIT)?;
    Ok(records.into_iter().filter(|record| record["kind"] == "benchmark").collect())
}
