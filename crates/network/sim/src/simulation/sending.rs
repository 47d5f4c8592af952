//! Outgoing messages: from a machine through the processor and the interface of its host to the network.

use super::{Simulation, size};
use crate::{
    event::Event,
    message::{Body, Message, MessageId},
    nic::{Access, Chunk},
    node::Outgoing,
    packet::{Load, Packet},
};
use evb_core::{NodeId, NodeRange, Span, Time};
use evb_experiment::{BackgroundPriority, Workload};
use evb_fabric::{ChannelRule, Control, EndpointId, Flow};
use evb_patterns::{TrafficCommand, TrafficMessage};
use evb_protocol::{Config, Message as ProtocolMessage, Shaping, wire};

/// Bytes of a message of a traffic pattern that carries no data: the request of the ATLAS pull patterns (note 77).
const CONTROL_BYTES: u64 = 64;

impl Simulation<'_> {
    pub(super) fn transmit(&mut self, from: NodeId, outgoing: Outgoing) {
        let Outgoing { to, body, payload, delay } = outgoing;
        let bytes = match &body {
            Body::Protocol(message) => wire::length(message),
            Body::Traffic(TrafficMessage::Data { .. }) | Body::Background(TrafficMessage::Data { .. }) => payload,
            Body::Traffic(_) | Body::Background(_) => CONTROL_BYTES,
            Body::Bucket(_) | Body::Exported => 0,
        };
        let (bytes, payload, is_data) = (size(bytes), size(payload), body.is_data());
        let is_building = matches!(self.plan.workload, Workload::EventBuilding);
        let background = self.plan.background_of(from);
        if let Some(index) = background {
            self.statistics.background.send(index, payload);
        } else if !is_building && payload > 0 {
            self.statistics.data(self.net.queue.now().0, to.count);
        }
        let host = self.host(from);
        let mut posted_at = self.net.queue.now().0 + delay.0;
        // With processors that nodes share, the sender's turn has taken the time.
        if let Some(host) = host.filter(|_| self.computing.is_none() && !self.is_of_interfaces(&body)) {
            posted_at = self.occupy(host, posted_at, self.net.network.config.host.send);
        }
        if let (Control::Separate { delay, rate }, true, false) =
            (self.net.network.config.control, is_building, is_data)
        {
            let message = Message { payload, ..Message::new(from, to, body) };
            // Messages of one sender arrive in the order in which they were sent: a short one does not overtake.
            let arrived_at = &mut self.control_until[from.index()];
            *arrived_at = (posted_at + delay.0 + rate.time_for(bytes.into()).0).max(*arrived_at);
            let at = Time(*arrived_at);
            return self.call_all(self.net.queue.now(), at, message);
        }
        let priority = if is_data { self.data_priority(background) } else { self.control_priority(is_building) };
        for node in to.iter() {
            let to = NodeRange::from(node);
            let body = body.clone();
            let message = Message { unsent: bytes, missing: bytes, payload, priority, ..Message::new(from, to, body) };
            let message = self.messages.insert(message);
            if self.computing.as_ref().is_some_and(|computing| computing.cpus.share_memory(from, node)) {
                self.pass_in_memory(posted_at, from, node, message);
                continue;
            }
            if let Some(host) = host.filter(|&host| self.host(node) != Some(host) && background.is_none()) {
                self.nics[host].backlog += 1;
            }
            // Messages within a host may be answered at once, without end: not on the stack.
            if posted_at > self.net.queue.now().0 || self.host(from) == self.host(node) {
                self.net.queue.push(Time(posted_at), Event::Post { message });
            } else {
                self.post(posted_at, message);
            }
        }
    }

    /// The priority of data of the workload, or of background traffic.
    fn data_priority(&self, background: Option<usize>) -> u8 {
        match background.map(|index| self.plan.background[index].priority) {
            Some(BackgroundPriority::Lower) => 0,
            Some(BackgroundPriority::Same) | None => self.plan.data_priority(),
        }
    }

    /// Control messages go first where the network knows priorities, and between the slots of a barrel shifter.
    pub(super) fn control_priority(&self, is_building: bool) -> u8 {
        let shaped = matches!(self.plan.building.shaping, Shaping::BarrelShifter { .. } | Shaping::RateDivision { .. });
        match self.net.network.config.flow {
            Flow::StoreAndForward { priorities, .. } if priorities > 1 => priorities - 1,
            Flow::CutThrough { virtual_channels, channel: ChannelRule::Priority, .. } => virtual_channels - 1,
            _ => u8::from(is_building && shaped),
        }
    }

    pub(super) fn post(&mut self, now: u64, id: MessageId) {
        let message = self.messages.get(id);
        let (from, to) = (self.host(message.from), self.host(message.to.first));
        let (Some(from), Some(to)) = (from, to) else { return self.take_in(now, id) };
        if from == to {
            return self.copy(now, id);
        }
        let overtakes = self.is_of_interfaces(&message.body);
        if let Some(order) = self.order.as_mut().filter(|_| !overtakes) {
            let place = order.send(message.from, message.to.first);
            self.messages.get_mut(id).order = place;
        }
        if self.connections.is_some() && !self.nics[from].takes_into_slot(id, self.messages.get(id)) {
            return self.write_to_connection(id);
        }
        if self.connections.is_none() {
            self.post_to_interface(from, to, id);
        }
        self.feed_nic(from);
    }

    /// A message waits in the interface of its host for its packets to be sent.
    pub(super) fn post_to_interface(&mut self, from: usize, to: usize, id: MessageId) {
        let plane = self.plane_of_message(from, to);
        self.nics[from].post(plane, id, self.messages.get(id));
    }

    /// Passes a message through the memory of a computer.
    fn pass_in_memory(&mut self, posted_at: u64, from: NodeId, to: NodeId, message: MessageId) {
        let Some(computing) = &self.computing else { return };
        let delay = if computing.cpus.crosses(from, to) { computing.cpus.plan.crossing.delay } else { Span::ZERO };
        self.net.queue.push(Time(posted_at) + delay, Event::Copied { message });
    }

    /// Within a host a message needs no network: it is copied, at the rate of a link.
    pub(super) fn copy(&mut self, now: u64, id: MessageId) {
        let bytes = self.messages.get(id).unsent;
        let at = Time(now) + self.net.network.config.link.rate.time_for(bytes.into());
        self.net.queue.push(at, Event::Copied { message: id });
    }

    /// New messages to send: idle ports begin.
    pub(super) fn feed_nic(&mut self, host: usize) {
        let now = self.net.queue.now().0;
        if self.nics[host].memory.is_some() {
            return self.access_memory(now, host);
        }
        self.wake_ports(now, host);
    }

    pub(super) fn wake_ports(&mut self, now: u64, host: usize) {
        let ports = self.nics[host].ports.len();
        for port in 0..ports {
            if self.nics[host].ports[port].idle {
                self.pick(now, (host * ports + port) as u16);
            }
        }
    }

    /// A port is free: the next packet goes into it.
    pub(super) fn pick(&mut self, now: u64, endpoint: u16) {
        let ports = self.nics[0].ports.len();
        let (host, port) = (usize::from(endpoint) / ports, usize::from(endpoint) % ports);
        if let Some(message) = self.nics[host].ports[port].ending.take() {
            self.note_sent(now, message);
        }
        if self.connections.is_some() {
            return self.pick_from_connections(now, host, port);
        }
        self.feed_from_held_back(host);
        let has_planes = self.net.network.config.planes.is_some();
        let aside = self.nics[host].aside;
        let chunk = if has_planes { self.next_in_plane(now, host, port) } else { self.cut(now, host, port) };
        self.nics[host].ports[port].idle = chunk.is_none();
        match chunk {
            Some(chunk) => self.send_from_port(now, host, port, chunk),
            None => self.plan_slot(host),
        }
        if self.nics[host].aside != aside {
            self.wake_ports(now, host);
        }
    }

    /// The next packet for a port.
    pub(super) fn cut(&mut self, now: u64, host: usize, port: usize) -> Option<Chunk> {
        let nic = &mut self.nics[host];
        match &mut nic.memory {
            Some(memory) => memory.take_ready(),
            None => nic.cut(Time(now), port, &mut self.messages),
        }
    }

    fn send_from_port(&mut self, now: u64, host: usize, port: usize, chunk: Chunk) {
        let nic = &mut self.nics[host];
        if chunk.last {
            nic.ports[port].ending = Some(chunk.message);
        }
        self.send_packet(now, host, port, chunk);
        if self.nics[host].memory.is_some() {
            self.access_memory(now, host);
        }
    }

    /// Sends the packet of a chunk, and others like it behind it.
    pub(super) fn send_packet(&mut self, now: u64, host: usize, port: usize, chunk: Chunk) {
        let late = self.messages.take_lateness(chunk.message);
        self.export_to_receiver(chunk.message);
        let ports = self.nics[0].ports.len();
        let message = self.messages.get(chunk.message);
        let to = self.host(message.to.first).expect("a message in an interface is for a host");
        let [from, to] = [host, to].map(|host| EndpointId((host * ports + port) as u16));
        let to = self.net.port_of_route(from, to);
        let nic = &self.net.network.config.nic;
        let wire = (u64::from(chunk.bytes) + nic.header.0).max(nic.minimum.0);
        let packet = Packet {
            message: chunk.message,
            load: if message.body.is_background() { Load::Background } else { Load::Message },
            payload: chunk.bytes,
            wire: size(wire),
            priority: message.priority,
            variant: self.net.variant(from, to, u32::from(message.from.0)),
            ..Packet::new(from, to)
        };
        self.statistics.sent_packets += 1;
        let jitter = self.nics[host].jitter.as_mut().map_or(Span::ZERO, |times| times.before_packet(chunk.last));
        let ready = Time(now) + nic.overhead + jitter + late;
        let id = self.net.send(ready, packet);
        if chunk.others > 0 {
            self.couple(id, chunk.others);
        }
    }

    pub(super) fn note_sent(&mut self, now: u64, message: MessageId) {
        let message = self.messages.get(message);
        if message.body.is_background() {
            return self.note_sent_in_background(now, message.from);
        }
        if !matches!(message.body, Body::Traffic(TrafficMessage::Data { .. })) {
            return;
        }
        self.free_sender(now, message.from);
    }

    /// A message of a sender is no more under way.
    pub(super) fn free_sender(&mut self, now: u64, sender: NodeId) {
        self.nodes[sender.index()].command_traffic(Time(now), TrafficCommand::Sent);
        self.drain(sender);
    }

    /// The memory of a host is free: the next access begins, and idle ports take the packets that are there.
    pub(super) fn access_memory(&mut self, now: u64, host: usize) {
        let nic = &mut self.nics[host];
        let Some(mut memory) = nic.memory.take() else { return };
        let begun = memory.begin(|| nic.cut(Time(now), 0, &mut self.messages));
        nic.memory = Some(memory);
        match begun {
            Some((bytes, rate)) => {
                self.net.queue.push(Time(now) + rate.time_for(bytes.into()), Event::DmaDone { host: host as u16 });
            }
            None => self.plan_slot(host),
        }
    }

    /// Plans the time of the next slot, which is to be sent even if nothing else happens.
    pub(super) fn plan_slot(&mut self, host: usize) {
        let Some(slots) = &self.nics[host].slots else { return };
        // A slot that is due is looked for when the interface has room for it.
        let now = self.net.queue.now();
        let at = slots.shaper.deadline(now).filter(|&at| at > now).into_iter().chain(slots.shaper.asks_time_at()).min();
        if let (Some(at), node) = (at, slots.node) {
            self.plan_timeout(node, at);
        }
    }

    /// Requests the time for a readout unit that sends by the clock, when it is due.
    pub(super) fn ask_time(&mut self, host: usize) {
        let asked = self.net.queue.now();
        let Some(slots) = &mut self.nics[host].slots else { return };
        let unit = slots.node;
        if slots.shaper.asks_time(asked) {
            let body = Body::Protocol(ProtocolMessage::TimeRequest { asked });
            let to = Config::EVENT_MANAGER.into();
            self.transmit(unit, Outgoing { to, body, payload: 0, delay: Span::ZERO });
        }
    }

    pub(super) fn memory_done(&mut self, now: u64, host: u16) {
        let host = usize::from(host);
        let Some(memory) = &mut self.nics[host].memory else { return };
        match memory.busy.take() {
            Some(Access::Read(chunk)) => {
                memory.have_read(chunk);
                self.wake_ports(now, host);
            }
            Some(Access::Write(chunk)) => self.absorb(now, chunk.message, chunk.bytes),
            None => {}
        }
        self.access_memory(now, host);
    }
}
