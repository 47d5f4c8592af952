//! A fat tree by its levels, from the hosts upwards. [`Topology::FatTreeLevels`](crate::Topology::FatTreeLevels) names the
//! papers.
//!
//! Several switches of a level lie on top of each subtree. Each is joined to `up` switches of the level above, and those of
//! one subtree have none of these in common.

use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{Network, NetworkConfig, NetworkError, SwitchId, TreeLevel};
use std::ops::RangeInclusive;

/// Possible numbers of levels.
const LEVELS: RangeInclusive<usize> = 2..=4;
/// Names of the switches of each level.
const NAMES: [&str; 4] = ["leaf", "spine", "core", "top"];

pub(super) fn build(config: &NetworkConfig, levels: &[TreeLevel]) -> Result<Network, NetworkError> {
    check(levels)?;
    let tree = Tree(levels);
    let mut builder = NetworkBuilder::new(config, &tree.size())?;
    let switches: Vec<_> =
        (0..levels.len()).map(|level| builder.switches(NAMES[level], tree.switches(level))).collect();
    builder.hosts(&switches[0], None, levels[0].down)?;
    for (level, pair) in switches.windows(2).enumerate() {
        let TreeLevel { links, rate, delay, .. } = levels[level];
        let properties = LinkProperties::new(config, rate).delayed(delay);
        for (place, &switch) in pair[0].iter().enumerate() {
            // To all parents in turn: then the destinations that share a parent are dealt out to the cables of every switch
            // above, too (`NetworkLink::stride`).
            for _ in 0..links {
                tree.parents(level, place).for_each(|parent| builder.cables(switch, pair[1][parent], 1, properties));
            }
        }
    }
    let mut network = builder.finish()?;
    tree.set_strides(&mut network, &switches);
    Ok(network)
}

fn check(levels: &[TreeLevel]) -> Result<(), NetworkError> {
    if !LEVELS.contains(&levels.len()) {
        return Err(NetworkError::TreeLevels { levels: levels.len() });
    }
    let (top, below) = levels.split_last().expect("there are two or more");
    let above =
        [("up", top.up > 0), ("links", top.links > 1), ("rate", top.rate.is_some()), ("delay", top.delay.is_some())];
    if let Some((key, _)) = above.into_iter().find(|(_, has)| *has) {
        return Err(NetworkError::AboveTheTop { key });
    }
    let numbers = |level: &TreeLevel| {
        [("topology.levels.down", level.down), ("topology.levels.up", level.up), ("topology.levels.links", level.links)]
    };
    super::above_zero(&below.iter().flat_map(numbers).collect::<Vec<_>>())?;
    super::above_zero(&[("topology.levels.down", top.down)])
}

/// The levels of a tree, the lowest first.
struct Tree<'a>(&'a [TreeLevel]);

impl Tree<'_> {
    /// Switches of a level on top of the same subtree. It is also the number of them that a leaf reaches by going up.
    fn width(&self, level: usize) -> u64 {
        product(self.0[..level].iter().map(|below| below.up))
    }

    /// All switches of a level.
    fn switches(&self, level: usize) -> u64 {
        product(self.0[level + 1..].iter().map(|above| above.down)).saturating_mul(self.width(level))
    }

    fn size(&self) -> TopologySize {
        let links = |(n, level): (usize, &TreeLevel)| {
            self.switches(n).saturating_mul(2 * u64::from(level.up) * u64::from(level.links))
        };
        TopologySize {
            endpoints: product(self.0.iter().map(|level| level.down)),
            switches: (0..self.0.len()).map(|level| self.switches(level)).fold(0, u64::saturating_add),
            links: self.0.iter().enumerate().map(links).fold(0, u64::saturating_add),
        }
    }

    /// The places, in the level above, of the parents of the switch at `place` of a level.
    fn parents(&self, level: usize, place: usize) -> impl Iterator<Item = usize> + use<> {
        let (width, up) = (self.width(level) as usize, usize::from(self.0[level].up));
        let (subtree, first) = (place / width / usize::from(self.0[level + 1].down), place % width * up);
        (0..up).map(move |parent| subtree * width * up + first + parent)
    }

    /// Sets the strides of D-mod-k for parallel cables (Zahavi 2012). All switches of a level come before those above it.
    fn set_strides(&self, network: &mut Network, switches: &[Vec<SwitchId>]) {
        let level_of =
            |switch: SwitchId| switches.iter().rposition(|level| level[0] <= switch).expect("it has a level");
        for link in &mut network.links {
            if let (Some(from), Some(to)) = (link.from.switch(), link.to.switch()) {
                link.stride = self.width(level_of(from)) as u32;
                debug_assert_eq!(level_of(from).abs_diff(level_of(to)), 1);
            }
        }
    }
}

fn product(numbers: impl Iterator<Item = u16>) -> u64 {
    numbers.map(u64::from).fold(1, u64::saturating_mul)
}
