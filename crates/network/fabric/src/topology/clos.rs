//! Two layers of switches: a Clos network, and the tree with trunks, which is a Clos network with a single spine.

use super::above_zero;
use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{Network, NetworkConfig, NetworkError, Topology};
use evb_core::Bandwidth;

pub(super) struct Layers {
    pub(super) leaves: u16,
    pub(super) ports_per_leaf: u16,
    pub(super) spines: u16,
    /// Parallel links between each leaf and each spine.
    pub(super) links: u16,
}

/// Adds leaves first, so that crossbar 4 of a composite switch with four leaves is its first spine.
pub(super) fn build(
    config: &NetworkConfig,
    layers: &Layers,
    uplink: Option<Bandwidth>,
) -> Result<Network, NetworkError> {
    let is_tree = matches!(config.topology, Topology::Tree { .. });
    above_zero(&[
        ("topology.leaves", layers.leaves),
        ("topology.ports_per_leaf", layers.ports_per_leaf),
        ("topology.spines", layers.spines),
        (if is_tree { "topology.trunk" } else { "topology.links" }, layers.links),
    ])?;
    let [leaves, spines] = [layers.leaves, layers.spines].map(u64::from);
    let mut builder = NetworkBuilder::new(
        config,
        &TopologySize {
            endpoints: leaves * u64::from(layers.ports_per_leaf),
            switches: leaves + spines,
            links: leaves * spines * u64::from(layers.links) * 2,
        },
    )?;
    let leaves = builder.switches("leaf", leaves);
    let spines = if is_tree { vec![builder.switch("root".to_owned())] } else { builder.switches("spine", spines) };
    builder.hosts(&leaves, None, layers.ports_per_leaf)?;
    for &leaf in &leaves {
        for &spine in &spines {
            builder.cables(leaf, spine, layers.links, LinkProperties::new(config, uplink));
        }
    }
    builder.finish()
}
