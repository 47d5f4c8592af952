//! Switches in rows, columns and layers: the grid, and the torus, whose lines of switches are rings in each dimension.

use super::above_zero;
use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{Network, NetworkConfig, NetworkError, SwitchId};

pub(super) struct Lattice {
    /// Switches along each dimension: in a row, in a column, and in the direction of the layers.
    pub(super) sizes: [u16; 3],
    /// Ports for hosts on each switch.
    pub(super) terminals: u16,
    /// Parallel links between neighbours.
    pub(super) links: u16,
    /// True if the lines of each dimension are closed to rings.
    pub(super) closed: bool,
}

pub(super) fn build(config: &NetworkConfig, lattice: &Lattice) -> Result<Network, NetworkError> {
    let [width, height, depth] = lattice.sizes;
    above_zero(&[
        ("topology.width", width),
        ("topology.height", height),
        ("topology.depth", depth),
        ("topology.terminals", lattice.terminals),
        ("topology.links", lattice.links),
    ])?;
    let switches = lattice.sizes.into_iter().map(u64::from).product::<u64>();
    let size = TopologySize {
        endpoints: switches.saturating_mul(u64::from(lattice.terminals)),
        switches,
        links: switches.saturating_mul(if depth > 1 { 6 } else { 4 } * u64::from(lattice.links)),
    };
    let mut builder = NetworkBuilder::new(config, &size)?;
    let switches = add_switches(&mut builder, lattice);
    builder.hosts(&switches, None, lattice.terminals)?;
    for dimension in 0..lattice.sizes.len() {
        let properties = LinkProperties { dimension: dimension as u8, ..LinkProperties::new(config, None) };
        for line in lattice.lines(dimension) {
            let line: Vec<_> = line.into_iter().map(|place| switches[place]).collect();
            join(&mut builder, lattice, &line, properties);
        }
    }
    builder.finish()
}

impl Lattice {
    /// The places of the switches of each line along a dimension.
    fn lines(&self, dimension: usize) -> Vec<Vec<usize>> {
        let sizes = self.sizes.map(usize::from);
        let step: usize = sizes[..dimension].iter().product();
        let is_first = |place: &usize| (place / step).is_multiple_of(sizes[dimension]);
        let firsts = (0..sizes.iter().product()).filter(is_first);
        firsts.map(|first| (0..sizes[dimension]).map(|along| first + along * step).collect()).collect()
    }
}

/// Adds the switches row by row and layer by layer, as [`crate::Network`]'s routes expect it.
fn add_switches(builder: &mut NetworkBuilder<'_>, lattice: &Lattice) -> Vec<SwitchId> {
    let [width, height, depth] = lattice.sizes;
    let mut switches = Vec::new();
    for layer in 0..depth {
        for row in 0..height {
            for column in 0..width {
                let name = if depth > 1 { format!("s{column}_{row}_{layer}") } else { format!("s{column}_{row}") };
                switches.push(builder.switch(name));
            }
        }
    }
    switches
}

/// Joins switches to a line or, from three switches on, to a ring: two switches are neighbours already.
fn join(builder: &mut NetworkBuilder<'_>, lattice: &Lattice, line: &[SwitchId], properties: LinkProperties) {
    for pair in line.windows(2) {
        builder.cables(pair[0], pair[1], lattice.links, properties);
    }
    if lattice.closed && line.len() > 2 {
        builder.cables(line[line.len() - 1], line[0], lattice.links, LinkProperties { dateline: true, ..properties });
    }
}
