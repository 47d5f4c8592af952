//! Source-routed packets: those of mappers, each of which carries its own route.

use super::Net;
use crate::{
    message::MessageId,
    packet::{Load, Packet, PacketId},
};
use evb_core::Time;
use evb_fabric::{EndpointId, LinkEnd, LinkId};
use evb_mapper::{Message, Transmit};

/// A mapper's message under way, with its route.
pub(crate) struct SourceRoutedPacket {
    transmit: Transmit,
    /// Turns that it has taken.
    turns: usize,
    /// The end to which its last turn led.
    at: EndpointId,
}

/// All source-routed packets under way.
pub(crate) type SourceRoutedPackets = crate::slab::Slab<MessageId, SourceRoutedPacket>;

impl Net {
    /// Passes a mapper's message to the network interface of its sender, which requests its link at `at`.
    pub(crate) fn send_by_source_route(&mut self, at: Time, from: EndpointId, wire: u32, transmit: Transmit) {
        let message = self.source_routed.insert(SourceRoutedPacket { transmit, turns: 0, at: from });
        self.without_message += 1;
        let packet = Packet { message, wire, load: Load::SourceRouted, ..Packet::new(from, from) };
        self.send(at, packet);
    }

    /// Takes a mapper's message that has arrived at a host or is lost; returns it if it has taken all its turns.
    pub(crate) fn take_mapper_message(&mut self, id: MessageId) -> Option<Message> {
        let SourceRoutedPacket { transmit, turns, .. } = self.source_routed.remove(id);
        (turns == transmit.route.len()).then_some(transmit.message)
    }

    /// The host at which a mapper's message has arrived.
    pub(crate) fn mapper_message_at(&self, id: MessageId) -> EndpointId {
        self.source_routed.get(id).at
    }

    /// The link of the next turn of a source-routed packet in a switch; `None` if its route ends there, or leads to no port.
    pub(super) fn next_turn(&self, id: PacketId) -> Option<LinkId> {
        let packet = &self.packets[id];
        let (switch, came) = (self.links.switch_of(packet.lane), self.links.link_of(packet.lane));
        let source_routed = self.source_routed.get(packet.message);
        let port = self.network.port_in(came).expect("a source-routed packet is in a switch");
        let &turn = source_routed.transmit.route.get(source_routed.turns)?;
        self.network.switch(switch).outputs.get(port.checked_add_signed(turn.into())?).copied()
    }

    /// A source-routed packet in front of a buffer requests the link of its next turn.
    pub(super) fn route_by_turns(&mut self, id: PacketId) {
        let Some(link) = self.next_turn(id) else { return self.lose(id) };
        let source_routed = self.source_routed.get_mut(self.packets[id].message);
        source_routed.turns += 1;
        if let LinkEnd::Endpoint(end) = self.network.link(link).to {
            source_routed.at = end;
        }
        self.wait_for(link, id);
    }
}
