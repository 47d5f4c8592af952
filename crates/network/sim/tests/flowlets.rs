//! Flowlets in the bare engine: three paths of very different length between two switches.

use evb_core::{Bandwidth, ByteCount, Span, Time};
use evb_fabric::*;
use evb_sim::testing::{self, Probe};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::BTreeSet;

/// Bytes of every packet.
const SIZE: u32 = 64;
/// Time of a byte on a link of 8 Gbit/s.
const BYTE: Span = Span(1000);
/// Time of a packet.
const PACKET: Span = Span(SIZE as u64 * BYTE.0);
/// Delay of both links of each path.
const DELAYS: [Span; 3] = [Span::from_micros(1), Span::from_micros(5), Span::from_micros(20)];
/// Senders, all at one switch; each has a receiver at the other.
const FLOWS: u16 = 4;

fn network(routing: Routing) -> Network {
    let link = |one: &str, other: String, delay| ExplicitLink {
        ends: [one.to_owned(), other],
        count: 1,
        rate: None,
        delay: Some(delay),
        marking: None,
    };
    let hosts = (0..2 * FLOWS).map(|host| link(if host < FLOWS { "a" } else { "b" }, format!("h{host}"), Span::ZERO));
    let middles = DELAYS.iter().enumerate();
    let paths = middles.flat_map(|(n, &delay)| ["a", "b"].map(|end| link(end, format!("m{n}"), delay)));
    let topology = Topology::Explicit {
        switches: ["a", "b", "m0", "m1", "m2"].map(str::to_owned).to_vec(),
        links: hosts.chain(paths).collect(),
    };
    let buffer = ByteCount(1 << 20);
    let flow = Flow::CutThrough { buffer, reaction: Span::ZERO, virtual_channels: 1, channel: ChannelRule::Topology };
    let plain = NetworkConfig::plain(topology, Bandwidth(8_000_000_000), flow, ByteCount(SIZE.into()));
    Network::build(&NetworkConfig { routing, ..plain }).expect("a good network")
}

/// Bursts of each flow with silences between them.
fn bursts() -> Vec<Probe> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut probes = Vec::new();
    for from in 0..FLOWS {
        let mut at = Time::ZERO;
        for _ in 0..200 {
            let burst = random.random_range(1..20);
            probes.extend((0..burst).map(|_| Probe {
                at,
                from: EndpointId(from),
                to: EndpointId(from + FLOWS),
                wire: SIZE,
            }));
            at = at + PACKET * burst + Span(random.random_range(0..150_000_000));
        }
    }
    probes
}

/// The packets that arrive before one that was sent earlier in their flow, and the number of paths that packets took without a wait.
fn overtaking(gap: Span, choice: FlowletChoice) -> (usize, usize) {
    let probes = bursts();
    let outcome = testing::send(network(Routing::Flowlets { gap, choice }), 1, &probes).expect("a good network");
    let arrived: Vec<_> = outcome.delivered.iter().map(|at| at.expect("nothing is lost")).collect();
    let pairs = probes.windows(2).zip(arrived.windows(2)).filter(|(sent, _)| sent[0].from == sent[1].from);
    let early = pairs.filter(|(_, arrived)| arrived[1] < arrived[0]).count();
    let crossing: BTreeSet<_> = probes.iter().zip(&arrived).map(|(probe, arrived)| arrived.since(probe.at)).collect();
    // Three switches pass a packet on when they have its first byte.
    let paths = DELAYS.iter().filter(|&&delay| crossing.contains(&(PACKET + delay * 2 + BYTE * 3))).count();
    (early, paths)
}

/// At each switch a packet waits for one packet of each other flow at most, and for those before it in its own. The paths differ by
/// twice the difference of their delays.
#[test]
fn no_packet_overtakes_another_if_the_gap_is_longer_than_the_paths_differ() {
    let waits = PACKET * (2 * u64::from(FLOWS));
    let gap = Span((DELAYS[2].0 - DELAYS[0].0) * 2) + waits;
    for choice in [FlowletChoice::Random, FlowletChoice::ShortestQueue] {
        let (early, paths) = overtaking(gap, choice);
        assert_eq!((early, paths), (0, DELAYS.len()), "{choice:?}");
        let (early, _) = overtaking(Span::from_micros(5), choice);
        println!("{choice:?}: {early} packets overtake others after gaps of 5 us");
        assert!(early > 20, "{choice:?}: {early}");
    }
}
