//! Networks, packets and loads that are compared.

use std::fmt;

/// Loads of the delay curves, as parts of the rate of a link; a network that carries less has the first ones only.
const LOADS: [f64; 5] = [0.1, 0.2, 0.3, 0.4, 0.5];

/// A network. All of its links carry one phit in a cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Network {
    /// One switch: as many hosts that only send as hosts that only receive.
    Crossbar { ports: usize },
    /// A square of switches with one host each.
    Mesh { side: usize },
    /// The same with rows and columns that are rings.
    Torus { side: usize },
    /// As many spines as leaves, and as many hosts on each leaf.
    Clos { side: usize },
    /// Three layers of switches with so many ports.
    FatTree { radix: usize },
}

impl Network {
    /// Name for the table.
    pub(super) fn name(self) -> String {
        match self {
            Self::Crossbar { ports } => format!("crossbar {ports} x {ports}"),
            Self::Mesh { side } => format!("mesh {side} x {side}"),
            Self::Torus { side } => format!("torus {side} x {side}"),
            Self::Clos { side } => format!("Clos, {side} leaves, {side} spines"),
            Self::FatTree { radix } => format!("fat tree, radix {radix}"),
        }
    }

    /// Number of hosts.
    pub(super) fn hosts(self) -> usize {
        match self {
            Self::Crossbar { ports } => 2 * ports,
            Self::Mesh { side } | Self::Torus { side } | Self::Clos { side } => side * side,
            Self::FatTree { radix } => radix.pow(3) / 4,
        }
    }

    /// Number of hosts that send. Where all send, each sends to all others.
    pub(super) fn senders(self) -> usize {
        match self {
            Self::Crossbar { ports } => ports,
            _ => self.hosts(),
        }
    }
}

/// One comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) network: Network,
    /// Phits of a packet. A message is one packet.
    pub(super) phits: u64,
    /// Offered load for a mean delay; without, the senders send as much as goes, and the accepted load counts.
    pub(super) load: Option<f64>,
}

impl Case {
    /// Phits of the buffer of an input: four packets.
    pub(super) fn buffer(&self) -> u64 {
        4 * self.phits
    }

    /// Value of theory for the accepted load in per cent: Hluchyj and Karol 1988, table of input queues.
    pub(super) fn theory(&self) -> Option<f64> {
        match (self.network, self.load) {
            (Network::Crossbar { ports: 4 }, None) => Some(65.53),
            (Network::Crossbar { ports: 8 }, None) => Some(61.84),
            _ => None,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, packets of {}, ", self.network.name(), self.phits)?;
        match self.load {
            Some(load) => write!(formatter, "load {load}"),
            None => formatter.write_str("saturated"),
        }
    }
}

/// All comparisons, in the order of the table.
pub(super) fn all() -> Vec<Case> {
    let crossbar = |ports| Network::Crossbar { ports };
    let saturated = |phits| [4, 8, 16, 32].map(|ports| Case { network: crossbar(ports), phits, load: None });
    let mut cases: Vec<Case> = [saturated(1), saturated(16)].concat();
    cases.extend([(8, 1), (32, 1), (8, 16)].into_iter().flat_map(|(ports, phits)| curve(crossbar(ports), phits, 5)));
    let curves = [
        (Network::Mesh { side: 4 }, 1, 5),
        (Network::Mesh { side: 4 }, 16, 5),
        (Network::Mesh { side: 8 }, 16, 3),
        (Network::Torus { side: 5 }, 16, 5),
        (Network::Clos { side: 4 }, 16, 5),
        (Network::FatTree { radix: 4 }, 16, 5),
    ];
    cases.extend(curves.into_iter().flat_map(|(network, phits, loads)| {
        let end = Case { network, phits, load: None };
        curve(network, phits, loads).chain([end])
    }));
    cases
}

/// Mean delays at the first loads.
fn curve(network: Network, phits: u64, loads: usize) -> impl Iterator<Item = Case> {
    LOADS.into_iter().take(loads).map(move |load| Case { network, phits, load: Some(load) })
}
