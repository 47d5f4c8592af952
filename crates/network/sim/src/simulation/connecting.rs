//! Messages over connections: from a message to the segments of a stream, and from arriving segments back to messages.

use super::{Simulation, receiving::filled, size};
use crate::{
    connections::{Cargo, CargoId, Connection, ConnectionId, Connections, Part},
    event::Event,
    message::MessageId,
    packet::{Load, Packet},
};
use evb_connection::{Next, Reply, Segment};
use evb_core::{Bandwidth, NodeId, Span, Time};
use evb_experiment::Workload;
use evb_fabric::{EndpointId, PlaneChoice};

/// The number by which a path of a connection is chosen among equal routes: that of the connection for its first path.
fn stream(ConnectionId(id): ConnectionId, path: u16) -> u32 {
    // An odd factor spreads the paths of one connection over all numbers.
    id.wrapping_add(u32::from(path).wrapping_mul(0x9e37_79b1))
}

impl Simulation<'_> {
    /// The connections, where the transport has some.
    fn connections(&mut self) -> &mut Connections {
        self.connections.as_mut().expect("only connections have segments and deadlines")
    }

    pub(super) fn connection(&mut self, id: ConnectionId) -> &mut Connection {
        self.connections().get_mut(id)
    }

    /// The rate of the link into the network from the host of a node, of all its links if packets take planes in turn.
    fn link_of(&self, node: NodeId) -> Bandwidth {
        let host = self.host(node).expect("a connection begins at a host");
        let network = &self.net.network;
        let up = network.endpoint(EndpointId((host * self.nics[0].ports.len()) as u16)).up;
        let takes_all = network.config.planes.is_some_and(|planes| planes.choice == PlaneChoice::Packet);
        let links = if takes_all { u64::from(network.config.plane_count()) } else { 1 };
        Bandwidth(network.link(up).rate.0.saturating_mul(links))
    }

    /// A message goes into the stream of its connection.
    pub(super) fn write_to_connection(&mut self, id: MessageId) {
        let message = self.messages.get_mut(id);
        let (from, to, priority) = (message.from, message.to.first, message.priority);
        let bytes = message.unsent;
        let link = self.link_of(from);
        let connection = self.connections().between(from, to, priority, link);
        self.connection(connection).write(id, bytes);
        self.make_ready(connection);
    }

    /// A connection may be able to send: its interface asks it in its turn.
    fn make_ready(&mut self, id: ConnectionId) {
        if std::mem::replace(&mut self.connection(id).is_ready, true) {
            return;
        }
        let (from, to) = self.hosts_of(id);
        let port = self.port_of(id, from, to);
        self.add_to_ready(from, port, id);
        self.wake_port(from, port);
    }

    /// The hosts of the sender and of the receiver of a connection.
    fn hosts_of(&mut self, id: ConnectionId) -> (usize, usize) {
        let &mut Connection { from, to, .. } = self.connection(id);
        let [from, to] = [from, to].map(|node| self.host(node).expect("a connection joins two hosts"));
        (from, to)
    }

    fn wake_port(&mut self, host: usize, port: usize) {
        let nic = &self.nics[host];
        let now = self.net.queue.now().0;
        if nic.ports[port].idle {
            let endpoint = host * nic.ports.len() + port;
            self.pick(now, endpoint as u16);
        } else if self.connections().interface_queue() > 0 {
            self.fill_interface(now, host, port);
        }
    }

    /// A port is free: a reply goes first, then the first segment in the queue of the interface.
    pub(super) fn pick_from_connections(&mut self, now: u64, host: usize, port: usize) {
        self.nics[host].ports[port].idle = false;
        self.feed_from_held_back(host);
        if let Some((connection, reply)) = self.nics[host].ports[port].replies.pop_front() {
            return self.send_reply(now, host, port, connection, reply);
        }
        self.fill_interface(now, host, port);
        match self.nics[host].ports[port].queue.pop_front() {
            Some((id, segment)) => self.send_segment(now, host, port, id, segment),
            None => {
                self.nics[host].ports[port].idle = true;
                self.plan_slot(host);
            }
        }
    }

    /// Connections send into the queue of a port in turn: one segment if it is empty, and more where it has room for them.
    fn fill_interface(&mut self, now: u64, host: usize, port: usize) {
        let (room, segment) = (self.connections().interface_queue(), self.connections().segment());
        while (room > 0 || self.nics[host].ports[port].queue.is_empty())
            && let Some(id) = self.next_ready(now, host, port)
        {
            if self.goes_elsewhere(id, host, port) {
                continue;
            }
            if room > 0 && self.connection(id).holds_back(room, segment) {
                self.leave_ready(id, None);
                continue;
            }
            match self.connections().with_sender(Time(now), id, |sender| sender.send(Time(now))) {
                Next::Segment(segment) => {
                    let connection = self.connection(id);
                    connection.queued += u64::from(segment.bytes);
                    connection.turn = connection.turn.wrapping_add(1);
                    self.plan_connection(id, None);
                    self.nics[host].ports[port].queue.push_back((id, segment));
                    if !self.goes_elsewhere(id, host, port) {
                        self.add_to_ready(host, port, id);
                    }
                }
                Next::At(at) => self.leave_ready(id, Some(at)),
                Next::Wait => self.leave_ready(id, None),
            }
        }
    }

    /// Puts a connection that waits at a port to another one of its host, if its next segment goes over another plane.
    fn goes_elsewhere(&mut self, id: ConnectionId, host: usize, port: usize) -> bool {
        if self.net.network.config.planes.is_none() {
            return false;
        }
        let (from, to) = self.hosts_of(id);
        let next = self.port_of(id, from, to);
        if next != port {
            self.add_to_ready(host, next, id);
            self.wake_port(host, next);
        }
        next != port
    }

    /// The connection whose turn it is; a bucket of a barrel shifter comes into being when none can send, or
    /// beside background traffic, which may always be able to.
    fn next_ready(&mut self, now: u64, host: usize, port: usize) -> Option<ConnectionId> {
        if self.plan.background.is_empty()
            && let Some(id) = self.nics[host].ports[port].ready.pop_front()
        {
            return Some(id);
        }
        if let Some(bucket) = self.nics[host].next_bucket(Time(now), &mut self.messages) {
            self.write_to_connection(bucket);
        }
        let port = &mut self.nics[host].ports[port];
        port.ready.pop_front().or_else(|| port.lower.pop_front())
    }

    /// A connection can send nothing now, but maybe at `at`.
    fn leave_ready(&mut self, id: ConnectionId, at: Option<Time>) {
        self.connection(id).is_ready = false;
        self.plan_connection(id, at);
    }

    fn plan_connection(&mut self, id: ConnectionId, at: Option<Time>) {
        if let Some(at) = self.connection(id).plan(at) {
            self.net.queue.push(at, Event::Connection { connection: id });
        }
    }

    fn send_segment(&mut self, now: u64, host: usize, port: usize, id: ConnectionId, segment: Segment) {
        self.make_room(host, port, id, segment.bytes);
        let to = self.connection(id).to;
        let to = self.host(to).expect("a connection ends at a host");
        let next = self.connection(id).next_message();
        let late = next.map_or(Span::ZERO, |message| self.messages.take_lateness(message));
        let cargo = Cargo { connection: id, part: Part::Segment(segment) };
        self.send_cargo(Time(now) + late, (host, to), port, cargo, segment.bytes);
        while let Some((message, end)) = self.connection(id).take_sent() {
            self.messages.get_mut(message).unsent = 0;
            self.nics[host].note_cut(message, self.messages.get(message));
            if self.awaits_acknowledgement(message) {
                self.connection(id).await_acknowledgement(end);
            } else {
                self.note_sent(now, message);
            }
        }
    }

    /// True if the sender of a message sends the next one when this one is acknowledged.
    fn awaits_acknowledgement(&self, message: MessageId) -> bool {
        let Workload::Traffic(traffic) = &self.plan.workload else { return false };
        traffic.awaits_acknowledgement && !self.messages.get(message).body.is_background()
    }

    /// Frees the sender of each message that is fully acknowledged.
    fn note_acknowledged(&mut self, now: u64, id: ConnectionId) {
        let from = self.connection(id).from;
        while self.connection(id).take_acknowledged() {
            self.free_sender(now, from);
        }
    }

    /// A segment leaves the queue of its interface, which may take the next one of the connection.
    fn make_room(&mut self, host: usize, port: usize, id: ConnectionId, bytes: u32) {
        let has_queue = self.connections().interface_queue() > 0;
        let connection = self.connection(id);
        connection.queued -= u64::from(bytes);
        if has_queue && !std::mem::replace(&mut connection.is_ready, true) {
            self.add_to_ready(host, port, id);
        }
    }

    fn send_reply(&mut self, now: u64, host: usize, port: usize, id: ConnectionId, reply: Reply) {
        let to = self.connection(id).from;
        let to = self.host(to).expect("a connection begins at a host");
        self.send_cargo(Time(now), (host, to), port, Cargo { connection: id, part: Part::Reply(reply) }, 0);
    }

    fn send_cargo(&mut self, at: Time, (from, to): (usize, usize), port: usize, cargo: Cargo, bytes: u32) {
        let ports = self.nics[0].ports.len();
        let [from_port, to] = [from, to].map(|host| EndpointId((host * ports + port) as u16));
        let to = self.net.port_of_route(from_port, to);
        let nic = &self.net.network.config.nic;
        let wire = (u64::from(bytes) + nic.header.0).max(nic.minimum.0);
        let overhead = nic.overhead;
        let id = cargo.connection;
        let path = match cargo.part {
            Part::Segment(segment) => segment.path,
            Part::Reply(ref reply) => reply.path,
        };
        let goes_first = bytes == 0 && self.net.network.config.switch.trimming;
        let priority = if goes_first { self.control_priority(false) } else { self.connection(id).priority };
        let is_background = self.plan.background_of(self.connection(id).from).is_some();
        let load = if is_background { Load::BackgroundConnection } else { Load::Connection };
        let CargoId(place) = self.connections().cargo.insert(cargo);
        let packet = Packet {
            message: MessageId(place),
            load,
            payload: bytes,
            wire: size(wire),
            priority,
            variant: self.net.variant(from_port, to, stream(id, path)),
            ..Packet::new(from_port, to)
        };
        self.statistics.sent_packets += 1;
        let jitter = self.nics[from].jitter.as_mut().map_or(Span::ZERO, |times| times.before_packet(bytes == 0));
        self.net.send(at + overhead + jitter, packet);
    }

    /// Takes what a packet carries that is gone from the network.
    pub(super) fn take_cargo(&mut self, packet: &Packet) -> Cargo {
        self.connections().cargo.remove(CargoId(packet.message.0))
    }

    /// A packet of a connection has arrived.
    pub(super) fn deliver_cargo(&mut self, now: u64, packet: &Packet) {
        let Cargo { connection, part } = self.take_cargo(packet);
        if packet.corrupted {
            self.statistics.corrupted_packets += 1;
            return;
        }
        match part {
            Part::Segment(segment) if packet.load == Load::Header => {
                let reply = self.connection(connection).receiver.receive_trimmed(segment);
                self.reply(connection, reply);
                self.await_credit(connection);
            }
            Part::Segment(segment) => self.receive_segment(now, connection, segment, packet),
            Part::Reply(reply) => {
                self.connections().with_sender(Time(now), connection, |sender| sender.handle(Time(now), &reply));
                self.plan_connection(connection, None);
                self.make_ready(connection);
                self.note_acknowledged(now, connection);
            }
        }
    }

    fn receive_segment(&mut self, now: u64, id: ConnectionId, segment: Segment, packet: &Packet) {
        let message = self.connection(id).message_at(segment.first);
        let received = self.connections().receive(Time(now), id, segment, packet.congested);
        if let Some(message) = message.filter(|_| received.new_bytes > 0) {
            let message = self.messages.get(message);
            let filled = filled(message, received.new_bytes);
            self.statistics.packets(now, packet, 1, &self.net.network, filled, (message.from, message.to.first));
        }
        received.replies.into_iter().flatten().for_each(|reply| self.reply(id, reply));
        self.connections().count_sender(id);
        self.plan_connection(id, None);
        self.await_credit(id);
        if !self.connections().keep_order {
            self.connection(id).forget_arrived();
            return message
                .filter(|_| received.new_bytes > 0)
                .map_or((), |id| self.absorb(now, id, received.new_bytes));
        }
        while let Some((message, bytes)) = self.connection(id).take_arrived() {
            self.absorb(now, message, bytes);
        }
    }

    /// The receiver of a connection answers.
    fn reply(&mut self, id: ConnectionId, reply: Reply) {
        let (from, to) = self.hosts_of(id);
        let port = self.port_of(id, to, from);
        self.nics[to].ports[port].replies.push_back((id, reply));
        self.wake_port(to, port);
    }

    /// A connection may need credit: the interface of its receiver grants some in its turn.
    fn await_credit(&mut self, id: ConnectionId) {
        let connection = self.connection(id);
        if connection.receiver.missing_credit() == 0 || std::mem::replace(&mut connection.awaits_credit, true) {
            return;
        }
        let (from, host) = self.hosts_of(id);
        let port = self.port_of(id, host, from);
        let pacer = &mut self.nics[host].ports[port].credit;
        let is_first = pacer.deadline().is_none();
        pacer.add(id);
        if is_first {
            self.plan_credit(host, port);
        }
    }

    fn plan_credit(&mut self, host: usize, port: usize) {
        if let Some(at) = self.nics[host].ports[port].credit.deadline() {
            let endpoint = (host * self.nics[0].ports.len() + port) as u16;
            self.net.queue.push(at.max(self.net.queue.now()), Event::Credit { endpoint });
        }
    }

    /// A port of a host grants a packet to the connection whose turn it is, as fast as its link brings them.
    pub(super) fn grant_credit(&mut self, endpoint: usize) {
        let now = self.net.queue.now();
        let (host, port) = (endpoint / self.nics[0].ports.len(), endpoint % self.nics[0].ports.len());
        let Some(id) = self.nics[host].ports[port].credit.next(now) else { return };
        let nic = &self.net.network.config.nic;
        let (most, header) = (nic.packet.0, nic.header.0);
        let to = self.connection(id).to;
        let link = self.link_of(to);
        let receiver = &mut self.connection(id).receiver;
        let granted = receiver.missing_credit().min(most);
        let reply = receiver.grant(now, granted);
        let pacer = &mut self.nics[host].ports[port].credit;
        pacer.wait(now, link.time_for(granted + header));
        let awaits_more = self.connection(id).receiver.missing_credit() > 0;
        self.connection(id).awaits_credit = awaits_more;
        if awaits_more {
            self.nics[host].ports[port].credit.add(id);
        }
        self.reply(id, reply);
        self.plan_credit(host, port);
    }

    /// A deadline of a connection may be over, or its rate lets it send.
    pub(super) fn connection_deadline(&mut self, id: ConnectionId) {
        let now = self.net.queue.now();
        self.connection(id).forget_plan(now);
        self.connections().with_sender(now, id, |sender| sender.handle_deadline(now));
        let connection = self.connection(id);
        let is_due = connection.receiver.deadline().is_some_and(|at| at <= now);
        let reply = if is_due { connection.receiver.handle_deadline() } else { None };
        reply.into_iter().for_each(|reply| self.reply(id, reply));
        self.plan_connection(id, None);
        self.make_ready(id);
    }
}
