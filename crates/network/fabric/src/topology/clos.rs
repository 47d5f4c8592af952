//! Two layers of switches: a Clos network, and the tree with trunks, which is a Clos network with a single spine.

use super::above_zero;
use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{Network, NetworkConfig, NetworkError};
use evb_core::Bandwidth;

pub(super) struct Layers {
    pub(super) leaves: u16,
    pub(super) ports_per_leaf: u16,
    pub(super) spines: u16,
    /// Parallel links between each leaf and each spine.
    pub(super) links: u16,
}

pub(super) fn build(
    config: &NetworkConfig,
    layers: &Layers,
    uplink: Option<Bandwidth>,
) -> Result<Network, NetworkError> {
    above_zero(&[
        ("topology.leaves", layers.leaves),
        ("topology.ports_per_leaf", layers.ports_per_leaf),
        ("topology.spines", layers.spines),
        ("topology.links", layers.links),
    ])?;
    let names: Vec<_> = (0..layers.spines).map(|n| format!("spine{n}")).collect();
    build_layers(config, layers, uplink, names)
}

pub(super) fn build_tree(
    config: &NetworkConfig,
    layers: &Layers,
    uplink: Option<Bandwidth>,
) -> Result<Network, NetworkError> {
    above_zero(&[
        ("topology.leaves", layers.leaves),
        ("topology.ports_per_leaf", layers.ports_per_leaf),
        ("topology.trunk", layers.links),
    ])?;
    build_layers(config, layers, uplink, vec!["root".to_owned()])
}

/// Adds leaves first, so that crossbar 4 of a composite switch with four leaves is its first spine.
fn build_layers(
    config: &NetworkConfig,
    layers: &Layers,
    uplink: Option<Bandwidth>,
    names: Vec<String>,
) -> Result<Network, NetworkError> {
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
    let spines: Vec<_> = names.into_iter().map(|name| builder.switch(name)).collect();
    builder.hosts(&leaves, None, layers.ports_per_leaf, LinkProperties::new(config, None))?;
    for &leaf in &leaves {
        for &spine in &spines {
            builder.cables(leaf, spine, layers.links, LinkProperties::new(config, uplink));
        }
    }
    builder.finish()
}
