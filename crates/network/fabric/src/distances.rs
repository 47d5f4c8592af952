//! Distances from each switch to each switch that hosts receive from, over the links that the routing allows.

use crate::{EndpointId, GLOBAL, LinkId, Network, Routing, SwitchId, Ties, Topology};
use std::{cmp::Ordering, collections::VecDeque};

/// Larger than any distance.
const NO_ROUTE: u16 = u16::MAX;

/// The length of a link between two groups of a dragonfly: two of them are longer than one with a link in each group, so that
/// a minimal route has one at most. The same holds in a dragonfly+ where packets make detours: from the spine at which they came into
/// another group, one link between groups and two in that group count less.
const GLOBAL_LENGTH: u16 = 3;

/// A usable link between two switches, seen from one of them.
#[derive(Clone, Copy)]
struct Neighbour {
    link: LinkId,
    switch: SwitchId,
    /// In hops.
    length: u16,
}

/// The lengths of the shortest routes from every switch to every destination switch, in hops.
pub(crate) struct Distances {
    /// Per switch the usable outputs to other switches, in the order of the ports.
    outputs: Vec<Vec<Neighbour>>,
    rule: RoutingRule,
    /// The switches that hosts receive from.
    destinations: Vec<SwitchId>,
    /// For each port of a host the index of its switch among the destinations.
    destination_of: Vec<u16>,
    /// Per destination and switch the length of the route, or [`NO_ROUTE`].
    hops: Vec<u16>,
}

impl Distances {
    pub(crate) fn find(network: &Network, usable: &[bool]) -> Self {
        let (outputs, inputs) = neighbours(network, usable);
        let rule = RoutingRule::new(network, &outputs);
        let (destinations, destination_of) = destinations(network);
        let mut distances = Self { outputs, rule, destinations, destination_of, hops: Vec::new() };
        for to in 0..distances.destinations.len() {
            distances.measure(&inputs, distances.destinations[to]);
        }
        distances
    }

    /// Number of switches that hosts receive from.
    pub(crate) fn destinations(&self) -> usize {
        self.destinations.len()
    }

    /// The index, among those switches, of the one that this port of a host receives from.
    pub(crate) fn destination_of(&self, endpoint: EndpointId) -> usize {
        usize::from(self.destination_of[usize::from(endpoint.0)])
    }

    /// The outputs of `switch` on the shortest routes to the destination with this index.
    pub(crate) fn outputs(&self, switch: SwitchId, to: usize) -> Vec<LinkId> {
        let hops = &self.hops[to * self.outputs.len()..][..self.outputs.len()];
        let here = hops[usize::from(switch.0)];
        if here == NO_ROUTE {
            return Vec::new();
        }
        let nearer = |next: &&Neighbour| {
            let beyond = hops[usize::from(next.switch.0)];
            beyond < here
                && here - beyond == next.length
                && self.rule.allows(switch, next.switch, self.destinations[to])
        };
        self.outputs[usize::from(switch.0)].iter().filter(nearer).map(|next| next.link).collect()
    }

    /// The nearest switches first, from the destination against the direction of the links.
    fn measure(&mut self, inputs: &[Vec<Neighbour>], to: SwitchId) {
        let begin = self.hops.len();
        self.hops.resize(begin + inputs.len(), NO_ROUTE);
        let hops = &mut self.hops[begin..];
        hops[usize::from(to.0)] = 0;
        // The switches at this distance, and at the next ones.
        let mut rounds = [vec![to], Vec::new(), Vec::new(), Vec::new()];
        let mut here = 0;
        while rounds.iter().any(|round| !round.is_empty()) {
            for switch in std::mem::take(&mut rounds[0]) {
                if hops[usize::from(switch.0)] < here {
                    continue;
                }
                for before in &inputs[usize::from(switch.0)] {
                    let (place, distance) = (usize::from(before.switch.0), here + before.length);
                    if distance < hops[place] && self.rule.allows(before.switch, switch, to) {
                        hops[place] = distance;
                        rounds[usize::from(before.length)].push(before.switch);
                    }
                }
            }
            rounds.rotate_left(1);
            here += 1;
        }
    }
}

/// The usable outputs and inputs of every switch that lead to and come from other switches.
fn neighbours(network: &Network, usable: &[bool]) -> (Vec<Vec<Neighbour>>, Vec<Vec<Neighbour>>) {
    let usable = |link: &&LinkId| usable[link.0 as usize];
    let makes_detours = matches!(network.config.routing, Routing::Valiant | Routing::Ugal);
    let has_groups = match network.config.topology {
        Topology::Dragonfly { .. } => true,
        Topology::DragonflyPlus { .. } => makes_detours,
        _ => false,
    };
    let beyond = |link: LinkId, out: bool| {
        let end = if out { network.link(link).to } else { network.link(link).from };
        let length = if has_groups && network.link(link).dimension == GLOBAL { GLOBAL_LENGTH } else { 1 };
        end.switch().map(|switch| Neighbour { link, switch, length })
    };
    let of = |links: &[LinkId], out| links.iter().filter(usable).filter_map(|&link| beyond(link, out)).collect();
    let switches = &network.switches;
    (
        switches.iter().map(|switch| of(&switch.outputs, true)).collect(),
        switches.iter().map(|switch| of(&switch.inputs, false)).collect(),
    )
}

/// The switches that hosts receive from, and for each port of a host the index of its switch among them.
fn destinations(network: &Network) -> (Vec<SwitchId>, Vec<u16>) {
    let (mut switches, mut place_of) = (Vec::new(), vec![None; network.switches.len()]);
    let of = (0..network.endpoints.len()).map(|endpoint| {
        let switch = network.switch_out_of(EndpointId(endpoint as u16));
        *place_of[usize::from(switch.0)].get_or_insert_with(|| {
            switches.push(switch);
            switches.len() as u16 - 1
        })
    });
    let of = of.collect();
    (switches, of)
}

/// The links that a routing allows towards a destination.
enum RoutingRule {
    All,
    /// Along the rows first, then along the columns, then through the layers.
    DimensionOrder {
        /// Switches along each dimension.
        sizes: [u16; 3],
        line: Line,
    },
    /// Between a switch and its parent in a tree only.
    Tree(Vec<Option<SwitchId>>),
}

/// The links along a line of switches of one dimension.
#[derive(Clone, Copy)]
enum Line {
    /// Between neighbours.
    Open,
    /// Between neighbours, and from the last to the first; with the direction where both ways round are equal.
    Ring(Ties),
    /// Between any two.
    Full,
}

impl RoutingRule {
    fn new(network: &Network, outputs: &[Vec<Neighbour>]) -> Self {
        match (network.config.routing, &network.config.topology) {
            (
                routing @ (Routing::DimensionOrder { .. } | Routing::AdaptiveDimensionOrder),
                &(Topology::Grid { width, height, depth, .. } | Topology::Torus { width, height, depth, .. }),
            ) => {
                let ties = match routing {
                    Routing::DimensionOrder { ties, .. } => ties,
                    _ => Ties::Alternate,
                };
                let is_torus = matches!(network.config.topology, Topology::Torus { .. });
                let line = if is_torus { Line::Ring(ties) } else { Line::Open };
                Self::DimensionOrder { sizes: [width, height, depth], line }
            }
            (Routing::DimensionOrder { .. } | Routing::AdaptiveDimensionOrder, Topology::HyperX { sizes, .. }) => {
                let size = |dimension: usize| sizes.get(dimension).copied().unwrap_or(1);
                Self::DimensionOrder { sizes: [0, 1, 2].map(size), line: Line::Full }
            }
            (Routing::SpanningTree | Routing::Learning { .. }, topology) => {
                Self::Tree(spanning_tree(outputs, root(network, topology)))
            }
            _ => Self::All,
        }
    }

    fn allows(&self, from: SwitchId, to: SwitchId, destination: SwitchId) -> bool {
        match self {
            Self::All => true,
            &Self::DimensionOrder { sizes, line } => {
                let (mut next, goal) = (coordinates(from, sizes), coordinates(destination, sizes));
                if let Some(dimension) = (0..sizes.len()).find(|&dimension| next[dimension] != goal[dimension]) {
                    next[dimension] = step(next[dimension], goal[dimension], sizes[dimension], line);
                }
                coordinates(to, sizes) == next
            }
            Self::Tree(parents) => parents[usize::from(from.0)] == Some(to) || parents[usize::from(to.0)] == Some(from),
        }
    }
}

/// The column, row and layer of a switch of a grid, or its coordinates in a HyperX; in each plane alike.
fn coordinates(switch: SwitchId, [width, height, depth]: [u16; 3]) -> [u16; 3] {
    let row = switch.0 / width;
    [switch.0 % width, row % height, row / height % depth]
}

/// The next place after `from` on the shorter way to another place of a line.
fn step(from: u16, to: u16, length: u16, line: Line) -> u16 {
    let [here, goal, all] = [from, to, length].map(u32::from);
    let ahead = (goal + all - here) % all;
    let up = match (line, (ahead * 2).cmp(&all)) {
        (Line::Full, _) => return to,
        (Line::Open, _) => goal > here,
        (Line::Ring(ties), Ordering::Equal) => ties == Ties::Upward || here % 2 == 0,
        (Line::Ring(_), order) => order.is_lt(),
    };
    let next = match (from == to, up) {
        (true, _) => here,
        (false, true) => (here + 1) % all,
        (false, false) => (here + all - 1) % all,
    };
    next as u16
}

/// The root of the tree: the root of a tree topology, else the first switch.
fn root(network: &Network, topology: &Topology) -> SwitchId {
    match topology {
        Topology::Tree { .. } => SwitchId(network.switches.len() as u16 - 1),
        _ => SwitchId(0),
    }
}

/// The parent of every switch in a tree that grows breadth first over cables that work in both directions. Switches
/// that the first tree does not reach get separate trees, so that a failed switch does not affect the others.
fn spanning_tree(outputs: &[Vec<Neighbour>], root: SwitchId) -> Vec<Option<SwitchId>> {
    let mut parents = vec![None; outputs.len()];
    let mut reached = vec![false; outputs.len()];
    let leads = |from: SwitchId, to| outputs[usize::from(from.0)].iter().any(|next| next.switch == to);
    for start in std::iter::once(root).chain((0..outputs.len()).map(|place| SwitchId(place as u16))) {
        if std::mem::replace(&mut reached[usize::from(start.0)], true) {
            continue;
        }
        let mut open = VecDeque::from([start]);
        while let Some(switch) = open.pop_front() {
            for next in outputs[usize::from(switch.0)].iter().map(|next| next.switch) {
                if !reached[usize::from(next.0)] && leads(next, switch) {
                    reached[usize::from(next.0)] = true;
                    parents[usize::from(next.0)] = Some(switch);
                    open.push_back(next);
                }
            }
        }
    }
    parents
}
