//! The workers of a computer, and the nodes that each of them carries: pure functions, for a run and for a simulation.
//!
//! Where units outnumber the cores, each core gets its share of readout units and of builder units. All of them
//! exchange fragments, so no other placement keeps more fragments on their core. Placement is not the default, because
//! two runs on one machine would take the same cores.

use evb_core::NodeId;
use evb_experiment::{Cores, Plan};
use evb_protocol::Config;

/// Number of polls without work before a worker in threads yields: some 20 microseconds. One that is a process yields at
/// once.
pub const WORKER_SPINS: u32 = 200;
/// Number of yields of a worker without work before it sleeps.
pub const WORKER_YIELDS: u32 = 64;

/// Payload after which a writer hands a batch of events to the system although more events wait, so that their slots come back
/// earlier.
pub const WRITE_BATCH_BYTES: u64 = 4 << 20;

/// Most messages that a node takes in one turn.
pub const TURN_MESSAGES: usize = 256;

/// Number of workers of a process that carries `nodes` nodes on a computer with this number of cores.
#[must_use]
pub fn worker_count(plan: &Plan, cores: usize, nodes: usize) -> usize {
    plan.run.workers.map_or(cores, usize::from).clamp(1, nodes.max(1))
}

/// The worker of each node. Where workers are bound to cores, nodes take them like places; the event manager, if none is
/// left for it, goes to the last one, which has the fewest nodes.
#[must_use]
pub fn workers_of(plan: &Plan, workers: usize) -> Vec<usize> {
    let nodes: Vec<_> = (0..plan.building.nodes()).map(NodeId).collect();
    let worker = |&node: &NodeId| match plan.run.cores {
        Cores::None => worker_of(plan, node, workers),
        Cores::Auto => place_of(&plan.building, node, &nodes, workers).unwrap_or(workers - 1),
    };
    nodes.iter().map(worker).collect()
}

/// The worker of a node where the system places workers. Readout units and builders are dealt out in turn, so that each
/// worker has its share of both. The event manager is light and goes to the first worker.
fn worker_of(plan: &Plan, node: NodeId, workers: usize) -> usize {
    let (readouts, builders) = (plan.building.readout_nodes(), plan.building.builder_nodes());
    let index = match node {
        Config::EVENT_MANAGER => 0,
        node if builders.contains(node) => node.0 - builders.first.0,
        node => node.0 - readouts.first.0,
    };
    usize::from(index) % workers
}

/// The place of a node among `places`, of which each is a core. `here` are all nodes of its machine, itself among them.
///
/// Each unit has a separate core if there are enough: readout units and builder units in turn, so that those with the
/// same number are near. Else each place gets its share of both: all readout units talk to all builder units, and that
/// share of the fragments stays on its core.
///
/// The event manager has the place that is left, or none: it has little to do and talks to all, so the system finds the
/// best place for it.
#[must_use]
pub fn place_of(config: &Config, node: NodeId, here: &[NodeId], places: usize) -> Option<usize> {
    let units = || here.iter().filter_map(|&other| Unit::of(config, other));
    let place = match Unit::of(config, node) {
        None => units().count(),
        Some(unit) if units().count() <= places => units().filter(|other| *other < unit).count(),
        Some(unit) => {
            let before = |other: &Unit| other.is_builder == unit.is_builder && *other < unit;
            units().filter(before).count() % places.max(1)
        }
    };
    (place < places).then_some(place)
}

/// A readout unit or a builder unit, in the order in which they take places.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Unit {
    index: u16,
    is_builder: bool,
}

impl Unit {
    fn of(config: &Config, node: NodeId) -> Option<Self> {
        let kinds = [(config.readout_nodes(), false), (config.builder_nodes(), true)];
        let (nodes, is_builder) = kinds.into_iter().find(|(nodes, _)| nodes.contains(node))?;
        Some(Self { index: node.0 - nodes.first.0, is_builder })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of all nodes of an event builder on one machine: the event manager, readout units, builder units.
    fn places_of(readouts: u16, builders: u16, places: usize) -> Vec<Option<usize>> {
        let config = Config::new(readouts, builders);
        let here: Vec<_> = (0..config.nodes()).map(NodeId).collect();
        here.iter().map(|&node| place_of(&config, node, &here, places)).collect()
    }

    #[test]
    fn every_node_has_a_core_of_its_own_where_there_are_enough() {
        assert_eq!(places_of(2, 2, 8), [4, 0, 2, 1, 3].map(Some));
        assert_eq!(places_of(2, 2, 5), [4, 0, 2, 1, 3].map(Some));
        assert_eq!(places_of(3, 1, 5), [4, 0, 2, 3, 1].map(Some));
    }

    #[test]
    fn the_event_manager_is_the_first_to_have_none() {
        assert_eq!(places_of(2, 2, 4), [None, Some(0), Some(2), Some(1), Some(3)]);
    }

    #[test]
    fn units_with_the_same_number_share_a_core_where_there_are_few() {
        assert_eq!(places_of(2, 2, 3), [None, Some(0), Some(1), Some(0), Some(1)]);
        assert_eq!(places_of(2, 2, 2), [None, Some(0), Some(1), Some(0), Some(1)]);
        assert_eq!(places_of(3, 1, 2), [None, Some(0), Some(1), Some(0), Some(0)]);
        assert_eq!(places_of(1, 1, 1), [None, Some(0), Some(0)]);
        assert_eq!(places_of(1, 1, 0), [None; 3]);
    }

    #[test]
    fn nodes_of_other_machines_take_no_place() {
        let config = Config::new(4, 4);
        let here = ["ru2", "ru3", "bu2", "bu3"]
            .map(|name| (0..config.nodes()).map(NodeId).find(|&node| config.node_name(node) == name).unwrap());
        let places = |count| here.map(|node| place_of(&config, node, &here, count).unwrap());
        assert_eq!(places(4), [0, 2, 1, 3]);
        assert_eq!(places(2), [0, 1, 0, 1]);
        assert_eq!(place_of(&config, Config::EVENT_MANAGER, &[Config::EVENT_MANAGER], 1), Some(0));
    }
}
