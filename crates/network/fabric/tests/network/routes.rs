//! Ways through networks: they lead there, by the fewest hops, as the routing allows, also after something failed.

use crate::support::*;
use evb_fabric::*;
use proptest::prelude::*;

fn topologies() -> impl Strategy<Value = Topology> {
    let few = 1_u16..=4;
    let plane = (1_u16..=5, 1_u16..=5, 1_u16..=2, 1_u16..=2);
    let (grid, torus) = (plane.clone(), plane);
    let edges = proptest::collection::vec((0_usize..8, 0_usize..8), 0..12);
    prop_oneof![
        (1_u16..=12).prop_map(|ports| Topology::Crossbar { ports }),
        (few.clone(), few.clone(), few.clone(), few.clone()).prop_map(|(a, b, c, d)| clos(a, b, c, d)),
        (1_u16..=3).prop_map(|half| Topology::FatTree { radix: 2 * half }),
        proptest::collection::vec([1_u16..=3, 1_u16..=2, 1_u16..=2], 2..=4).prop_map(|mut levels| {
            let top = levels.last_mut().expect("there are two or more");
            *top = [top[0], 0, 1];
            fat_tree(&levels)
        }),
        (1_u16..=3, 1_u16..=3).prop_map(|(radix, stages)| Topology::Butterfly { radix, stages }),
        grid.prop_map(|(width, height, terminals, links)| Topology::Grid { width, height, depth: 1, terminals, links }),
        torus.prop_map(|(width, height, terminals, links)| Topology::Torus {
            width,
            height,
            depth: 1,
            terminals,
            links
        }),
        (few.clone(), few.clone(), 1_u16..=2)
            .prop_map(|(leaves, spines, global)| { dragonfly_plus(spines * global + 1, leaves, spines, 1, global) }),
        (few.clone(), few.clone(), few.clone())
            .prop_map(|(width, height, terminals)| hyperx(&[width, height], terminals)),
        (few.clone(), few.clone(), few).prop_map(|(leaves, ports_per_leaf, trunk)| Topology::Tree {
            leaves,
            ports_per_leaf,
            trunk,
            uplink: None
        }),
        edges.prop_map(random_graph),
    ]
}

/// A line of eight switches with a host each, and more links between some of them.
fn random_graph(edges: Vec<(usize, usize)>) -> Topology {
    let line = (0..7).map(|n| (n, n + 1));
    let links = line.chain(edges.into_iter().filter(|(a, b)| a != b)).map(|(a, b)| [format!("n{a}"), format!("n{b}")]);
    let hosts = (0..8).map(|n| [format!("h{n}"), format!("n{n}")]);
    let link = |ends| ExplicitLink { ends, count: 1, rate: None, delay: None, marking: None };
    let switches = (0..8).map(|n| format!("n{n}")).collect();
    Topology::Explicit { switches, links: hosts.chain(links).map(link).collect() }
}

fn routing() -> impl Strategy<Value = Routing> {
    let spread = Spread::Source;
    prop_oneof![
        Just(Routing::Adaptive),
        Just(Routing::SpanningTree),
        Just(Routing::DimensionOrder { spread, ties: Ties::Alternate }),
        Just(Routing::AdaptiveDimensionOrder),
    ]
}

fn suits(topology: &Topology, routing: Routing) -> bool {
    match routing {
        Routing::DimensionOrder { .. } | Routing::AdaptiveDimensionOrder => {
            matches!(topology, Topology::Grid { .. } | Topology::Torus { .. } | Topology::HyperX { .. })
        }
        Routing::SpanningTree => !matches!(topology, Topology::Butterfly { .. }),
        _ => true,
    }
}

/// A network with enough channels for any routing.
fn routed_by_hop(topology: Topology, routing: Routing) -> Network {
    Network::build(&NetworkConfig { flow: cut_through(3), routing, ..config(topology) }).expect("it is a good network")
}

/// The hops to the port over every candidate, which must all be the same; `None` without a route.
fn hops(network: &Network, routes: &Routes, switch: SwitchId, to: EndpointId, left: usize) -> Option<usize> {
    assert!(left > 0, "a way to {to:?} goes in circles");
    let candidates = routes.candidates(switch, to);
    assert!(candidates.is_sorted(), "the outputs are in the order of the ports");
    let mut all = candidates.iter().map(|&link| match network.link(link).to {
        LinkEnd::Endpoint(end) => {
            assert_eq!(end, to);
            1
        }
        LinkEnd::Switch(next) => 1 + hops(network, routes, next, to, left - 1).expect("no way ends in the middle"),
    });
    let first = all.next()?;
    assert!(all.all(|other| other == first), "all ways are equally long");
    Some(first)
}

/// The fewest hops by relaxing every usable link until nothing changes: slow and obviously right.
fn fewest(network: &Network, usable: &dyn Fn(LinkId) -> bool, to: EndpointId) -> Vec<Option<usize>> {
    let mut fewest = vec![None; network.switches.len()];
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (place, link) in network.links.iter().enumerate() {
            let LinkEnd::Switch(from) = link.from else { continue };
            let beyond = match link.to {
                LinkEnd::Endpoint(end) => (end == to).then_some(0),
                LinkEnd::Switch(next) => fewest[usize::from(next.0)],
            };
            let known = &mut fewest[usize::from(from.0)];
            if let Some(beyond) = beyond
                && usable(LinkId(place as u32))
                && known.is_none_or(|known| known > beyond + 1)
            {
                *known = Some(beyond + 1);
                changed = true;
            }
        }
    }
    fewest
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_way_leads_there(topology in topologies(), routing in routing()) {
        prop_assume!(suits(&topology, routing));
        let network = routed_by_hop(topology, routing);
        let routes = all_routes(&network);
        prop_assert_eq!(routes.check(&network), Ok(()));
        for to in (0..network.endpoints.len()).map(|n| EndpointId(n as u16)) {
            let fewest = fewest(&network, &|_| true, to);
            for from in (0..network.endpoints.len()).map(|n| EndpointId(n as u16)) {
                let switch = network.switch_into(from);
                let hops = hops(&network, &routes, switch, to, network.switches.len() + 1);
                if routing == Routing::SpanningTree {
                    prop_assert!(hops >= fewest[usize::from(switch.0)]);
                } else {
                    prop_assert_eq!(hops, fewest[usize::from(switch.0)]);
                }
            }
        }
    }

    #[test]
    fn ways_avoid_what_failed(topology in topologies(), dead in proptest::collection::vec(0_usize..1000, 1..6)) {
        let network = routed_by_hop(topology, Routing::Random);
        let dead: Vec<_> = dead.iter().map(|link| LinkId((link % network.links.len()) as u32)).collect();
        let usable = |link: LinkId| !dead.contains(&link);
        let routes = Routes::find(&network, &usable);
        for to in (0..network.endpoints.len()).map(|n| EndpointId(n as u16)) {
            let fewest = fewest(&network, &usable, to);
            for (place, &fewest) in fewest.iter().enumerate() {
                let switch = SwitchId(place as u16);
                prop_assert!(routes.candidates(switch, to).iter().all(|link| !dead.contains(link)));
                prop_assert_eq!(hops(&network, &routes, switch, to, network.switches.len() + 1), fewest);
            }
        }
    }
}

#[test]
fn demonstrator_route_passes_crossbar_five() {
    let network = build(clos(4, 4, 4, 1));
    let (from, to) = (EndpointId(5), EndpointId(8 + 2));
    let routes = all_routes(&network);
    let mut switch = network.switch_into(from);
    let mut way = Vec::new();
    loop {
        let group = routes.candidates(switch, to);
        let index = Spread::Source.index(&network, 1, from, to, 0, group[0]) as usize % group.len();
        way.push(network.link(group[index]).name.clone());
        match network.link(group[index]).to {
            LinkEnd::Switch(next) => switch = next,
            LinkEnd::Endpoint(end) => break assert_eq!(end, to),
        }
    }
    assert_eq!(way, ["leaf1>spine1", "spine1>leaf2", "leaf2>h10"]);
    assert_eq!(switch_id(&network, "spine1"), SwitchId(5));
}

#[test]
fn spreads_count_ports_or_mix() {
    let network = build(clos(2, 4, 4, 1));
    let index = |spread: Spread, seed, from, to, variant, leaf| {
        let way = link_id(&network, &format!("leaf{leaf}>spine0"));
        spread.index(&network, seed, EndpointId(from), EndpointId(to), variant, way)
    };
    assert_eq!(index(Spread::Source, 1, 6, 1, 0, 1), 6);
    assert_eq!(index(Spread::Destination, 1, 6, 1, 0, 1), 1);
    let base = index(Spread::Pair, 1, 6, 1, 0, 1);
    assert_eq!(base, index(Spread::Pair, 1, 6, 1, 0, 1));
    let others = [(2, 6, 1, 0, 1), (1, 5, 1, 0, 1), (1, 6, 2, 0, 1), (1, 6, 1, 1, 1), (1, 6, 1, 0, 0)];
    assert!(others.iter().all(|&(a, b, c, d, e)| index(Spread::Pair, a, b, c, d, e) != base));
    let mut ways = [0; 4];
    (0..4000).for_each(|variant| ways[index(Spread::Pair, 1, 6, 1, variant, 1) as usize % 4] += 1);
    assert!(ways.iter().all(|count| (900..1100).contains(count)), "{ways:?}");
}

#[test]
fn dimension_order_goes_along_rows_first_the_shorter_way_round() {
    let spread = Spread::Source;
    let network = routed(
        Topology::Torus { width: 5, height: 4, depth: 1, terminals: 1, links: 2 },
        Routing::DimensionOrder { spread, ties: Ties::Alternate },
    );
    let routes = all_routes(&network);
    let ways = |from, column: u16, row: u16| {
        names(&network, routes.candidates(switch_id(&network, from), EndpointId(row * 5 + column)))
    };
    assert_eq!(ways("s0_0", 3, 2), ["s0_0>s4_0.0", "s0_0>s4_0.1"]);
    assert_eq!(ways("s0_0", 2, 2), ["s0_0>s1_0.0", "s0_0>s1_0.1"]);
    assert_eq!(ways("s3_0", 3, 2), ["s3_0>s3_1.0", "s3_0>s3_1.1"], "a tie goes upwards from an even place");
    assert_eq!(ways("s3_2", 3, 0), ["s3_2>s3_3.0", "s3_2>s3_3.1"], "over the edge too");
    assert_eq!(ways("s3_3", 3, 1), ["s3_3>s3_2.0", "s3_3>s3_2.1"], "and downwards from an odd one");
    assert_eq!(ways("s3_0", 3, 3), ["s3_0>s3_3.0", "s3_0>s3_3.1"]);
    assert_eq!(ways("s2_2", 2, 2), ["s2_2>h12"]);
}

#[test]
fn dimension_order_goes_through_layers_last() {
    let topology = Topology::Torus { width: 4, height: 3, depth: 5, terminals: 1, links: 1 };
    let network = routed(topology, Routing::DimensionOrder { spread: Spread::Source, ties: Ties::Alternate });
    let routes = all_routes(&network);
    let way = |from| names(&network, routes.candidates(switch_id(&network, from), EndpointId(3 * 12 + 4 + 2)));
    assert_eq!(way("s1_0_0"), ["s1_0_0>s2_0_0"]);
    assert_eq!(way("s2_0_0"), ["s2_0_0>s2_1_0"]);
    assert_eq!(way("s2_1_0"), ["s2_1_0>s2_1_4"], "round the ring");
    assert_eq!(way("s2_1_4"), ["s2_1_4>s2_1_3"]);
    assert_eq!(way("s2_1_3"), ["s2_1_3>h42"]);
}

#[test]
fn ties_of_dimension_order_go_upwards_if_they_are_to() {
    let topology = Topology::Torus { width: 4, height: 1, depth: 1, terminals: 1, links: 1 };
    let way = |ties| {
        let network = routed(topology.clone(), Routing::DimensionOrder { spread: Spread::Source, ties });
        names(&network, all_routes(&network).candidates(switch_id(&network, "s3_0"), EndpointId(1)))
    };
    assert_eq!([Ties::Alternate, Ties::Upward].map(way), [["s3_0>s2_0"], ["s3_0>s0_0"]]);
}

#[test]
fn dimension_order_makes_no_detour() {
    let spread = Spread::Source;
    let network = routed(
        Topology::Grid { width: 3, height: 2, depth: 1, terminals: 1, links: 1 },
        Routing::DimensionOrder { spread, ties: Ties::Alternate },
    );
    let dead = link_id(&network, "s1_0>s2_0");
    let routes = Routes::find(&network, &|link| link != dead);
    assert!(routes.candidates(switch_id(&network, "s0_0"), EndpointId(2)).is_empty());
    assert!(routes.candidates(switch_id(&network, "s0_0"), EndpointId(5)).is_empty());
    assert_eq!(routes.candidates(switch_id(&network, "s0_1"), EndpointId(5)).len(), 1);
    let no_way = NetworkError::NoRoute { from: "h0".to_owned(), to: "h2".to_owned() };
    assert_eq!(routes.check(&network), Err(no_way));
}

#[test]
fn spanning_tree_keeps_trunks_and_opens_no_loop() {
    let network = routed(clos(3, 1, 2, 2), Routing::SpanningTree);
    let routes = all_routes(&network);
    let ways = |from, to| names(&network, routes.candidates(switch_id(&network, from), EndpointId(to)));
    assert_eq!(ways("leaf1", 2), ["leaf1>spine0.0", "leaf1>spine0.1"]);
    assert_eq!(ways("spine0", 2), ["spine0>leaf2.0", "spine0>leaf2.1"]);
    assert_eq!(ways("spine1", 2), ["spine1>leaf0.0", "spine1>leaf0.1"]);
}

#[test]
fn spanning_tree_survives_its_root() {
    let network = routed(clos(3, 1, 2, 1), Routing::SpanningTree);
    let leaf = LinkEnd::Switch(switch_id(&network, "leaf0"));
    let dead = |link: LinkId| network.link(link).from == leaf || network.link(link).to == leaf;
    let routes = Routes::find(&network, &|link| !dead(link));
    assert_eq!(names(&network, routes.candidates(SwitchId(1), EndpointId(2))), ["leaf1>spine0"]);
    assert!(routes.candidates(SwitchId(1), EndpointId(0)).is_empty());
}

#[test]
fn routes_avoid_a_failed_spine() {
    let network = build(clos(2, 2, 3, 1));
    let spine = LinkEnd::Switch(switch_id(&network, "spine1"));
    let routes = Routes::find(&network, &|link| network.link(link).from != spine && network.link(link).to != spine);
    assert_eq!(names(&network, routes.candidates(SwitchId(0), EndpointId(3))), ["leaf0>spine0", "leaf0>spine2"]);
    assert_eq!(routes.check(&network), Ok(()));
    let cut = Routes::find(&network, &|link| network.link(link).name != "leaf1>h3");
    assert_eq!(cut.check(&network), Err(NetworkError::NoRoute { from: "h0".to_owned(), to: "h3".to_owned() }));
}

#[test]
fn a_thousand_hosts_reach_each_other() {
    for topology in [
        clos(32, 32, 32, 1),
        Topology::FatTree { radix: 16 },
        Topology::Torus { width: 32, height: 32, depth: 1, terminals: 1, links: 1 },
    ] {
        let network = build(topology);
        assert_eq!(network.hosts(), 1024);
        assert_eq!(all_routes(&network).check(&network), Ok(()));
    }
}

/// A pair of leaves has one route; a leaf takes its up-links in turn for the others, and so each link down into a leaf
/// carries the packets of one other leaf.
#[test]
fn a_spread_by_switch_separates_the_pairs_of_switches() {
    let network = build(clos(8, 8, 4, 2));
    let routes = all_routes(&network);
    let way = |from: u16, to: u16| {
        let (from, to) = (EndpointId(from), EndpointId(to));
        let pick = |switch| {
            let group = routes.candidates(switch, to);
            group[Spread::Switch.index(&network, 1, from, to, 0, group[0]) as usize % group.len()]
        };
        let up = pick(network.switch_into(from));
        let down = pick(network.link(up).to.switch().expect("up to a spine"));
        (up, down)
    };
    for (from, to) in (0..8).flat_map(|from| (0..8).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        let of_first = way(from * 8, to * 8);
        assert!((0..64).all(|port| way(from * 8 + port % 8, to * 8 + port / 8) == of_first));
        let others = (0..8).filter(|&other| other != from && other != to);
        others.for_each(|other| {
            assert_ne!(way(from * 8, other * 8).0, of_first.0, "up from leaf {from}");
            assert_ne!(way(other * 8, to * 8).1, of_first.1, "down to leaf {to}");
        });
    }
}
