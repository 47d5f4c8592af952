//! The choice of cores for nodes: pure functions that do not read the machine.
//!
//! Where units outnumber the cores, each core gets its share of readout units and of builder units. All of them
//! exchange fragments, so no other placement keeps more fragments on their core. Placement is not the default, because
//! two runs on one machine would take the same cores.

use evb_core::NodeId;
use evb_os::cores::Core;
use evb_protocol::Config;

/// The cores in the order in which nodes take them: the first hardware thread of each, then the others. Among these, cores
/// with a common cache follow each other.
pub(crate) fn in_order(mut cores: Vec<Core>) -> Vec<u16> {
    let usable: Vec<_> = cores.iter().map(|core| core.number).collect();
    cores.sort_by_cached_key(|core| {
        let before = |other: &&u16| **other < core.number && usable.contains(other);
        (core.siblings.iter().filter(before).count(), core.cache, core.number)
    });
    cores.into_iter().map(|core| core.number).collect()
}

/// The place of a node among `places`, of which each is a core. `here` are all nodes of its machine, itself among them.
///
/// Each unit has a separate core if there are enough: readout units and builder units in turn, so that those with the
/// same number are near. Else each place gets its share of both: all readout units talk to all builder units, and that
/// share of the fragments stays on its core.
///
/// The event manager has the place that is left, or none: it has little to do and talks to all, so the system finds the
/// best place for it.
pub(crate) fn place_of(config: &Config, node: NodeId, here: &[NodeId], places: usize) -> Option<usize> {
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

    fn core(number: u16, siblings: &[u16], cache: Option<u16>) -> Core {
        Core { number, siblings: siblings.to_vec(), cache }
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

    #[test]
    fn the_hardware_threads_of_a_core_come_one_after_all_others() {
        let pairs = [[0, 4], [1, 5], [2, 6], [3, 7]];
        let of = |numbers: &[u16]| numbers.iter().map(|&n| core(n, &pairs[usize::from(n % 4)], None)).collect();
        assert_eq!(in_order(of(&[0, 1, 2, 3, 4, 5, 6, 7])), [0, 1, 2, 3, 4, 5, 6, 7]);
        let next = |n: u16| core(n, &[n & !1, n | 1], None);
        assert_eq!(in_order((0..8).map(next).collect()), [0, 2, 4, 6, 1, 3, 5, 7]);
        assert_eq!(in_order(of(&[1, 5, 6])), [1, 6, 5], "the first one may be forbidden");
    }

    #[test]
    fn cores_with_a_common_cache_follow_each_other() {
        let even = |n: u16| core(n, &[n], Some(n % 2));
        assert_eq!(in_order((0..6).map(even).collect()), [0, 2, 4, 1, 3, 5]);
        let both = |n: u16| core(n, &[n % 4, n % 4 + 4], Some(n % 2));
        assert_eq!(in_order((0..8).map(both).collect()), [0, 2, 1, 3, 4, 6, 5, 7], "threads count more");
    }

    #[test]
    fn unknown_neighbours_make_one_group() {
        let unknown = |n| core(n, &[], None);
        assert_eq!(in_order([3, 0, 7].map(unknown).to_vec()), [0, 3, 7]);
        assert_eq!(in_order(vec![]), [0; 0]);
    }
}
