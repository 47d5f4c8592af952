//! The engine against the theory of queues: saturated crossbars, a queue with Poisson arrivals, and a single link.

use evb_core::{Bandwidth, ByteCount, Span, Time};
use evb_fabric::*;
use evb_sim::testing::{self, Outcome, Probe};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Picoseconds per byte at 8 Gbit/s.
const BYTE: u64 = 1000;
/// Bytes of every packet.
const SIZE: u64 = 64;

/// No delays anywhere, links of 8 Gbit/s.
fn network(topology: Topology, flow: Flow) -> Network {
    let plain = NetworkConfig::plain(topology, Bandwidth(8_000_000_000), flow, ByteCount(SIZE));
    let switch = SwitchConfig { arbitration: Arbitration::Random, ..plain.switch };
    let config = NetworkConfig { switch, ..plain };
    Network::build(&config).expect("a good network")
}

fn send(network: Network, probes: &[Probe]) -> Outcome {
    testing::send(network, 1, probes).expect("a good network")
}

fn probe(at: u64, from: u16, to: u16) -> Probe {
    Probe { at: Time(at), from: EndpointId(from), to: EndpointId(to), wire: SIZE as u32 }
}

/// Input queues with random traffic: Hluchyj and Karol, Queueing in High-Performance Packet Switching, IEEE Journal on
/// Selected Areas in Communications 6 (1988), table I; 2 - sqrt 2 for many ports.
#[test]
fn saturated_crossbars_have_the_known_throughput() {
    let expected = [75.00, 68.25, 65.53, 63.99, 63.02, 62.34, 61.84];
    for (ports, expected) in (2..).zip(expected) {
        check_throughput(ports, 120_000 / u64::from(ports), expected);
    }
    check_throughput(128, 1000, 58.58);
}

/// Queues for each output at the inputs, matched by iSLIP, carry all of it if they never run empty (McKeown 1999, section III);
/// these hold 1000 packets for 16 outputs.
#[test]
fn inputs_with_a_queue_for_each_output_have_no_such_bound() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let (ports, packets) = (16, 4000);
    let senders = (0..packets).flat_map(|_| 0..ports);
    let probes: Vec<_> = senders.map(|from| probe(0, from, random.random_range(0..ports))).collect();
    let buffer = ByteCount(1000 * SIZE);
    let flow = Flow::CutThrough { buffer, reaction: Span::ZERO, virtual_channels: 1, channel: ChannelRule::Topology };
    let share = |arbitration| {
        let mut network = network(Topology::Crossbar { ports }, flow);
        network.config.switch.arbitration = arbitration;
        let outcome = send(network, &probes);
        let (begin, end) = (packets * SIZE * BYTE / 4, packets * SIZE * BYTE * 3 / 4);
        let times = outcome.delivered.into_iter().map(|at| at.expect("nothing is lost").0);
        let delivered = times.filter(|at| (begin..end).contains(at)).count() as u64;
        delivered as f64 * (SIZE * BYTE) as f64 / (f64::from(ports) * (end - begin) as f64)
    };
    let (one_queue, islip) = (share(Arbitration::RoundRobin), share(Arbitration::Islip));
    println!("one queue {one_queue:.4}, iSLIP {islip:.4}");
    assert!((0.58..0.62).contains(&one_queue) && islip > 0.95, "{one_queue} {islip}");
}

/// Two hosts of a switch send to the next of three switches, the second one a quarter of a packet later: the link is in use then,
/// though nothing waits for it. Its packet needs four links over the other switch and none of them waits, or three and a wait.
#[test]
fn a_packet_that_is_being_sent_is_a_load() {
    let topology = Topology::HyperX { sizes: vec![3], terminals: 2, links: vec![1] };
    let (queue, full) = (ByteCount(10 * SIZE), WhenFull::Drop);
    let flow =
        Flow::StoreAndForward { queue, full, reaction: Span::ZERO, priorities: 1, headroom: None, watchdog: None };
    let second = |routing| {
        let mut network = network(topology.clone(), flow);
        network.config.routing = routing;
        let outcome = send(network, &[probe(0, 0, 2), probe(SIZE * BYTE / 4, 1, 3)]);
        outcome.delivered[1].expect("nothing is lost").0
    };
    assert_eq!(second(Routing::Random), 4 * SIZE * BYTE);
    assert_eq!(second(Routing::Ugal), 4 * SIZE * BYTE + SIZE * BYTE / 4);
}

/// The standard error comes from 20 parts of the window. It must be well below the allowed difference.
fn check_throughput(ports: u16, packets: u64, expected: f64) {
    const PARTS: u64 = 20;
    let mut random = Xoshiro256PlusPlus::seed_from_u64(ports.into());
    let senders = (0..packets).flat_map(|_| 0..ports);
    let probes: Vec<_> = senders.map(|from| probe(0, from, random.random_range(0..ports))).collect();
    let flow = Flow::Wormhole { slack: ByteCount(4), reaction: Span::ZERO };
    let outcome = send(network(Topology::Crossbar { ports }, flow), &probes);
    // No sender is done after as many slots as it has packets, however lucky it is.
    let (begin, end) = (packets * SIZE * BYTE / 5, packets * SIZE * BYTE);
    let mut parts = [0_u64; PARTS as usize];
    for Time(at) in outcome.delivered.into_iter().map(|at| at.expect("nothing is lost")) {
        if (begin..end).contains(&at) {
            parts[((at - begin) * PARTS / (end - begin)) as usize] += SIZE;
        }
    }
    let full = f64::from(ports) * (end - begin) as f64 / (PARTS * BYTE) as f64;
    let shares: Vec<_> = parts.iter().map(|&bytes| 100.0 * bytes as f64 / full).collect();
    let (mean, error) = mean_and_error(&shares);
    println!("{ports} ports: {mean:.2} % +- {error:.2} %, expected {expected:.2} %");
    assert!(error < 0.25, "{ports} ports: {mean} +- {error}");
    assert!((mean - expected).abs() < 0.5, "{ports} ports: {mean}, expected {expected}");
}

/// An output queue of a store-and-forward switch, filled by many fast links, is an M/D/1 queue: the mean wait is
/// rho / 2 (1 - rho) times the service (Pollaczek and Khinchine).
#[test]
fn an_output_queue_with_poisson_arrivals_has_the_known_wait() {
    for (load, packets) in [(0.3, 1_000_000), (0.6, 1_000_000), (0.8, 2_000_000), (0.9, 6_000_000)] {
        check_wait(load, packets);
    }
}

/// The standard error comes from 20 parts of the run. At the highest load, that is long after the queue has forgotten:
/// parts of 200 000 packets against about 1 / (1 - rho)^2 = 100.
fn check_wait(load: f64, packets: usize) {
    let waits = waits(load, packets);
    let parts: Vec<_> = waits.chunks(packets / 20).map(|part| part.iter().sum::<f64>() / part.len() as f64).collect();
    let (mean, error) = mean_and_error(&parts);
    let expected = load / (2.0 * (1.0 - load));
    println!("load {load}: waits {mean:.4} +- {error:.4}, expected {expected:.4}");
    assert!(3.0 * error < 0.02 * expected, "load {load}: {mean} +- {error}");
    assert!((mean - expected).abs() < 0.02 * expected, "load {load}: {mean}, expected {expected}");
}

/// Wait of each packet for the slow link, in units of its service.
fn waits(load: f64, packets: usize) -> Vec<f64> {
    const SENDERS: u16 = 64;
    let cable = |host: u16, rate: Option<Bandwidth>| ExplicitLink {
        ends: [format!("h{host}"), "s".to_owned()],
        count: 1,
        rate,
        delay: None,
        marking: None,
    };
    let fast = (1..=SENDERS).map(|host| cable(host, Some(Bandwidth(8_000_000_000_000))));
    let links = std::iter::once(cable(0, None)).chain(fast).collect();
    let topology = Topology::Explicit { switches: vec!["s".to_owned()], links };
    let flow = Flow::StoreAndForward {
        queue: ByteCount(1 << 40),
        full: WhenFull::Drop,
        reaction: Span::ZERO,
        priorities: 1,
        headroom: None,
        watchdog: None,
    };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    let service = (SIZE * BYTE) as f64;
    let mut now = 0.0;
    let mut probes = Vec::with_capacity(packets);
    for _ in 0..packets {
        let interval: f64 = Exp1.sample(&mut random);
        now += interval * service / load;
        probes.push(probe(now as u64, random.random_range(1..=SENDERS), 0));
    }
    let mut network = network(topology, flow);
    network.config.switch.arbitration = Arbitration::Oldest;
    let outcome = send(network, &probes);
    // The fast link takes a picosecond per byte.
    let unloaded = SIZE + SIZE * BYTE;
    let wait = |(probe, at): (&Probe, Option<Time>)| {
        (at.expect("nothing is lost").since(probe.at).0 - unloaded) as f64 / service
    };
    probes.iter().zip(outcome.delivered).map(wait).collect()
}

/// Packets of one size over one route, at once and after a pause: exact to the picosecond.
#[test]
fn a_single_link_is_exact() {
    let flows = [
        Flow::Wormhole { slack: ByteCount(4), reaction: Span::ZERO },
        Flow::CutThrough {
            buffer: ByteCount(2 * SIZE),
            reaction: Span::ZERO,
            virtual_channels: 1,
            channel: ChannelRule::Topology,
        },
    ];
    for flow in flows {
        let mut probes: Vec<_> = (0..10).map(|_| probe(0, 0, 1)).collect();
        probes.push(probe(5_000_000, 0, 1));
        let outcome = send(network(Topology::Crossbar { ports: 2 }, flow), &probes);
        // The switch passes a byte on when all of it is there: one byte time more.
        let mut expected: Vec<_> = (1..=10).map(|n| Some(Time(n * SIZE * BYTE + BYTE))).collect();
        expected.push(Some(Time(5_000_000 + SIZE * BYTE + BYTE)));
        assert_eq!(outcome.delivered, expected, "{flow:?}");
        assert_eq!(outcome.packet_hops, 22);
    }
}

/// The same where the switch stores packets.
#[test]
fn a_single_link_with_a_store_is_exact() {
    let flow = Flow::StoreAndForward {
        queue: ByteCount(SIZE),
        full: WhenFull::Pause,
        reaction: Span::ZERO,
        priorities: 1,
        headroom: None,
        watchdog: None,
    };
    let mut network = network(Topology::Crossbar { ports: 2 }, flow);
    network.config.link.delay = Span(300);
    network.config.switch.delay = Span(70);
    let network = Network::build(&network.config).expect("a good network");
    let outcome = send(network, &[probe(5, 0, 1)]);
    assert_eq!(outcome.delivered, [Some(Time(5 + 2 * (SIZE * BYTE + 300) + 70))]);
}

fn mean_and_error(parts: &[f64]) -> (f64, f64) {
    let number = parts.len() as f64;
    let mean = parts.iter().sum::<f64>() / number;
    let variance = parts.iter().map(|part| (part - mean).powi(2)).sum::<f64>() / (number - 1.0);
    (mean, (variance / number).sqrt())
}
