//! Construction of switches and links from the description of a topology; one module per family.

mod butterfly;
mod clos;
mod crossbar;
mod dragonfly;
mod dragonfly_plus;
mod explicit;
mod fat_tree;
mod grid;
mod groups;
mod hyperx;
mod infiniband;
mod levels;

pub(crate) use explicit::is_switch_name;

use crate::{Network, NetworkConfig, NetworkError, Topology};

/// Builds the switches and links. The settings have been checked.
pub(crate) fn build(config: &NetworkConfig) -> Result<Network, NetworkError> {
    match &config.topology {
        Topology::Crossbar { ports } => crossbar::build(config, *ports),
        Topology::Clos { leaves, ports_per_leaf, spines, links, uplink } => {
            let layers =
                clos::Layers { leaves: *leaves, ports_per_leaf: *ports_per_leaf, spines: *spines, links: *links };
            clos::build(config, &layers, *uplink)
        }
        &Topology::Dragonfly { groups, routers, terminals, global, global_rate, global_delay } => {
            let properties = groups::properties(config, global_rate, global_delay);
            let links = groups::GlobalLinks { groups, routers, global, properties };
            dragonfly::build(config, &links, terminals)
        }
        Topology::Tree { leaves, ports_per_leaf, trunk, uplink } => {
            let layers = clos::Layers { leaves: *leaves, ports_per_leaf: *ports_per_leaf, spines: 1, links: *trunk };
            clos::build(config, &layers, *uplink)
        }
        Topology::FatTree { radix } => fat_tree::build(config, *radix),
        Topology::FatTreeLevels { levels } => levels::build(config, levels),
        Topology::Butterfly { radix, stages } => butterfly::build(config, *radix, *stages),
        Topology::Grid { width, height, depth, terminals, links } => {
            let sizes = [*width, *height, *depth];
            grid::build(config, &grid::Lattice { sizes, terminals: *terminals, links: *links, closed: false })
        }
        Topology::Torus { width, height, depth, terminals, links } => {
            let sizes = [*width, *height, *depth];
            grid::build(config, &grid::Lattice { sizes, terminals: *terminals, links: *links, closed: true })
        }
        &Topology::DragonflyPlus { groups, leaves, spines, terminals, global, global_rate, global_delay } => {
            let properties = groups::properties(config, global_rate, global_delay);
            let links = groups::GlobalLinks { groups, routers: spines, global, properties };
            dragonfly_plus::build(config, &links, leaves, terminals)
        }
        Topology::HyperX { sizes, terminals, links } => hyperx::build(config, sizes, *terminals, links),
        Topology::Explicit { switches, links } => explicit::build(config, switches, links),
        Topology::Infiniband { switches, hosts, cables } => infiniband::build(config, switches, hosts, cables),
    }
}

/// An error if one of the numbers is zero.
fn above_zero(numbers: &[(&'static str, u16)]) -> Result<(), NetworkError> {
    match numbers.iter().find(|(_, number)| *number == 0) {
        Some(&(what, _)) => Err(NetworkError::Zero { what }),
        None => Ok(()),
    }
}
