//! A test of the test of fabrics: `evb bench all-pairs` names the bad link among nodes in network namespaces, and no link if
//! all are good. Needs root, `ip` and `nft`.

use crate::evb;
use serde_json::Value;
use std::{process::Command, time::Duration};
use xtask::{
    namespaces::{Namespace, Namespaces, control},
    workspace::Workspace,
};

const BRIDGE: &str = "evb-fabric";
const NETWORK: &str = "10.76.0";
/// Longest time of a test.
const LIMIT: Duration = Duration::from_secs(180);

/// Tests fabrics of one machine with and without a bad link.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of nodes
    #[arg(long, default_value_t = 6)]
    nodes: usize,
    /// Number of tests with a bad link, and of tests without
    #[arg(long, default_value_t = 10)]
    turns: usize,
    /// The bad link loses one packet of this number, in one direction
    #[arg(long, default_value_t = 1000)]
    one_of: u32,
}

pub(crate) fn test(options: &Options) -> Result<(), String> {
    if options.nodes < 3 {
        return Err("--nodes must be at least 3: a link is bad only in comparison with others".into());
    }
    let workspace = Workspace::with_evb()?;
    let mut wrong = 0;
    for turn in 0..options.turns {
        for link in [Some(bad_link(turn, options.nodes)), None] {
            wrong += usize::from(!is_found(&workspace, options, link)?);
        }
    }
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} of {} tests have a wrong verdict", 2 * options.turns)) }
}

/// The bad link of a turn: all links and directions in order.
fn bad_link(turn: usize, nodes: usize) -> [usize; 2] {
    let from = turn % nodes;
    [from, (from + 1 + turn % (nodes - 1)) % nodes]
}

/// Tests a fabric in which this link, if any, loses packets. Returns true if exactly this link is named.
fn is_found(workspace: &Workspace, options: &Options, link: Option<[usize; 2]>) -> Result<bool, String> {
    let names = (0..options.nodes).map(|node| format!("evb-f{node}"));
    let network = Namespaces::create(BRIDGE, NETWORK, names)?;
    if let Some([from, to]) = link {
        lose(&network.nodes()[from], &network.nodes()[to], options.one_of)?;
    }
    let record = all_pairs(workspace, network.nodes())?;
    let named: Vec<_> = bad(&record).collect();
    let expected: Vec<_> = link.into_iter().map(|[from, to]| [from.min(to), from.max(to)]).collect();
    let text = |links: &[[usize; 2]]| match links {
        [] => "none".to_owned(),
        links => links.iter().map(|[one, other]| format!("{one} - {other}")).collect::<Vec<_>>().join(", "),
    };
    let verdict = if named == expected { "right" } else { "WRONG" };
    let (seconds, named_text) = (record["seconds"].as_f64().unwrap_or(f64::NAN), text(&named));
    println!("bad link: {:<8} named: {named_text:<16} {seconds:>6.1} s  {verdict}", text(&expected));
    Ok(named == expected)
}

/// Makes the receiver drop one of this number of packets from the sender, at random.
fn lose(from: &Namespace, to: &Namespace, one_of: u32) -> Result<(), String> {
    to.call("nft add table ip evb")?;
    to.call("nft add chain ip evb input { type filter hook input priority 0 ; }")?;
    let sender = &from.address;
    to.call(&format!("nft add rule ip evb input ip saddr {sender} numgen random mod {one_of} == 0 drop"))
}

/// The record of a test with a node in each namespace.
fn all_pairs(workspace: &Workspace, nodes: &[Namespace]) -> Result<Value, String> {
    let mut command = Command::new(workspace.evb());
    evb::record(evb::in_namespaces(command.args(["bench", "all-pairs"]), nodes, &control(NETWORK)), LIMIT)
}

/// The links that a record names as bad.
fn bad(record: &Value) -> impl Iterator<Item = [usize; 2]> {
    let links = record["links"].as_array().into_iter().flatten();
    let node = |link: &Value, end: usize| link["nodes"][end].as_u64().unwrap_or(u64::MAX) as usize;
    links.filter(|link| link["verdict"] == "bad").map(move |link| [node(link, 0), node(link, 1)])
}
