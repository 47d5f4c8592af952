//! One simulation: the event loop, and the path of messages between the machines and the network.

mod background;
mod beside;
mod bounds;
mod computing;
mod connecting;
mod faults;
mod machines;
mod mapping;
mod partition;
mod planes;
mod receiving;
mod sending;
mod setup;
mod stage;
mod trains;

use crate::{
    Packets, SimulateError,
    arrivals::AllArrivals,
    background::BackgroundArrivals,
    connections::Connections,
    control::ControlNetwork,
    event::Event,
    jitter::JitterTimes,
    message::{Body, MessageId, Messages},
    net::{Net, NetEffect},
    nic::Nic,
    node::{Node, Outgoing, Output},
    order::Order,
    packet::Load,
    partition_border::PartitionBorder,
    statistics::Statistics,
    trace::Trace,
};
use bounds::QueueBounds;
pub(crate) use computing::Computing;
use evb_core::{NodeId, Span, Time};
use evb_experiment::{Plan, Workload};
use evb_fabric::{FaultTarget, Network};
use evb_record::{FindingKind, Slots};

/// Events handled between two looks at the clock and at the packets that wait for each other.
const STRIDE: u64 = 1 << 16;

/// Progress of a running simulation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Simulated time in seconds.
    pub seconds: f64,
    /// Events that have ended, or messages that have arrived.
    pub ended: u64,
    /// Links taken by packets.
    pub packet_hops: u64,
    /// Part of the work that is done, from 0 to 1; 0 when that is not known.
    pub part: f64,
    /// Events of the simulator that are planned. They, packets and messages make the memory of a simulation.
    pub planned_events: u64,
    /// Packets under way.
    pub packets: u64,
    /// Messages under way, or waiting at their hosts.
    pub messages: u64,
    /// Why packets of long messages are simulated one by one, and not in trains, which are faster; `None` if they are in trains,
    /// or if that would not save much.
    pub why_one_by_one: Option<&'static str>,
}

/// Takes the progress of a simulation; returns true to continue.
pub(crate) type Observe<'a> = dyn FnMut(&Progress) -> bool + 'a;

pub(crate) struct Simulation<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) net: Net,
    messages: Messages,
    nics: Vec<Nic>,
    /// The connections that carry messages; `None` if the transport has none.
    pub(crate) connections: Option<Connections>,
    nodes: Vec<Node>,
    /// Time at which the processor of each host is free.
    processors: Vec<u64>,
    /// Random times of the processor of each host; none without jitter.
    jitter: Vec<JitterTimes>,
    /// The processors, where the plan describes them.
    pub(crate) computing: Option<Box<Computing>>,
    control: ControlNetwork,
    /// Time until which each node's messages are under way on a separate control network.
    control_until: Vec<u64>,
    arrivals: AllArrivals,
    background: Vec<BackgroundArrivals>,
    pub(crate) statistics: Statistics,
    targets: Vec<FaultTarget>,
    pub(crate) mapping: Option<mapping::Mapping>,
    out: Vec<Outgoing>,
    outputs: Vec<Output>,
    /// Keeps messages in order, where they might overtake each other.
    order: Option<Order>,
    /// Places of messages from other partitions of the network, by their places there.
    from_remote: Vec<Vec<MessageId>>,
    ready: Vec<MessageId>,
    /// Last time at which an event ended or bytes were received or stored.
    moved_at: u64,
    /// Builders were commanded to end their events with the fragments that are there.
    cut: bool,
    /// Consecutive packets of a message may go as one train.
    couples: bool,
    /// Why they may not, where messages are long enough.
    why_one_by_one: Option<&'static str>,
    /// The trigger or the senders have stopped.
    stopped: bool,
    /// Everything is over.
    ended: bool,
    handled: u64,
    pub(crate) bounds: QueueBounds,
}

impl<'a> Simulation<'a> {
    pub(crate) fn new(plan: &'a Plan, trace: Trace, packets: Packets) -> Result<Self, SimulateError> {
        Self::of_partition(plan, Network::build(&plan.network.config)?, trace, packets, PartitionBorder::default())
    }

    /// The simulation of one partition.
    pub(crate) fn of_partition(
        plan: &'a Plan,
        network: Network,
        trace: Trace,
        packets: Packets,
        border: PartitionBorder,
    ) -> Result<Self, SimulateError> {
        let targets = plan.network.faults.iter().filter_map(|fault| network.find(&fault.target)).collect();
        let hosts = network.hosts();
        let (nic, lineups) = (&network.config.nic, planes::lineups(&network.config));
        let nics = (0..hosts).map(|_| Nic::new(nic, lineups)).collect();
        let [segment, header] = [nic.packet, nic.header].map(|bytes| size(bytes.0));
        let connections = Connections::new(network.config.transport, segment, header);
        let bounds = QueueBounds::of(plan, border.partitions());
        let mapping = plan.network.mapper.map(|config| mapping::Mapping::new(config, &network, plan.run.seed));
        let mut net = Net::new(network, plan.run.seed, trace, border)?;
        if mapping.is_some() {
            net.route_by_hosts();
        }
        let mut simulation = Self {
            plan,
            net,
            messages: Messages::default(),
            nics,
            connections,
            nodes: Vec::new(),
            processors: vec![0; hosts],
            jitter: Vec::new(),
            computing: Computing::of(plan),
            control: ControlNetwork::default(),
            control_until: vec![0; plan.building.nodes().into()],
            arrivals: AllArrivals::new(plan),
            background: BackgroundArrivals::of(plan),
            statistics: Statistics::new(plan),
            targets,
            mapping,
            out: Vec::new(),
            outputs: Vec::new(),
            order: Order::of(plan),
            from_remote: Vec::new(),
            ready: Vec::new(),
            moved_at: 0,
            cut: false,
            couples: false,
            why_one_by_one: None,
            stopped: false,
            ended: false,
            handled: 0,
            bounds,
        };
        simulation.set_bounds(bounds);
        simulation.nodes = simulation.make_nodes()?;
        simulation.set_slots();
        simulation.set_peers();
        simulation.set_background();
        simulation.set_jitter();
        simulation.decide_on_trains(packets);
        let couples = simulation.couples;
        simulation.nics.iter_mut().for_each(|nic| nic.couples = couples);
        simulation.plan_start();
        Ok(simulation)
    }

    /// Sets the most that queues may hold.
    pub(crate) fn set_bounds(&mut self, bounds: QueueBounds) {
        self.bounds = bounds;
        self.messages.set_bound(bounds.messages);
    }

    /// The host of a node; `None` for an event manager on a separate control network.
    fn host(&self, node: NodeId) -> Option<usize> {
        self.plan.host(node).map(usize::from)
    }

    /// Runs to the end. `observe` gets the progress, and returns true to continue.
    pub(crate) fn run(&mut self, observe: &mut Observe<'_>) {
        self.start();
        while self.settle(observe) {
            if self.ended || !self.net.queue.advance() {
                return self.finish();
            }
        }
    }

    /// Handles all that happens at the present time; returns false if the simulation was interrupted.
    fn settle(&mut self, observe: &mut Observe<'_>) -> bool {
        self.count_trains_if_due();
        self.hear_first();
        loop {
            while let Some(event) = self.net.queue.pop_present() {
                self.happen(event);
                self.handled += 1;
                if self.messages.is_full() {
                    self.end_for_messages();
                    return !self.net.gives_up;
                }
                if self.net.gives_up {
                    return false;
                }
                if self.handled.is_multiple_of(STRIDE) && !self.look(observe) {
                    return false;
                }
            }
            if !self.net.is_dirty() {
                return true;
            }
            self.net.arbitrate();
            if self.net.gives_up {
                return false;
            }
            self.take_effects();
        }
    }

    /// Handles what comes first at a time: the measurement begins or the trigger stops, and then control messages arrive.
    fn hear_first(&mut self) {
        while let Some(event @ (Event::Measure | Event::Stop)) = self.net.queue.peek_present() {
            self.net.queue.pop_present();
            self.happen(event);
        }
        self.hear_control();
    }

    /// Reports the progress, and looks for packets that wait for each other; returns false if the simulation shall end.
    fn look(&mut self, observe: &mut Observe<'_>) -> bool {
        if self.handled.is_multiple_of(STRIDE * 16) {
            self.look_for_deadlock();
        }
        self.look_at_queues();
        if !observe(&self.progress()) {
            self.interrupt();
        }
        true
    }

    /// The progress until now.
    pub(crate) fn progress(&self) -> Progress {
        let seconds = self.net.queue.now().0 as f64 * 1e-12;
        let by_time = self.plan.trigger.duration.map_or(0.0, |duration| seconds / duration.as_secs_f64());
        let by_events = self.plan.events().map_or(0.0, |events| self.statistics.ended() as f64 / events as f64);
        let part = by_time.max(by_events).min(1.0);
        let (ended, packet_hops) = (self.statistics.ended(), self.net.packet_hops());
        Progress {
            seconds,
            ended,
            packet_hops,
            part,
            planned_events: self.net.queue.len() as u64,
            packets: self.net.packets.len() as u64,
            messages: self.messages.len() as u64,
            why_one_by_one: self.why_one_by_one,
        }
    }

    /// Ends the simulation where it is.
    pub(crate) fn interrupt(&mut self) {
        let message = "what follows covers only what was simulated until then";
        self.statistics.find(FindingKind::Interrupted, "simulation", message);
        self.ended = true;
    }

    fn look_for_deadlock(&mut self) {
        if let Some((circle, since)) = self.net.deadlock() {
            self.statistics.deadlock(since.0, circle);
            self.ended = true;
        }
    }

    fn finish(&mut self) {
        let now = self.net.queue.now().0;
        self.split_trains(Time(now + 1));
        if self.net.packets.len() > 0 && self.net.queue.is_empty() {
            self.look_for_deadlock();
        }
        if !self.ended && matches!(self.plan.workload, Workload::EventBuilding) {
            self.statistics.find(
                FindingKind::NotDrained,
                "evm",
                "nothing happens any more, but the event manager has not seen the end of the run",
            );
        }
        self.statistics.end(now, self.net.packets_left());
    }

    fn happen(&mut self, event: Event) {
        let now = self.net.queue.now().0;
        match event {
            Event::Net(event) => self.net.handle(event),
            Event::Deliver(id) => self.deliver(now, id),
            Event::Pick { endpoint } => self.pick(now, endpoint),
            Event::DmaDone { host } => self.memory_done(now, host),
            Event::Post { message } => self.post(now, message),
            Event::Copied { message } => {
                self.note_sent(now, message);
                self.take_in(now, message);
            }
            Event::Connection { connection } => self.connection_deadline(connection),
            Event::Credit { endpoint } => self.grant_credit(endpoint.into()),
            Event::SendAgain { message } => self.send_again(now, message),
            Event::Receive { message } => self.receive(message),
            Event::Permit { message } => self.permit_late(now, message),
            Event::Control => self.hear_control(),
            Event::MapperMessage { message } => self.handle_mapper_message(message),
            Event::MapperTimeout { endpoint } => self.mapper_timeout(endpoint),
            Event::Sample => self.sample(now),
            Event::Worker { worker } => self.work(worker),
            Event::Timeout { node } => self.timeout(now, NodeId(node)),
            Event::Arrival { node } => self.arrive(now, NodeId(node)),
            Event::Begin { background } => self.begin_background(background),
            Event::End { background } => self.end_background(background),
            Event::Computed { node } => self.computed(now, NodeId(node)),
            Event::HandOver { node } => self.hand_events_over(now, NodeId(node)),
            Event::Stored { node } => self.stored(now, NodeId(node)),
            Event::Filtered { node } => self.filtered(now, NodeId(node)),
            Event::Fault { index } => self.fault(index.into()),
            Event::Mend { index } => self.mend(index.into()),
            Event::Kill { node } => self.kill(now, NodeId(node)),
            Event::Measure => {
                self.split_trains(Time(now));
                self.net.begin_to_measure();
                if let Some(connections) = &mut self.connections {
                    connections.begin_to_measure(Time(now));
                }
                if let Some(computing) = &mut self.computing {
                    computing.cpus.begin_to_measure();
                }
                self.statistics.begin_to_measure(now);
                if let Some(manager) = self.manager() {
                    manager.latencies.reset();
                }
            }
            Event::Stop => self.stop(now),
            Event::GiveUp => self.give_up(now),
        }
        if !self.net.effects.is_empty() {
            self.take_effects();
        }
    }

    fn take_effects(&mut self) {
        while let Some(effect) = self.net.effects.pop() {
            match effect {
                NetEffect::Sent { endpoint, at } => self.net.queue.push(at, Event::Pick { endpoint: endpoint.0 }),
                NetEffect::Rerouted => self.look_at_planes(),
                NetEffect::Uncut { message, packets, bytes } => self.uncut(message, packets, bytes),
                NetEffect::Lost(id) => {
                    let packet = self.net.remove(id);
                    match packet.load {
                        Load::Message | Load::Background => {
                            self.statistics.lost_packets += 1;
                            self.lose(self.net.queue.now().0, packet.message);
                        }
                        Load::Connection | Load::BackgroundConnection | Load::Header => {
                            self.statistics.lost_packets += 1;
                            self.take_cargo(&packet);
                        }
                        Load::SourceRouted => _ = self.net.take_mapper_message(packet.message),
                        Load::Stray => {}
                    }
                }
            }
        }
    }

    /// Arrivals that come without a request.
    pub(crate) fn arrivals(&self) -> &AllArrivals {
        &self.arrivals
    }

    /// The arrivals of background traffic, by table.
    pub(crate) fn background(&self) -> &[BackgroundArrivals] {
        &self.background
    }

    /// Counts that the machines keep themselves.
    pub(crate) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// True for messages that the interfaces handle without a processor.
    #[inline]
    fn is_of_interfaces(&self, body: &Body) -> bool {
        self.net.network.config.nic.keeps_step && body.is_step()
    }

    /// The time slots of a readout unit, and the error of its clock.
    pub(crate) fn slots(&self, node: NodeId) -> (Slots, Option<Span>) {
        let slots = self.host(node).and_then(|host| self.nics[host].slots.as_ref());
        slots.map(|slots| (slots.shaper.counts(), slots.shaper.clock_error())).unwrap_or_default()
    }
}

/// A number of bytes of one message or packet: the largest fragment is far below 4 GiB.
fn size(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}
