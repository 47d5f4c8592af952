//! What a simulation counts, and the record that it makes of that.

use crate::{
    message::Body,
    net::LinkCounts,
    node::{Kind, Told},
    packet::Packet,
    simulation::Simulation,
};
use evb_core::NodeId;
use evb_experiment::{Plan, Workload};
use evb_fabric::{Flow, Network, Routing};
use evb_patterns::{Pattern, TrafficEvent, TrafficMessage};
use evb_protocol::{FaultCounts, ManagerEvent, Protocol};
use evb_record::{Builder, Events, Latency, Link, Readout, Record, Trigger};
use hdrhistogram::Histogram;
use std::collections::HashMap;

/// Longest latency that is told apart, in nanoseconds: ten minutes.
const LONGEST_LATENCY_NS: u64 = 600_000_000_000;

pub(crate) struct Tally {
    /// The measurement goes from here ...
    from: u64,
    /// ... to here, once that is known.
    to: Option<u64>,
    /// When the last event ended, or the last message arrived.
    last: u64,
    /// Events or messages that ended while it was measured.
    measured: u64,
    /// The same from the start.
    all_ended: u64,
    latency: Histogram<u64>,
    received: Vec<u64>,
    fragments: Vec<u64>,
    sent: Vec<u64>,
    /// Time that the packets of all destinations would need one after the other.
    service: u64,
    first_source: u16,
    first_builder: u16,
    builders: u16,
    gathering: Option<Gathering>,
    /// What was counted at each link when the measurement ended before the simulation; else empty.
    pub(crate) links: Vec<LinkCounts>,
    counts_packets: bool,
    pub(crate) offered: u64,
    refused: u64,
    data_sent: u64,
    pub(crate) packets: u64,
    pub(crate) lost_packets: u64,
    pub(crate) corrupted_packets: u64,
    packets_left: u64,
    deadlock: Vec<String>,
    lost_nodes: Vec<String>,
    notes: Vec<String>,
    names: evb_protocol::Config,
}

/// The processors of second-level events.
struct Gathering {
    /// Processors that gather for one event.
    processors: u16,
    /// How many of them are done, for events of which some are and some are not.
    done: HashMap<u64, u16>,
}

impl Tally {
    pub(crate) fn new(plan: &Plan) -> Self {
        let config = &plan.building;
        let gathering = match &plan.workload {
            Workload::Traffic(traffic) => match traffic.config.pattern {
                Pattern::Gather { processors, .. } => Some(Gathering { processors, done: HashMap::new() }),
                _ => None,
            },
            Workload::EventBuilding => None,
        };
        Self {
            from: 0,
            to: None,
            last: 0,
            measured: 0,
            all_ended: 0,
            latency: Histogram::new_with_bounds(1, LONGEST_LATENCY_NS, 3).expect("the bounds are valid"),
            received: vec![0; config.builder_units.into()],
            fragments: vec![0; config.builder_units.into()],
            sent: vec![0; config.readout_units.into()],
            service: 0,
            first_source: config.readout_nodes().first.0,
            first_builder: config.builder_nodes().first.0,
            builders: config.builder_units,
            gathering,
            links: Vec::new(),
            counts_packets: matches!(plan.workload, Workload::Traffic(_)),
            offered: 0,
            refused: 0,
            data_sent: 0,
            packets: 0,
            lost_packets: 0,
            corrupted_packets: 0,
            packets_left: 0,
            deadlock: Vec::new(),
            lost_nodes: Vec::new(),
            notes: Vec::new(),
            names: config.clone(),
        }
    }

    /// Events or messages that have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.all_ended
    }

    pub(crate) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    pub(crate) fn lose_node(&mut self, node: NodeId) {
        self.lost_nodes.push(self.names.node_name(node));
    }

    pub(crate) fn deadlock(&mut self, since: u64, circle: Vec<String>) {
        let ring = circle.iter().chain(circle.first()).map(String::as_str).collect::<Vec<_>>().join(" waits for ");
        self.notes.push(format!("deadlock since {:.3} us: {ring}", since as f64 * 1e-6));
        self.notes.push(
            "hint: links that wait for each other in a ring need virtual channels (network.flow), or routing that never \
             closes a ring"
                .into(),
        );
        self.deadlock = circle;
    }

    pub(crate) fn begin_to_measure(&mut self, now: u64) {
        self.from = now;
        (self.measured, self.service) = (0, 0);
        self.latency.reset();
        for counts in [&mut self.received, &mut self.fragments, &mut self.sent] {
            counts.fill(0);
        }
    }

    /// The measurement ends; what comes later is only accounted for.
    pub(crate) fn close(&mut self, now: u64) {
        self.to.get_or_insert(now);
    }

    pub(crate) fn end(&mut self, now: u64, packets_left: u64) {
        let last = if self.last > self.from { self.last } else { now };
        self.close(last.max(self.from));
        self.packets_left = packets_left;
    }

    /// A packet has come to its destination.
    pub(crate) fn packet(&mut self, packet: &Packet, network: &Network, is_data: bool, from: NodeId, to: NodeId) {
        if !is_data || self.to.is_some() {
            return;
        }
        let is_worm = matches!(network.config.flow, Flow::Wormhole { .. });
        let bytes = if is_worm { u64::from(packet.wire) } else { 1 };
        self.service += network.config.nic.overhead.0 + packet.pace * bytes;
        if self.counts_packets {
            self.add(from, to, packet.payload.into());
        }
    }

    fn add(&mut self, from: NodeId, to: NodeId, bytes: u64) {
        if let Some(received) = self.received.get_mut(usize::from(to.0.wrapping_sub(self.first_builder))) {
            *received += bytes;
        }
        if let Some(sent) = self.sent.get_mut(usize::from(from.0.wrapping_sub(self.first_source))) {
            *sent += bytes;
        }
    }

    /// A message has been handed over to its node.
    pub(crate) fn message(&mut self, now: u64, from: NodeId, to: NodeId, body: &Body, payload: u64) {
        if payload == 0 {
            return;
        }
        if self.to.is_none() {
            if let Some(fragments) = self.fragments.get_mut(usize::from(to.0.wrapping_sub(self.first_builder))) {
                *fragments += 1;
            }
            if !self.counts_packets {
                self.add(from, to, payload);
            }
        }
        if let (Body::Traffic(TrafficMessage::Data { born, .. }), None) = (body, &self.gathering) {
            self.count_end(now, now - born.0);
        }
    }

    /// A data message has been handed to the network.
    pub(crate) fn data(&mut self) {
        self.data_sent += 1;
    }

    /// Takes in what a machine tells; gives whether the last processor of a second-level event is done with it.
    pub(crate) fn hear(&mut self, now: u64, told: Told) -> bool {
        match told {
            Told::Manager(ManagerEvent::Completed { latency, .. }) => self.count_end(now, latency.0),
            Told::Manager(ManagerEvent::NoBuilders) => self.note("no builder is left".into()),
            Told::Traffic(TrafficEvent::Gathered { number, born }) => {
                let is_last = self.gathering.as_mut().is_some_and(|gathering| gathering.is_last(number));
                if is_last {
                    self.count_end(now, now - born.0);
                }
                return is_last;
            }
            Told::Traffic(TrafficEvent::Refused) => self.refused += 1,
            Told::Manager(ManagerEvent::Drained) => {}
        }
        false
    }

    fn count_end(&mut self, now: u64, latency: u64) {
        self.all_ended += 1;
        self.last = now;
        if self.to.is_none() {
            self.measured += 1;
            self.latency.saturating_record((latency / 1000).max(1));
        }
    }

    fn latency(&self) -> Latency {
        let at = |quantile: f64| match self.latency.is_empty() {
            true => 0.0,
            false => self.latency.value_at_quantile(quantile) as f64 / 1000.0,
        };
        let max = if self.latency.is_empty() { 0.0 } else { self.latency.max() as f64 / 1000.0 };
        Latency { p50: at(0.5), p99: at(0.99), max }
    }
}

impl Gathering {
    /// One more processor is done with an event; whether it is the last one.
    fn is_last(&mut self, number: u64) -> bool {
        let done = self.done.entry(number).or_insert(0);
        *done += 1;
        let is_last = *done == self.processors;
        if is_last {
            self.done.remove(&number);
        }
        is_last
    }
}

/// The record of a simulation that has ended.
pub(crate) fn record(simulation: &Simulation<'_>, wall_seconds: f64) -> Record {
    let (plan, tally) = (simulation.plan, &simulation.tally);
    let seconds = (tally.to.unwrap_or(tally.from) - tally.from) as f64 * 1e-12;
    let per_second = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
    let accounts = Accounts::of(simulation);
    let mut notes = tally.notes.clone();
    notes.extend(accounts.shortfall(tally));
    let events = accounts.events;
    let whole = events.triggered == events.built;
    Record {
        kind: evb_record::Kind::Simulation,
        experiment: plan.name.clone(),
        sweep: plan.sweep.iter().cloned().collect(),
        seed: plan.run.seed,
        version: env!("CARGO_PKG_VERSION").into(),
        protocol: protocol(plan).into(),
        transport: "simulated".into(),
        readout_units: plan.building.readout_units,
        builder_units: plan.building.builder_units,
        events,
        trigger: accounts.trigger,
        seconds,
        event_rate_hz: per_second(tally.measured),
        fragment_rate_hz: per_second(tally.fragments.iter().sum()),
        throughput_bytes_per_s: per_second(tally.received.iter().sum()),
        per_destination_bytes_per_s: tally.received.iter().map(|&bytes| per_second(bytes)).collect(),
        per_source_bytes_per_s: tally.sent.iter().map(|&bytes| per_second(bytes)).collect(),
        latency_us: tally.latency(),
        faults: accounts.faults.seen().map(|(fault, count)| (fault.name().to_owned(), count)).collect(),
        builders: accounts.builders,
        readouts: accounts.readouts,
        lost_nodes: tally.lost_nodes.clone(),
        good: whole && tally.lost_nodes.is_empty() && notes.is_empty(),
        notes,
        simulation: Some(evb_record::Simulation {
            wall_seconds,
            packets: tally.packets,
            packet_hops: simulation.net.packet_hops,
            efficiency: efficiency(simulation, seconds),
            warmup_seconds: tally.from as f64 * 1e-12,
            network: network(simulation, seconds),
        }),
    }
}

/// The name of the protocol or of the pattern.
fn protocol(plan: &Plan) -> &'static str {
    match (&plan.workload, plan.building.protocol) {
        (Workload::EventBuilding, Protocol::Push) => "push",
        (Workload::EventBuilding, Protocol::Pull) => "pull",
        (Workload::Traffic(traffic), _) => match traffic.config.pattern {
            Pattern::Assigned { .. } => "assigned",
            Pattern::Random => "random",
            Pattern::Pairs => "pairs",
            Pattern::Rotation { .. } => "rotation",
            Pattern::Stream => "stream",
            Pattern::Gather { .. } => "gather",
        },
    }
}

fn efficiency(simulation: &Simulation<'_>, seconds: f64) -> f64 {
    let ports = f64::from(simulation.net.network.config.nic.ports);
    let capacity = seconds * 1e12 * f64::from(simulation.tally.builders) * ports;
    if capacity > 0.0 { simulation.tally.service as f64 / capacity } else { 0.0 }
}

/// The accounts that the machines keep.
struct Accounts {
    events: Events,
    trigger: Trigger,
    faults: FaultCounts,
    builders: Vec<Builder>,
    readouts: Vec<Readout>,
}

impl Accounts {
    fn of(simulation: &Simulation<'_>) -> Self {
        let tally = &simulation.tally;
        let mut accounts = Self {
            events: Events::default(),
            trigger: Trigger::default(),
            faults: FaultCounts::default(),
            builders: Vec::new(),
            readouts: Vec::new(),
        };
        for node in simulation.nodes() {
            accounts.add(&node.machine);
        }
        if let Workload::Traffic(_) = simulation.plan.workload {
            let triggered = if tally.gathering.is_some() { tally.offered } else { tally.data_sent };
            let built = tally.all_ended;
            accounts.events = Events { triggered, built, lost: triggered.saturating_sub(built), ..Events::default() };
        }
        accounts
    }

    fn add(&mut self, machine: &Kind) {
        match machine {
            Kind::Manager(machine) => {
                let counts = machine.counts();
                self.events = Events {
                    triggered: counts.triggered,
                    built: counts.built,
                    incomplete: counts.incomplete,
                    lost: counts.open(),
                    reassigned: counts.reassigned,
                };
                self.trigger = Trigger { inhibited: counts.inhibited, inhibitions: counts.inhibitions };
                self.faults.merge(&counts.faults);
            }
            Kind::Readout(machine, ..) => {
                let counts = machine.counts();
                self.faults.merge(&counts.faults);
                self.readouts.push(Readout {
                    fragments: counts.fragments,
                    bytes: counts.bytes,
                    sent: counts.sent,
                    sent_bytes: counts.sent_bytes,
                    busy: counts.busy,
                    most_events: counts.most_events,
                    most_bytes: counts.most_bytes,
                    rejected: 0,
                });
            }
            Kind::Builder(machine) => {
                let counts = machine.counts();
                self.faults.merge(&counts.faults);
                self.builders.push(Builder {
                    built: counts.built,
                    incomplete: counts.incomplete,
                    fragments: counts.fragments,
                    bytes: counts.bytes,
                    ..Builder::default()
                });
            }
            Kind::Traffic(..) => {}
        }
    }

    /// What people should know of what did not arrive.
    fn shortfall(&self, tally: &Tally) -> Option<String> {
        (tally.refused > 0).then(|| {
            format!(
                "{} offered messages were refused because the senders could not keep up with the load",
                tally.refused
            )
        })
    }
}

fn network(simulation: &Simulation<'_>, seconds: f64) -> evb_record::Network {
    let (net, tally) = (&simulation.net, &simulation.tally);
    let config = &net.network.config;
    let part = |time: u64| if seconds > 0.0 { time as f64 * 1e-12 / seconds } else { 0.0 };
    let at_end = |(place, (link, counts))| (link, tally.links.get(place).unwrap_or(counts));
    let links = net.counts().enumerate().map(at_end).map(|(link, counts)| Link {
        name: link.name.clone(),
        packets: counts.packets,
        bytes: counts.bytes,
        used: part(counts.busy),
        blocked: part(counts.held - counts.busy),
        mean_wait_us: if counts.packets > 0 { counts.waited as f64 * 1e-6 / counts.packets as f64 } else { 0.0 },
        most_waiting: counts.most_waiting.into(),
        most_bytes: counts.most_bytes,
        dropped: counts.dropped,
        pauses: counts.pauses.into(),
    });
    evb_record::Network {
        preset: config.preset.clone(),
        topology: config.topology.kind().into(),
        routing: routing(config.routing).into(),
        flow: flow(config.flow).into(),
        hosts: net.network.hosts() as u64,
        lost_packets: tally.lost_packets,
        corrupted_packets: tally.corrupted_packets,
        packets_left: tally.packets_left,
        route_changes: net.route_changes,
        deadlock: tally.deadlock.clone(),
        links: links.collect(),
    }
}

fn routing(routing: Routing) -> &'static str {
    match routing {
        Routing::Fixed { .. } => "fixed",
        Routing::Random => "random",
        Routing::Dispersive { .. } => "dispersive",
        Routing::Adaptive => "adaptive",
        Routing::DimensionOrder { .. } => "dimension-order",
        Routing::SpanningTree => "spanning-tree",
        Routing::Ecmp => "ecmp",
    }
}

fn flow(flow: Flow) -> &'static str {
    match flow {
        Flow::Wormhole { .. } => "wormhole",
        Flow::CutThrough { .. } => "cut-through",
        Flow::StoreAndForward { .. } => "store-and-forward",
    }
}
