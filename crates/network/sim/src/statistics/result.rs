//! The record of a simulation that has ended.

use crate::{
    connections::Connections,
    cpu::{Cpus, Task},
    net::LinkCounts,
    simulation::Simulation,
    statistics::{self, FaultLog, RateUnit, Statistics},
};
use evb_core::{NodeId, Span, Time};
use evb_experiment::{FaultAction, Load, Needs, Plan, Workload};
use evb_fabric::{Flow, NetworkFaultAction, NetworkLink, Routing};
use evb_protocol::Config;
use evb_record::steady::{ENDED, Steady};
use evb_record::{
    CpuRecord, Events, Finding, FindingKind, LinkRecord, NetworkFault, Occupancy, Record, RecordKind, Trigger,
    WorkerRecord,
};
use evb_unit::{Account, ManagerReport, Offered, Report};
use std::ops::Range;

/// The record of a simulation that has ended.
pub(crate) fn record(simulation: &Simulation<'_>, wall_seconds: f64) -> Record {
    let (plan, statistics) = (simulation.plan, &simulation.statistics);
    let to = statistics.to.unwrap_or(statistics.from);
    let seconds = (to - statistics.from) as f64 * 1e-12;
    let steady = Steady::find(&statistics.series, plan.run.warmup.map(|_| Time(statistics.from)), Time(to));
    let rate = |count: usize| statistics.series.rate(steady.window, count);
    let rates = |counts: Range<usize>| counts.map(rate).collect();
    let account = account(simulation, Time(to));
    let useful = statistics.useful(&account);
    let efficiency = efficiency(simulation, rate(statistics::WIRE) * 1e-12, rate(statistics::DATA_PACKETS));
    let of_network = evb_record::Simulation {
        wall_seconds,
        packets: statistics.sent_packets,
        packet_hops: simulation.net.packet_hops(),
        efficiency,
        goodput_efficiency: Some(efficiency * useful.of_packets),
        warmup_seconds: statistics.from as f64 * 1e-12,
        background: statistics.background.records(simulation, Time(statistics.from)),
        cpu: simulation.computing.as_ref().map(|computing| cpu(simulation, &computing.cpus)),
        network: network(simulation, seconds),
    };
    Record {
        protocol: protocol(plan).into(),
        transport: "simulated".into(),
        seconds,
        event_rate_hz: rate(ENDED),
        fragment_rate_hz: rate(statistics::FRAGMENTS),
        throughput_bytes_per_s: rate(statistics::BYTES),
        goodput_bytes_per_s: Some(rate(statistics::BYTES) * useful.of_throughput),
        per_destination_bytes_per_s: rates(statistics.places_received()),
        per_source_bytes_per_s: rates(statistics.places_sent()),
        filter: account.filtering(seconds),
        occupancy: of_network.cpu.as_ref().and_then(|cpu| occupancy(&account, cpu)),
        simulation: Some(of_network),
        ..account.assemble(RecordKind::Simulation, plan, (&statistics.series, &steady), &offered(simulation))
    }
    .judged()
}

/// The processors, from the begin of the measurement to the end of the simulation.
fn cpu(simulation: &Simulation<'_>, cpus: &Cpus) -> CpuRecord {
    let time = simulation.now().0.saturating_sub(simulation.statistics.from) as f64;
    let worker = |(tasks, busy): (&[Task], Span)| WorkerRecord {
        nodes: tasks.iter().map(|task| task.name(simulation.plan)).collect(),
        load: if time > 0.0 { busy.0 as f64 / time } else { 0.0 },
    };
    CpuRecord {
        cores: cpus.cores(),
        workers: cpus.loads().map(worker).collect(),
        work: cpus.work.records(),
        fit_error_percent: cpus.plan.fit.map(|fit| fit.error_percent),
    }
}

/// How full the units were, and how busy the cores of all computers.
fn occupancy(account: &Account, cpu: &CpuRecord) -> Option<Occupancy> {
    let loads: f64 = cpu.workers.iter().map(|worker| worker.load).sum();
    let machine_busy = Some(loads / cpu.cores.max(1) as f64);
    Some(Occupancy { machine_busy, ..account.occupancy()? })
}

/// The account of all nodes at the end.
fn account(simulation: &Simulation<'_>, end: Time) -> Account {
    let (plan, statistics) = (simulation.plan, &simulation.statistics);
    let mut account = statistics.account.clone();
    for (id, node) in simulation.nodes().iter().enumerate() {
        let id = NodeId(id as u16);
        let Some(mut report) = node.report(end) else { continue };
        if let Report::Readout(readout) = &mut report {
            (readout.slots, readout.clock_error) = simulation.slots(id);
        }
        account.report(id, report);
    }
    if let Workload::Traffic(_) = plan.workload {
        account.report(Config::EVENT_MANAGER, Report::Manager(statistics.traffic()));
    }
    let fitted_to = plan.network.fitted_to.as_deref().filter(|_| plan.network.cpu.is_none());
    let not_modelled = fitted_to.map(not_modelled);
    let of_pauses = headroom_full(simulation).into_iter().chain(pause_storm(simulation));
    for finding in statistics.lost_requests().into_iter().chain(not_modelled).chain(of_pauses) {
        account.find(finding);
    }
    // Without a death nothing would be stopped.
    let kills = plan.faults.iter().any(|fault| matches!(fault.action, FaultAction::Kill { .. }));
    if kills && plan.run.needs != Needs::default() {
        account.find(continues());
    }
    account
}

/// The load that the experiment file demands.
fn offered(simulation: &Simulation<'_>) -> Offered {
    let rate_hz = simulation.arrivals().rate_hz();
    let key = match &simulation.plan.workload {
        Workload::EventBuilding => return Offered::triggers(rate_hz),
        Workload::Traffic(traffic) if matches!(traffic.load, Load::Rate { .. }) => "workload.rate",
        Workload::Traffic(_) => "workload.load",
    };
    Offered { key, what: "messages", rate_hz }
}

/// The useful parts of what arrived, from 0 to 1.
struct UsefulParts {
    /// Of the payload that counts as throughput.
    of_throughput: f64,
    /// Of the payload of all packets, those of lost messages included.
    of_packets: f64,
}

impl Statistics {
    /// The useful parts of what arrived: of messages that arrived whole, and of complete or decided events.
    fn useful(&self, account: &Account) -> UsefulParts {
        let received: u64 = self.received.iter().sum();
        let part = |all: u64| if all > 0 { received.min(all) as f64 / all as f64 } else { 1.0 };
        if self.counts_packets {
            let useful = received.saturating_sub(self.wasted) as f64 / received.max(1) as f64;
            return UsefulParts { of_throughput: useful, of_packets: useful };
        }
        let of_throughput = account.useful_part();
        UsefulParts { of_throughput, of_packets: of_throughput * part(received + self.wasted) }
    }

    /// Messages or cycles as events, in the words of an event manager.
    fn traffic(&self) -> ManagerReport {
        let (triggered, built) = match self.unit {
            RateUnit::Gathered(_) => (self.offered, self.all_ended),
            RateUnit::Message | RateUnit::Cycle => (self.data_sent, self.data_arrived),
        };
        ManagerReport {
            events: Events { triggered, built, lost: triggered.saturating_sub(built), ..Events::default() },
            trigger: Trigger { offered: self.offered, inhibited: self.refused, ..Trigger::default() },
            latency_us: self.latencies.summary(),
            ..ManagerReport::default()
        }
    }

    /// Requests that did not arrive.
    fn lost_requests(&self) -> Option<Finding> {
        (self.lost_requests > 0).then(|| {
            let message = format!("{} requests were lost: who sent them waits for good", self.lost_requests);
            Finding::new(FindingKind::LostRequests, "requests", message)
        })
    }
}

/// The name of the protocol or of the pattern.
fn protocol(plan: &Plan) -> &'static str {
    match &plan.workload {
        Workload::EventBuilding => plan.building.protocol.name(),
        Workload::Traffic(traffic) => traffic.config.pattern.name(),
    }
}

/// The finding that packets were lost for want of headroom, at the link with the most of them.
fn headroom_full(simulation: &Simulation<'_>) -> Option<Finding> {
    let counts = simulation.link_counts();
    let lost = |counts: &LinkCounts| counts.ingress_dropped;
    let (link, most) = counts.clone().max_by_key(|(_, counts)| lost(counts)).filter(|(_, counts)| lost(counts) > 0)?;
    let all: u64 = counts.map(|(_, counts)| lost(counts)).sum();
    let needed = simulation.net.network.config.headroom_for(link.rate, link.delay);
    let message = format!(
        "{all} packets came to inputs that had asked for a pause and had no headroom left, {} of them over {}",
        lost(most),
        link.name
    );
    let hint = format!("make network.flow.headroom {needed} or more, which its cable needs, or remove it");
    Some(Finding::new(FindingKind::HeadroomFull, &*link.name, message).hint(hint))
}

/// The finding that watchdogs acted, at the link of which most was dropped.
fn pause_storm(simulation: &Simulation<'_>) -> Option<Finding> {
    let counts = simulation.link_counts();
    let storms: u32 = counts.clone().map(|(_, counts)| counts.storms).sum();
    let dropped: u64 = counts.clone().map(|(_, counts)| counts.watchdog_dropped).sum();
    let acted = counts.filter(|(_, counts)| counts.storms > 0);
    let (link, _) = acted.max_by_key(|(_, counts)| counts.watchdog_dropped)?;
    let message =
        format!("watchdogs found {storms} outputs that were paused for too long, and dropped {dropped} packets");
    let hint = "look for the host or switch at the end of the link that pauses it, and why";
    Some(Finding::new(FindingKind::PauseStorm, &*link.name, message).hint(hint))
}

/// The finding that a network fitted to messages leaves out the times of the nodes.
fn not_modelled(layer: &str) -> Finding {
    let what = "generating, checking and storing events take no time in it, and no two nodes share a processor";
    let message = format!("this network was fitted to messages over {layer}: {what}");
    Finding::new(FindingKind::NotModelled, "network.fitted_to", message)
        .hint("`evb run` measures a real event rate; compare simulated rates with each other")
}

/// The finding that no run control stops a simulation.
fn continues() -> Finding {
    let message = "a simulation goes on whatever nodes it loses";
    Finding::new(FindingKind::NotModelled, "run.required", message).hint("`evb run` stops such a run")
}

/// Part of the full performance of all destinations, from the time of their data packets on the wire and the number of
/// packets per second. At full performance packets come one after the other, each after the overhead of its sender. If
/// more nodes send than receive, overheads run beside each other, and the wire is the limit. A packet across an end of
/// the window can take this beyond 1.
fn efficiency(simulation: &Simulation<'_>, wire: f64, packets_hz: f64) -> f64 {
    let nic = &simulation.net.network.config.nic;
    let (sources, destinations) = simulation.statistics.sides();
    let shared = (destinations / sources).min(1.0);
    let busy = wire.max((wire + packets_hz * nic.overhead.as_secs_f64()) * shared);
    (busy / full_performance(simulation)).min(1.0)
}

/// The sum over the ports of all destinations, in units of that of a port with a usual link.
fn full_performance(simulation: &Simulation<'_>) -> f64 {
    let network = &simulation.net.network;
    let nodes = (0..simulation.plan.building.nodes()).map(NodeId);
    let destinations = nodes.filter(|&node| simulation.statistics.places.destination(node).is_some());
    let hosts = destinations.filter_map(|node| simulation.plan.host(node));
    let ports = hosts.flat_map(|host| (0..network.config.nic.ports).map(move |port| network.endpoint_id(host, port)));
    let usual = statistics::usual_performance(network).0 as f64;
    ports.map(|port| statistics::full_performance(network, port).0 as f64 / usual).sum()
}

impl Simulation<'_> {
    /// The links, and the counts of each in the measured time.
    fn link_counts(&self) -> impl Iterator<Item = (&NetworkLink, &LinkCounts)> + Clone {
        let at_end = |(place, (link, counts))| (link, self.statistics.links.get(place).unwrap_or(counts));
        self.net.counts().enumerate().map(at_end)
    }
}

fn network(simulation: &Simulation<'_>, seconds: f64) -> evb_record::Network {
    let (net, statistics) = (&simulation.net, &simulation.statistics);
    let (config, end) = (&net.network.config, Time(statistics.to.unwrap_or(statistics.from)));
    let connected = |all: &Connections| all.record((Time(statistics.from), end));
    let part = |time: u64| if seconds > 0.0 { time as f64 * 1e-12 / seconds } else { 0.0 };
    let links = simulation.link_counts().map(|(link, counts)| LinkRecord {
        name: link.name.clone(),
        packets: counts.packets,
        bytes: counts.bytes,
        background_bytes: counts.background,
        used: part(counts.busy.0),
        blocked: part(counts.held.0 - counts.busy.0),
        mean_wait_us: if counts.packets > 0 { counts.waited.0 as f64 * 1e-6 / counts.packets as f64 } else { 0.0 },
        most_waiting: counts.most_waiting.into(),
        most_bytes: counts.most_bytes,
        dropped: counts.dropped,
        marked: counts.marked,
        trimmed: counts.trimmed,
        pauses: counts.pauses.into(),
        most_headroom_bytes: counts.most_headroom,
        ingress_dropped: counts.ingress_dropped,
        paused: part(counts.paused_until(end).0),
        pause_chain: counts.longest_pause_chain.into(),
        storms: counts.storms.into(),
        watchdog_dropped: counts.watchdog_dropped,
    });
    evb_record::Network {
        preset: config.preset.clone(),
        topology: config.topology.kind().into(),
        routing: routing(config.routing).into(),
        flow: flow(config.flow).into(),
        hosts: net.network.hosts() as u64,
        lost_packets: statistics.lost_packets,
        corrupted_packets: statistics.corrupted_packets,
        flooded_packets: statistics.flooded_packets,
        packets_left: statistics.packets_left,
        route_changes: net.route_changes(),
        deadlock: statistics.deadlock.clone(),
        mapping: simulation.mapping.as_ref().map(|mapping| mapping.record(&net.network)),
        faults: statistics.faults.as_ref().map_or_else(Vec::new, |log| faults(simulation, log)),
        timeline: statistics.faults.as_ref().and_then(|log| log.timeline(simulation.now())),
        connections: simulation.connections.as_ref().map(connected),
        links: links.collect(),
    }
}

/// The faults of the network that took effect.
fn faults(simulation: &Simulation<'_>, log: &FaultLog) -> Vec<NetworkFault> {
    let end = simulation.now();
    let rerouted = |at: Time, action| match (action, &simulation.mapping) {
        (NetworkFaultAction::Fail { .. }, Some(mapping)) => mapping.known_after(at),
        (NetworkFaultAction::Fail { reroute }, None) => Some(at + reroute).filter(|found| *found <= end),
        (NetworkFaultAction::Slow { .. } | NetworkFaultAction::Corrupt { .. } | NetworkFaultAction::Pause, _) => None,
    };
    log.records(end, simulation.network_counts(), rerouted)
}

fn routing(routing: Routing) -> &'static str {
    match routing {
        Routing::Fixed { .. } => "fixed",
        Routing::Random => "random",
        Routing::Dispersive { .. } => "dispersive",
        Routing::Adaptive => "adaptive",
        Routing::Valiant => "valiant",
        Routing::Ugal => "ugal",
        Routing::DimensionOrder { .. } => "dimension-order",
        Routing::AdaptiveDimensionOrder => "adaptive-dimension-order",
        Routing::SpanningTree => "spanning-tree",
        Routing::Learning { .. } => "learning",
        Routing::Ecmp => "ecmp",
        Routing::Flowlets { .. } => "flowlets",
        Routing::Table => "table",
    }
}

fn flow(flow: Flow) -> &'static str {
    match flow {
        Flow::Wormhole { .. } => "wormhole",
        Flow::CutThrough { .. } => "cut-through",
        Flow::StoreAndForward { .. } => "store-and-forward",
    }
}
