//! Networks, packets and loads that are compared.

use std::fmt;

/// Loads of a crossbar, as parts of the rate of a link.
const LOADS: &[f64] = &[0.1, 0.2, 0.3, 0.4, 0.5];
/// Loads of other networks, and of those that carry less than half.
const FEWER_LOADS: &[f64] = &[0.1, 0.3, 0.5];
const LOW_LOADS: &[f64] = &[0.1, 0.3];

/// A network. All of its links carry one phit in a cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Network {
    /// One switch: as many hosts that only send as hosts that only receive.
    Crossbar { ports: usize },
    /// A square of switches with one host each.
    Mesh { side: usize },
    /// The same with rows and columns that are rings.
    Torus { side: usize },
    /// The same number of leaves, spines, and hosts on each leaf.
    Clos { side: usize },
    /// Three layers of switches with this number of ports.
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

    /// Mean number of links between switches on the route of a message, over all pairs of a sender and a receiver.
    fn hops(self) -> f64 {
        // Over all pairs of places, also of a place with itself, which are `side` times `side` in each dimension.
        let grid = |side: usize, hops: f64| 2.0 * hops * (side * side) as f64 / (side * side - 1) as f64;
        match self {
            Self::Crossbar { .. } => 0.0,
            Self::Mesh { side } => grid(side, (side * side - 1) as f64 / (3 * side) as f64),
            // Of a ring with an odd number of places.
            Self::Torus { side } => grid(side, (side * side - 1) as f64 / (4 * side) as f64),
            Self::Clos { side } => 2.0 * (side * side - side) as f64 / (side * side - 1) as f64,
            Self::FatTree { radix } => {
                let (leaf, pod, all) = (radix / 2, (radix / 2).pow(2), self.hosts());
                (2 * (pod - leaf) + 4 * (all - pod)) as f64 / (all - 1) as f64
            }
        }
    }
}

/// One comparison.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) network: Network,
    /// Phits of a packet. A message is one packet.
    pub(super) phits: u64,
    /// Offered load for a mean wait; `None` if the senders send as much as possible and the accepted load is compared.
    pub(super) load: Option<f64>,
}

impl Case {
    /// Phits of the buffer of an input: four packets.
    pub(super) fn buffer(&self) -> u64 {
        4 * self.phits
    }

    /// Cycles of the measurement; before it, a fifth of them pass.
    pub(super) fn measured(&self) -> u64 {
        match self.network {
            _ if self.phits == 1 => 50_000,
            Network::Crossbar { .. } => 200_000,
            _ => 100_000,
        }
    }

    /// Cycles before the measurement.
    pub(super) fn warmup(&self) -> u64 {
        self.measured() / 5
    }

    /// Mean delay of a message that never waits, in cycles: its head crosses one link after the other, at both ends of its
    /// route and between the switches, and the other phits follow.
    pub(super) fn empty(&self) -> f64 {
        2.0 + self.network.hops() + (self.phits - 1) as f64
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
    let mut cases = [saturated(1), saturated(16)].concat();
    let curves = [(8, 1), (32, 1), (8, 16), (8, 64)];
    cases.extend(curves.into_iter().flat_map(|(ports, phits)| curve(crossbar(ports), phits, LOADS)));
    let networks = [
        (Network::Mesh { side: 4 }, FEWER_LOADS),
        (Network::Mesh { side: 8 }, LOW_LOADS),
        (Network::Torus { side: 5 }, FEWER_LOADS),
        (Network::Clos { side: 4 }, FEWER_LOADS),
        (Network::FatTree { radix: 4 }, FEWER_LOADS),
    ];
    for ((network, loads), phits) in networks.into_iter().flat_map(|network| [(network, 1), (network, 64)]) {
        cases.extend(curve(network, phits, loads).chain([Case { network, phits, load: None }]));
    }
    cases
}

/// Mean waits at several loads.
fn curve(network: Network, phits: u64, loads: &[f64]) -> impl Iterator<Item = Case> {
    loads.iter().map(move |&load| Case { network, phits, load: Some(load) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty(network: Network) -> f64 {
        Case { network, phits: 16, load: None }.empty()
    }

    #[test]
    fn an_empty_network_has_the_delay_of_its_routes() {
        assert_eq!(empty(Network::Crossbar { ports: 8 }), 17.0);
        // Of three others, two are one link away and one is two.
        assert!((empty(Network::Mesh { side: 2 }) - (17.0 + 4.0 / 3.0)).abs() < 1e-12);
        // Of eight others, four are one link away and four are two.
        assert!((empty(Network::Torus { side: 3 }) - 18.5).abs() < 1e-12);
        // Of three others, one is on the same leaf.
        assert!((empty(Network::Clos { side: 2 }) - (17.0 + 4.0 / 3.0)).abs() < 1e-12);
        // Of 15 others, one is on the same leaf, two are in the same pod and twelve are not.
        assert!((empty(Network::FatTree { radix: 4 }) - (17.0 + 52.0 / 15.0)).abs() < 1e-12);
    }
}
