//! Which networks can wait for themselves in a circle.

use crate::support::*;
use evb_core::{ByteCount, Span};
use evb_fabric::*;

fn torus(channels: u8, routing: Routing) -> Network {
    let topology = Topology::Torus { width: 5, height: 4, depth: 1, terminals: 2, links: 2 };
    Network::build(&NetworkConfig { flow: cut_through(channels), routing, ..config(topology) }).expect("it is good")
}

const IN_ORDER: Routing = Routing::DimensionOrder { spread: Spread::Source, ties: Ties::Alternate };

/// The cycle, checked: each link begins where the one before it ends.
fn cycle(network: &Network) -> Option<Vec<LinkId>> {
    let cycle = network.cyclic_dependency(&all_routes(network))?;
    let next = cycle.iter().cycle().skip(1);
    assert!(cycle.iter().zip(next).all(|(&a, &b)| network.link(a).to == network.link(b).from), "{cycle:?}");
    Some(cycle)
}

#[test]
fn torus_needs_two_virtual_channels_and_dimension_order() {
    let ring = cycle(&torus(1, IN_ORDER)).expect("a ring waits for itself");
    assert!((4..=5).contains(&ring.len()), "{ring:?}");
    assert_eq!(cycle(&torus(2, IN_ORDER)), None);
    assert_eq!(cycle(&torus(3, IN_ORDER)), None);
    assert_eq!(cycle(&torus(2, Routing::AdaptiveDimensionOrder)), None);
    assert!(cycle(&torus(2, Routing::Adaptive)).is_some());
}

#[test]
fn rings_of_up_to_four_are_too_short_to_wait_for_themselves() {
    let torus = |side| Topology::Torus { width: side, height: side, depth: 1, terminals: 1, links: 1 };
    // In a ring of four, ties that go both ways leave two links in a row without the next two.
    assert_eq!([3, 4].map(|side| cycle(&routed(torus(side), IN_ORDER))), [None, None]);
    assert!(cycle(&routed(torus(5), IN_ORDER)).is_some());
}

#[test]
fn torus_of_three_dimensions_needs_two_channels() {
    let torus = |channels| {
        let topology = Topology::Torus { width: 5, height: 2, depth: 5, terminals: 1, links: 1 };
        let config = NetworkConfig { flow: cut_through(channels), routing: IN_ORDER, ..config(topology) };
        Network::build(&config).expect("it is a good network")
    };
    assert_eq!([1, 2].map(|channels| cycle(&torus(channels)).is_some()), [true, false]);
}

#[test]
fn grid_needs_dimension_order() {
    let grid = Topology::Grid { width: 3, height: 3, depth: 1, terminals: 1, links: 1 };
    assert_eq!(cycle(&routed(grid.clone(), IN_ORDER)), None);
    assert_eq!(cycle(&routed(grid, Routing::Random)).map(|cycle| cycle.len() >= 4), Some(true));
}

#[test]
fn trees_and_layers_never_wait_in_a_circle() {
    for topology in [
        Topology::Crossbar { ports: 4 },
        clos(4, 4, 4, 2),
        Topology::FatTree { radix: 4 },
        fat_tree(&[[3, 2, 2], [2, 3, 1], [2, 0, 1]]),
        Topology::Butterfly { radix: 3, stages: 3 },
        Topology::Tree { leaves: 3, ports_per_leaf: 2, trunk: 2, uplink: None },
    ] {
        assert_eq!(cycle(&routed(topology, Routing::Adaptive)), None);
    }
    let torus = Topology::Torus { width: 4, height: 4, depth: 1, terminals: 1, links: 1 };
    assert_eq!(cycle(&routed(torus, Routing::SpanningTree)), None);
}

#[test]
fn queues_that_drop_do_not_wait() {
    let mut torus = torus(1, IN_ORDER);
    let flow = |full| Flow::StoreAndForward {
        queue: ByteCount(5000),
        full,
        reaction: Span::ZERO,
        priorities: 1,
        headroom: None,
        watchdog: None,
    };
    torus.config.flow = flow(WhenFull::Pause);
    assert!(cycle(&torus).is_some());
    torus.config.flow = flow(WhenFull::Drop);
    assert_eq!(cycle(&torus), None);
}

#[test]
fn channels_change_at_datelines_and_dimensions() {
    let network = torus(2, IN_ORDER);
    let link = |name| link_id(&network, name);
    let (row, closing, column) = (link("s3_0>s4_0.0"), link("s4_0>s0_0.0"), link("s4_0>s4_1.0"));
    assert_eq!(network.next_channel(row, 0, closing), 1);
    assert_eq!(network.next_channel(closing, 1, link("s0_0>s1_0.1")), 1);
    assert_eq!(network.next_channel(closing, 1, closing), 1);
    assert_eq!(network.next_channel(row, 1, column), 0);
    assert_eq!(network.next_channel(row, 1, link("s4_0>s4_3.0")), 1);
}

/// A ring of five switches.
fn ring(channels: u8, channel: ChannelRule) -> Network {
    let topology = Topology::Torus { width: 5, height: 1, depth: 1, terminals: 2, links: 1 };
    let flow = Flow::CutThrough { buffer: ByteCount(2016), reaction: Span::ZERO, virtual_channels: channels, channel };
    Network::build(&NetworkConfig { flow, ..config(topology) }).expect("it is good")
}

/// Routes over a ring of five have two links between switches at most.
#[test]
fn a_channel_for_each_hop_breaks_every_ring() {
    assert!(cycle(&ring(1, ChannelRule::Hop)).is_some());
    assert_eq!(cycle(&ring(2, ChannelRule::Hop)), None);
}

/// Packets of one group of destinations wait for each other as if they were alone.
#[test]
fn channels_of_destinations_and_priorities_break_no_ring() {
    assert!(cycle(&ring(2, ChannelRule::Destination)).is_some());
    assert_eq!(cycle(&ring(8, ChannelRule::Destination)), None, "at most two destinations for each channel");
    assert!(cycle(&ring(2, ChannelRule::Priority)).is_some());
}

#[test]
fn the_rule_for_channels_follows_from_the_topology() {
    let rule = |topology| config(topology).channel_rule();
    let plane = |closed| match closed {
        true => Topology::Torus { width: 3, height: 3, depth: 1, terminals: 1, links: 1 },
        false => Topology::Grid { width: 3, height: 3, depth: 1, terminals: 1, links: 1 },
    };
    assert_eq!([plane(true), plane(false)].map(rule), [ChannelRule::Dateline, ChannelRule::Destination]);
    assert_eq!(rule(clos(2, 2, 2, 1)), ChannelRule::Destination);
    let flow =
        |channel| Flow::CutThrough { buffer: ByteCount(2016), reaction: Span::ZERO, virtual_channels: 2, channel };
    for topology in [plane(false), clos(2, 2, 2, 1), Topology::Crossbar { ports: 2 }] {
        let kind = topology.kind();
        let dateline = NetworkConfig { flow: flow(ChannelRule::Dateline), ..config(topology) };
        assert_eq!(Network::build(&dateline).map(|_| ()), Err(NetworkError::NoDatelines { topology: kind }));
    }
}
