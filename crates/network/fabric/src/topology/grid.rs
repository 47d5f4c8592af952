//! Switches in rows and columns: the grid, and the torus, whose rows and columns are rings.

use super::above_zero;
use crate::builder::{LinkProperties, NetworkBuilder, TopologySize};
use crate::{Network, NetworkConfig, NetworkError, SwitchId};

pub(super) struct Plane {
    pub(super) width: u16,
    pub(super) height: u16,
    /// Ports for hosts on each switch.
    pub(super) terminals: u16,
    /// Parallel links between neighbours.
    pub(super) links: u16,
    /// True if rows and columns are closed to rings.
    pub(super) closed: bool,
}

pub(super) fn build(config: &NetworkConfig, plane: &Plane) -> Result<Network, NetworkError> {
    above_zero(&[
        ("topology.width", plane.width),
        ("topology.height", plane.height),
        ("topology.terminals", plane.terminals),
        ("topology.links", plane.links),
    ])?;
    let switches = u64::from(plane.width) * u64::from(plane.height);
    let size = TopologySize {
        endpoints: switches.saturating_mul(u64::from(plane.terminals)),
        switches,
        links: switches.saturating_mul(4 * u64::from(plane.links)),
    };
    let mut builder = NetworkBuilder::new(config, &size)?;
    let switches = add_switches(&mut builder, plane);
    builder.hosts(&switches, None, plane.terminals, LinkProperties::new(config, None))?;
    for row in 0..plane.height {
        let row: Vec<_> = (0..plane.width).map(|column| switches[plane.place(column, row)]).collect();
        join(&mut builder, plane, &row, LinkProperties { dimension: 0, ..LinkProperties::new(config, None) });
    }
    for column in 0..plane.width {
        let column: Vec<_> = (0..plane.height).map(|row| switches[plane.place(column, row)]).collect();
        join(&mut builder, plane, &column, LinkProperties { dimension: 1, ..LinkProperties::new(config, None) });
    }
    builder.finish()
}

impl Plane {
    fn place(&self, column: u16, row: u16) -> usize {
        usize::from(row) * usize::from(self.width) + usize::from(column)
    }
}

/// Adds the switches row by row, as [`crate::Network`]'s routes expect it.
fn add_switches(builder: &mut NetworkBuilder<'_>, plane: &Plane) -> Vec<SwitchId> {
    let mut switches = Vec::new();
    for row in 0..plane.height {
        for column in 0..plane.width {
            switches.push(builder.switch(format!("s{column}_{row}")));
        }
    }
    switches
}

/// Joins a row or a column to a line or, from three switches on, to a ring: two switches are neighbours already.
fn join(builder: &mut NetworkBuilder<'_>, plane: &Plane, line: &[SwitchId], properties: LinkProperties) {
    for pair in line.windows(2) {
        builder.cables(pair[0], pair[1], plane.links, properties);
    }
    if plane.closed && line.len() > 2 {
        builder.cables(line[line.len() - 1], line[0], plane.links, LinkProperties { dateline: true, ..properties });
    }
}
