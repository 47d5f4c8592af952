//! The test of a fabric tested: does `evb bench all-pairs` name the one bad link among nodes in network namespaces, and
//! none when there is none? Needs root, `ip` and `nft`.

use crate::{
    namespaces::{Namespace, Namespaces, control},
    processes::Limited,
    workspace::Workspace,
};
use serde_json::Value;
use std::{process::Command, time::Duration};

const BRIDGE: &str = "evb-fabric";
const NETWORK: &str = "10.76.0";
/// Longest time of one test.
const LIMIT: Duration = Duration::from_secs(180);

/// Tests fabrics of one machine with a bad link, and without.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Number of nodes
    #[arg(long, default_value_t = 6)]
    nodes: usize,
    /// Tests with a bad link, and as many without
    #[arg(long, default_value_t = 10)]
    turns: usize,
    /// One packet of so many is lost on the bad link, in one direction
    #[arg(long, default_value_t = 1000)]
    one_of: u32,
}

pub(crate) fn test(options: &Options) -> Result<(), String> {
    if options.nodes < 3 {
        return Err("a link can be bad among others only: give --nodes 3 or more".into());
    }
    let workspace = Workspace::find()?;
    workspace.cargo(&["build", "--release", "--quiet", "--package", "evb-cli"])?;
    let mut wrong = 0;
    for turn in 0..options.turns {
        for link in [Some(bad_link(turn, options.nodes)), None] {
            wrong += usize::from(!is_found(&workspace, options, link)?);
        }
    }
    match wrong {
        0 => Ok(()),
        _ => Err(format!("{wrong} of {} tests have a wrong verdict", 2 * options.turns)),
    }
}

/// Another link each turn, and each direction.
fn bad_link(turn: usize, nodes: usize) -> [usize; 2] {
    let from = turn % nodes;
    [from, (from + 1 + turn % (nodes - 1)) % nodes]
}

/// Tests a fabric in which this link, if any, loses packets: true if that link, and no other, is named.
fn is_found(workspace: &Workspace, options: &Options, link: Option<[usize; 2]>) -> Result<bool, String> {
    let names = (0..options.nodes).map(|node| format!("evb-f{node}"));
    let network = Namespaces::make(BRIDGE, NETWORK, names)?;
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

/// Makes the receiver lose one of so many packets from the sender, at random.
fn lose(from: &Namespace, to: &Namespace, one_of: u32) -> Result<(), String> {
    to.call("nft add table ip evb")?;
    to.call("nft add chain ip evb input { type filter hook input priority 0 ; }")?;
    let sender = &from.address;
    to.call(&format!("nft add rule ip evb input ip saddr {sender} numgen random mod {one_of} == 0 drop"))
}

/// The record of a test with a node in each namespace. They share the cores, so none is pinned.
fn all_pairs(workspace: &Workspace, nodes: &[Namespace]) -> Result<Value, String> {
    let hosts = nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join(",");
    let mut evb = Command::new(workspace.evb());
    evb.args(["bench", "all-pairs", "--json", "--quiet", "--no-pin", "--hosts", &hosts]);
    evb.args(["--shell", "ip netns exec", "--listen", &control(NETWORK)]);
    let (_, output) = Limited::start(&mut evb, LIMIT).map_err(|error| format!("evb: {error}"))?.wait()?;
    serde_json::from_str(&output).map_err(|error| format!("evb gave no record: {error}"))
}

/// The links that a record names as bad.
fn bad(record: &Value) -> impl Iterator<Item = [usize; 2]> {
    let links = record["links"].as_array().into_iter().flatten();
    let node = |link: &Value, place: usize| link["nodes"][place].as_u64().unwrap_or(u64::MAX) as usize;
    links.filter(|link| link["verdict"] == "bad").map(move |link| [node(link, 0), node(link, 1)])
}
