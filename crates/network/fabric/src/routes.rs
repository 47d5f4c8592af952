//! Routes: the outputs of a switch that lead to a port of a host.

use crate::distances::Distances;
use crate::{EndpointId, LinkId, Network, NetworkError, Routing, SwitchId, Topology};
use std::collections::HashMap;

/// For each switch and destination the group of outputs that a packet may take: those on a route with the fewest hops,
/// among the routes that the routing allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routes {
    /// Per switch and destination the index of the group, among those of the switch.
    table: Vec<u16>,
    endpoints: usize,
    /// The first group of each switch.
    first: Vec<u32>,
    /// Begin and end of each group in `links`.
    groups: Vec<(u32, u32)>,
    links: Vec<LinkId>,
}

impl Routes {
    /// Finds the routes over all links that are `usable`. Without a route, the group is empty.
    pub fn find(network: &Network, usable: &dyn Fn(LinkId) -> bool) -> Self {
        let usable: Vec<bool> = (0..network.links.len()).map(|link| usable(LinkId(link as u32))).collect();
        let distances = Distances::find(network, &usable);
        let endpoints = network.endpoints.len();
        let mut routes = Self {
            table: Vec::with_capacity(network.switches.len() * endpoints),
            endpoints,
            first: Vec::with_capacity(network.switches.len()),
            groups: Vec::new(),
            links: Vec::new(),
        };
        for switch in 0..network.switches.len() {
            routes.add_switch(network, &distances, &usable, SwitchId(switch as u16));
        }
        routes
    }

    /// The outputs of `switch` on the routes to `to`, in the order of its ports; empty if there is no route.
    #[inline]
    pub fn candidates(&self, switch: SwitchId, to: EndpointId) -> &[LinkId] {
        let switch = usize::from(switch.0);
        let group = self.first[switch] + u32::from(self.table[switch * self.endpoints + usize::from(to.0)]);
        let (begin, end) = self.groups[group as usize];
        &self.links[begin as usize..end as usize]
    }

    /// Checks that every port of a host reaches every other one, or every other one of its plane.
    ///
    /// # Errors
    /// [`NetworkError::NoRoute`] with the first pair that has no route.
    pub fn check(&self, network: &Network) -> Result<(), NetworkError> {
        let mut checked = vec![false; network.switches.len()];
        for from in (0..network.endpoints.len()).map(|place| EndpointId(place as u16)) {
            let switch = network.switch_into(from);
            if std::mem::replace(&mut checked[usize::from(switch.0)], true) {
                continue;
            }
            let planes = usize::from(network.config.plane_count());
            let of_plane = (usize::from(from.0) % planes..network.endpoints.len()).step_by(planes);
            let mut others = of_plane.map(|place| EndpointId(place as u16));
            if let Some(to) = others.find(|&to| to != from && self.candidates(switch, to).is_empty()) {
                let [from, to] = [from, to].map(|end| network.config.endpoint_name(end));
                return Err(NetworkError::NoRoute { from, to });
            }
        }
        Ok(())
    }

    /// Appends the groups of one switch and its row of the table.
    fn add_switch(&mut self, network: &Network, distances: &Distances, usable: &[bool], switch: SwitchId) {
        self.first.push(self.groups.len() as u32);
        let mut known = HashMap::new();
        if network.config.routing == Routing::Table {
            for to in (0..self.endpoints).map(|place| EndpointId(place as u16)) {
                let output = tabled(network, switch, to).filter(|link| usable[link.0 as usize]);
                let group = self.group(&mut known, output.into_iter().collect());
                self.table.push(group);
            }
            return;
        }
        let groups: Vec<u16> =
            (0..distances.destinations()).map(|to| self.group(&mut known, distances.outputs(switch, to))).collect();
        for place in 0..self.endpoints {
            let to = EndpointId(place as u16);
            let down = network.endpoint(to).down;
            let group = if !usable[down.0 as usize] {
                self.group(&mut known, Vec::new())
            } else if network.switch_out_of(to) == switch {
                self.group(&mut known, vec![down])
            } else {
                groups[distances.destination_of(to)]
            };
            self.table.push(group);
        }
    }

    /// The index of a group among those of the newest switch. There are at most as many as ports of hosts.
    fn group(&mut self, known: &mut HashMap<Vec<LinkId>, u16>, group: Vec<LinkId>) -> u16 {
        let next = known.len() as u16;
        if let Some(&number) = known.get(&group) {
            return number;
        }
        let begin = self.links.len() as u32;
        self.links.extend_from_slice(&group);
        self.groups.push((begin, self.links.len() as u32));
        known.insert(group, next);
        next
    }
}

/// The output of a switch to a port of a host by its forwarding table.
fn tabled(network: &Network, switch: SwitchId, to: EndpointId) -> Option<LinkId> {
    let Topology::Infiniband { switches, .. } = &network.config.topology else { return None };
    let output = *switches.get(usize::from(switch.0))?.table.get(usize::from(to.0))?;
    network.switch(switch).outputs.get(usize::from(output)).copied()
}
