//! Switches in several dimensions, each joined to all others of its line in each of them: the HyperX, and with equal sizes the
//! flattened butterfly. [`Topology::HyperX`](crate::Topology::HyperX) names the papers.

use super::above_zero;
use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{Network, NetworkConfig, NetworkError};

/// Most dimensions, as of a torus.
const DIMENSIONS: usize = 3;

/// Adds the switches along the first dimension first, as [`Network`]'s routes expect it.
pub(super) fn build(
    config: &NetworkConfig,
    sizes: &[u16],
    terminals: u16,
    links: &[u16],
) -> Result<Network, NetworkError> {
    check(sizes, terminals, links)?;
    let mut builder = NetworkBuilder::new(config, &size(sizes, terminals, links))?;
    let number = sizes.iter().copied().map(usize::from).product();
    let switches: Vec<_> = (0..number).map(|place| builder.switch(name(sizes, place))).collect();
    builder.hosts(&switches, None, terminals)?;
    let mut step = 1;
    for (dimension, (&size, &links)) in sizes.iter().zip(links).enumerate() {
        let properties = LinkProperties { dimension: dimension as u8, ..LinkProperties::new(config, None) };
        for place in 0..number {
            // All others of the line that come after this one.
            let along = place / step % usize::from(size);
            let others = (1..usize::from(size) - along).map(|ahead| switches[place + ahead * step]);
            others.for_each(|other| builder.cables(switches[place], other, links, properties));
        }
        step *= usize::from(size);
    }
    builder.finish()
}

fn check(sizes: &[u16], terminals: u16, links: &[u16]) -> Result<(), NetworkError> {
    if !(1..=DIMENSIONS).contains(&sizes.len()) {
        return Err(NetworkError::Dimensions { number: sizes.len(), most: DIMENSIONS });
    }
    if links.len() != sizes.len() {
        return Err(NetworkError::LinksOfDimensions { links: links.len(), dimensions: sizes.len() });
    }
    let numbers =
        sizes.iter().map(|&size| ("topology.sizes", size)).chain(links.iter().map(|&links| ("topology.links", links)));
    above_zero(&numbers.chain([("topology.terminals", terminals)]).collect::<Vec<_>>())
}

fn size(sizes: &[u16], terminals: u16, links: &[u16]) -> TopologySize {
    let switches = sizes.iter().map(|&size| u64::from(size)).product::<u64>();
    let neighbours: u64 = sizes.iter().zip(links).map(|(&size, &links)| u64::from(size - 1) * u64::from(links)).sum();
    TopologySize {
        endpoints: switches.saturating_mul(u64::from(terminals)),
        switches,
        links: switches.saturating_mul(neighbours),
    }
}

/// `s` and the coordinates, the first one first.
fn name(sizes: &[u16], mut place: usize) -> String {
    let coordinate = |&size: &u16| {
        let along = place % usize::from(size);
        place /= usize::from(size);
        along.to_string()
    };
    format!("s{}", sizes.iter().map(coordinate).collect::<Vec<_>>().join("_"))
}
