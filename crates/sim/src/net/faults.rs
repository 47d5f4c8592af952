//! Links and switches that fail, slow down or corrupt.

use super::Net;
use crate::{
    event::Event,
    packet::{NO_LANE, PacketId},
    queue::Queue,
};
use evb_fabric::{NetworkFaultAction, Target};

impl Net {
    /// Brings a fault about.
    pub(crate) fn fault(&mut self, queue: &mut Queue<Event>, now: u64, target: Target, action: NetworkFaultAction) {
        let links = match target {
            Target::Link(link) => vec![link.0],
            Target::Switch(switch) => {
                let switch = &self.network.switches[switch.0 as usize];
                let both = matches!(action, NetworkFaultAction::Fail { .. });
                let inputs = switch.inputs.iter().filter(|_| both);
                switch.outputs.iter().chain(inputs).map(|link| link.0).collect()
            }
        };
        for link in links {
            let (port, harm) = (&mut self.links[link as usize].port, &mut self.harms[link as usize]);
            match action {
                NetworkFaultAction::Fail { .. } => port.failed = true,
                NetworkFaultAction::Slow { factor } => harm.slowness = factor,
                NetworkFaultAction::Corrupt { one_in } => harm.corrupt_one_in = one_in,
            }
            port.harmed = true;
            // What is on the link when it fails is cut: it goes on as a bad packet, and whoever receives it sees that.
            if port.failed && port.free_at > now {
                self.packets[port.holder].corrupted = true;
            }
        }
        if let NetworkFaultAction::Fail { reroute } = action {
            queue.push(now + reroute.0, Event::Reroute);
        }
    }

    /// Corrupts a packet that goes onto a harmed link, if it is its turn.
    pub(super) fn harm(&mut self, link: u32, id: PacketId) {
        let one_in = self.harms[link as usize].corrupt_one_in;
        if one_in > 0 && self.counts[link as usize].packets.is_multiple_of(one_in) {
            self.packets[id].corrupted = true;
        }
    }

    /// A time on a link, longer when the link is slow.
    #[inline]
    pub(super) fn slowed(&self, link: u32, time: u64) -> u64 {
        if !self.port(link).harmed {
            return time;
        }
        (time as f64 * self.harms[link as usize].slowness).round() as u64
    }

    /// A packet that waited for a link that has failed asks anew.
    pub(super) fn ask_again(&mut self, queue: &mut Queue<Event>, now: u64, id: PacketId) {
        if self.packets[id].lane == NO_LANE {
            // A host that has lost its only link sends nothing any more.
            return self.lose(queue, now, id);
        }
        self.route(queue, now, id);
    }
}
