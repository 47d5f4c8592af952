//! A fabric as its subnet manager knows it: the topology from `ibnetdiscover`, and the forwarding tables of the switches.

mod dump;
mod error;
mod forwarding;
mod rate;
mod tables;

pub use error::{SubnetError, SubnetFile, SubnetHost, SubnetProblem};

use crate::builder::MOST_PAIRS;
use crate::{SubnetCable, SubnetHostCable, SubnetSwitch, Topology, topology::is_switch_name};
use dump::{Node, NodeKind};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The description of the channel adapter in a switch that adds numbers up for the hosts (SHARP). It is no host.
const AGGREGATION: &str = "Mellanox Technologies Aggregation Node";

/// The beginning of the warnings of the tools, which a file has that was written with their standard error.
const WARNING: &str = "ibwarn: ";

/// Most switches, and most ports of hosts: their ids are 16 bits wide.
const MOST: usize = u16::MAX as usize;

/// The files of a subnet manager, and the hosts among its nodes.
#[derive(Clone, Copy, Debug)]
pub struct SubnetFiles<'t> {
    /// The output of `ibnetdiscover`.
    pub topology: &'t str,
    /// The output of `dump_fts`, or `opensm-lfts.dump`; `None` if the tables are not wanted.
    pub tables: Option<&'t str>,
    /// The channel adapters of the hosts by description or id, in the order of the hosts. Without any, all that have a
    /// cable, in the order of the file, but for those that are parts of switches.
    pub hosts: &'t [String],
    /// Ports of the network interface of a host.
    pub ports: u8,
}

/// The nodes that take part, and their cables.
struct Subnet<'t> {
    switches: Vec<&'t Node<'t>>,
    /// The ports of the hosts, in their order: channel adapter and port.
    hosts: Vec<(&'t Node<'t>, u8)>,
    /// The index of each switch by its id.
    switch_of: HashMap<&'t str, usize>,
    /// The index of each port of a host by id and port.
    host_of: HashMap<(&'t str, u8), usize>,
}

/// What is at the other end of a cable.
#[derive(Clone, Copy)]
enum FarEnd {
    Switch(usize),
    Host(usize),
}

impl SubnetFiles<'_> {
    /// The topology that the files describe, with the forwarding tables if there are any. Switches are in the order of the file.
    ///
    /// A port with several LIDs is reached by its first one.
    ///
    /// # Errors
    /// A line is in no known format, the two ends of a cable contradict each other, a wanted host is not there, the
    /// tables are of other switches, or a route between hosts ends nowhere or leads in a circle.
    pub fn read(&self) -> Result<Topology, SubnetError> {
        let nodes = dump::nodes(self.topology)?;
        let subnet = Subnet::new(&nodes, self)?;
        let tables = match self.tables {
            Some(text) => subnet.forwarding(&tables::tables(text)?)?,
            None => vec![Vec::new(); subnet.switches.len()],
        };
        let named = subnet.names().into_iter().zip(tables);
        Ok(Topology::Infiniband {
            switches: named.map(|(name, table)| SubnetSwitch { name, table }).collect(),
            hosts: subnet.host_cables()?,
            cables: subnet.switch_cables(),
        })
    }
}

impl<'t> Subnet<'t> {
    fn new(nodes: &'t [Node<'t>], files: &SubnetFiles<'_>) -> Result<Self, SubnetError> {
        let switches: Vec<_> = nodes.iter().filter(|node| node.kind == NodeKind::Switch).collect();
        let hosts: Vec<_> = adapters(nodes, files)?
            .into_iter()
            .flat_map(|node| node.ports.keys().map(move |&port| (node, port)))
            .collect();
        let limits = [
            ("switches", switches.len(), MOST),
            ("ports of hosts", hosts.len(), MOST),
            ("pairs of a switch and a host port", switches.len() * hosts.len(), MOST_PAIRS as usize),
        ];
        if let Some(&(what, _, most)) = limits.iter().find(|(_, number, most)| number > most) {
            return Err(whole(SubnetProblem::TooMany { what, most }));
        }
        let switch_of = switches.iter().enumerate().map(|(place, node)| (node.id, place)).collect();
        let host_of = hosts.iter().enumerate().map(|(place, &(node, port))| ((node.id, port), place)).collect();
        Ok(Self { switches, hosts, switch_of, host_of })
    }

    /// What takes part at the other end of the cable of a port. A cable back to the same node leads nowhere.
    fn far_end(&self, node: &Node<'_>, port: u8) -> Option<FarEnd> {
        let (id, peer_port) = node.ports.get(&port)?.peer;
        if id == node.id {
            return None;
        }
        let host = || self.host_of.get(&(id, peer_port)).map(|&host| FarEnd::Host(host));
        self.switch_of.get(id).map(|&switch| FarEnd::Switch(switch)).or_else(host)
    }

    /// The ports of a switch with a cable to a switch or host that takes part: the outputs of the switch, in their order.
    fn outputs(&self, switch: usize) -> impl Iterator<Item = (u8, FarEnd)> {
        let node = self.switches[switch];
        node.ports.keys().filter_map(move |&port| Some((port, self.far_end(node, port)?)))
    }

    /// The cable of each port of a host.
    fn host_cables(&self) -> Result<Vec<SubnetHostCable>, SubnetError> {
        let cable = |&(node, number): &(&Node<'_>, u8)| {
            let port = &node.ports[&number];
            match self.far_end(node, number) {
                Some(FarEnd::Switch(switch)) => {
                    Ok(SubnetHostCable { switch: switch as u16, port: port.peer.1, rate: port.rate })
                }
                _ => Err(of_topology(port.line, SubnetProblem::NoSwitch { node: node.name.to_owned() })),
            }
        };
        self.hosts.iter().map(cable).collect()
    }

    /// The cables between switches, each once, in the order of the switch and port that come first.
    fn switch_cables(&self) -> Vec<SubnetCable> {
        let mut cables = Vec::new();
        for (here, node) in self.switches.iter().enumerate() {
            for (&number, port) in &node.ports {
                if let Some(FarEnd::Switch(there)) = self.far_end(node, number)
                    && here < there
                {
                    let ports = [number, port.peer.1];
                    cables.push(SubnetCable { switches: [here as u16, there as u16], ports, rate: port.rate });
                }
            }
        }
        cables
    }

    /// The name of each switch: its description, or its id if the description cannot be a name or is not its alone.
    fn names(&self) -> Vec<String> {
        let mut number: BTreeMap<&str, usize> = BTreeMap::new();
        self.switches.iter().for_each(|node| *number.entry(node.name).or_default() += 1);
        let is_good = |name: &str| is_switch_name(name) && number[name] == 1;
        let name = |node: &&Node<'_>| if is_good(node.name) { node.name.to_owned() } else { node.id.to_owned() };
        self.switches.iter().map(name).collect()
    }
}

/// The channel adapters of the hosts, in the order of the hosts.
fn adapters<'t>(nodes: &'t [Node<'t>], files: &SubnetFiles<'_>) -> Result<Vec<&'t Node<'t>>, SubnetError> {
    let all: Vec<_> = nodes.iter().filter(|node| node.kind == NodeKind::Adapter).collect();
    let chosen = match files.hosts {
        [] => all.into_iter().filter(|node| !node.ports.is_empty() && node.name != AGGREGATION).collect(),
        names => chosen(&all, names)?,
    };
    // Adapters of one port may be the ports of one host if the user says which.
    let may_differ = !files.hosts.is_empty() && files.ports > 1;
    match chosen.iter().find(|node| node.ports.len() != usize::from(files.ports)) {
        Some(node) if !may_differ => {
            let (node, line, cabled) = (node.name.to_owned(), node.line, node.ports.len());
            Err(of_topology(line, SubnetProblem::OtherPorts { node, cabled, ports: files.ports }))
        }
        _ => Ok(chosen),
    }
}

/// The nodes with these names or ids, in their order.
fn chosen<'t>(all: &[&'t Node<'t>], names: &[String]) -> Result<Vec<&'t Node<'t>>, SubnetError> {
    let mut by_name: HashMap<&str, Vec<&Node<'_>>> = HashMap::new();
    for &node in all {
        HashSet::from([node.id, node.name]).into_iter().for_each(|name| by_name.entry(name).or_default().push(node));
    }
    let find = |name: &String| match by_name.get(&**name).map_or(&[][..], |found| found) {
        &[node] => Ok(node),
        found => Err(whole(SubnetProblem::NotOne { name: brief(name), number: found.len() })),
    };
    let chosen: Vec<_> = names.iter().map(find).collect::<Result<_, _>>()?;
    let mut ids = HashSet::new();
    match chosen.iter().find(|node| !ids.insert(node.id)) {
        Some(node) => Err(whole(SubnetProblem::ListedTwice { node: node.name.to_owned() })),
        None => Ok(chosen),
    }
}

/// The beginning of a text, in quotes.
fn brief(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut brief: String = text.chars().take(LONGEST).collect();
    if brief.len() < text.len() {
        brief.push_str("...");
    }
    format!("{brief:?}")
}

fn of_topology(line: usize, problem: SubnetProblem) -> SubnetError {
    SubnetError { file: SubnetFile::Topology, line: Some(line), problem }
}

fn whole(problem: SubnetProblem) -> SubnetError {
    SubnetError { file: SubnetFile::Topology, line: None, problem }
}
