//! Groups of switches, each joined to all others: the dragonfly.

use super::{above_zero, groups::GlobalLinks};
use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{Network, NetworkConfig, NetworkError};

/// Adds the switches group by group, as [`Network::group`] expects it.
pub(super) fn build(config: &NetworkConfig, global: &GlobalLinks, terminals: u16) -> Result<Network, NetworkError> {
    above_zero(&[
        ("topology.groups", global.groups),
        ("topology.routers", global.routers),
        ("topology.terminals", terminals),
        ("topology.global", global.global),
    ])?;
    let between = global.between()?;
    let number = u64::from(global.groups) * u64::from(global.routers);
    let size = TopologySize {
        endpoints: number * u64::from(terminals),
        switches: number,
        links: number * u64::from(global.routers - 1) + global.number(between),
    };
    let mut builder = NetworkBuilder::new(config, &size)?;
    let switches: Vec<_> =
        (0..global.groups).flat_map(|group| builder.switches(&format!("g{group}r"), global.routers.into())).collect();
    builder.hosts(&switches, None, terminals)?;
    for group in switches.chunks(global.routers.into()) {
        for (place, &one) in group.iter().enumerate() {
            let local = LinkProperties::new(config, None);
            group[place + 1..].iter().for_each(|&other| builder.cables(one, other, 1, local));
        }
    }
    global.join(&mut builder, &switches, between);
    builder.finish()
}
