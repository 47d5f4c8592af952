//! Groups of leaves and spines, joined between spines: the dragonfly+.
//! [`Topology::DragonflyPlus`](crate::Topology::DragonflyPlus) names the paper.
//!
//! A minimal route goes up to a spine, over one link to another group, and down: no packets wait for each other in a ring.

use super::{above_zero, groups::GlobalLinks};
use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{Network, NetworkConfig, NetworkError};

/// Adds all leaves, then all spines, group by group, as [`Network::group`] expects it.
pub(super) fn build(
    config: &NetworkConfig,
    global: &GlobalLinks,
    leaves: u16,
    terminals: u16,
) -> Result<Network, NetworkError> {
    above_zero(&[
        ("topology.groups", global.groups),
        ("topology.leaves", leaves),
        ("topology.spines", global.routers),
        ("topology.terminals", terminals),
        ("topology.global", global.global),
    ])?;
    let between = global.between()?;
    let [groups, spines, in_group] = [global.groups, global.routers, leaves].map(u64::from);
    let size = TopologySize {
        endpoints: groups * in_group * u64::from(terminals),
        switches: groups * (in_group + spines),
        links: groups * in_group * spines * 2 + global.number(between),
    };
    let mut builder = NetworkBuilder::new(config, &size)?;
    let mut layer = |name: char, number: u64| -> Vec<_> {
        (0..groups).flat_map(|group| builder.switches(&format!("g{group}{name}"), number)).collect()
    };
    let (lower, upper) = (layer('l', in_group), layer('s', spines));
    builder.hosts(&lower, None, terminals)?;
    for (lower, upper) in lower.chunks(leaves.into()).zip(upper.chunks(global.routers.into())) {
        for &leaf in lower {
            upper.iter().for_each(|&spine| builder.cables(leaf, spine, 1, LinkProperties::new(config, None)));
        }
    }
    global.join(&mut builder, &upper, between);
    builder.finish()
}
