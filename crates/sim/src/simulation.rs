//! One simulation: the event loop, and what happens to messages between the machines and the network.

use crate::{
    SimulateError,
    arrivals::Arrivals,
    event::Event,
    message::{Body, Message, Messages},
    net::{Net, Notice, time_for},
    nic::{Access, Chunk, Nic, Slots},
    node::{Kind, Node, Outgoing, Told},
    order::Order,
    packet::{NO_LANE, Packet, PacketId},
    queue::Queue,
    tally::Tally,
    trace::Trace,
};
use evb_core::{EventId, Machine as _, NodeId, NodeRange, SourceId, Time};
use evb_experiment::{FaultAction, Plan, Workload};
use evb_fabric::{Control, EndpointId, Flow, Network, Target};
use evb_patterns::{Pattern, Traffic, TrafficCommand, TrafficMessage};
use evb_protocol::{
    BuilderCommand, BuilderUnit, Config, EventManager, ManagerCommand, ManagerEvent, ReadoutCommand, ReadoutUnit,
    Shaping, wire,
};
use evb_sources::{Feed, OpenOptions, SizeModel};

/// Bytes of a message of a traffic pattern that carries no data: the request of the ATLAS pull patterns (note 77).
const CONTROL_BYTES: u64 = 64;

/// The missing bytes of a message of which a packet was lost.
const LOST: u32 = u32::MAX;

/// How many events are handled between two looks at the clock and at who waits for whom.
const STRIDE: u64 = 1 << 16;

/// What is shown while a simulation runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Simulated time in seconds.
    pub seconds: f64,
    /// Events that have ended, or messages that have arrived.
    pub ended: u64,
    /// Links taken by packets.
    pub packet_hops: u64,
    /// Part of the work that is done, from 0 to 1; 0 when that cannot be told.
    pub part: f64,
}

pub(crate) struct Simulation<'a> {
    pub(crate) plan: &'a Plan,
    queue: Queue<Event>,
    pub(crate) net: Net,
    messages: Messages,
    nics: Vec<Nic>,
    nodes: Vec<Node>,
    /// When the processor of each host is free.
    processors: Vec<u64>,
    /// Until when each node's messages are under way on a control network of its own.
    control_until: Vec<u64>,
    arrivals: Arrivals,
    pub(crate) tally: Tally,
    targets: Vec<Target>,
    out: Vec<Outgoing>,
    told: Vec<Told>,
    /// Keeps messages in order, where they might overtake each other.
    order: Option<Order>,
    ready: Vec<u32>,
    /// The trigger or the senders have stopped.
    stopped: bool,
    /// Everything is over.
    ended: bool,
    handled: u64,
}

impl<'a> Simulation<'a> {
    pub(crate) fn new(plan: &'a Plan, trace: Trace) -> Result<Self, SimulateError> {
        let network = Network::build(&plan.network.config)?;
        let targets = plan.network.faults.iter().filter_map(|fault| network.find(&fault.target)).collect();
        let hosts = network.hosts();
        let nic = &network.config.nic;
        let nics = (0..hosts).map(|_| Nic::new(nic.ports, size(nic.packet.0), nic.messages, nic.dma)).collect();
        let net = Net::new(network, plan.run.seed, trace)?;
        let mut simulation = Self {
            plan,
            queue: Queue::new(net.reach()),
            net,
            messages: Messages::default(),
            nics,
            nodes: Vec::new(),
            processors: vec![0; hosts],
            control_until: vec![0; plan.building.nodes().into()],
            arrivals: Arrivals::new(plan),
            tally: Tally::new(plan),
            targets,
            out: Vec::new(),
            told: Vec::new(),
            order: Order::of(&plan.network.config),
            ready: Vec::new(),
            stopped: false,
            ended: false,
            handled: 0,
        };
        simulation.nodes = simulation.make_nodes()?;
        simulation.set_slots();
        simulation.plan_start();
        Ok(simulation)
    }

    fn make_nodes(&self) -> Result<Vec<Node>, SimulateError> {
        let (plan, config) = (self.plan, &self.plan.building);
        let sizes = |unit: u16| {
            let options = OpenOptions {
                data_directory: plan.data_directory.clone(),
                unit,
                seed: plan.run.seed,
                max_fragment: u32::try_from(config.max_fragment.0).unwrap_or(u32::MAX),
            };
            SizeModel::open(&plan.sources[usize::from(unit)], &options)
        };
        let first = config.readout_nodes().first.0;
        let make = |id: NodeId| -> Result<Kind, SimulateError> {
            let is_source = config.readout_nodes().contains(id);
            let unit = id.0.wrapping_sub(first);
            Ok(match &plan.workload {
                Workload::Traffic(traffic) => {
                    let sizes = if is_source { Some(sizes(unit)?) } else { None };
                    Kind::Traffic(Box::new(Traffic::new(&traffic.config, id, self.own_receiver(id))), sizes)
                }
                Workload::EventBuilding if id == Config::EVENT_MANAGER => {
                    Kind::Manager(Box::new(EventManager::new(config.clone())))
                }
                Workload::EventBuilding if is_source => {
                    let machine = ReadoutUnit::new(config.clone(), SourceId(unit), None);
                    Kind::Readout(Box::new(machine), sizes(unit)?, SourceId(unit))
                }
                Workload::EventBuilding => Kind::Builder(Box::new(BuilderUnit::new(config.clone()))),
            })
        };
        (0..config.nodes()).map(NodeId).map(|id| Ok(Node::new(make(id)?, plan, id))).collect()
    }

    /// The receiver on the host of a sender, by its index.
    fn own_receiver(&self, id: NodeId) -> Option<u16> {
        let host = self.host(id)?;
        let index = host.checked_sub(usize::from(self.plan.network.placement.builder))?;
        u16::try_from(index).ok().filter(|&index| index < self.plan.building.builder_units)
    }

    /// The host of a node; none for an event manager on a control network of its own.
    fn host(&self, node: NodeId) -> Option<usize> {
        let (config, placement) = (&self.plan.building, &self.plan.network.placement);
        let (readouts, builders) = (config.readout_nodes(), config.builder_nodes());
        let host = if readouts.contains(node) {
            placement.readout + (node.0 - readouts.first.0)
        } else if builders.contains(node) {
            placement.builder + (node.0 - builders.first.0)
        } else {
            placement.manager?
        };
        Some(usize::from(host))
    }

    /// Gives the interfaces of readout units the slots of the traffic shaping.
    fn set_slots(&mut self) {
        let config = &self.plan.building;
        let builders = config.builder_nodes();
        let queues = || vec![std::collections::VecDeque::new(); usize::from(builders.count)];
        for (index, node) in config.readout_nodes().iter().enumerate() {
            let Some(host) = self.host(node) else { continue };
            let (turn, first_builder) = (index % usize::from(builders.count), builders.first);
            self.nics[host].slots = match config.shaping {
                Shaping::BarrelShifter { bucket } => {
                    Slots::Barrel { queues: queues(), bucket: size(bucket.0), turn, node, first_builder }
                }
                Shaping::RateDivision { packet } => {
                    Slots::RateDivision { queues: queues(), packet: size(packet.0), turn, first_builder }
                }
                Shaping::None | Shaping::Grouping { .. } => Slots::None,
            };
        }
    }

    fn plan_start(&mut self) {
        for (index, fault) in self.plan.network.faults.iter().enumerate() {
            self.queue.push(fault.at.0, Event::Fault { index: index as u16 });
        }
        for fault in &self.plan.faults {
            if let FaultAction::Kill { at } = fault.action {
                self.queue.push(at.0, Event::Kill { node: fault.node.0 });
            }
        }
        if self.plan.run.warmup.0 > 0 {
            self.queue.push(self.plan.run.warmup.0, Event::Measure);
        }
        if let Some(duration) = self.plan.trigger.duration {
            self.queue.push(duration.0, Event::Stop);
        }
    }

    /// Runs to the end. `observe` is told how far it is, and says whether to go on.
    pub(crate) fn run(&mut self, observe: &mut dyn FnMut(&Progress) -> bool) {
        self.start();
        loop {
            while let Some(event) = self.queue.pop_present() {
                self.happen(event);
                self.handled += 1;
                if self.handled.is_multiple_of(STRIDE) && !self.look(observe) {
                    return;
                }
            }
            if self.net.is_dirty() {
                self.net.arbitrate(&mut self.queue);
                self.take_notices();
                continue;
            }
            if self.ended || !self.queue.advance() {
                break;
            }
        }
        self.finish();
    }

    fn start(&mut self) {
        let now = Time::ZERO;
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            match (&mut node.machine, &self.plan.workload) {
                (Kind::Manager(machine), _) => machine.handle_command(now, ManagerCommand::Start),
                (Kind::Readout(machine, sizes, _), _) => {
                    let (through, last) = match sizes.feed() {
                        Feed::Finite { events } => (EventId(events), true),
                        _ => (EventId(u64::MAX), true),
                    };
                    machine.handle_command(now, ReadoutCommand::Start { through, last });
                }
                (Kind::Builder(machine), _) => machine.handle_command(now, BuilderCommand::Start),
                (Kind::Traffic(machine, _), Workload::Traffic(traffic)) => {
                    let saturating = self.arrivals.are_saturating();
                    let messages = traffic.messages;
                    machine.handle_command(now, TrafficCommand::Start { saturating, messages });
                }
                (Kind::Traffic(..), Workload::EventBuilding) => {}
            }
        }
        (0..self.nodes.len()).for_each(|index| self.drain(NodeId(index as u16)));
        for (node, at) in self.arrivals.first() {
            self.queue.push(at, Event::Arrival { node });
        }
        if self.is_gathering() && self.arrivals.are_saturating() {
            let Workload::Traffic(traffic) = &self.plan.workload else { return };
            (0..traffic.config.window).for_each(|_| self.offer_event());
        }
        for host in 0..self.nics.len() {
            self.feed_nic(host);
        }
    }

    /// Tells how far it is; looks for packets that wait for each other. False when it shall end.
    fn look(&mut self, observe: &mut dyn FnMut(&Progress) -> bool) -> bool {
        let now = self.queue.now();
        if self.handled.is_multiple_of(STRIDE * 16) {
            self.look_for_deadlock(now);
        }
        let seconds = now as f64 * 1e-12;
        let by_time = self.plan.trigger.duration.map_or(0.0, |duration| seconds / duration.as_secs_f64());
        let by_events = self.plan.building.events.map_or(0.0, |events| self.tally.ended() as f64 / events as f64);
        let part = by_time.max(by_events).min(1.0);
        let (ended, packet_hops) = (self.tally.ended(), self.net.packet_hops);
        if !observe(&Progress { seconds, ended, packet_hops, part }) {
            self.tally.note("interrupted: what follows covers only what was simulated until then".into());
            self.ended = true;
        }
        true
    }

    fn look_for_deadlock(&mut self, now: u64) {
        if let Some((circle, since)) = self.net.deadlock(now) {
            self.tally.deadlock(since, circle);
            self.ended = true;
        }
    }

    fn finish(&mut self) {
        let now = self.queue.now();
        if self.net.packets.len() > 0 && self.queue.is_empty() {
            self.look_for_deadlock(now);
        }
        if !self.ended && matches!(self.plan.workload, Workload::EventBuilding) {
            self.tally.note("nothing happens any more, but the event manager has not seen the end of the run".into());
        }
        self.tally.end(now, self.net.packets.len() as u64);
    }

    fn happen(&mut self, event: Event) {
        let now = self.queue.now();
        match event {
            Event::Request(id) => self.net.request(&mut self.queue, now, id),
            Event::Wake { link } => self.net.wake(now, link),
            Event::Deliver(id) => self.deliver(now, id),
            Event::Pause { lane } => self.net.pause(lane, true),
            Event::Unpause { lane } => self.net.pause(lane, false),
            Event::Drained { drain } => self.net.drained(&mut self.queue, now, drain),
            Event::Pick { endpoint } => self.pick(now, endpoint),
            Event::DmaDone { host } => self.memory_done(now, host),
            Event::Post { message } => self.post(now, message),
            Event::Copied { message } => {
                self.note_sent(now, message);
                self.take_in(now, message);
            }
            Event::Receive { message } => self.receive(message),
            Event::Broadcast { message } => self.broadcast(now, message),
            Event::Timeout { node } => self.timeout(now, NodeId(node)),
            Event::Arrival { node } => self.arrive(now, node),
            Event::Fault { index } => {
                let index = usize::from(index);
                self.net.fault(&mut self.queue, now, self.targets[index], self.plan.network.faults[index].action);
            }
            Event::Reroute => self.net.reroute(&mut self.queue, now),
            Event::Kill { node } => self.kill(now, NodeId(node)),
            Event::Measure => {
                self.net.begin_to_measure(now);
                self.tally.begin_to_measure(now);
            }
            Event::Stop => self.stop(now),
            Event::GiveUp => {
                let limit = self.plan.run.drain_timeout;
                self.tally.note(format!("the run did not drain within {limit} after its trigger stopped"));
                self.ended = true;
            }
        }
        if !self.net.notices.is_empty() {
            self.take_notices();
        }
    }

    fn take_notices(&mut self) {
        while let Some(notice) = self.net.notices.pop() {
            match notice {
                Notice::Sent { endpoint, at } => self.queue.push(at, Event::Pick { endpoint: endpoint.0 }),
                Notice::Lost(id) => {
                    let packet = self.net.packets.remove(id);
                    self.tally.lost_packets += 1;
                    self.lose(self.queue.now(), packet.message);
                }
            }
        }
    }

    // ---- machines

    fn drain(&mut self, id: NodeId) {
        if self.nodes[id.index()].dead {
            return;
        }
        let now = Time(self.queue.now());
        let (mut out, mut told) = (std::mem::take(&mut self.out), std::mem::take(&mut self.told));
        let node = &mut self.nodes[id.index()];
        node.drain(now, &mut out, &mut told);
        if let Some((deadline, _)) = node.deadline()
            && deadline < node.timeout_at
        {
            node.timeout_at = deadline;
            self.queue.push(deadline.0.max(now.0), Event::Timeout { node: id.0 });
        }
        out.drain(..).for_each(|outgoing| self.transmit(id, outgoing));
        told.drain(..).for_each(|told| self.hear(now.0, told));
        (self.out, self.told) = (out, told);
    }

    fn timeout(&mut self, now: u64, id: NodeId) {
        let node = &mut self.nodes[id.index()];
        if node.dead || node.timeout_at.0 != now {
            return;
        }
        node.timeout_at = Time::MAX;
        node.handle_timeout(Time(now));
        self.drain(id);
    }

    fn hear(&mut self, now: u64, told: Told) {
        let is_gathered = self.tally.hear(now, told);
        if let Told::Manager(ManagerEvent::Drained | ManagerEvent::NoBuilders) = told {
            self.ended = true;
        }
        if is_gathered && self.arrivals.are_saturating() && !self.stopped {
            self.offer_event();
        }
    }

    fn arrive(&mut self, now: u64, node: u16) {
        if self.stopped {
            return;
        }
        if self.is_gathering() {
            self.offer_event();
        } else {
            let id = NodeId(node);
            match self.plan.workload {
                Workload::EventBuilding => {
                    self.nodes[id.index()].command_manager(Time(now), ManagerCommand::Trigger(1));
                }
                Workload::Traffic(_) => {
                    self.tally.offered += 1;
                    self.nodes[id.index()].command_traffic(Time(now), TrafficCommand::Offer { number: 0 });
                }
            }
            self.drain(id);
        }
        if let Some(at) = self.arrivals.next(node, now) {
            self.queue.push(at, Event::Arrival { node });
        }
    }

    fn is_gathering(&self) -> bool {
        matches!(&self.plan.workload, Workload::Traffic(traffic) if matches!(traffic.config.pattern, Pattern::Gather { .. }))
    }

    /// An event for all buffers and processors.
    fn offer_event(&mut self) {
        if !self.arrivals.take_event() {
            return;
        }
        self.tally.offered += 1;
        let (now, number) = (Time(self.queue.now()), self.tally.offered);
        // All hear of it before any of their messages arrives, which within a host may be at once.
        self.nodes.iter_mut().for_each(|node| node.command_traffic(now, TrafficCommand::Offer { number }));
        (0..self.nodes.len()).for_each(|index| self.drain(NodeId(index as u16)));
    }

    fn kill(&mut self, now: u64, id: NodeId) {
        self.nodes[id.index()].dead = true;
        self.tally.lose_node(id);
        if id == Config::EVENT_MANAGER {
            // Nothing can be numbered or ended any more.
            self.ended = true;
        }
        // The death of a process closes its connections: whoever talks with it knows at once.
        for index in 0..self.nodes.len() {
            if !self.nodes[index].dead {
                self.nodes[index].lose(Time(now), id);
                self.drain(NodeId(index as u16));
            }
        }
    }

    /// The trigger stops, or the senders.
    fn stop(&mut self, now: u64) {
        self.stopped = true;
        match self.plan.workload {
            Workload::EventBuilding => self.queue.push(now + self.plan.run.drain_timeout.0, Event::GiveUp),
            // Senders that had ended before have set the end of the measurement themselves.
            Workload::Traffic(_) if self.messages.len() > 0 || !self.arrivals.are_bounded() => {
                self.tally.close(now);
                self.tally.links = self.net.counts().map(|(_, counts)| *counts).collect();
            }
            Workload::Traffic(_) => {}
        }
        for index in 0..self.nodes.len() {
            let node = &mut self.nodes[index];
            node.command_manager(Time(now), ManagerCommand::Stop);
            node.command_traffic(Time(now), TrafficCommand::Stop);
            self.drain(NodeId(index as u16));
        }
    }

    // ---- messages on their way out

    fn transmit(&mut self, from: NodeId, outgoing: Outgoing) {
        let Outgoing { to, body, payload, delay } = outgoing;
        let bytes = match &body {
            Body::Protocol(message) => wire::length(message),
            Body::Traffic(TrafficMessage::Data { .. }) => payload,
            Body::Traffic(_) => CONTROL_BYTES,
            Body::Bucket(_) => 0,
        };
        let (bytes, payload) = (size(bytes), size(payload));
        let is_building = matches!(self.plan.workload, Workload::EventBuilding);
        if !is_building && payload > 0 {
            self.tally.data();
        }
        let host = self.host(from);
        let mut posted_at = self.queue.now() + delay.0;
        if let Some(host) = host {
            posted_at = self.processors[host].max(posted_at) + self.net.network.config.host.send.0;
            self.processors[host] = posted_at;
        }
        if let (Control::Separate { delay, rate }, true, 0) = (self.net.network.config.control, is_building, payload) {
            let message = Message { from, to, body, unsent: 0, missing: 0, payload, priority: 0, order: 0 };
            let message = self.messages.insert(message);
            // Messages of one sender arrive in the order in which they were sent: a short one does not overtake.
            let arrived_at = &mut self.control_until[from.index()];
            *arrived_at = (posted_at + delay.0 + time_for(bytes.into(), rate.0)).max(*arrived_at);
            self.queue.push(*arrived_at, Event::Broadcast { message });
            return;
        }
        let priority = if payload == 0 { self.control_priority(is_building) } else { 0 };
        for node in to.iter() {
            let to = NodeRange::from(node);
            let body = body.clone();
            let message = Message { from, to, body, unsent: bytes, missing: bytes, payload, priority, order: 0 };
            let message = self.messages.insert(message);
            // What stays within its host may answer itself at once, without end: not on the stack.
            if posted_at > self.queue.now() || self.host(from) == self.host(node) {
                self.queue.push(posted_at, Event::Post { message });
            } else {
                self.post(posted_at, message);
            }
        }
    }

    /// Control messages go first where the network knows priorities, and between the slots of a barrel shifter.
    fn control_priority(&self, is_building: bool) -> u8 {
        let shaped = matches!(self.plan.building.shaping, Shaping::BarrelShifter { .. } | Shaping::RateDivision { .. });
        match self.net.network.config.flow {
            Flow::StoreAndForward { priorities, .. } if priorities > 1 => priorities - 1,
            _ => u8::from(is_building && shaped),
        }
    }

    fn post(&mut self, now: u64, id: u32) {
        let message = self.messages.get(id);
        let (from, to) = (self.host(message.from), self.host(message.to.first));
        let (Some(from), Some(to)) = (from, to) else { return self.take_in(now, id) };
        if from == to {
            return self.copy(now, id);
        }
        if let Some(order) = &mut self.order {
            let place = order.send(message.from, message.to.first);
            self.messages.get_mut(id).order = place;
        }
        self.nics[from].post(id, self.messages.get(id));
        self.feed_nic(from);
    }

    /// Within a host a message needs no network: it is copied, at the rate of a link.
    fn copy(&mut self, now: u64, id: u32) {
        let bytes = self.messages.get(id).unsent;
        let at = now + time_for(bytes.into(), self.net.network.config.link.rate.0);
        self.queue.push(at, Event::Copied { message: id });
    }

    /// Something new to send: idle ports begin.
    fn feed_nic(&mut self, host: usize) {
        let now = self.queue.now();
        if self.nics[host].memory.is_some() {
            return self.access_memory(now, host);
        }
        self.wake_ports(now, host);
    }

    fn wake_ports(&mut self, now: u64, host: usize) {
        let ports = self.nics[host].ports.len();
        for port in 0..ports {
            if self.nics[host].ports[port].idle {
                self.pick(now, (host * ports + port) as u16);
            }
        }
    }

    /// A port is free: the next packet goes into it.
    fn pick(&mut self, now: u64, endpoint: u16) {
        let ports = self.nics[0].ports.len();
        let (host, port) = (usize::from(endpoint) / ports, usize::from(endpoint) % ports);
        if let Some(message) = self.nics[host].ports[port].ending.take() {
            self.note_sent(now, message);
        }
        let nic = &mut self.nics[host];
        let chunk = match &mut nic.memory {
            Some(memory) => memory.take_ready(),
            None => nic.cut(&mut self.messages),
        };
        nic.ports[port].idle = chunk.is_none();
        let Some(chunk) = chunk else { return };
        if chunk.last {
            nic.ports[port].ending = Some(chunk.message);
        }
        self.send_packet(now, host, port, chunk);
        if self.nics[host].memory.is_some() {
            self.access_memory(now, host);
        }
    }

    fn send_packet(&mut self, now: u64, host: usize, port: usize, chunk: Chunk) {
        let ports = self.nics[0].ports.len();
        let message = self.messages.get(chunk.message);
        let to = self.host(message.to.first).expect("a message in an interface is for a host");
        let (from, to) = (EndpointId((host * ports + port) as u16), EndpointId((to * ports + port) as u16));
        let nic = &self.net.network.config.nic;
        let wire = (u64::from(chunk.bytes) + nic.header.0).max(nic.minimum.0);
        let is_worm = matches!(self.net.network.config.flow, Flow::Wormhole { .. });
        let pace = match nic.rate {
            None => 0,
            Some(rate) if is_worm => crate::net::byte_time(rate.0),
            Some(rate) => time_for(wire, rate.0),
        };
        let packet = Packet {
            from,
            to,
            message: chunk.message,
            payload: chunk.bytes,
            wire: size(wire),
            priority: message.priority,
            channel: 0,
            dimension: 0,
            corrupted: false,
            variant: self.net.variant(from, to, u32::from(message.from.0)),
            hops: 0,
            left: 0,
            lane: NO_LANE,
            next: PacketId::NONE,
            since: now,
            pace,
        };
        self.tally.packets += 1;
        let ready = now + nic.overhead.0;
        let id = self.net.send(&mut self.queue, ready, packet);
        self.net.trace.send(ready, id, &self.net.packets[id]);
    }

    fn note_sent(&mut self, now: u64, message: u32) {
        let message = self.messages.get(message);
        if !matches!(message.body, Body::Traffic(TrafficMessage::Data { .. })) {
            return;
        }
        let id = message.from;
        self.nodes[id.index()].command_traffic(Time(now), TrafficCommand::Sent);
        self.drain(id);
    }

    /// The memory of a host is free: the next access begins, and idle ports take what is there.
    fn access_memory(&mut self, now: u64, host: usize) {
        let nic = &mut self.nics[host];
        let Some(mut memory) = nic.memory.take() else { return };
        let begun = memory.begin(|| nic.cut(&mut self.messages));
        nic.memory = Some(memory);
        if let Some((bytes, rate)) = begun {
            self.queue.push(now + time_for(bytes.into(), rate), Event::DmaDone { host: host as u16 });
        }
    }

    fn memory_done(&mut self, now: u64, host: u16) {
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

    // ---- messages on their way in

    fn deliver(&mut self, now: u64, id: PacketId) {
        self.net.trace.deliver(now, id, &self.net.packets[id]);
        let packet = self.net.packets.remove(id);
        if packet.corrupted {
            self.tally.corrupted_packets += 1;
            return self.lose(now, packet.message);
        }
        let message = self.messages.get(packet.message);
        let is_data = message.payload > 0 || matches!(&message.body, Body::Bucket(parts) if !parts.is_empty());
        self.tally.packet(&packet, &self.net.network, is_data, message.from, message.to.first);
        let host = usize::from(packet.to.0) / self.nics[0].ports.len();
        let chunk = Chunk { message: packet.message, bytes: packet.payload, last: false };
        match &mut self.nics[host].memory {
            None => self.absorb(now, packet.message, packet.payload),
            Some(memory) => {
                memory.write(chunk);
                self.access_memory(now, host);
            }
        }
    }

    /// Bytes of a message are in the memory of its receiver.
    fn absorb(&mut self, now: u64, id: u32, bytes: u32) {
        let message = self.messages.get_mut(id);
        if message.missing == LOST {
            return;
        }
        message.missing -= bytes;
        if message.missing == 0 {
            self.arrived(now, id);
        }
    }

    /// A part of a message is lost, and with it the message: nobody sends it again.
    fn lose(&mut self, now: u64, id: u32) {
        let message = self.messages.get_mut(id);
        if std::mem::replace(&mut message.missing, LOST) == LOST {
            return;
        }
        if let Body::Bucket(parts) = &mut message.body {
            let parts = std::mem::take(parts);
            return parts.into_iter().for_each(|(part, _)| self.lose(now, part));
        }
        let (pair, place) = ((message.from, message.to.first), message.order);
        self.in_order(now, pair, place, None);
    }

    /// Hands over the messages of a pair of nodes whose turn has come.
    fn in_order(&mut self, now: u64, pair: (NodeId, NodeId), place: u32, message: Option<u32>) {
        let Some(order) = &mut self.order else { return message.into_iter().for_each(|id| self.take_in(now, id)) };
        let mut ready = std::mem::take(&mut self.ready);
        order.arrive(pair, place, message, &mut ready);
        ready.drain(..).for_each(|id| self.take_in(now, id));
        self.ready = ready;
    }

    /// A message is whole: the processor of its receiver looks at it.
    fn arrived(&mut self, now: u64, id: u32) {
        if let Body::Bucket(_) = self.messages.get(id).body {
            let Body::Bucket(parts) = self.messages.remove(id).body else { return };
            return parts.into_iter().for_each(|(message, bytes)| self.absorb(now, message, bytes));
        }
        let message = self.messages.get(id);
        let (pair, place) = ((message.from, message.to.first), message.order);
        self.in_order(now, pair, place, Some(id));
    }

    /// The processor of the receiver looks at a message.
    fn take_in(&mut self, now: u64, id: u32) {
        let at = self.processor_time(now, self.messages.get(id).to.first);
        if at > now {
            self.queue.push(at, Event::Receive { message: id });
        } else {
            self.receive(id);
        }
    }

    /// When the processor of a node's host will have looked at a message that comes now.
    fn processor_time(&mut self, now: u64, node: NodeId) -> u64 {
        let Some(host) = self.host(node) else { return now };
        let at = self.processors[host].max(now) + self.net.network.config.host.receive.0;
        self.processors[host] = at;
        at
    }

    fn receive(&mut self, id: u32) {
        let Message { from, to, body, payload, .. } = self.messages.remove(id);
        self.tally.message(self.queue.now(), from, to.first, &body, payload.into());
        self.hand_over(from, to.first, body);
    }

    fn hand_over(&mut self, from: NodeId, to: NodeId, body: Body) {
        let now = Time(self.queue.now());
        let node = &mut self.nodes[to.index()];
        if node.dead {
            return;
        }
        node.handle_message(now, from, body);
        self.drain(to);
    }

    /// A control message on a network of its own has come to its nodes.
    fn broadcast(&mut self, now: u64, id: u32) {
        let Message { from, to, body, .. } = self.messages.remove(id);
        let busy = self.net.network.config.host.receive.0 > 0;
        for node in to.iter() {
            if !busy {
                self.hand_over(from, node, body.clone());
                continue;
            }
            let (to, body) = (NodeRange::from(node), body.clone());
            let message = Message { from, to, body, unsent: 0, missing: 0, payload: 0, priority: 0, order: 0 };
            let message = self.messages.insert(message);
            let at = self.processor_time(now, node);
            self.queue.push(at, Event::Receive { message });
        }
    }

    /// Counts that the machines keep themselves.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }
}

/// A number of bytes of one message or packet: the largest fragment is far below 4 GiB.
fn size(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
