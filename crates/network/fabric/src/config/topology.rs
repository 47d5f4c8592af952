//! Switches and links.

use crate::Marking;
use evb_core::{Bandwidth, Span};
use serde::{Deserialize, Serialize};

/// Switches and links. Hosts are numbered in the order of their switches.
///
/// With `nic.ports` ports per host, the hosts come in blocks: in one block, the first ports are on one switch, the
/// second ports on the next switch, and so on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Topology {
    /// One switch with all hosts.
    Crossbar {
        /// Number of ports, one per port of a host.
        ports: u16,
    },
    /// Two layers: every leaf has `links` links to every spine. A composite of crossbars is a Clos network, too.
    Clos {
        /// Number of leaf switches.
        leaves: u16,
        /// Ports for hosts on each leaf.
        ports_per_leaf: u16,
        /// Number of spine switches.
        spines: u16,
        /// Parallel links between each leaf and each spine.
        links: u16,
        /// Rate of the links between leaf and spine; that of all links by default.
        uplink: Option<Bandwidth>,
    },
    /// Three layers of switches with `radix` ports each: `radix` pods of `radix / 2` edge and as many aggregation
    /// switches, and `radix^2 / 4` core switches, for `radix^3 / 4` host ports.
    FatTree {
        /// Ports per switch, even.
        radix: u16,
    },
    /// A fat tree by its levels, from the hosts upwards: an extended generalised fat tree (XGFT: Öhring, Ibel, Das and Kumar,
    /// On Generalized Fat Trees, IPPS 1995), with parallel cables a parallel-port one (PGFT: Zahavi, JPDC 72, 2012; [`Spread`](crate::Spread)
    /// has the title). It has as many ports of hosts as the product of `down` over all levels.
    FatTreeLevels {
        /// Two to four levels of switches; the first one has the hosts.
        levels: Vec<TreeLevel>,
    },
    /// A k-ary n-fly: `stages` stages of crossbars with `radix` inputs and outputs; hosts send into the first stage and
    /// receive from the last. Only one route leads from one host to another.
    Butterfly {
        /// Inputs, and outputs, of one crossbar.
        radix: u16,
        /// Number of stages.
        stages: u16,
    },
    /// Switches in rows, columns and layers, linked to their neighbours.
    Grid {
        /// Switches in a row.
        width: u16,
        /// Switches in a column.
        height: u16,
        /// Layers of rows and columns; 1 in a plane.
        #[serde(default = "one_layer", skip_serializing_if = "is_one_layer")]
        depth: u16,
        /// Ports for hosts on each switch.
        terminals: u16,
        /// Parallel links between neighbours.
        links: u16,
    },
    /// A grid whose lines of switches are closed to rings in each dimension.
    Torus {
        /// Switches in a row.
        width: u16,
        /// Switches in a column.
        height: u16,
        /// Layers of rows and columns; 1 in a plane.
        #[serde(default = "one_layer", skip_serializing_if = "is_one_layer")]
        depth: u16,
        /// Ports for hosts on each switch.
        terminals: u16,
        /// Parallel links between neighbours.
        links: u16,
    },
    /// Groups of switches: each switch is joined to all others of its group, and each group to all others (Kim, Dally, Scott and
    /// Abts, Technology-Driven, Highly-Scalable Dragonfly Topology, ISCA 2008).
    Dragonfly {
        /// Number of groups.
        groups: u16,
        /// Switches in a group.
        routers: u16,
        /// Ports for hosts on each switch.
        terminals: u16,
        /// Links of each switch to other groups. All groups are joined by the same number of links, as many as there are.
        global: u16,
        /// Rate of the links between groups; that of all links by default.
        global_rate: Option<Bandwidth>,
        /// Delay of the links between groups; that of all links by default.
        global_delay: Option<Span>,
    },
    /// Groups of leaves and spines: every leaf is joined to all spines of its group, and each group to all others, by links
    /// between spines (Shpiner, Haramaty, Eliad, Zdornov, Gafni and Zahavi, Dragonfly+: Low Cost Topology for Scaling
    /// Datacenters, HiPINEB 2017).
    DragonflyPlus {
        /// Number of groups.
        groups: u16,
        /// Leaves in a group.
        leaves: u16,
        /// Spines in a group.
        spines: u16,
        /// Ports for hosts on each leaf.
        terminals: u16,
        /// Links of each spine to other groups. All groups are joined by the same number of links, as many as there are.
        global: u16,
        /// Rate of the links between groups; that of all links by default.
        global_rate: Option<Bandwidth>,
        /// Delay of the links between groups; that of all links by default.
        global_delay: Option<Span>,
    },
    /// Switches in up to three dimensions, each joined to all others that differ from it in one coordinate (Ahn, Binkert, Davis,
    /// McLaren and Schreiber, HyperX: Topology, Routing, and Packaging of Efficient Large-Scale Networks, SC 2009). With equal
    /// sizes it is a flattened butterfly (Kim, Dally and Abts, ISCA 2007).
    #[serde(rename = "hyperx")]
    HyperX {
        /// Switches along each dimension.
        sizes: Vec<u16>,
        /// Ports for hosts on each switch.
        terminals: u16,
        /// Parallel links between two neighbours, for each dimension.
        links: Vec<u16>,
    },
    /// A root switch and leaves below it, each joined to the root by a trunk.
    Tree {
        /// Number of leaf switches.
        leaves: u16,
        /// Ports for hosts on each leaf.
        ports_per_leaf: u16,
        /// Parallel links from each leaf to the root.
        trunk: u16,
        /// Rate of each of these links; that of all links by default.
        uplink: Option<Bandwidth>,
    },
    /// A network that the user lists.
    Explicit {
        /// Names of the switches.
        switches: Vec<String>,
        /// Links. An end is the name of a switch, or `h0`, `h1`, ... for the ports of hosts, in order.
        links: Vec<ExplicitLink>,
    },
    /// A fabric as its subnet manager knows it, read by [`SubnetFiles`](crate::SubnetFiles).
    Infiniband {
        /// The switches, with their forwarding tables.
        switches: Vec<SubnetSwitch>,
        /// The cable of each port of a host, in order.
        hosts: Vec<SubnetHostCable>,
        /// The cables between switches.
        cables: Vec<SubnetCable>,
    },
}

/// The switches of one level of a fat tree, all alike, and the cables to the level above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeLevel {
    /// Switches of the level below that each switch is joined to; ports of hosts at the first level.
    pub down: u16,
    /// Switches of the level above that each switch is joined to; 0 at the highest level.
    pub up: u16,
    /// Parallel cables to each of these; 1 at the highest level.
    pub links: u16,
    /// Rate of these cables; that of all links by default.
    pub rate: Option<Bandwidth>,
    /// Delay of these cables; that of all links by default.
    pub delay: Option<Span>,
}

/// The layers of a grid in a plane.
fn one_layer() -> u16 {
    1
}

/// Returns true if a grid is in a plane.
fn is_one_layer(depth: &u16) -> bool {
    *depth == 1
}

/// One or several parallel cables, each a link in both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExplicitLink {
    /// The two ends.
    pub ends: [String; 2],
    /// Number of parallel links.
    pub count: u16,
    /// Rate of each; that of all links by default.
    pub rate: Option<Bandwidth>,
    /// Delay of each; that of all links by default.
    pub delay: Option<Span>,
    /// Marks in the queues of each; those of all switches by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marking: Option<Marking>,
}

/// A switch of a fabric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubnetSwitch {
    /// Its name.
    pub name: String,
    /// The forwarding table: for each port of a host the place of a port among those of the switch that have a cable, or
    /// [`NO_OUTPUT`](Self::NO_OUTPUT). It is empty if the tables are not known.
    pub table: Vec<u8>,
}

/// The cable from a port of a host to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubnetHostCable {
    /// The index of the switch.
    pub switch: u16,
    /// The number of its port.
    pub port: u8,
    /// Data rate of each direction, unless the host has one of its own ([`HostLinks`](crate::HostLinks)).
    pub rate: Bandwidth,
}

/// A cable between two switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubnetCable {
    /// The indices of the switches.
    pub switches: [u16; 2],
    /// The numbers of their ports.
    pub ports: [u8; 2],
    /// Data rate of each direction.
    pub rate: Bandwidth,
}

impl SubnetSwitch {
    /// No packet for the host comes to the switch.
    pub const NO_OUTPUT: u8 = u8::MAX;
}

impl Topology {
    /// The name of the kind, as in the experiment file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Crossbar { .. } => "crossbar",
            Self::Clos { .. } => "clos",
            Self::FatTree { .. } | Self::FatTreeLevels { .. } => "fat-tree",
            Self::Butterfly { .. } => "butterfly",
            Self::Grid { .. } => "grid",
            Self::Torus { .. } => "torus",
            Self::Dragonfly { .. } => "dragonfly",
            Self::DragonflyPlus { .. } => "dragonfly-plus",
            Self::HyperX { .. } => "hyperx",
            Self::Tree { .. } => "tree",
            Self::Explicit { .. } => "explicit",
            Self::Infiniband { .. } => "infiniband",
        }
    }

    /// True if the switches are in levels, each linked to those below and above it.
    pub fn is_tree(&self) -> bool {
        matches!(self, Self::Clos { .. } | Self::FatTree { .. } | Self::FatTreeLevels { .. } | Self::Tree { .. })
    }
}
