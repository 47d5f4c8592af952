//! Several planes: copies of a network with a port of each host in each.

use crate::support::*;
use evb_core::Span;
use evb_fabric::*;
use std::collections::BTreeSet;

fn with_planes(topology: Topology, count: u8, choice: PlaneChoice) -> NetworkConfig {
    let mut config = config(topology);
    config.nic.ports = count;
    NetworkConfig { planes: Some(Planes { count, choice }), ..config }
}

fn planes(topology: Topology) -> Network {
    Network::build(&with_planes(topology, 2, PlaneChoice::Packet)).expect("a good network")
}

#[test]
fn each_plane_is_the_network_of_its_topology() {
    let (one, two) = (build(clos(2, 2, 2, 2)), planes(clos(2, 2, 2, 2)));
    assert_eq!((two.hosts(), two.switches.len(), two.links.len()), (4, 8, 2 * one.links.len()));
    assert_eq!(two.link(two.endpoint(two.endpoint_id(3, 1)).up).name, "h3.1>leaf1.1");
    assert_eq!(outputs(&two, "leaf0.1")[..3], ["leaf0.1>h0.1", "leaf0.1>h1.1", "leaf0.1>spine0.1.0"]);
    assert_eq!(two.levels()[0].name, "leaf");
    let (alone, routes) = (all_routes(&one), all_routes(&two));
    routes.check(&two).expect("all routes within the planes");
    for (place, port) in (0..8).map(|place| (place, EndpointId(place))) {
        let (host, plane) = (place / 2, place % 2);
        for (switch, name) in one.switches.iter().map(|switch| &switch.name).enumerate() {
            let here = alone.candidates(SwitchId(switch as u16), EndpointId(host));
            let expected: Vec<_> = here.iter().map(|link| link.0 + u32::from(plane) * one.links.len() as u32).collect();
            let there = switch_id(&two, &format!("{name}.{plane}"));
            assert_eq!(routes.candidates(there, port).iter().map(|link| link.0).collect::<Vec<_>>(), expected);
            let other = switch_id(&two, &format!("{name}.{}", 1 - plane));
            assert!(routes.candidates(other, port).is_empty(), "no link joins planes");
        }
        let places = |endpoint: &Endpoint| (endpoint.up_place, endpoint.down_place);
        assert_eq!(places(two.endpoint(port)), places(one.endpoint(EndpointId(host))));
    }
}

#[test]
fn a_plane_is_a_target_with_all_its_links() {
    let two = planes(clos(2, 2, 1, 1));
    assert_eq!(two.find("plane1"), Some(FaultTarget::Plane(1)));
    assert_eq!((two.find("plane2"), build(clos(2, 2, 1, 1)).find("plane0")), (None, None));
    for (link, number) in two.links.iter().zip(0..) {
        let ends = [link.from, link.to].map(|end| two.end_name(end));
        let plane = two.plane_of(LinkId(number)).expect("there are several");
        assert!(ends.iter().all(|end| end.ends_with(&format!(".{plane}"))), "{ends:?} {plane}");
    }
}

/// Rules by coordinates and by groups count the switches of each plane alike.
#[test]
fn grids_and_groups_are_in_planes_too() {
    let grid = Topology::Grid { width: 2, height: 2, depth: 2, terminals: 1, links: 1 };
    let in_order = Routing::DimensionOrder { spread: Spread::Pair, ties: Ties::Alternate };
    let dragonfly =
        Topology::Dragonfly { groups: 3, routers: 2, terminals: 1, global: 1, global_rate: None, global_delay: None };
    for (topology, routing) in [(grid, in_order), (dragonfly, Routing::Ugal), (hyperx(&[3, 2], 1), in_order)] {
        let config = with_planes(topology, 2, PlaneChoice::Pair);
        let network = Network::build(&NetworkConfig { routing, flow: cut_through(5), ..config }).expect("a good one");
        all_routes(&network).check(&network).expect("all routes within the planes");
        let half = network.switches.len() as u16 / 2;
        let groups = |from: u16| (from..from + half).map(|switch| network.group(SwitchId(switch))).collect::<Vec<_>>();
        assert_eq!(groups(0), groups(half));
    }
}

#[test]
fn planes_exclude_what_needs_one_network() {
    let refused = |change: fn(&mut NetworkConfig)| {
        let mut config = with_planes(clos(2, 2, 1, 1), 2, PlaneChoice::Message);
        change(&mut config);
        Network::build(&config).expect_err("it is refused").to_string()
    };
    assert_eq!(refused(|config| config.nic.ports = 1), "nic.ports is 1, and each of 2 planes has one port of a host");
    let messages: BTreeSet<_> = [
        refused(|config| config.nic.dma = Some(Dma { read: config.link.rate, write: config.link.rate })),
        refused(|config| {
            config.routing = Routing::Dispersive { patience: Span(1), after: 1, rails: Rails::Joined, probes: 0 }
        }),
    ]
    .into();
    assert!(messages.iter().all(|message| message.starts_with("planes do not go with ")), "{messages:?}");
    assert_eq!(messages.len(), 2);
    // One plane has 40,000 ports, which is within the limits; two have not.
    let crossbar = with_planes(Topology::Crossbar { ports: 40_000 }, 2, PlaneChoice::Packet);
    let many = Network::build(&crossbar).expect_err("too many");
    assert_eq!(many, NetworkError::TooMany { what: "host ports", number: 80_000, most: 65_535 });
}
