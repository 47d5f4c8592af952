//! Records that are made up, but look like those of real work.

use evb_record::{
    Bounds, BuilderRecord, ConnectionRates, Connections, ConnectionsOverTime, Events, Finding, FindingKind, Latency,
    LinkRecord, Network, ReadoutRecord, Record, RecordKind, Simulation, Trigger, Window,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// A simulation of event building, all well, on a crossbar of 4 hosts.
pub(crate) fn simulation() -> Record {
    let rate = 61.25e6;
    Record {
        switch_seconds: None,
        kind: RecordKind::Simulation,
        experiment: "demonstrator".into(),
        sweep: Default::default(),
        seed: 1,
        version: "0.1.0".into(),
        protocol: "push".into(),
        transport: "simulated".into(),
        control_transport: None,
        readout_units: 4,
        builder_units: 4,
        events: Events { triggered: 10_000, built: 10_000, ..Events::default() },
        trigger: Trigger::default(),
        seconds: 0.326_53,
        window: Window { from_s: 0.01, to_s: 0.320_5, steady: true },
        event_rate_hz: 30_625.0,
        event_rate_interval_hz: Some(Bounds { low: 30_510.0, high: 30_740.0 }),
        fragment_rate_hz: 122_500.0,
        throughput_bytes_per_s: 4.0 * rate,
        goodput_bytes_per_s: None,
        per_destination_bytes_per_s: vec![rate * 0.98, rate, rate * 1.01, rate * 1.01],
        per_source_bytes_per_s: vec![rate; 4],
        latency_us: Latency { mean: None, p50: 84.25, p99: 311.5, p999: 822.0, max: 1204.0 },
        faults: Default::default(),
        builders: vec![BuilderRecord::default(); 4],
        readouts: vec![ReadoutRecord::default(); 4],
        bundles: None,
        shaping: None,
        broadcast: None,
        placement: BTreeMap::new(),
        occupancy: None,
        histograms: Vec::new(),
        filter: None,
        stages: None,
        lost_nodes: Vec::new(),
        findings: Vec::new(),
        good: true,
        verdict: None,
        simulation: Some(Simulation {
            goodput_efficiency: None,
            cpu: None,
            wall_seconds: 0.25,
            packets: 45_000,
            packet_hops: 90_000,
            efficiency: 0.487_3,
            warmup_seconds: 0.01,
            background: Vec::new(),
            network: crossbar(4),
        }),
    }
}

/// The simulation with another workload, where much goes wrong.
pub(crate) fn bad_simulation() -> Record {
    let mut record = simulation();
    record.protocol = "random".into();
    record.events = Events { triggered: 10_000, built: 9_988, lost: 12, ..Events::default() };
    record.faults = [("duplicate_fragment".to_owned(), 2)].into();
    record.lost_nodes = vec!["ru1".into()];
    record.findings =
        vec![Finding::new(FindingKind::Deadlock, "network", "since 4000.000 us: a waits for b waits for a")];
    record.good = false;
    let network = &mut record.simulation.as_mut().unwrap().network;
    network.lost_packets = 17;
    network.corrupted_packets = 3;
    network.deadlock = vec!["a".into(), "b".into()];
    network.links = crossbar(8).links;
    record
}

/// The simulation over TCP: packets are dropped in a third of a second, and then a timeout holds up everything.
pub(crate) fn lossy_simulation() -> Record {
    let mut record = simulation();
    let is_silent = |step: u64| (21..53).contains(&step);
    let over_time = ConnectionsOverTime {
        step_s: 0.326_53 / 64.0,
        goodput_bytes_per_s: (0..64).map(|step| if is_silent(step) { 0.0 } else { 2e8 + 1e6 * step as f64 }).collect(),
        sent_again: (0..64).map(|step| if step < 21 { step * step } else { u64::from(step == 53) }).collect(),
        timeouts: (0..64).map(|step| u64::from(step == 53)).collect(),
        outstanding: (0..64).map(|step| if is_silent(step) { 1.0 } else { 12.5 }).collect(),
        window_bytes: (0..64).map(|step| (step < 53).then_some(80e3 - 1e3 * step as f64)).collect(),
        ..ConnectionsOverTime::default()
    };
    record.simulation.as_mut().unwrap().network.connections = Some(Connections {
        count: 16,
        segments: 40_000,
        sent_again: over_time.sent_again.iter().sum(),
        timeouts: 1,
        most_senders: 4,
        rates: ConnectionRates::of(vec![15e6; 16]),
        over_time: Some(over_time),
        ..Connections::default()
    });
    record
}

/// A real run.
pub(crate) fn run() -> Record {
    Record { kind: RecordKind::Run, transport: "tcp".into(), simulation: None, ..simulation() }
}

/// One simulation for each size and protocol; larger fragments use the network better.
pub(crate) fn sweep() -> Vec<Record> {
    let point = |(size, protocol): (u32, &str)| {
        let text = if size < 1000 { format!("{size} B") } else { format!("{} kB", f64::from(size) / 1000.0) };
        let good = f64::from(size) / (f64::from(size) + if protocol == "push" { 900.0 } else { 1400.0 });
        let mut record = simulation();
        record.sweep = [("builder.protocol".into(), protocol.into()), ("readout.source.mean".into(), text)].into();
        record.protocol = protocol.into();
        record.per_destination_bytes_per_s = vec![good * 130e6; 4];
        record.throughput_bytes_per_s = good * 520e6;
        record.latency_us = Latency {
            mean: None,
            p50: 20.0 + f64::from(size) / 80.0,
            p99: 60.0 + f64::from(size) / 20.0,
            p999: 1e3,
            max: 2e3,
        };
        record.simulation.as_mut().unwrap().efficiency = good;
        record
    };
    let sizes = [256, 512, 1000, 2000, 4000, 8000, 16000, 32000];
    sizes.into_iter().flat_map(|size| ["pull", "push"].map(|protocol| (size, protocol))).map(point).collect()
}

/// One simulation of random traffic for each load: the latency grows until the network is full.
pub(crate) fn loads() -> Vec<Record> {
    let point = |n: u32| {
        let load = f64::from(n) / 20.0;
        let reached = load.min(0.62);
        let mut record = simulation();
        record.protocol = "random".into();
        record.sweep = [("workload.load".into(), load.to_string())].into();
        record.per_destination_bytes_per_s = vec![reached * 133e6; 4];
        let p50 = 12.0 + 8.0 * reached / (0.65 - reached);
        record.latency_us = Latency { mean: None, p50, p99: p50 * 6.0, p999: p50 * 12.0, max: p50 * 20.0 };
        record.simulation.as_mut().unwrap().efficiency = reached;
        record
    };
    (2..=18).step_by(2).map(point).collect()
}

/// A network of hosts around one switch.
fn crossbar(hosts: u64) -> Network {
    let link = |name: String, n: u64| LinkRecord {
        name,
        packets: 11_000 + n,
        bytes: 22_000_000 + 2000 * n,
        used: 0.48,
        blocked: if n.is_multiple_of(3) { 0.0 } else { 0.05 * n as f64 },
        mean_wait_us: if n == 0 { 0.0 } else { 3.5 * n as f64 },
        background_bytes: 0,
        most_waiting: n,
        most_bytes: 2048,
        dropped: 0,
        marked: 0,
        trimmed: 0,
        pauses: 0,
        most_headroom_bytes: 0,
        ingress_dropped: 0,
        paused: 0.0,
        pause_chain: 0,
        storms: 0,
        watchdog_dropped: 0,
    };
    let up = (0..hosts).map(|n| link(format!("h{n}>switch0"), n));
    let down = (0..hosts).map(|n| link(format!("switch0>h{n}"), n / 2));
    Network {
        preset: "myrinet-oct-sw8".into(),
        topology: "crossbar".into(),
        routing: "fixed".into(),
        flow: "wormhole".into(),
        hosts,
        links: up.chain(down).collect(),
        ..Network::default()
    }
}

/// A simulation of many hosts below leaves and spines.
pub(crate) fn clos() -> Record {
    let mut record = simulation();
    record.experiment = "128 hosts on a Clos network".into();
    record.sweep = [("network.routing".into(), "random".into()), ("workload.load".into(), "0.8".into())].into();
    let network = &mut record.simulation.as_mut().unwrap().network;
    let up = (0..128).map(|n| (format!("h{n}>leaf{}", n / 8), n));
    let spines = (0..128).map(|n| (format!("leaf{}>spine{}", n / 8, n % 8), n * 7));
    network.links = up
        .chain(spines)
        .map(|(name, n)| LinkRecord {
            name,
            used: 0.3 + 0.4 * f64::from(n % 11) / 11.0,
            blocked: 0.3 * f64::from(n % 13) / 13.0,
            ..LinkRecord::default()
        })
        .collect();
    record
}

/// Every number and text of a record under its name, with dots for nested ones. Lists are left out.
pub(crate) fn flatten(prefix: &str, value: &Value, into: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                flatten(&name, value, into);
            }
        }
        Value::Array(_) => {}
        Value::String(text) => into.push((prefix.to_owned(), text.clone())),
        other => into.push((prefix.to_owned(), other.to_string())),
    }
}
