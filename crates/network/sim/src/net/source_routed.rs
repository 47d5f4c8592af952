//! Letters: packets of mappers, each with a route of its own.

use super::Net;
use crate::{
    event::Event,
    message::MessageId,
    packet::{Load, Packet, PacketId},
    queue::Queue,
};
use evb_core::Time;
use evb_fabric::{End, EndpointId};
use evb_mapper::{Message, Transmit};

/// A packet of a mapper on its way.
pub(crate) struct SourceRoutedPacket {
    transmit: Transmit,
    /// Turns that it has taken.
    turns: usize,
    /// The end to which its last turn led.
    at: EndpointId,
}

/// All letters on their way.
pub(crate) type SourceRoutedPackets = crate::slab::Slab<MessageId, SourceRoutedPacket>;

impl Net {
    /// Hands a letter to the network interface of its sender, which asks for its link at `at`.
    pub(crate) fn send_letter(
        &mut self,
        queue: &mut Queue<Event>,
        at: Time,
        from: EndpointId,
        wire: u32,
        transmit: Transmit,
    ) {
        let message = self.letters.insert(SourceRoutedPacket { transmit, turns: 0, at: from });
        self.without_message += 1;
        let packet = Packet { message, wire, load: Load::SourceRoutedPacket, ..Packet::new(from, from) };
        let id = self.send(queue, at, packet);
        self.trace.send(at, id, &self.packets[id]);
    }

    /// A letter has come to a host, or is lost: its message, if it took all its turns.
    pub(crate) fn open(&mut self, id: MessageId) -> Option<Message> {
        let SourceRoutedPacket { transmit, turns, .. } = self.letters.remove(id);
        (turns == transmit.route.len()).then_some(transmit.message)
    }

    /// The host to which a letter has come.
    pub(crate) fn letter_at(&self, id: MessageId) -> EndpointId {
        self.letters.get(id).at
    }

    /// A letter that is first in its buffer asks for the link of its next turn.
    pub(super) fn route_letter(&mut self, queue: &mut Queue<Event>, id: PacketId) {
        let packet = &self.packets[id];
        let (switch, came) = (self.links.switch_of(packet.lane), self.links.link_of(packet.lane));
        let letter = self.letters.get_mut(packet.message);
        let port = self.network.port_in(came).expect("a letter is in a switch");
        let turn = letter.transmit.route.get(letter.turns).copied();
        let out = turn.and_then(|turn| port.checked_add_signed(turn.into()));
        let Some(&link) = out.and_then(|out| self.network.switch(switch).outputs.get(out)) else {
            return self.lose(queue, id);
        };
        letter.turns += 1;
        if let End::Endpoint(end) = self.network.link(link).to {
            letter.at = end;
        }
        self.wait_for(queue, link, id);
    }
}
