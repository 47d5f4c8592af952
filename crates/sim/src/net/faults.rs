//! Links and switches that fail, slow down or corrupt.

use super::{Net, UNKNOWN};
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
            let port = &mut self.ports[link as usize];
            match action {
                NetworkFaultAction::Fail { .. } => port.failed = true,
                NetworkFaultAction::Slow { factor } => port.slowness = factor,
                NetworkFaultAction::Corrupt { one_in } => port.corrupt_one_in = one_in,
            }
            // What is on the link when it fails is cut: it goes on as a bad packet, and whoever receives it sees that.
            let cut = port.holder.filter(|_| port.failed && (port.free_at > now || port.free_at == UNKNOWN));
            if let Some(id) = cut {
                self.packets[id].corrupted = true;
            }
        }
        if let NetworkFaultAction::Fail { reroute } = action {
            queue.push(now + reroute.0, Event::Reroute);
        }
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
