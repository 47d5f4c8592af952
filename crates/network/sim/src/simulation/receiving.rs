//! Incoming messages: from the network to the machine that they are for.

use super::{Simulation, computing::Input, size};
use crate::{
    event::Event,
    jitter::JitterTimes,
    message::{Body, Message, MessageId},
    nic::Chunk,
    packet::{Load, PacketId, TrainId},
};
use evb_core::{NodeId, NodeRange, Span, Time};
use evb_patterns::TrafficMessage;
use evb_protocol::{Message as ProtocolMessage, wire};
use evb_unit::SimulatedPayload;
use std::hint::black_box;

/// The missing bytes of a message of which a packet was lost.
pub(super) const LOST: u32 = u32::MAX;

/// Time after which a lost control message is sent again: the shortest after which Linux sends a TCP segment again.
const SENT_AGAIN: Span = Span::from_millis(200);

impl Simulation<'_> {
    pub(super) fn deliver(&mut self, now: u64, id: PacketId) {
        if self.net.packets[id].train != TrainId::NONE {
            return self.deliver_train(now, id);
        }
        let mut packet = self.net.take(id);
        self.find_message(&mut packet);
        match packet.load {
            Load::Message | Load::Background => {}
            Load::Connection | Load::BackgroundConnection | Load::Header => {
                return self.deliver_cargo(now, &packet);
            }
            Load::SourceRouted => return self.deliver_to_mapper(now, packet),
            Load::Stray => return self.statistics.flooded_packets += 1,
        }
        if packet.corrupted {
            self.statistics.corrupted_packets += 1;
            return self.lose(now, packet.message);
        }
        let message = self.messages.get(packet.message);
        let filled = filled(message, packet.payload);
        self.statistics.packets(now, &packet, 1, &self.net.network, filled, (message.from, message.to.first));
        let host = usize::from(packet.to.0) / self.nics[0].ports.len();
        let chunk = Chunk { message: packet.message, bytes: packet.payload, last: false, others: 0 };
        match &mut self.nics[host].memory {
            None => self.absorb(now, packet.message, packet.payload),
            Some(memory) => {
                memory.write(chunk);
                self.access_memory(now, host);
            }
        }
    }

    /// Bytes of a message are in the memory of its receiver.
    pub(super) fn absorb(&mut self, now: u64, id: MessageId, bytes: u32) {
        let message = self.messages.get_mut(id);
        if message.missing == LOST {
            if message.payload > 0 && !message.body.is_background() {
                self.statistics.waste(bytes);
            }
            return;
        }
        let missing = message.missing - bytes;
        let before = std::mem::replace(&mut message.missing, missing);
        let (from, to) = (message.from, message.to.first);
        if let Body::Bucket(bucket) = &message.body
            && let Some(lead) = bucket.lead
            && (missing..before).contains(&lead)
        {
            let (empty, round) = (bucket.parts.is_empty(), bucket.round);
            self.hand_over(from, to, Body::Protocol(ProtocolMessage::Slot { empty, round }));
        }
        if missing == 0 {
            self.arrived(now, id);
        }
    }

    /// A part of a message is lost, and with it the message. Control messages are sent again; other messages of the
    /// pair that arrive meanwhile wait for them. Builders request lost fragments.
    pub(super) fn lose(&mut self, now: u64, id: MessageId) {
        let message = self.messages.get_mut(id);
        let missing = std::mem::replace(&mut message.missing, LOST);
        if missing == LOST {
            return;
        }
        if let Some(index) = self.plan.background_of(message.from) {
            self.statistics.background.lose(index);
        } else {
            self.statistics.waste(message.payload.saturating_sub(missing));
        }
        if let Body::Bucket(bucket) = &mut message.body {
            let parts = std::mem::take(&mut bucket.parts);
            return parts.into_iter().for_each(|(part, _)| self.lose(now, part));
        }
        if message.body.is_reliable() {
            return self.net.queue.push(Time(now) + SENT_AGAIN, Event::SendAgain { message: id });
        }
        self.statistics.lose_message(&message.body);
        let (pair, place) = ((message.from, message.to.first), message.order);
        self.in_order(now, pair, place, None);
    }

    /// Delivers the messages of a pair of nodes whose turn has come.
    pub(super) fn in_order(&mut self, now: u64, pair: (NodeId, NodeId), place: u32, message: Option<MessageId>) {
        let Some(order) = &mut self.order else {
            if let Some(id) = message {
                self.take_in(now, id);
            }
            return;
        };
        let mut ready = std::mem::take(&mut self.ready);
        order.arrive(pair, place, message, &mut ready);
        ready.drain(..).for_each(|id| self.take_in(now, id));
        self.ready = ready;
    }

    /// The sender of a lost message has waited long enough: it sends the message again, in its old place.
    pub(super) fn send_again(&mut self, now: u64, id: MessageId) {
        let lost = self.messages.get(id);
        let bytes = size(match &lost.body {
            Body::Protocol(message) => wire::length(message),
            Body::Traffic(_) | Body::Background(_) | Body::Bucket(_) | Body::Exported => 0,
        });
        let (from, to) = (lost.from, lost.to.first);
        // Packets of the lost message may still be under way: they belong to none.
        let again = Message { unsent: bytes, missing: bytes, ..lost.clone() };
        let again = self.messages.insert(again);
        let (Some(from), Some(to)) = (self.host(from), self.host(to)) else { return self.take_in(now, again) };
        debug_assert_ne!(from, to, "nothing is lost within a host");
        self.nics[from].backlog += 1;
        self.post_to_interface(from, to, again);
        self.feed_nic(from);
    }

    /// A message is whole: the processor of its receiver looks at it.
    pub(super) fn arrived(&mut self, now: u64, id: MessageId) {
        if let Body::Bucket(_) = self.messages.get(id).body {
            let message = self.messages.remove(id);
            self.report_taken(&message);
            let Body::Bucket(bucket) = message.body else { return };
            // Each message is long out of the caches: they come in together, and not one after another as each is looked at.
            bucket.parts.iter().for_each(|&(message, _)| _ = black_box(self.messages.get(message).missing));
            bucket.parts.iter().for_each(|&(message, bytes)| self.absorb(now, message, bytes));
            return self.messages.keep_bucket(bucket);
        }
        let message = self.messages.get(id);
        if self.is_of_interfaces(&message.body) {
            return self.take_in(now, id);
        }
        let (pair, place) = ((message.from, message.to.first), message.order);
        self.in_order(now, pair, place, Some(id));
    }

    /// The processor of the receiver looks at a message.
    pub(super) fn take_in(&mut self, now: u64, id: MessageId) {
        let message = self.messages.get(id);
        if self.computing.is_some() && !self.is_of_interfaces(&message.body) {
            return self.put_into_inbox(message.to.first, Input::Message(id));
        }
        let at = if self.is_of_interfaces(&message.body) { now } else { self.processor_time(now, message.to.first) };
        if at > now {
            self.net.queue.push(Time(at), Event::Receive { message: id });
        } else {
            self.receive(id);
        }
    }

    /// Time at which the processor of a node's host will have looked at a message that comes now.
    pub(super) fn processor_time(&mut self, now: u64, node: NodeId) -> u64 {
        let Some(host) = self.host(node) else { return now };
        self.occupy(host, now, self.net.network.config.host.receive)
    }

    /// Keeps the processor of a host busy with a message; returns the time at which it is done.
    pub(super) fn occupy(&mut self, host: usize, now: u64, time: Span) -> u64 {
        let jitter = self.jitter.get_mut(host).map_or(Span::ZERO, JitterTimes::next);
        let done_at = self.processors[host].max(now) + time.0 + jitter.0;
        self.processors[host] = done_at;
        done_at
    }

    pub(super) fn receive(&mut self, id: MessageId) {
        let message = self.messages.remove(id);
        self.report_taken(&message);
        let Message { from, to, body, payload, .. } = message;
        if let Body::Background(TrafficMessage::Data { born, .. }) = body
            && let Some(index) = self.plan.background_of(from)
        {
            self.statistics.background.arrive(self.net.queue.now(), index, born, payload);
            return self.hand_over(from, to.first, body);
        }
        self.statistics.message(self.net.queue.now().0, from, to.first, &body, payload.into());
        if payload > 0 {
            self.moved_at = self.net.queue.now().0;
        }
        self.hand_over(from, to.first, body);
    }

    pub(super) fn hand_over(&mut self, from: NodeId, to: NodeId, body: Body) {
        let now = self.net.queue.now();
        if let Body::Protocol(
            message @ (ProtocolMessage::Credit { .. }
            | ProtocolMessage::Round { .. }
            | ProtocolMessage::TimeAnswer { .. }),
        ) = body
        {
            return self.permit_in_time(now, from, to, message);
        }
        let node = &mut self.nodes[to.index()];
        if node.dead {
            return;
        }
        node.handle_message(now, from, body);
        self.drain(to);
    }

    /// A message has come that permits a readout unit to send. The unit may hear of it late.
    fn permit_in_time(&mut self, now: Time, from: NodeId, unit: NodeId, message: ProtocolMessage<SimulatedPayload>) {
        let slots = self.host(unit).and_then(|host| self.nics[host].slots.as_ref());
        let late = slots.map_or(Span::ZERO, |slots| slots.times.of_message(&message));
        if late == Span::ZERO {
            return self.permit(now, from, unit, message);
        }
        let message = self.messages.insert(Message::new(from, unit.into(), Body::Protocol(message)));
        self.net.queue.push(now + late, Event::Permit { message });
    }

    pub(super) fn permit_late(&mut self, now: u64, id: MessageId) {
        let Message { from, to, body, .. } = self.messages.remove(id);
        if let Body::Protocol(message) = body {
            self.permit(Time(now), from, to.first, message);
        }
    }

    /// Permits a readout unit to send its next bucket.
    fn permit(&mut self, now: Time, from: NodeId, unit: NodeId, message: ProtocolMessage<SimulatedPayload>) {
        let Some(host) = self.host(unit) else { return };
        if let Some(slots) = &mut self.nics[host].slots {
            match message {
                ProtocolMessage::Credit { calm } => {
                    slots.shaper.credit(now, from.index() - slots.first_builder.index(), calm);
                }
                ProtocolMessage::Round { number, calm } => slots.shaper.begin_round(now, number, calm),
                ProtocolMessage::TimeAnswer { asked, manager } => {
                    slots.shaper.set_time(now, asked, slots.times.believed(manager));
                }
                _ => {}
            }
            self.ask_time(host);
            self.feed_nic(host);
        }
    }

    /// Handles control messages that have arrived on a separate network.
    pub(super) fn hear_control(&mut self) {
        let now = self.net.queue.now();
        while let Some(message) = self.control.take(now) {
            self.broadcast(now.0, message);
        }
    }

    fn broadcast(&mut self, now: u64, id: MessageId) {
        let Message { from, to, body, .. } = self.messages.remove(id);
        let takes_time =
            self.net.network.config.host.receive.0 > 0 || !self.jitter.is_empty() || self.computing.is_some();
        let busy = takes_time && !self.is_of_interfaces(&body);
        for node in to.iter() {
            if self.net.border.beyond_node(node).is_some() {
                continue;
            }
            if !busy {
                self.hand_over(from, node, body.clone());
                continue;
            }
            let (to, body) = (NodeRange::from(node), body.clone());
            let message = Message::new(from, to, body);
            let message = self.messages.insert(message);
            self.take_in(now, message);
        }
    }
}

/// Bytes of a packet of a message that belong to fragments or data: all or none, or the filled part of a bucket.
pub(super) fn filled(message: &Message, packet: u32) -> u32 {
    match &message.body {
        Body::Bucket(bucket) => {
            let filled: u64 = bucket.parts.iter().map(|&(_, bytes)| u64::from(bytes)).sum();
            (u64::from(packet) * filled / u64::from(bucket.size.max(1))) as u32
        }
        Body::Background(_) => 0,
        _ if message.payload > 0 => packet,
        _ => 0,
    }
}
