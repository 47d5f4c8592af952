//! Switches and links of each topology.

use crate::support::*;
use evb_core::{Bandwidth, ByteCount, Span};
use evb_fabric::*;
use std::collections::HashSet;

/// Hosts, switches and links of a network whose ids, ends and names agree with each other.
fn counts(network: &Network) -> [usize; 3] {
    let mut names = HashSet::new();
    for (place, link) in network.links.iter().enumerate() {
        let id = LinkId(place as u32);
        assert!(names.insert(link.name.clone()), "{} is there twice", link.name);
        assert_eq!(network.find(&link.name), Some(FaultTarget::Link(id)));
        if let LinkEnd::Switch(switch) = link.from {
            assert!(network.switch(switch).outputs.contains(&id));
        }
        if let LinkEnd::Switch(switch) = link.to {
            assert!(network.switch(switch).inputs.contains(&id));
        }
        if let Some(reverse) = link.reverse {
            let back = network.link(reverse);
            assert_eq!((back.from, back.to, back.reverse), (link.to, link.from, Some(id)));
        }
    }
    for (place, endpoint) in network.endpoints.iter().enumerate() {
        let id = EndpointId(place as u16);
        assert_eq!(network.link(endpoint.up).from, LinkEnd::Endpoint(id));
        assert_eq!(network.link(endpoint.down).to, LinkEnd::Endpoint(id));
    }
    [network.hosts(), network.switches.len(), network.links.len()]
}

#[test]
fn crossbar_has_all_ports_of_a_host_side_by_side() {
    assert_eq!(counts(&build(Topology::Crossbar { ports: 8 })), [8, 1, 16]);
    let network = with_ports(Topology::Crossbar { ports: 8 }, 2);
    assert_eq!(counts(&network), [4, 1, 16]);
    assert_eq!(outputs(&network, "switch0")[..3], ["switch0>h0.0", "switch0>h0.1", "switch0>h1.0"]);
    assert_eq!(network.endpoint(network.endpoint_id(3, 1)).up_place, 7);
}

#[test]
fn clos_has_host_ports_first_then_uplinks_in_the_order_of_the_spines() {
    let network = build(clos(3, 2, 2, 2));
    assert_eq!(counts(&network), [6, 5, 12 + 3 * 2 * 2 * 2]);
    let expected = ["leaf1>h2", "leaf1>h3", "leaf1>spine0.0", "leaf1>spine0.1", "leaf1>spine1.0", "leaf1>spine1.1"];
    assert_eq!(outputs(&network, "leaf1"), expected);
    assert_eq!(outputs(&network, "spine1")[..3], ["spine1>leaf0.0", "spine1>leaf0.1", "spine1>leaf1.0"]);
    assert_eq!(outputs(&build(clos(2, 1, 2, 1)), "leaf0"), ["leaf0>h0", "leaf0>spine0", "leaf0>spine1"]);
}

#[test]
fn ports_of_a_host_are_on_neighbouring_switches() {
    let network = with_ports(clos(16, 8, 8, 1), 2);
    assert_eq!(network.hosts(), 64);
    for host in 0..64 {
        for port in 0..2 {
            let endpoint = network.endpoint_id(host, port);
            let leaf = host / 8 * 2 + u16::from(port);
            assert_eq!(network.switch_into(endpoint), SwitchId(leaf), "h{host}.{port}");
            assert_eq!(network.switch_out_of(endpoint), SwitchId(leaf), "h{host}.{port}");
            let Endpoint { up_place, down_place, .. } = *network.endpoint(endpoint);
            assert_eq!([up_place, down_place], [8 * leaf + host % 8; 2], "h{host}.{port}");
        }
    }
    assert_eq!(outputs(&network, "leaf3")[0], "leaf3>h8.1");
}

#[test]
fn fat_tree_has_three_layers() {
    let network = build(Topology::FatTree { radix: 4 });
    assert_eq!(counts(&network), [16, 8 + 8 + 4, 2 * (16 + 16 + 16)]);
    assert!(network.switches.iter().all(|switch| switch.outputs.len() == 4 && switch.inputs.len() == 4));
    let expected = ["edge2_1>h10", "edge2_1>h11", "edge2_1>aggregation2_0", "edge2_1>aggregation2_1"];
    assert_eq!(outputs(&network, "edge2_1"), expected);
    assert_eq!(outputs(&network, "aggregation1_1")[2..], ["aggregation1_1>core2", "aggregation1_1>core3"]);
    assert_eq!(counts(&build(Topology::FatTree { radix: 2 })), [2, 2 + 2 + 1, 2 * (2 + 2 + 2)]);
}

/// Zahavi's PGFT(2; 4, 6; 1, 2; 1, 2) and one more level: numbers by his formulas.
#[test]
fn fat_tree_by_levels_has_the_switches_and_links_of_its_formula() {
    let two = build(fat_tree(&[[4, 2, 2], [6, 0, 1]]));
    assert_eq!(counts(&two), [24, 6 + 2, 2 * (24 + 6 * 4)]);
    let ends = ["leaf1>spine0.0", "leaf1>spine1.0", "leaf1>spine0.1", "leaf1>spine1.1"];
    assert_eq!(outputs(&two, "leaf1")[4..], ends, "to the spines in turn");
    assert_eq!(outputs(&two, "spine1")[..3], ["spine1>leaf0.0", "spine1>leaf0.1", "spine1>leaf1.0"]);
    let three = build(fat_tree(&[[4, 2, 2], [3, 3, 1], [2, 0, 1]]));
    assert_eq!(counts(&three), [24, 6 + 4 + 6, 2 * (24 + 6 * 4 + 4 * 3)]);
    assert_eq!(outputs(&three, "spine3")[6..], ["spine3>core3", "spine3>core4", "spine3>core5"]);
    assert_eq!(outputs(&three, "core4"), ["core4>spine1", "core4>spine3"]);
    let four = build(fat_tree(&[[2, 1, 1], [2, 2, 1], [2, 1, 3], [2, 0, 1]]));
    assert_eq!(counts(&four), [16, 8 + 4 + 4 + 2, 2 * (16 + 8 + 8 + 4 * 3)]);
    assert_eq!(outputs(&four, "top1")[..3], ["top1>core1.0", "top1>core1.1", "top1>core1.2"]);
}

#[test]
fn fat_tree_by_levels_has_rates_and_delays_of_its_own_above_each_level() {
    let Topology::FatTreeLevels { mut levels } = fat_tree(&[[4, 1, 2], [2, 1, 1], [2, 0, 1]]) else { unreachable!() };
    (levels[0].rate, levels[1].delay) = (Some(Bandwidth(10_000_000_000)), Some(Span(7)));
    let network = build(Topology::FatTreeLevels { levels });
    let of = |name| (network.link(link_id(&network, name)).rate.0, network.link(link_id(&network, name)).delay.0);
    assert_eq!([of("leaf0>spine0.1"), of("spine0>leaf1.0")], [(10_000_000_000, 15_000); 2]);
    assert_eq!([of("spine1>core0"), of("core0>spine0"), of("h3>leaf0")].map(|link| link.0), [1_280_000_000; 3]);
    assert_eq!([of("spine1>core0"), of("core0>spine0"), of("h3>leaf0")].map(|link| link.1), [7, 7, 15_000]);
}

/// Both directions of every port, whatever the topology; a listed link keeps what it says.
#[test]
fn hosts_have_links_of_their_own() {
    let fast = HostLinks { first: 1, count: 2, rate: Some(Bandwidth(10_000_000_000)), delay: None };
    let far = HostLinks { first: 3, count: 1, rate: None, delay: Some(Span(7)) };
    let mut listed = explicit(&["a"], &[["h0", "a"], ["h1", "a"], ["a", "h2"], ["h3", "a"]]);
    let Topology::Explicit { links, .. } = &mut listed else { unreachable!() };
    links[0].delay = Some(Span(9));
    for (topology, at_first) in [
        (Topology::Crossbar { ports: 4 }, 15_000),
        (clos(2, 2, 1, 1), 15_000),
        (fat_tree(&[[2, 1, 1], [2, 0, 1]]), 15_000),
        (Topology::Butterfly { radix: 2, stages: 2 }, 15_000),
        (Topology::Torus { width: 4, height: 1, depth: 1, terminals: 1, links: 1 }, 15_000),
        (listed, 9),
    ] {
        let mut config = config(topology);
        config.host_links = vec![far, fast];
        let network = Network::build(&config).expect("it is a good network");
        let usual = config.link.rate.0;
        let expected = [(usual, at_first), (10_000_000_000, 15_000), (10_000_000_000, 15_000), (usual, 7)];
        for (endpoint, expected) in network.endpoints.iter().zip(expected) {
            for link in [endpoint.up, endpoint.down].map(|link| network.link(link)) {
                assert_eq!((link.rate.0, link.delay.0), expected, "{}", link.name);
            }
        }
        let between = network.links.iter().filter(|link| link.from.switch().is_some() && link.to.switch().is_some());
        between.for_each(|link| assert_eq!((link.rate.0, link.delay.0), (usual, 15_000), "{}", link.name));
    }
    let mut two = config(clos(2, 2, 1, 1));
    (two.nic.ports, two.host_links) = (2, vec![HostLinks { first: 1, count: 1, ..fast }]);
    let network = Network::build(&two).expect("it is a good network");
    let rate = |name: &str| network.link(link_id(&network, name)).rate.0;
    assert_eq!(["h0.1>leaf1", "h1.0>leaf0", "leaf1>h1.1"].map(rate), [1_280_000_000, 10_000_000_000, 10_000_000_000]);
}

/// 802.1Qbb by hand: twice the cable, the switch, the response time within `reaction`, and a packet of each side.
#[test]
fn headroom_follows_from_the_length_of_the_cable() {
    let mut config = config(Topology::Crossbar { ports: 4 });
    let flow = |full| Flow::StoreAndForward {
        queue: ByteCount(50_000),
        full,
        reaction: Span(1_000_000),
        priorities: 1,
        headroom: None,
        watchdog: None,
    };
    config.flow = flow(WhenFull::PriorityPause);
    config.link = LinkConfig { rate: Bandwidth(100_000_000_000), delay: Span(100_000) };
    config.switch.delay = Span(500_000);
    (config.nic.packet, config.nic.header, config.nic.minimum) = (ByteCount(4096), ByteCount(62), ByteCount(64));
    config.host_links = vec![HostLinks { first: 3, count: 1, rate: None, delay: Some(Span(50_000_000)) }];
    let found = Network::build(&config).expect("it is a good network").headrooms();
    let of = |one: &Headroom| (one.delay.0, one.inputs, one.needed.0, one.given.0);
    // 12.5 B/ns: 0.1 + 0.5 + 1 us of reaction; 50 + 0.5 us and as long back, since no pause is faster than its cable.
    let (near, far) = (20_000 + 2 * 4158, 1_256_250 + 2 * 4158);
    assert_eq!(found.iter().map(of).collect::<Vec<_>>(), [(100_000, 3, near, near), (50_000_000, 1, far, far)]);
    config.flow = flow(WhenFull::Drop);
    assert_eq!(Network::build(&config).expect("it is a good network").headrooms(), []);
}

/// Down and up at the same level, by hand.
#[test]
fn oversubscription_is_the_rate_of_the_links_down_over_that_of_the_links_up() {
    let ratios = |topology| build(topology).levels().iter().map(LevelRates::oversubscription).collect::<Vec<_>>();
    assert_eq!(ratios(fat_tree(&[[6, 3, 1], [4, 1, 2], [5, 0, 1]])), [Some(2.0), Some(2.0), None]);
    assert_eq!(ratios(Topology::FatTree { radix: 4 }), [Some(1.0), Some(1.0), None]);
    let uplink = Some(Bandwidth(5_120_000_000));
    let tree = Topology::Tree { leaves: 3, ports_per_leaf: 12, trunk: 2, uplink };
    assert_eq!(ratios(tree.clone()), [Some(1.5), None]);
    let [leaves, root] = &build(tree).levels()[..] else { panic!("there are two levels") };
    assert_eq!((leaves.name.as_str(), leaves.switches, root.name.as_str(), root.switches), ("leaf", 3, "root", 1));
    let layers = build(Topology::Torus { width: 3, height: 3, depth: 1, terminals: 1, links: 1 }).levels();
    assert!(layers.is_empty(), "a torus is no tree");
}

#[test]
fn butterfly_is_one_way_from_the_first_stage_to_the_last() {
    let network = build(Topology::Butterfly { radix: 2, stages: 3 });
    assert_eq!(counts(&network), [8, 12, 16 + 16]);
    assert!(network.links.iter().all(|link| link.reverse.is_none()));
    assert!(network.switches.iter().all(|switch| switch.outputs.len() == 2 && switch.inputs.len() == 2));
    assert_eq!(outputs(&network, "stage0_1"), ["stage0_1>stage1_1", "stage0_1>stage1_3"]);
    assert_eq!(outputs(&network, "stage1_1"), ["stage1_1>stage2_0", "stage1_1>stage2_1"]);
    assert_eq!(outputs(&network, "stage2_3"), ["stage2_3>h6", "stage2_3>h7"]);
    assert_eq!(network.switch_into(EndpointId(5)), switch_id(&network, "stage0_2"));
    assert_eq!(counts(&build(Topology::Butterfly { radix: 4, stages: 1 })), [4, 1, 8]);
}

#[test]
fn grid_has_no_link_over_its_edge() {
    let network = build(Topology::Grid { width: 3, height: 2, depth: 1, terminals: 2, links: 2 });
    assert_eq!(counts(&network), [12, 6, 2 * (12 + 2 * (2 * 2 + 3))]);
    assert!(network.links.iter().all(|link| !link.dateline));
    assert_eq!(network.link(link_id(&network, "s0_0>s1_0.1")).dimension, 0);
    assert_eq!(network.link(link_id(&network, "s2_1>s2_0.0")).dimension, 1);
    assert_eq!(outputs(&network, "s1_1")[..2], ["s1_1>h8", "s1_1>h9"]);
    assert_eq!(network.find("s2_0>s0_0.0"), None);
}

#[test]
fn torus_closes_rings_of_three_and_more() {
    let network = build(Topology::Torus { width: 4, height: 3, depth: 1, terminals: 1, links: 1 });
    assert_eq!(counts(&network), [12, 12, 2 * (12 + 12 + 12)]);
    let datelines: Vec<_> = network.links.iter().filter(|link| link.dateline).collect();
    assert_eq!(datelines.len(), 2 * (3 + 4));
    for (name, dimension) in [("s3_1>s0_1", 0), ("s0_1>s3_1", 0), ("s2_2>s2_0", 1), ("s2_0>s2_2", 1)] {
        let link = network.link(link_id(&network, name));
        assert_eq!((link.dateline, link.dimension), (true, dimension), "{name}");
    }
}

#[test]
fn layers_are_joined_as_rows_and_columns_are() {
    let grid = build(Topology::Grid { width: 2, height: 3, depth: 2, terminals: 1, links: 1 });
    assert_eq!(counts(&grid), [12, 12, 2 * (12 + 2 * (3 + 4) + 6)]);
    assert_eq!(grid.link(link_id(&grid, "s1_2_0>s1_2_1")).dimension, 2);
    let torus = build(Topology::Torus { width: 4, height: 3, depth: 3, terminals: 2, links: 1 });
    assert_eq!(counts(&torus), [72, 36, 2 * (72 + 3 * 36)]);
    let closing = torus.link(link_id(&torus, "s1_2_2>s1_2_0"));
    assert_eq!((closing.dateline, closing.dimension), (true, 2));
    assert_eq!(torus.switch_into(EndpointId(2 * (12 + 4 + 3))), switch_id(&torus, "s3_1_1"));
}

#[test]
fn torus_of_two_or_one_in_a_row_has_no_double_links() {
    let two = build(Topology::Torus { width: 2, height: 1, depth: 1, terminals: 1, links: 1 });
    assert_eq!(counts(&two), [2, 2, 2 * (2 + 1)]);
    assert!(two.links.iter().all(|link| !link.dateline));
    assert_eq!(counts(&build(Topology::Torus { width: 1, height: 1, depth: 1, terminals: 3, links: 5 })), [3, 1, 6]);
    assert_eq!(
        counts(&build(Topology::Torus { width: 2, height: 2, depth: 1, terminals: 1, links: 2 })),
        [4, 4, 2 * (4 + 8)]
    );
}

#[test]
fn tree_is_joined_by_trunks_at_their_own_rate() {
    let uplink = Some(Bandwidth(10_000_000_000));
    let network = build(Topology::Tree { leaves: 3, ports_per_leaf: 4, trunk: 2, uplink });
    assert_eq!(counts(&network), [12, 4, 2 * (12 + 6)]);
    assert_eq!(outputs(&network, "root")[..3], ["root>leaf0.0", "root>leaf0.1", "root>leaf1.0"]);
    let rate = |name| network.link(link_id(&network, name)).rate;
    assert_eq!([rate("leaf2>root.1"), rate("leaf2>h8")], [Bandwidth(10_000_000_000), network.config.link.rate]);
}

#[test]
fn explicit_links_have_their_own_numbers_and_rates() {
    let mut topology = explicit(&["a", "b"], &[["h1", "b"], ["a", "h0"], ["a", "b"]]);
    let Topology::Explicit { links, .. } = &mut topology else { unreachable!() };
    links[2] = ExplicitLink { count: 2, rate: Some(Bandwidth(8)), delay: Some(Span(7)), ..links[2].clone() };
    let network = build(topology);
    assert_eq!(counts(&network), [2, 2, 8]);
    let link = network.link(link_id(&network, "b>a.1"));
    assert_eq!((link.rate, link.delay), (Bandwidth(8), Span(7)));
    assert_eq!(network.link(link_id(&network, "h1>b")).rate, network.config.link.rate);
}

#[test]
fn times_of_bytes_are_rounded_and_exact() {
    let mut network = build(Topology::Crossbar { ports: 1 });
    let link = &mut network.links[0];
    assert_eq!((link.rate.byte_time(), link.rate.time_for(1000)), (Span(6250), Span(6_250_000)));
    link.rate = Bandwidth(1_056_000_000);
    // 7575.76 ps per byte.
    assert_eq!(
        (link.rate.byte_time(), link.rate.time_for(3), link.rate.time_for(0)),
        (Span(7576), Span(22728), Span::ZERO)
    );
    link.rate = Bandwidth(1);
    assert_eq!(link.rate.time_for(u64::MAX), Span(u64::MAX));
    assert_eq!(network.config.nic.wire_size(ByteCount(10)), ByteCount(18));
}

#[test]
fn dragonfly_plus_joins_groups_between_spines() {
    for (topology, between) in [(dragonfly_plus(5, 3, 2, 4, 2), 1), (dragonfly_plus(3, 2, 2, 1, 2), 2)] {
        let Topology::DragonflyPlus { groups, leaves, spines, terminals, .. } = topology else { unreachable!() };
        let network = build(topology);
        let [groups, leaves, spines, terminals] = [groups, leaves, spines, terminals].map(usize::from);
        let hosts = groups * leaves * terminals;
        let links = 2 * hosts + 2 * groups * leaves * spines + groups * (groups - 1) * between;
        assert_eq!(counts(&network), [hosts, groups * (leaves + spines), links]);
        let group = |name: &str| name.split(['l', 's']).next().map(str::to_owned);
        for link in network.links.iter().filter(|link| link.delay == Span(7)) {
            let [from, to] = [link.from, link.to].map(|end| network.end_name(end));
            assert!(from.contains('s') && to.contains('s') && group(&from) != group(&to), "{}", link.name);
        }
    }
    let one = build(dragonfly_plus(1, 3, 2, 1, 1));
    assert_eq!(counts(&one), [3, 5, 2 * (3 + 6)]);
    let few = Network::build(&config(dragonfly_plus(6, 3, 2, 1, 2))).map(|_| ());
    assert_eq!(few, Err(NetworkError::TooFewGlobalLinks { links: 4, groups: 6 }));
}

/// Up, over, down: three links between switches, one of them between groups, and no ring with a single channel.
#[test]
fn minimal_routes_of_a_dragonfly_plus_go_up_over_and_down() {
    let network = routed(dragonfly_plus(5, 3, 2, 4, 2), Routing::Adaptive);
    let routes = all_routes(&network);
    for (from, to) in
        (0..60).flat_map(|from| (0..60).map(move |to| (from, to))).filter(|(from, to)| from / 12 != to / 12)
    {
        let mut at = network.switch_into(EndpointId(from));
        let mut way = String::new();
        while let Some(&link) = routes.candidates(at, EndpointId(to)).first() {
            let Some(next) = network.link(link).to.switch() else { break };
            way.push(if network.link(link).delay == Span(7) { 'g' } else { '-' });
            at = next;
        }
        assert_eq!((way.as_str(), at), ("-g-", network.switch_out_of(EndpointId(to))), "h{from} to h{to}");
    }
    assert_eq!(network.cyclic_dependency(&routes), None);
}

#[test]
fn hyperx_joins_all_switches_of_a_line() {
    let topology = Topology::HyperX { sizes: vec![4, 3], terminals: 2, links: vec![1, 2] };
    let network = routed(topology, IN_ORDER);
    assert_eq!(counts(&network), [24, 12, 2 * 24 + 12 * (3 + 2 * 2)]);
    let expected = ["s1_2>h18", "s1_2>h19", "s1_2>s0_2", "s1_2>s2_2", "s1_2>s3_2"];
    assert_eq!(outputs(&network, "s1_2")[..5], expected);
    assert_eq!(outputs(&network, "s1_2")[5..], ["s1_2>s1_0.0", "s1_2>s1_0.1", "s1_2>s1_1.0", "s1_2>s1_1.1"]);
    assert_eq!(network.link(link_id(&network, "s1_2>s1_0.1")).dimension, 1);
    assert_eq!(counts(&build(hyperx(&[5], 1))), [5, 5, 10 + 5 * 4]);
    let cube = routed(hyperx(&[2, 3, 4], 1), IN_ORDER);
    assert_eq!(counts(&cube), [24, 24, 48 + 24 * (1 + 2 + 3)]);
    assert_eq!(cube.switch_into(EndpointId(1 + 2 * 2 + 3 * 6)), switch_id(&cube, "s1_2_3"));
}

const IN_ORDER: Routing = Routing::DimensionOrder { spread: Spread::Destination, ties: Ties::Alternate };

/// One hop for each coordinate that differs: in the order of the dimensions, or in any order.
#[test]
fn routes_of_a_hyperx_have_one_hop_for_each_dimension() {
    let sizes = [3_u16, 2, 4];
    let coordinates = |host: u16| [host % 3, host / 3 % 2, host / 6];
    let build = |routing| {
        let config = NetworkConfig { flow: cut_through(3), routing, ..config(hyperx(&sizes, 1)) };
        Network::build(&config).expect("it is a good network")
    };
    for (network, is_ordered) in [(build(IN_ORDER), true), (build(Routing::Adaptive), false)] {
        let routes = all_routes(&network);
        for (from, to) in (0..24).flat_map(|from| (0..24).map(move |to| (from, to))).filter(|(from, to)| from != to) {
            let here = network.switch_into(EndpointId(from));
            let mut dimensions =
                routes.candidates(here, EndpointId(to)).iter().map(|&link| network.link(link).dimension);
            let [one, other] = [from, to].map(coordinates);
            let mut differ =
                (0..3_u8).filter(|&dimension| one[usize::from(dimension)] != other[usize::from(dimension)]);
            match is_ordered {
                true => assert_eq!((dimensions.next(), dimensions.next()), (differ.next(), None), "h{from} to h{to}"),
                false => assert!(dimensions.eq(differ), "h{from} to h{to}"),
            }
        }
    }
}

#[test]
fn a_hyperx_that_could_block_itself_is_rejected() {
    let build = |sizes: &[u16], channels, routing| {
        Network::build(&NetworkConfig { flow: cut_through(channels), routing, ..config(hyperx(sizes, 1)) })
    };
    let least = |least| NetworkError::RoutesCanWait { routes: "routes of a hyperx in any order of dimensions", least };
    assert_eq!(build(&[3, 3], 1, Routing::Adaptive).map(|_| ()), Err(least(2)));
    assert_eq!(build(&[3, 3, 2], 2, FIXED).map(|_| ()), Err(least(3)));
    for (sizes, channels, routing) in
        [(&[3, 3][..], 2, Routing::Adaptive), (&[3, 3, 2], 3, FIXED), (&[3, 3, 2], 1, IN_ORDER), (&[4, 1], 1, FIXED)]
    {
        let network = build(sizes, channels, routing).expect("it is a good network");
        assert_eq!(network.cyclic_dependency(&all_routes(&network)), None, "{sizes:?}");
    }
    // What the check is for.
    let mut network = build(&[3, 3], 2, Routing::Adaptive).expect("it is a good network");
    network.config.flow = cut_through(1);
    assert!(network.cyclic_dependency(&all_routes(&network)).is_some());
}

fn dragonfly(groups: u16, routers: u16, terminals: u16, global: u16) -> Topology {
    Topology::Dragonfly { groups, routers, terminals, global, global_rate: None, global_delay: Some(Span(7)) }
}

fn dragonfly_network(topology: Topology, channels: u8, routing: Routing) -> Result<Network, NetworkError> {
    Network::build(&NetworkConfig { flow: cut_through(channels), routing, ..config(topology) })
}

const FIXED: Routing = Routing::Fixed { spread: Spread::Destination };

#[test]
fn groups_of_a_dragonfly_are_joined_by_equally_many_links() {
    for (topology, between) in [(dragonfly(9, 4, 2, 2), 1), (dragonfly(4, 3, 1, 2), 2), (dragonfly(1, 4, 2, 1), 0)] {
        let network = dragonfly_network(topology.clone(), 3, FIXED).expect("it is good");
        let Topology::Dragonfly { groups, routers, terminals, .. } = topology else { unreachable!() };
        let [groups, routers, terminals] = [groups, routers, terminals].map(usize::from);
        let switches = groups * routers;
        let links = 2 * switches * terminals + switches * (routers - 1) + groups * (groups - 1) * between;
        assert_eq!(counts(&network), [switches * terminals, switches, links]);
        let group = |end: LinkEnd| end.switch().and_then(|switch| network.group(switch));
        let is_global = |link: &&NetworkLink| group(link.from).is_some() && group(link.from) != group(link.to);
        let global: Vec<_> = network.links.iter().filter(|link| is_global(link) && group(link.to).is_some()).collect();
        assert_eq!(global.len(), groups * (groups - 1) * between);
        assert!(global.iter().all(|link| link.delay == Span(7)));
    }
}

/// A packet that made a detour goes on from the spine at which it came into the other group.
#[test]
fn routes_from_any_switch_of_a_dragonfly_plus_have_one_link_between_groups() {
    let network = dragonfly_network(dragonfly_plus(5, 3, 2, 2, 2), 6, Routing::Ugal).expect("it is good");
    let routes = all_routes(&network);
    for start in (0..network.switches.len()).map(|place| SwitchId(place as u16)) {
        for to in (0..network.endpoints.len()).map(|place| EndpointId(place as u16)) {
            let (mut at, last, mut crossed) = (start, network.switch_out_of(to), 0);
            while at != last {
                let link = network.link(routes.candidates(at, to)[0]);
                let next = link.to.switch().expect("a switch is next");
                crossed += u32::from(network.group(at) != network.group(next));
                at = next;
            }
            assert_eq!(crossed, u32::from(network.group(start) != network.group(last)), "{start:?} to {to:?}");
        }
    }
}

/// No minimal route of a dragonfly has more than one link between groups, though two may be as short.
#[test]
fn minimal_routes_of_a_dragonfly_have_one_link_between_groups() {
    let network = dragonfly_network(dragonfly(9, 4, 2, 2), 3, FIXED).expect("it is good");
    let routes = all_routes(&network);
    for from in 0..72 {
        for to in (0..72).filter(|&to| to != from) {
            let (mut at, last) = (network.switch_into(EndpointId(from)), network.switch_out_of(EndpointId(to)));
            let (mut hops, mut groups) = (0, vec![network.group(at)]);
            while at != last {
                let [link] = routes.candidates(at, EndpointId(to)) else { panic!("one link joins two groups") };
                at = network.link(*link).to.switch().expect("a switch is next");
                groups.push(network.group(at));
                hops += 1;
            }
            groups.dedup();
            assert!(hops <= 3 && groups.len() <= 2, "h{from} to h{to}: {hops} hops over {groups:?}");
        }
    }
    assert_eq!(network.cyclic_dependency(&routes), None);
}

#[test]
fn a_dragonfly_that_could_block_itself_is_rejected() {
    let refused = |topology, channels, routing| dragonfly_network(topology, channels, routing).map(|_| ()).unwrap_err();
    let small = || dragonfly(9, 4, 2, 2);
    let minimal = NetworkError::RoutesCanWait { routes: "minimal routes of a dragonfly", least: 3 };
    assert_eq!(refused(small(), 2, FIXED), minimal);
    assert_eq!(refused(small(), 2, Routing::Adaptive), minimal);
    let other = NetworkError::RoutesCanWait { routes: "routes over another group", least: 5 };
    assert_eq!(refused(small(), 4, Routing::Valiant), other);
    assert_eq!(refused(small(), 4, Routing::Ugal), other);
    assert_eq!(refused(dragonfly(10, 4, 2, 2), 3, FIXED), NetworkError::TooFewGlobalLinks { links: 8, groups: 10 });
    let clos = refused(clos(2, 2, 2, 1), 5, Routing::Ugal);
    assert_eq!(clos, NetworkError::UnsuitableRouting { routing: "ugal", topology: "clos" });
    assert!(dragonfly_network(small(), 5, Routing::Ugal).is_ok());
}

/// A detour doubles the links of a HyperX, and makes six of three in a dragonfly+.
#[test]
fn detours_without_enough_channels_are_rejected() {
    let hyperx = |sizes: &[u16]| Topology::HyperX { sizes: sizes.to_vec(), terminals: 2, links: vec![1; sizes.len()] };
    for (topology, routes, least) in [
        (dragonfly_plus(5, 3, 2, 2, 2), "routes over another group", 6),
        (hyperx(&[8]), "routes over another switch", 2),
        (hyperx(&[4, 1, 4]), "routes over another switch", 4),
        (hyperx(&[3, 3, 3]), "routes over another switch", 6),
    ] {
        for routing in [Routing::Valiant, Routing::Ugal] {
            let refused = dragonfly_network(topology.clone(), least - 1, routing).map(|_| ());
            assert_eq!(refused, Err(NetworkError::RoutesCanWait { routes, least }));
            assert!(dragonfly_network(topology.clone(), least, routing).is_ok());
        }
    }
}
