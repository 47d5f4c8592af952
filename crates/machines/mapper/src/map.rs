//! The map of a network.

use crate::{Address, Route, Turn};
use alloc::{collections::BTreeMap, vec::Vec};

/// What a mapper knows of a network: switches, hosts, and the cables between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Map {
    /// The mapper that made it.
    pub leader: Address,
    /// The switches. The leader is at port 0 of the first one.
    pub switches: Vec<MappedSwitch>,
}

/// A switch of a map.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedSwitch {
    /// A shortest route of the leader to it. The port where the route comes in is port 0.
    pub path: Route,
    /// What lies behind its ports, each counted from port 0. Ports behind which nothing answers are left out.
    pub ports: BTreeMap<Turn, Far>,
}

/// The far end of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Far {
    /// A host.
    Host(Address),
    /// A port of a switch, by the index of the switch in the map.
    Switch(usize, Turn),
}

impl Map {
    /// The hosts, with the route of the leader to each.
    pub fn hosts(&self) -> impl Iterator<Item = (Address, Route)> + '_ {
        self.ends().filter_map(|(switch, port, far)| match far {
            Far::Host(address) if address != self.leader => Some((address, switch.to(port))),
            Far::Host(_) | Far::Switch(..) => None,
        })
    }

    /// Routes that lead over each cable between switches and back to the leader.
    pub(crate) fn loops(&self) -> impl Iterator<Item = Route> + '_ {
        let places = |index: usize, far: Far| match far {
            Far::Switch(other, _) => index <= other,
            Far::Host(_) => false,
        };
        let of = move |(index, switch): (usize, &MappedSwitch)| {
            let switch = switch.clone();
            let ports = switch.ports.clone().into_iter().filter(move |&(_, far)| places(index, far));
            ports.map(move |(port, _)| switch.there_and_back(port)).collect::<Vec<_>>()
        };
        self.switches.iter().enumerate().flat_map(of)
    }

    /// Bytes of the map in a message: 8 for an address, and 4 for each switch and each end of a cable.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let ends = |ports: &BTreeMap<Turn, Far>| {
            let of = |far: &Far| if matches!(far, Far::Host(_)) { 12 } else { 4 };
            4 + ports.values().map(of).sum::<u64>()
        };
        8 + self.switches.iter().map(|switch| ends(&switch.ports)).sum::<u64>()
    }

    fn ends(&self) -> impl Iterator<Item = (&MappedSwitch, Turn, Far)> + '_ {
        self.switches.iter().flat_map(|switch| switch.ports.iter().map(move |(&port, &far)| (switch, port, far)))
    }
}

impl MappedSwitch {
    /// The route of the leader to what lies behind a port.
    pub(crate) fn to(&self, port: Turn) -> Route {
        [&self.path[..], &[port]].concat()
    }

    /// The route of the leader over the cable at a port, and back.
    pub(crate) fn there_and_back(&self, port: Turn) -> Route {
        let there = self.to(port);
        there.iter().copied().chain([0]).chain(crate::back(&there)).collect()
    }
}
