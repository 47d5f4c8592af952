//! Fixed routes through trees: what one shift after the other puts on the links, and all traffic together.

use crate::support::*;
use evb_fabric::*;

/// The links from one place to another under fixed routing; places are counted switch by switch.
fn way(network: &Network, routes: &Routes, spread: Spread, from: EndpointId, to: EndpointId) -> Vec<LinkId> {
    let mut way = vec![network.endpoint(from).up];
    while let LinkEnd::Switch(switch) = network.link(way[way.len() - 1]).to {
        let group = routes.candidates(switch, to);
        way.push(group[spread.index(network, 1, from, to, 0, group[0]) as usize % group.len()]);
    }
    assert_eq!(way[way.len() - 1], network.endpoint(to).down);
    way
}

/// Ports of hosts in the order of their switches.
fn in_order(network: &Network) -> Vec<EndpointId> {
    let mut order: Vec<_> = (0..network.endpoints.len()).map(|n| EndpointId(n as u16)).collect();
    order.sort_by_key(|&id| network.endpoint(id).down_place);
    order
}

/// Number of pairs of a shift on each link.
fn shifted(network: &Network, routes: &Routes, spread: Spread, order: &[EndpointId], shift: usize) -> Vec<u32> {
    let mut loads = vec![0; network.links.len()];
    for (place, &from) in order.iter().enumerate() {
        let to = order[(place + shift) % order.len()];
        way(network, routes, spread, from, to).iter().for_each(|link| loads[link.0 as usize] += 1);
    }
    loads
}

/// Returns true if a network is a fat tree with as many links up as down in all layers.
fn is_full_tree(topology: &Topology) -> bool {
    match *topology {
        Topology::Clos { ports_per_leaf, spines, links, uplink: None, .. } => spines * links == ports_per_leaf,
        Topology::FatTree { .. } => true,
        _ => false,
    }
}

fn full_presets() -> Vec<(String, Network)> {
    let read = |preset: &Preset| toml::from_str(preset.toml).expect("a good preset");
    let configs = presets().iter().map(|preset| (preset.name.to_owned(), read(preset)));
    let full = configs.filter(|(_, config): &(_, NetworkConfig)| is_full_tree(&config.topology));
    full.map(|(name, config)| (name, Network::build(&config).expect("a good preset"))).collect()
}

/// Three layers with four up-links from each pair of switches, out of a list.
fn listed() -> Network {
    let cables = |low: &'static str, high: &'static str, pods: u16, joined: fn(u16, u16) -> bool| {
        let pairs = (0..pods).flat_map(move |from| (0..pods).map(move |to| (from, to)));
        pairs
            .filter(move |&(from, to)| joined(from, to))
            .map(move |(from, to)| [format!("{low}{from}"), format!("{high}{to}")])
    };
    let hosts = (0..8).map(|host| [format!("h{host}"), format!("edge{}", host / 2)]);
    let edges = cables("edge", "middle", 4, |edge, middle| edge / 2 == middle / 2);
    let tops = cables("middle", "top", 4, |middle, top| middle % 2 == top % 2);
    let links: Vec<_> = hosts.chain(edges).chain(tops).collect();
    let ends: Vec<_> = links.iter().map(|[one, other]| [one.as_str(), other.as_str()]).collect();
    let names: Vec<_> =
        ["edge", "middle", "top"].iter().flat_map(|name| (0..4).map(move |n| format!("{name}{n}"))).collect();
    build(explicit(&names.iter().map(String::as_str).collect::<Vec<_>>(), &ends))
}

/// Levels of full fat trees, as `[down, up, links]`: parallel cables at each level, whose numbers divide those of the
/// parents or do not.
const FULL: [&[[u16; 3]]; 5] = [
    &[[6, 3, 2], [5, 0, 1]],
    &[[4, 2, 2], [3, 3, 2], [6, 0, 1]],
    &[[8, 2, 4], [3, 4, 3], [2, 0, 1]],
    &[[4, 4, 1], [4, 2, 2], [3, 0, 1]],
    &[[4, 2, 2], [2, 2, 2], [2, 2, 2], [3, 0, 1]],
];

/// The presets that are full fat trees, and other trees.
fn trees() -> Vec<(String, Network)> {
    let mut trees = full_presets();
    trees.push(("radix 12".to_owned(), build(Topology::FatTree { radix: 12 })));
    for levels in FULL {
        trees.push((format!("{levels:?}"), build(fat_tree(levels))));
    }
    trees.push(("two ports".to_owned(), with_ports(clos(6, 4, 2, 2), 2)));
    trees.push(("listed".to_owned(), listed()));
    trees
}

#[test]
fn presets_have_full_trees() {
    let names: Vec<_> = full_presets().into_iter().map(|(name, _)| name).collect();
    let expected = [
        "myrinet-oct-sw8",
        "myrinet-clos-128",
        "ds-link-clos",
        "infiniband-hdr-fat-tree",
        "infiniband-ndr-fat-tree",
        "roce-100g-clos",
        "ethernet-400g-leaf-spine",
        "ethernet-800g-leaf-spine",
    ];
    assert_eq!(names, expected);
}

/// A theorem of Zahavi (JPDC 72, 2012); `Spread` has the title.
#[test]
fn a_shift_puts_one_pair_at_most_on_each_link() {
    for (name, network) in trees() {
        let (routes, order) = (all_routes(&network), in_order(&network));
        // All shifts of small networks, about 128 of the others: an odd step gives shifts of each remainder.
        let step = (order.len() / 128) | 1;
        for shift in (1..order.len()).step_by(step) {
            for spread in [Spread::Destination, Spread::Source] {
                let loads = shifted(&network, &routes, spread, &order, shift);
                let most = loads.iter().max();
                assert_eq!(most, Some(&1), "{name}, {spread:?}, shift by {shift}");
            }
        }
    }
}

/// Every port to every other switch: all links up from a layer carry the same, and so do all links down to one.
#[test]
fn uniform_traffic_loads_all_links_of_a_layer_the_same() {
    for (name, network) in trees() {
        let (routes, order) = (all_routes(&network), in_order(&network));
        let mut loads = vec![0; network.links.len()];
        for (&from, &to) in order.iter().flat_map(|from| order.iter().map(move |to| (from, to))) {
            way(&network, &routes, Spread::Destination, from, to).iter().for_each(|link| loads[link.0 as usize] += 1);
        }
        let mut by_kind = std::collections::BTreeMap::new();
        for (link, load) in network.links.iter().zip(loads) {
            let letters: String = link.name.chars().filter(|c| c.is_alphabetic() || *c == '>').collect();
            by_kind.entry(letters).or_insert_with(Vec::new).push(load);
        }
        for (kind, loads) in by_kind {
            assert!(loads.iter().all(|load| *load == loads[0] && *load > 0), "{name}, {kind}: {loads:?}");
        }
    }
}

/// Half as many links up as there are hosts, and a number of links that does not divide the hosts of a switch:
/// destinations are dealt out to the links, one after the other.
#[test]
fn narrow_trees_deal_destinations_out() {
    let network = build(clos(4, 5, 3, 1));
    let routes = all_routes(&network);
    let spine = |to: u16| {
        let way = way(&network, &routes, Spread::Destination, EndpointId(0), EndpointId(to));
        network.end_name(network.link(way[1]).to)
    };
    assert_eq!((5..11).map(spine).collect::<Vec<_>>(), ["spine2", "spine0", "spine1", "spine2", "spine0", "spine1"]);
}
