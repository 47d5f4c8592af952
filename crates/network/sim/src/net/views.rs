//! Routes that are not those of the network itself: hosts know them from a mapper, or bridges learn them.

use super::Net;
use crate::packet::{LaneId, Load, PacketId};
use evb_fabric::{EndpointId, LinkId, Routes};

impl Net {
    /// Makes the hosts determine the routes of their packets.
    pub(crate) fn route_by_hosts(&mut self) {
        self.router.is_of_hosts = true;
        self.has_rules = true;
    }

    /// Adds routes that hosts may know, with the next number; those of the start have number 0.
    pub(crate) fn add_view(&mut self, routes: Routes) {
        self.router.add_view(routes);
    }

    /// A port of a host takes the routes with this number from now on.
    pub(crate) fn set_view(&mut self, endpoint: EndpointId, view: u16) {
        self.router.set_view(endpoint, view);
    }

    /// Requests a link for a packet where hosts know the routes, or bridges learn them.
    #[cold]
    pub(super) fn route_by_rules(&mut self, id: PacketId) {
        let packet = &self.packets[id];
        if packet.load == Load::SourceRouted {
            return self.route_by_turns(id);
        }
        if self.bridges.is_some() {
            return self.bridge(id);
        }
        match self.router.outputs_of(packet.route, self.links.switch_of(packet.lane), packet.to).to_vec() {
            ways if ways.is_empty() => self.lose(id),
            ways => self.request_one_of(id, &ways),
        }
    }

    /// True if a switch follows the routes of hosts to a link that has failed. A host without a link waits for ever.
    pub(super) fn is_dead_end(&self, link: LinkId, id: PacketId) -> bool {
        let packet = &self.packets[id];
        let is_sent = packet.lane != LaneId::NONE || packet.load == Load::SourceRouted;
        self.router.is_of_hosts && self.links[link].failed && is_sent
    }
}
