//! Routes over another group of a dragonfly or a dragonfly+, or over another switch of a HyperX, which here is a group of its own:
//! those of Valiant, and the choice of UGAL-L between them and the minimal one.
//!
//! The first switch of a packet chooses. It knows the load of its own links only.

use super::{Net, routing};
use crate::packet::PacketId;
use evb_fabric::{EndpointId, LinkId, Network, SwitchId};
use rand::RngExt;

/// No other group.
const DIRECT: u16 = 0;

/// A port of a host in each group, of several planes in the first one; none in a topology without groups.
pub(super) fn ports_of_groups(network: &Network) -> Vec<EndpointId> {
    let mut ports = Vec::new();
    for port in (0..network.endpoints.len()).map(|place| EndpointId(place as u16)) {
        if network.group(network.switch_out_of(port)) == Some(ports.len() as u16) {
            ports.push(port);
        }
    }
    ports
}

impl Net {
    /// Requests the link of a packet on its way over another group, or to its destination.
    pub(super) fn route_over_groups(&mut self, id: PacketId) {
        let packet = &self.packets[id];
        let (lane, to) = (packet.lane, packet.to);
        let switch = self.links.switch_of(lane);
        if self.links.is_from_host(lane) {
            self.packets[id].route = self.choose_detour(switch, to);
        } else if packet.route != DIRECT && self.network.group(switch) == Some(packet.route - 1) {
            self.packets[id].route = DIRECT;
        }
        let goal = self.goal(self.packets[id].route, to);
        match self.least_loaded(switch, goal) {
            Some(link) => self.wait_for(link, id),
            None => self.lose(id),
        }
    }

    /// The port that a packet is routed to: its destination, or any one in the group that it goes to first.
    fn goal(&self, route: u16, to: EndpointId) -> EndpointId {
        if route == DIRECT {
            return to;
        }
        let in_first_plane = self.group_ports[usize::from(route - 1)];
        EndpointId(in_first_plane.0 + to.0 % self.network.config.plane_count())
    }

    /// The route of a packet that comes from a host: [`DIRECT`], or 1 and the number of another group.
    fn choose_detour(&mut self, switch: SwitchId, to: EndpointId) -> u16 {
        let groups = self.group_ports.len() as u16;
        let [here, there] = [switch, self.network.switch_out_of(to)].map(|switch| self.network.group(switch));
        let (Some(here), Some(there)) = (here, there) else { return DIRECT };
        if here == there || groups < 3 {
            return DIRECT;
        }
        let mut other = self.random.random_range(0..groups - 2);
        for taken in [here.min(there), here.max(there)] {
            other += u16::from(other >= taken);
        }
        let detour = other + 1;
        let is_open = !self.router.outputs(switch, self.goal(detour, to)).is_empty();
        let is_taken =
            self.router.always_takes_detours() || self.cost(switch, detour, to) < self.cost(switch, DIRECT, to);
        if is_open && is_taken { detour } else { DIRECT }
    }

    /// The load of the first link of a route, times its links between switches.
    fn cost(&mut self, switch: SwitchId, route: u16, to: EndpointId) -> u64 {
        let Some(first) = self.least_loaded(switch, self.goal(route, to)) else { return u64::MAX };
        let (mut at, mut hops) = (switch, 0);
        if route != DIRECT {
            (at, hops) = self.walk(at, self.goal(route, to), |net, at| net.network.group(at) == Some(route - 1));
        }
        let last = self.network.switch_out_of(to);
        hops += self.walk(at, to, |_, at| at == last).1;
        self.load(first) * hops
    }

    /// Walks along a route to a port until `is_there`; returns the switch there and the links so far.
    fn walk(&self, from: SwitchId, goal: EndpointId, is_there: impl Fn(&Self, SwitchId) -> bool) -> (SwitchId, u64) {
        let (mut at, mut hops) = (from, 0);
        while !is_there(self, at) {
            let next = self.router.outputs(at, goal).first().and_then(|&link| self.network.link(link).to.switch());
            let Some(next) = next else { break };
            (at, hops) = (next, hops + 1);
        }
        (at, hops)
    }

    /// The link towards a port with the least load, any of several.
    fn least_loaded(&mut self, switch: SwitchId, goal: EndpointId) -> Option<LinkId> {
        match self.router.outputs(switch, goal) {
            [] => None,
            &[link] => Some(link),
            outputs => {
                let first = routing::draw_first(outputs.len(), &mut self.random);
                let (before, from) = outputs.split_at(first);
                from.iter().chain(before).copied().min_by_key(|&link| self.load(link))
            }
        }
    }
}
