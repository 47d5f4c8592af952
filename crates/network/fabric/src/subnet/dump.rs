//! The output of `ibnetdiscover`: a block for each node with a line for each port that has a cable (ibnetdiscover(8), rdma-core).
//!
//! ```text
//! switchguid=0x2c90000000100(2c90000000100)
//! Switch  36 "S-0002c90000000100"     # "leaf0" enhanced port 0 lid 1 lmc 0
//! [1]     "H-0002c90000000200"[1](2c90000000201)      # "node0 mlx5_0" lid 5 4xHDR
//!
//! caguid=0x2c90000000200
//! Ca      1 "H-0002c90000000200"      # "node0 mlx5_0"
//! [1](2c90000000201)      "S-0002c90000000100"[1]     # lid 5 lmc 0 "leaf0" lid 1 4xHDR
//! ```

use super::{SubnetError, SubnetFile, SubnetProblem, rate};
use evb_core::Bandwidth;
use std::collections::{BTreeMap, HashMap};

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    Switch,
    /// A channel adapter: the interface of a host.
    Adapter,
    /// A router to other subnets, which is left out.
    Router,
}

/// A node of the subnet.
pub(super) struct Node<'t> {
    pub(super) kind: NodeKind,
    /// Its letter and GUID, such as `S-0002c90000000100`.
    pub(super) id: &'t str,
    /// Its description.
    pub(super) name: &'t str,
    /// The line of its name, counted from 1.
    pub(super) line: usize,
    /// The ports with a cable.
    pub(super) ports: BTreeMap<u8, Port<'t>>,
}

/// A port with a cable.
pub(super) struct Port<'t> {
    /// The id of the node at the other end, and the number of its port.
    pub(super) peer: (&'t str, u8),
    /// The first LID of the port; 0 at a switch, whose ports have none.
    pub(super) lid: u16,
    pub(super) rate: Bandwidth,
    pub(super) line: usize,
}

/// All nodes in the order of the file, each cable checked at both ends.
pub(super) fn nodes(text: &str) -> Result<Vec<Node<'_>>, SubnetError> {
    let mut nodes: Vec<Node<'_>> = Vec::new();
    for (line, written) in (1..).zip(text.lines()) {
        let unknown = || fail(line, SubnetProblem::UnknownLine { text: super::brief(written) });
        if let Some(node) = node(line, written) {
            nodes.push(node);
        } else if written.starts_with('[') {
            let node = nodes.last_mut().ok_or_else(unknown)?;
            let (number, port) = port(line, written, node.kind)?.ok_or_else(unknown)?;
            if node.ports.insert(number, port).is_some() {
                return Err(fail(line, SubnetProblem::PortTwice { node: node.id.to_owned(), port: number }));
            }
        } else if !says_nothing(written) {
            return Err(unknown());
        }
    }
    check(&nodes)?;
    Ok(nodes)
}

/// Lines about vendors, GUIDs that the names repeat, the boxes that switches are in, and warnings of the tool.
fn says_nothing(line: &str) -> bool {
    const BEGINNINGS: [&str; 11] = [
        "#",
        super::WARNING,
        "vendid=",
        "devid=",
        "sysimgguid=",
        "switchguid=",
        "caguid=",
        "rtguid=",
        "Chassis ",
        "Hostname:",
        "Non-Chassis Nodes",
    ];
    line.trim().is_empty() || BEGINNINGS.iter().any(|beginning| line.starts_with(beginning))
}

/// A line such as `Switch 36 "S-0002c90000000100" # "leaf0" base port 0 lid 1 lmc 0`.
fn node(line: usize, written: &str) -> Option<Node<'_>> {
    let (kind, rest) = written.split_once(char::is_whitespace)?;
    let kind = match kind {
        "Switch" => NodeKind::Switch,
        "Ca" => NodeKind::Adapter,
        "Rt" => NodeKind::Router,
        _ => return None,
    };
    let (_, rest) = rest.split_once('"')?;
    let (id, rest) = rest.split_once('"')?;
    let (_, name) = rest.split_once("# \"")?;
    Some(Node { kind, id, name: &name[..name.rfind('"')?], line, ports: BTreeMap::new() })
}

/// A line such as `[1] "H-0002c90000000200"[1](2c90000000201) # "node0 mlx5_0" lid 5 4xHDR`; `None` if it is no such line.
fn port<'t>(line: usize, written: &'t str, kind: NodeKind) -> Result<Option<(u8, Port<'t>)>, SubnetError> {
    let parts = || {
        let (number, rest) = bracketed(written)?;
        let (_, rest) = rest.split_once('"')?;
        let (peer, rest) = rest.split_once('"')?;
        let (peer_port, rest) = bracketed(rest)?;
        let (_, rest) = rest.split_once("# ")?;
        // At a host, its own LID comes before the name of the switch.
        let lid = match kind {
            NodeKind::Switch => 0,
            _ => rest.strip_prefix("lid ")?.split(' ').next()?.parse().ok()?,
        };
        let after = &rest[rest.rfind('"')? + 1..];
        let speed = after.trim_start().strip_prefix("lid ")?.split_whitespace().nth(1).unwrap_or_default();
        Some((number, (peer, peer_port), lid, speed))
    };
    let Some((number, peer, lid, speed)) = parts() else { return Ok(None) };
    let unknown = || fail(line, SubnetProblem::UnknownSpeed { text: super::brief(speed) });
    Ok(Some((number, Port { peer, lid, rate: rate::of(speed).ok_or_else(unknown)?, line })))
}

/// The number of `[number]` at the beginning, and what follows it.
fn bracketed(text: &str) -> Option<(u8, &str)> {
    let (number, rest) = text.strip_prefix('[')?.split_once(']')?;
    Some((number.parse().ok()?, rest))
}

/// Checks that no node is there twice, and that both ends of each cable say the same.
fn check(nodes: &[Node<'_>]) -> Result<(), SubnetError> {
    let mut by_id = HashMap::new();
    for node in nodes {
        if by_id.insert(node.id, node).is_some() {
            return Err(fail(node.line, SubnetProblem::NodeTwice { node: node.id.to_owned() }));
        }
    }
    for node in nodes {
        for (&number, port) in &node.ports {
            let (id, peer_port) = port.peer;
            let peer = by_id.get(id).ok_or_else(|| fail(port.line, SubnetProblem::NoPeer { peer: id.to_owned() }))?;
            if peer.ports.get(&peer_port).map(|back| back.peer) != Some((node.id, number)) {
                let problem = SubnetProblem::OtherPeer { peer: id.to_owned(), port: peer_port };
                return Err(fail(port.line, problem));
            }
        }
    }
    Ok(())
}

fn fail(line: usize, problem: SubnetProblem) -> SubnetError {
    SubnetError { file: SubnetFile::Topology, line: Some(line), problem }
}
