//! Packets and packet-hops per second of the bare network engine, on the networks for which other simulators' speeds are
//! known: BookSim2 (crossbars and a two-layer fat tree of single-flit to 64-flit packets) and htsim (a lossless fat tree).
//!
//! `cargo bench -p evb-sim`. Every source has all its packets ready at the start, destinations are uniform at random, so
//! the network is saturated. A flit is 8 bytes.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use evb_core::{Bandwidth, ByteCount, NodeId, Span, Time, stream};
use evb_fabric::{ChannelRule, EndpointId, Flow, LinkConfig, Network, NetworkConfig, Routing, Spread, Topology};
use evb_sim::testing::{Probe, send};
use rand::RngExt;
use std::time::Duration;

/// Bytes of a flit.
const FLIT: u32 = 8;

fn network(topology: Topology, flow: Flow, routing: Routing) -> Network {
    let plain = NetworkConfig::plain(topology, Bandwidth(8_000_000_000), flow, ByteCount(1 << 16));
    let link = LinkConfig { delay: Span(5_000), ..plain.link };
    let config = NetworkConfig { link, routing, ..plain };
    Network::build(&config).expect("a good network")
}

fn wormhole() -> Flow {
    Flow::Wormhole { slack: ByteCount(64), reaction: Span(5_000) }
}

fn credits() -> Flow {
    Flow::CutThrough {
        buffer: ByteCount(1 << 17),
        reaction: Span(5_000),
        virtual_channels: 1,
        channel: ChannelRule::Topology,
    }
}

/// `each` packets from every endpoint to others drawn at random.
fn uniform(network: &Network, each: usize, wire: u32) -> Vec<Probe> {
    let endpoints = network.endpoints.len() as u16;
    let mut random = stream(1, NodeId(0), 7);
    let mut probe = |from: u16| {
        let to = (from + random.random_range(1..endpoints)) % endpoints;
        Probe { at: Time::ZERO, from: EndpointId(from), to: EndpointId(to), wire }
    };
    (0..endpoints).flat_map(|from| (0..each).map(|_| probe(from)).collect::<Vec<_>>()).collect()
}

fn clos(nodes: u16) -> Topology {
    let leaf = (f64::from(nodes).sqrt() as u16).max(4);
    Topology::Clos { leaves: nodes / leaf, ports_per_leaf: leaf, spines: leaf, links: 1, uplink: None }
}

fn networks(c: &mut Criterion) {
    let fixed = Routing::Fixed { spread: Spread::Destination };
    let crossbar = |ports| Topology::Crossbar { ports };
    let cases = [
        ("crossbar-8", crossbar(8), wormhole(), fixed, 1, 200_000),
        ("crossbar-64", crossbar(64), wormhole(), fixed, 1, 200_000),
        ("crossbar-64", crossbar(64), wormhole(), fixed, 20, 200_000),
        ("clos-256", clos(256), wormhole(), fixed, 64, 200_000),
        ("clos-256", clos(256), wormhole(), Routing::Adaptive, 64, 200_000),
        ("fat-tree-128", Topology::FatTree { radix: 8 }, credits(), Routing::Ecmp, 512, 200_000),
        ("clos-16", clos(16), credits(), fixed, 64, 200_000),
        ("clos-1024", clos(1024), credits(), fixed, 64, 200_000),
        ("clos-1024", clos(1024), credits(), fixed, 4096, 200_000),
    ];
    for (name, topology, flow, routing, flits, packets) in cases {
        let network = network(topology, flow, routing);
        let probes = uniform(&network, packets / network.endpoints.len(), flits * FLIT);
        let hops = send(network.clone(), 1, &probes).expect("a good network").packet_hops;
        let mut group = c.benchmark_group(format!("{name}/{}", routing_name(routing)));
        group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
        for (unit, count) in [("packets", probes.len() as u64), ("packet-hops", hops)] {
            group.throughput(Throughput::Elements(count));
            group.bench_function(BenchmarkId::new(unit, format!("{flits} flits")), |b| {
                b.iter(|| send(network.clone(), 1, &probes));
            });
        }
    }
}

fn routing_name(routing: Routing) -> &'static str {
    match routing {
        Routing::Adaptive => "adaptive",
        Routing::Ecmp => "ecmp",
        _ => "fixed",
    }
}

criterion_group!(benches, networks);
criterion_main!(benches);
