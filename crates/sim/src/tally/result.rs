//! The record of a simulation that has ended.

use crate::{
    node::Kind,
    simulation::Simulation,
    tally::{self, Tally, Unit},
};
use evb_core::Time;
use evb_experiment::{Load, Plan, Workload};
use evb_fabric::{Flow, Routing};
use evb_protocol::FaultCounts;
use evb_record::{Builder, Events, Finding, FindingKind, Link, Readout, Record, Trigger};
use evb_steady::{ENDED, Offer, Steady};
use std::ops::Range;

/// The record of a simulation that has ended.
pub(crate) fn record(simulation: &Simulation<'_>, wall_seconds: f64) -> Record {
    let (plan, tally) = (simulation.plan, &simulation.tally);
    let to = tally.to.unwrap_or(tally.from);
    let seconds = (to - tally.from) as f64 * 1e-12;
    let steady = Steady::find(&tally.series, plan.run.warmup.map(|_| Time(tally.from)), Time(to));
    let rate = |count: usize| tally.series.rate(steady.window, count);
    let rates = |counts: Range<usize>| counts.map(rate).collect::<Vec<_>>();
    let accounts = Accounts::of(simulation);
    let mut findings = tally.findings.clone();
    findings.extend(accounts.lost_requests(tally));
    findings.extend(plan.network.fitted_to.as_deref().map(not_modelled));
    findings.extend(steady.finding());
    findings.extend(accounts.offer(simulation).and_then(|offer| offer.judge(&steady)));
    let per_destination_bytes_per_s = rates(tally.places_received());
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
        events: accounts.events,
        trigger: accounts.trigger,
        seconds,
        window: steady.window(),
        event_rate_hz: rate(ENDED),
        event_rate_interval_hz: steady.rate_hz(),
        fragment_rate_hz: rate(tally::FRAGMENTS),
        throughput_bytes_per_s: rate(tally::BYTES),
        per_destination_bytes_per_s,
        per_source_bytes_per_s: rates(tally.places_sent()),
        latency_us: tally.latency(),
        faults: accounts.faults.seen().map(|(fault, count)| (fault.name().to_owned(), count)).collect(),
        builders: accounts.builders,
        readouts: accounts.readouts,
        lost_nodes: tally.lost_nodes.clone(),
        good: false,
        findings,
        simulation: Some(evb_record::Simulation {
            wall_seconds,
            packets: tally.packets,
            packet_hops: simulation.net.packet_hops(),
            efficiency: efficiency(simulation, rate(tally::WIRE) * 1e-12, rate(tally::DATA_PACKETS)),
            warmup_seconds: tally.from as f64 * 1e-12,
            network: network(simulation, seconds),
        }),
    }
    .judged()
}

/// The name of the protocol or of the pattern.
fn protocol(plan: &Plan) -> &'static str {
    match &plan.workload {
        Workload::EventBuilding => plan.building.protocol.name(),
        Workload::Traffic(traffic) => traffic.config.pattern.name(),
    }
}

/// What a network that was fitted to messages knows nothing of.
fn not_modelled(layer: &str) -> Finding {
    let what = "generating, checking and storing events take no time in it, and no two nodes share a processor";
    let message = format!("this network was fitted to messages over {layer}: {what}");
    Finding::new(FindingKind::NotModelled, "network.fitted_to", message)
        .hint("`evb run` measures a real event rate; compare simulated rates with each other")
}

/// Part of the full performance of all destinations, of what their data packets take on the wire and of how many there are
/// per second. At full performance packets come one after the other, each after the overhead of its sender; where more
/// nodes send than receive, overheads run beside each other, and what limits is the wire. What lies across an end of the
/// window can take this beyond 1 by a packet.
fn efficiency(simulation: &Simulation<'_>, wire: f64, packets_hz: f64) -> f64 {
    let nic = &simulation.net.network.config.nic;
    let (sources, destinations) = simulation.tally.sides();
    let shared = (destinations / sources).min(1.0);
    let busy = wire.max((wire + packets_hz * nic.overhead.as_secs_f64()) * shared);
    (busy / (destinations * f64::from(nic.ports))).min(1.0)
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
            let (triggered, built) = match tally.unit {
                Unit::Gathered(_) => (tally.offered, tally.all_ended),
                Unit::Message | Unit::Cycle => (tally.data_sent, tally.data_arrived),
            };
            accounts.events = Events { triggered, built, lost: triggered.saturating_sub(built), ..Events::default() };
            accounts.trigger = Trigger { offered: tally.offered, inhibited: tally.refused, ..Trigger::default() };
        }
        accounts.trigger.offered_rate_hz = simulation.arrivals().rate_hz();
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
                    rejected: counts.rejected,
                    lost: counts.open(),
                    reassigned: counts.reassigned,
                };
                self.trigger = Trigger {
                    offered: counts.triggered + counts.inhibited,
                    offered_rate_hz: None,
                    inhibited: counts.inhibited,
                    inhibitions: counts.inhibitions,
                };
                self.faults.merge(&counts.faults);
            }
            Kind::Readout(machine, ..) => {
                let counts = machine.counts();
                self.faults.merge(&counts.faults);
                self.readouts.push(Readout {
                    came: 0,
                    apart: 0,
                    source_id: None,
                    fragments: counts.fragments,
                    bytes: counts.bytes,
                    sent: counts.sent,
                    sent_bytes: counts.sent_bytes,
                    repeated: counts.repeated,
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
                    rejected: counts.rejected,
                    fragments: counts.fragments,
                    bytes: counts.bytes,
                    asked: counts.asked,
                    repeated: counts.repeated,
                    ..Builder::default()
                });
            }
            Kind::Traffic(..) => {}
        }
    }

    /// Requests that did not arrive.
    fn lost_requests(&self, tally: &Tally) -> Option<Finding> {
        (tally.lost_requests > 0).then(|| {
            let message = format!("{} requests were lost: who sent them waits for good", tally.lost_requests);
            Finding::new(FindingKind::LostRequests, "requests", message)
        })
    }

    /// What was offered; none when all came as fast as it went.
    fn offer(&self, simulation: &Simulation<'_>) -> Option<Offer> {
        let (key, what) = match &simulation.plan.workload {
            Workload::EventBuilding => ("trigger.rate", "triggers"),
            Workload::Traffic(traffic) if matches!(traffic.load, Load::Rate { .. }) => ("workload.rate", "messages"),
            Workload::Traffic(_) => ("workload.load", "messages"),
        };
        Some(Offer {
            key,
            what,
            came: self.trigger.offered,
            turned_away: self.trigger.inhibited,
            rate_hz: self.trigger.offered_rate_hz?,
            accepted_loss: f64::from(simulation.plan.trigger.accept_loss) / 100.0,
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
        used: part(counts.busy.0),
        blocked: part(counts.held.0 - counts.busy.0),
        mean_wait_us: if counts.packets > 0 { counts.waited.0 as f64 * 1e-6 / counts.packets as f64 } else { 0.0 },
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
        route_changes: net.route_changes(),
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
        Routing::AdaptiveDimensionOrder => "adaptive-dimension-order",
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
