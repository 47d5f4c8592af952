//! Links that fail, slow down or corrupt.

use super::{Net, NetEffect, bridges::Bridges, links::Port};
use crate::{
    event::NetEvent,
    packet::{LaneId, Load, PacketId},
};
use evb_core::Span;
use evb_fabric::{EndpointId, FaultTarget, LinkId, Network, NetworkFaultAction, Routes};

/// The harm that was done to each link. Only links whose port is marked as harmed are looked up.
pub(super) struct Faults {
    harms: Vec<Harm>,
    /// Packets that waited for a failed link and took another route.
    rerouted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Harm {
    /// Packets of which one is corrupted; 0 for none.
    corrupt_one_in: u64,
    /// Factor by which it is slower than configured.
    slowness: f64,
}

impl Faults {
    pub(super) fn new(links: usize) -> Self {
        Self { harms: vec![Harm { corrupt_one_in: 0, slowness: 1.0 }; links], rerouted: 0 }
    }

    /// Harms a link.
    pub(super) fn harm(&mut self, link: LinkId, port: &mut Port, action: NetworkFaultAction) {
        let harm = &mut self.harms[link.0 as usize];
        match action {
            NetworkFaultAction::Fail { .. } => port.failed = true,
            NetworkFaultAction::Slow { factor } => harm.slowness = factor,
            NetworkFaultAction::Corrupt { one_in } => harm.corrupt_one_in = one_in,
            NetworkFaultAction::Pause => return,
        }
        port.harmed = true;
    }

    /// Mends a link of one kind of harm.
    pub(super) fn mend(&mut self, link: LinkId, port: &mut Port, action: NetworkFaultAction) {
        let harm = &mut self.harms[link.0 as usize];
        match action {
            NetworkFaultAction::Fail { .. } => port.failed = false,
            NetworkFaultAction::Slow { .. } => harm.slowness = 1.0,
            NetworkFaultAction::Corrupt { .. } => harm.corrupt_one_in = 0,
            NetworkFaultAction::Pause => return,
        }
        let is_well = harm.slowness == 1.0 && harm.corrupt_one_in == 0;
        port.harmed = port.failed || !is_well;
    }

    /// A time on a link, longer when the link is slow.
    #[inline]
    pub(super) fn slowed(&self, link: LinkId, port: &Port, time: Span) -> Span {
        if !port.harmed {
            return time;
        }
        Span((time.0 as f64 * self.harms[link.0 as usize].slowness).round() as u64)
    }

    /// True when a link corrupts the packet with this number, counted from 1.
    #[inline]
    pub(super) fn corrupts(&self, link: LinkId, port: &Port, number: u64) -> bool {
        if !port.harmed {
            return false;
        }
        let one_in = self.harms[link.0 as usize].corrupt_one_in;
        one_in > 0 && number.is_multiple_of(one_in)
    }
}

/// The links that a fault harms: for a switch its outgoing links, and if it fails also those that lead to it.
fn harmed_links(network: &Network, target: FaultTarget, action: NetworkFaultAction) -> Vec<LinkId> {
    match target {
        FaultTarget::Link(link) => vec![link],
        FaultTarget::Cable(links) => links.to_vec(),
        FaultTarget::Plane(plane) => {
            let links = (0..network.links.len()).map(|link| LinkId(link as u32));
            links.filter(|&link| network.plane_of(link) == Some(plane)).collect()
        }
        FaultTarget::Switch(switch) => {
            let switch = network.switch(switch);
            let both = matches!(action, NetworkFaultAction::Fail { .. });
            let inputs = switch.inputs.iter().filter(|_| both);
            switch.outputs.iter().chain(inputs).copied().collect()
        }
    }
}

impl Net {
    /// Applies a fault.
    pub(crate) fn fault(&mut self, target: FaultTarget, action: NetworkFaultAction) {
        if action == NetworkFaultAction::Pause {
            return self.pause_by_hosts(target, true);
        }
        for link in harmed_links(&self.network, target, action) {
            let port = &mut self.links[link];
            self.faults.harm(link, port, action);
            self.holds |= self.flow.is_cut_through() && matches!(action, NetworkFaultAction::Slow { .. });
            // A packet on the link is cut when it fails: it continues as a bad packet, which the receiver detects.
            if port.failed && port.free_at > self.queue.now() {
                self.packets[port.holder].corrupted = true;
            }
        }
        if let NetworkFaultAction::Fail { reroute } = action {
            if self.router.is_of_hosts {
                self.lose_stranded();
            } else {
                self.plan(self.queue.now() + reroute, NetEvent::Reroute);
            }
        }
    }

    /// Ends a fault: the links work as before, and are used again when new routes are found.
    pub(crate) fn mend(&mut self, target: FaultTarget, action: NetworkFaultAction) {
        if action == NetworkFaultAction::Pause {
            return self.pause_by_hosts(target, false);
        }
        for link in harmed_links(&self.network, target, action) {
            self.faults.mend(link, &mut self.links[link], action);
            self.links.touch(link);
        }
        if let NetworkFaultAction::Fail { reroute } = action {
            self.plan(self.queue.now() + reroute, NetEvent::Reroute);
        }
    }

    /// Loses the packets that wait for links that have failed, where switches know no other routes.
    fn lose_stranded(&mut self) {
        let of_switch = |link: &LinkId| self.network.link(*link).from.switch().is_some();
        let failed: Vec<_> = self.links.ids().filter(|&link| self.links[link].failed).filter(of_switch).collect();
        for link in failed {
            self.take_all_waiting(link).into_iter().for_each(|id| self.lose(id));
        }
    }

    /// Finds new routes around failed links and switches, and repeats the requests of the packets that wait there.
    pub(crate) fn reroute(&mut self) {
        let routes = Routes::find(&self.network, &|link| !self.links[link].failed);
        let mut stranded = Vec::new();
        for link in self.links.ids() {
            // Packets that wait for several links would not find them all by the new routes, so all request again.
            let loses_ways = self.router.is_adaptive() && self.network.link(link).from.switch().is_some();
            if !self.links[link].failed && !loses_ways {
                continue;
            }
            for id in self.take_all_waiting(link) {
                self.forget_requests(id, None);
                stranded.push(id);
            }
        }
        stranded.sort_unstable();
        stranded.dedup();
        self.bridges = Bridges::of(&self.network, &routes);
        self.router.set_routes(routes);
        stranded.into_iter().for_each(|id| self.request_again(id));
        if self.network.config.planes.is_some() {
            self.effects.push(NetEffect::Rerouted);
        }
    }

    /// Repeats the request of a packet that waited for a failed link.
    fn request_again(&mut self, id: PacketId) {
        let packet = &self.packets[id];
        // A host that has lost its only link sends nothing any more, and bridges send no copy twice.
        if packet.lane == LaneId::NONE || packet.load == Load::Stray {
            return self.lose(id);
        }
        self.faults.rerouted += 1;
        self.route(id);
    }

    /// Packets that waited for a failed link and took another route.
    pub(crate) fn rerouted_packets(&self) -> u64 {
        self.faults.rerouted
    }

    /// True if a port of a host reaches another one, as its host knows: it sees its own link, and hears of others with the routes.
    pub(crate) fn reaches(&self, from: EndpointId, to: EndpointId) -> bool {
        let is_up = !self.links[self.network.endpoint(from).up].failed;
        is_up && !self.router.outputs(self.network.switch_into(from), to).is_empty()
    }

    /// True if all links of a host into the network have failed, or all out of it.
    pub(crate) fn is_cut_off(&self, host: u16) -> bool {
        let ends = || (0..self.network.config.nic.ports).map(|port| self.network.endpoint_id(host, port));
        let ends = || ends().map(|end| self.network.endpoint(end));
        ends().all(|end| self.links[end.up].failed) || ends().all(|end| self.links[end.down].failed)
    }
}
