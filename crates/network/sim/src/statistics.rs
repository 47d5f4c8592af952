//! Counts of a simulation, and the record made of them.

mod background;
mod faults;
mod result;

use crate::{message::Body, net::LinkCounts, node::Output, packet::Packet};
use evb_core::{Bandwidth, NodeId, Time};
use evb_experiment::{Plan, Workload};
use evb_fabric::{EndpointId, Flow, Network};
use evb_patterns::{Pattern, TrafficConfig, TrafficEvent, TrafficMessage};
use evb_protocol::{ManagerEvent, Message as ProtocolMessage};
use evb_record::steady::{RATES, Series};
use evb_record::{Finding, FindingKind};
use evb_unit::{Account, Latencies, Places, Report};
use hashbrown::HashMap;
use std::ops::Range;

pub(crate) use background::BackgroundCounts;
pub(crate) use faults::{FaultLog, NetworkCounts};
pub(crate) use result::record;

/// Places of the counts in the series, after those by which the window is found. The bytes received by destinations
/// follow, then the bytes sent by sources.
pub(crate) const FRAGMENTS: usize = RATES;
pub(crate) const BYTES: usize = RATES + 1;
pub(crate) const DATA_PACKETS: usize = RATES + 2;
pub(crate) const WIRE: usize = RATES + 3;
const PLACES: usize = RATES + 4;

/// Number of fragments in a message with data.
fn fragments(body: &Body) -> u64 {
    match body {
        Body::Protocol(ProtocolMessage::Fragment(fragment)) => fragment.payload.fragments() as u64,
        Body::Protocol(ProtocolMessage::Packet(all)) => all.iter().map(|one| one.payload.fragments() as u64).sum(),
        _ => 1,
    }
}

pub(crate) struct Statistics {
    /// Start of the measurement.
    from: u64,
    /// End of the measurement, once it is known.
    to: Option<u64>,
    /// Time at which the last event ended or the last message arrived.
    last: u64,
    /// Events or messages that have ended.
    all_ended: u64,
    /// Latencies of messages and cycles; the event manager has those of its events.
    latencies: Latencies,
    received: Vec<u64>,
    fragments: u64,
    sent: Vec<u64>,
    /// Packets with payload that arrived at their destinations.
    data_packets: u64,
    /// Time that these packets took on the wire, in picoseconds, without padding.
    wire: u64,
    /// All of these counts over time, from the start of the measurement.
    series: Series,
    places: Places,
    pub(crate) unit: RateUnit,
    /// Counts of each link at the end of the measurement, if it ended before the simulation; else empty.
    pub(crate) links: Vec<LinkCounts>,
    counts_packets: bool,
    offered: u64,
    /// Events triggered, by the last report of the event manager.
    triggered: u64,
    refused: u64,
    data_sent: u64,
    data_arrived: u64,
    lost_requests: u64,
    pub(crate) sent_packets: u64,
    pub(crate) lost_packets: u64,
    pub(crate) corrupted_packets: u64,
    /// Copies that arrived at other hosts than their destination.
    pub(crate) flooded_packets: u64,
    packets_left: u64,
    deadlock: Vec<String>,
    /// Payload bytes of packets that arrived, of messages that were lost.
    wasted: u64,
    /// What the faults of the network do; `None` without faults.
    pub(crate) faults: Option<Box<FaultLog>>,
    pub(crate) background: BackgroundCounts,
    /// Lost nodes and findings so far.
    account: Account,
}

/// The unit of rate and latency.
pub(crate) enum RateUnit {
    /// Messages, or the events of an event manager.
    Message,
    /// Events for which processors gather data.
    Gathered(Gathering),
    /// Cycles of the nodes that report them.
    Cycle,
}

/// The processors of second-level events.
pub(crate) struct Gathering {
    /// Processors that gather for one event.
    processors: u16,
    /// Number of processors that are done, for events with some done and some not.
    done: HashMap<u64, u16>,
}

impl Statistics {
    pub(crate) fn new(plan: &Plan) -> Self {
        let config = &plan.building;
        let traffic = match &plan.workload {
            Workload::Traffic(traffic) => Some(&traffic.config),
            Workload::EventBuilding => None,
        };
        let places = Places::new(plan);
        let mut statistics = Self {
            from: 0,
            to: None,
            last: 0,
            all_ended: 0,
            latencies: Latencies::default(),
            received: vec![0; places.destinations()],
            fragments: 0,
            sent: vec![0; places.sources()],
            data_packets: 0,
            wire: 0,
            series: Series::default(),
            places,
            unit: traffic.map_or(RateUnit::Message, RateUnit::of),
            links: Vec::new(),
            counts_packets: matches!(plan.workload, Workload::Traffic(_)),
            offered: 0,
            triggered: 0,
            refused: 0,
            data_sent: 0,
            data_arrived: 0,
            lost_requests: 0,
            sent_packets: 0,
            lost_packets: 0,
            corrupted_packets: 0,
            flooded_packets: 0,
            packets_left: 0,
            deadlock: Vec::new(),
            wasted: 0,
            faults: FaultLog::of(plan),
            background: BackgroundCounts::new(plan),
            account: traffic.map_or_else(|| Account::new(plan), |_| Account::of_traffic(config)),
        };
        statistics.series = Series::new(Time::ZERO, &statistics.counts());
        statistics
    }

    /// All that is counted over time.
    fn counts(&self) -> Vec<u64> {
        let (started, done) = match self.unit {
            _ if !self.counts_packets => (self.triggered, self.all_ended),
            RateUnit::Gathered(_) => (self.offered, self.all_ended),
            RateUnit::Message | RateUnit::Cycle => (self.data_sent, self.data_arrived),
        };
        let bytes = self.received.iter().sum();
        let single = [self.offered, started, self.all_ended, done, self.fragments, bytes, self.data_packets, self.wire];
        single.into_iter().chain(self.received.iter().copied()).chain(self.sent.iter().copied()).collect()
    }

    /// Places of the bytes of the destinations in the series.
    fn places_received(&self) -> Range<usize> {
        PLACES..PLACES + self.received.len()
    }

    /// Places of the bytes of the sources in the series.
    fn places_sent(&self) -> Range<usize> {
        let received = self.places_received();
        received.end..received.end + self.sent.len()
    }

    /// True if the counts are to be marked at `now`, or were to be before.
    #[inline]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.series.is_due(Time(now))
    }

    /// The first time, up to `now`, at which a mark is due.
    pub(crate) fn due_at(&self, now: u64) -> u64 {
        let (mut early, mut due) = (self.from, now);
        while early < due {
            let middle = early + (due - early) / 2;
            if self.is_due(middle) { due = middle } else { early = middle + 1 }
        }
        due
    }

    /// Marks the time. It must be called before anything is counted that happens now.
    #[inline]
    pub(crate) fn pass(&mut self, now: u64) {
        if self.is_due(now) {
            let counts = self.counts();
            self.series.mark(Time(now), &counts);
        }
    }

    /// Events or messages that have ended.
    pub(crate) fn ended(&self) -> u64 {
        self.all_ended
    }

    pub(crate) fn find(&mut self, kind: FindingKind, subject: &str, message: impl Into<String>) {
        self.account.find(Finding::new(kind, subject, message));
    }

    pub(crate) fn account_for(&mut self, finding: Finding) {
        self.account.find(finding);
    }

    /// Notes the report of a node during the simulation.
    pub(crate) fn report(&mut self, node: NodeId, report: Report) {
        self.account.report(node, report);
    }

    pub(crate) fn lose_node(&mut self, name: &str) {
        self.account.lose(name);
    }

    pub(crate) fn deadlock(&mut self, since: u64, circle: Vec<String>) {
        let ring = circle.iter().chain(circle.first()).map(String::as_str).collect::<Vec<_>>().join(" waits for ");
        let message = format!("since {:.3} us: {ring}", since as f64 * 1e-6);
        self.account.find(Finding::new(FindingKind::Deadlock, "network", message).hint(
            "links that wait for each other in a ring need virtual channels (network.flow), or routing that never closes \
             a ring",
        ));
        self.deadlock = circle;
    }

    pub(crate) fn begin_to_measure(&mut self, now: u64) {
        self.from = now;
        self.latencies.reset();
        self.background.begin_to_measure();
        self.series = Series::new(Time(now), &self.counts());
        if let Some(faults) = &mut self.faults {
            faults.begin_to_measure(Time(now));
        }
    }

    /// The trigger or the senders stop.
    pub(crate) fn stop(&mut self, now: u64) {
        let counts = self.counts();
        self.series.stop(Time(now), &counts);
    }

    /// The measurement ends; later events are only accounted for.
    pub(crate) fn close(&mut self, now: u64) {
        if self.to.is_none() {
            self.to = Some(now);
            let counts = self.counts();
            self.series.end(Time(now), &counts);
        }
    }

    pub(crate) fn end(&mut self, now: u64, packets_left: u64) {
        self.end_partition(self.ends_at(now), packets_left);
    }

    /// Takes over the time of the last event, which may have ended in another partition.
    pub(crate) fn hear_last(&mut self, other: &Self) {
        self.last = self.last.max(other.last);
    }

    /// End of the measurement in a simulation that is over at `now`.
    pub(crate) fn ends_at(&self, now: u64) -> u64 {
        let last = if self.last > self.from { self.last } else { now };
        last.max(self.from)
    }

    /// Ends a partition, whose measurement ended at `end` as in all others.
    pub(crate) fn end_partition(&mut self, end: u64, packets_left: u64) {
        self.close(end);
        self.packets_left = packets_left;
    }

    /// Adds the counts of another partition, whose measurement began and ended at the same times.
    pub(crate) fn join(&mut self, other: Self, is_link_of_other: impl Fn(usize) -> bool) {
        let add = |sums: &mut Vec<u64>, counts: &[u64]| sums.iter_mut().zip(counts).for_each(|(sum, one)| *sum += one);
        add(&mut self.received, &other.received);
        add(&mut self.sent, &other.sent);
        self.series = Series::sum(&[std::mem::take(&mut self.series), other.series]);
        self.latencies.join(&other.latencies);
        self.background.join(&other.background);
        let links = self.links.iter_mut().zip(other.links).enumerate();
        links.filter(|(link, _)| is_link_of_other(*link)).for_each(|(_, (counts, others))| *counts = others);
        self.all_ended += other.all_ended;
        self.fragments += other.fragments;
        self.data_packets += other.data_packets;
        self.wire += other.wire;
        self.offered += other.offered;
        self.refused += other.refused;
        self.data_sent += other.data_sent;
        self.data_arrived += other.data_arrived;
        self.wasted += other.wasted;
        self.sent_packets += other.sent_packets;
        self.packets_left += other.packets_left;
    }

    /// Packets like one, with this number of bytes of fragments or data in each, have arrived at their destination.
    #[inline]
    pub(crate) fn packets(
        &mut self,
        now: u64,
        packet: &Packet,
        count: u32,
        network: &Network,
        filled: u32,
        (from, to): (NodeId, NodeId),
    ) {
        if filled > 0 && self.to.is_none() {
            self.pass(now);
            self.add_packets(packet, count, network, filled, (from, to));
        }
    }

    /// Packets have arrived at their destination some time ago, when no mark was due.
    pub(crate) fn add_packets(
        &mut self,
        packet: &Packet,
        count: u32,
        network: &Network,
        filled: u32,
        (from, to): (NodeId, NodeId),
    ) {
        if filled == 0 || self.to.is_some() {
            return;
        }
        let count = u64::from(count);
        self.data_packets += count;
        self.wire += count * time_on_wire(packet, network, filled);
        if self.counts_packets {
            self.add(from, to, count * u64::from(packet.payload));
        }
    }

    fn add(&mut self, from: NodeId, to: NodeId, bytes: u64) {
        if let Some(place) = self.places.destination(to) {
            self.received[place] += bytes;
        }
        if let Some(place) = self.places.source(from) {
            self.sent[place] += bytes;
        }
    }

    /// Counts a message that was delivered to its node.
    pub(crate) fn message(&mut self, now: u64, from: NodeId, to: NodeId, body: &Body, payload: u64) {
        if payload == 0 {
            return;
        }
        self.pass(now);
        if self.to.is_none() {
            self.fragments += self.places.destination(to).map_or(0, |_| fragments(body));
            if !self.counts_packets {
                self.add(from, to, payload);
            }
        }
        if let Body::Traffic(TrafficMessage::Data { born, .. }) = body {
            self.data_arrived += 1;
            if let RateUnit::Message = self.unit {
                self.count_end(now, Some(*born));
            }
        }
    }

    /// Counts an offered trigger, message or event; returns its number.
    pub(crate) fn offer(&mut self, now: u64) -> u64 {
        self.pass(now);
        if let Some(faults) = &mut self.faults {
            faults.offer(Time(now));
        }
        self.offered += 1;
        self.offered
    }

    /// The event manager has triggered `triggered` events, of which `ended` have ended.
    pub(crate) fn events(&mut self, now: u64, triggered: u64, ended: u64) {
        self.pass(now);
        if let Some(faults) = &mut self.faults {
            faults.end(Time(now), ended - self.all_ended);
        }
        self.triggered = triggered;
        self.all_ended = ended;
    }

    /// Counts a data message that was passed to the network, for this number of nodes.
    pub(crate) fn data(&mut self, now: u64, nodes: u16) {
        self.pass(now);
        self.data_sent += u64::from(nodes);
    }

    /// Counts payload that arrived, of a message that was lost.
    pub(crate) fn waste(&mut self, bytes: u32) {
        if self.to.is_none() {
            self.wasted += u64::from(bytes);
        }
    }

    /// Packets lost on the way, or discarded because a fault had corrupted them.
    pub(crate) fn packets_gone(&self) -> u64 {
        self.lost_packets + self.corrupted_packets
    }

    /// Counts a lost message.
    pub(crate) fn lose_message(&mut self, body: &Body) {
        let is_request = matches!(body, Body::Traffic(message) if !matches!(message, TrafficMessage::Data { .. }));
        self.lost_requests += u64::from(is_request);
    }

    /// Number of nodes that send data, and number of nodes that receive data.
    fn sides(&self) -> (f64, f64) {
        (self.sent.len() as f64, self.received.len() as f64)
    }

    /// Takes an output of a node; returns true if the last processor of a second-level event is done with it.
    pub(crate) fn hear(&mut self, now: u64, output: Output) -> bool {
        match output {
            Output::Manager(ManagerEvent::Completed { .. }) => self.last = now,
            Output::Manager(ManagerEvent::NoBuilders) => {
                self.find(FindingKind::NoBuilders, "events", "no builder is left")
            }
            Output::Traffic(TrafficEvent::Ended { number, born }) => {
                let has_ended = self.unit.has_ended(number);
                if has_ended {
                    self.count_end(now, Some(born));
                }
                return has_ended && matches!(self.unit, RateUnit::Gathered(_));
            }
            Output::Traffic(TrafficEvent::Compute { .. }) => {}
            Output::Traffic(TrafficEvent::Refused) => self.refused += 1,
            Output::Manager(ManagerEvent::Drained | ManagerEvent::Reassigned(_))
            | Output::Background(_)
            | Output::Storing(_)
            | Output::Filtering(_) => {}
        }
        false
    }

    /// An event or a message has ended; one of traffic was born at some time.
    fn count_end(&mut self, now: u64, born: Option<Time>) {
        self.pass(now);
        if let Some(faults) = &mut self.faults {
            faults.end(Time(now), 1);
        }
        self.all_ended += 1;
        self.last = now;
        if let (None, Some(born)) = (self.to, born) {
            self.latencies.record(Time(now).since(born), 1);
        }
    }
}

/// Time in picoseconds that the filled part of a packet and the packet's header take on the link to the destination, or in an
/// interface if that is slower; under wormhole flow on the slowest link of the route. A destination counts by its full
/// performance, in units of [`usual_performance`].
fn time_on_wire(packet: &Packet, network: &Network, filled: u32) -> u64 {
    let nic = &network.config.nic;
    let bytes = (u64::from(filled) + nic.header.0).min(packet.wire.into());
    let time = match network.config.flow {
        Flow::Wormhole { .. } => packet.pace.0 * bytes,
        _ => {
            let in_interface = nic.rate.map_or(0, |rate| rate.time_for(packet.wire.into()).0);
            packet.pace.0.max(in_interface) * bytes / u64::from(packet.wire.max(1))
        }
    };
    let (full, usual) = (full_performance(network, packet.to), usual_performance(network));
    if full == usual { time } else { (u128::from(time) * u128::from(full.0) / u128::from(usual.0)) as u64 }
}

/// The rate at which a port of a host can receive: that of its link, or of its interface if that is slower.
pub(crate) fn full_performance(network: &Network, port: EndpointId) -> Bandwidth {
    let rate = network.link(network.endpoint(port).down).rate;
    network.config.nic.rate.map_or(rate, |interface| interface.min(rate))
}

/// The same of a port with a link like all others.
pub(crate) fn usual_performance(network: &Network) -> Bandwidth {
    let rate = network.config.link.rate;
    network.config.nic.rate.map_or(rate, |interface| interface.min(rate))
}

impl RateUnit {
    fn of(traffic: &TrafficConfig) -> Self {
        match traffic.pattern {
            Pattern::Gather { processors, .. } => Self::Gathered(Gathering { processors, done: HashMap::new() }),
            ref pattern if pattern.has_cycles() => Self::Cycle,
            _ => Self::Message,
        }
    }

    /// True if an event or message that one node has ended has ended for all nodes.
    fn has_ended(&mut self, number: u64) -> bool {
        match self {
            Self::Gathered(gathering) => gathering.is_last(number),
            Self::Message | Self::Cycle => true,
        }
    }
}

impl Gathering {
    /// Counts one more processor that is done with an event; returns true for the last one.
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
