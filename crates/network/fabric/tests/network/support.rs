//! Descriptions to start from, and names to look at.

use evb_core::{Bandwidth, ByteCount, Span};
use evb_fabric::*;

/// Cut-through flow, fixed routes, one port per host.
pub(crate) fn config(topology: Topology) -> NetworkConfig {
    let plain = NetworkConfig::plain(topology, Bandwidth(1_280_000_000), cut_through(1), ByteCount(1000));
    NetworkConfig {
        link: LinkConfig { delay: Span(15_000), ..plain.link },
        switch: SwitchConfig { delay: Span(100_000), ..plain.switch },
        nic: NicConfig { header: ByteCount(8), ..plain.nic },
        ..plain
    }
}

pub(crate) fn cut_through(virtual_channels: u8) -> Flow {
    Flow::CutThrough { buffer: ByteCount(2016), reaction: Span::ZERO, virtual_channels, channel: ChannelRule::Topology }
}

pub(crate) fn clos(leaves: u16, ports_per_leaf: u16, spines: u16, links: u16) -> Topology {
    Topology::Clos { leaves, ports_per_leaf, spines, links, uplink: None }
}

/// A fat tree whose levels have `[down, up, links]`.
pub(crate) fn fat_tree(levels: &[[u16; 3]]) -> Topology {
    let level = |&[down, up, links]: &[u16; 3]| TreeLevel { down, up, links, rate: None, delay: None };
    Topology::FatTreeLevels { levels: levels.iter().map(level).collect() }
}

pub(crate) fn dragonfly_plus(groups: u16, leaves: u16, spines: u16, terminals: u16, global: u16) -> Topology {
    let (global_rate, global_delay) = (None, Some(Span(7)));
    Topology::DragonflyPlus { groups, leaves, spines, terminals, global, global_rate, global_delay }
}

/// A HyperX with one link between any two neighbours.
pub(crate) fn hyperx(sizes: &[u16], terminals: u16) -> Topology {
    Topology::HyperX { sizes: sizes.to_vec(), terminals, links: vec![1; sizes.len()] }
}

pub(crate) fn explicit(switches: &[&str], links: &[[&str; 2]]) -> Topology {
    let link = |ends: &[&str; 2]| ExplicitLink {
        ends: ends.map(str::to_owned),
        count: 1,
        rate: None,
        delay: None,
        marking: None,
    };
    Topology::Explicit {
        switches: switches.iter().map(|&name| name.to_owned()).collect(),
        links: links.iter().map(link).collect(),
    }
}

pub(crate) fn build(topology: Topology) -> Network {
    Network::build(&config(topology)).expect("it is a good network")
}

pub(crate) fn with_ports(topology: Topology, ports: u8) -> Network {
    let mut config = config(topology);
    config.nic.ports = ports;
    Network::build(&config).expect("it is a good network")
}

pub(crate) fn routed(topology: Topology, routing: Routing) -> Network {
    Network::build(&NetworkConfig { routing, ..config(topology) }).expect("it is a good network")
}

pub(crate) fn names(network: &Network, links: &[LinkId]) -> Vec<String> {
    links.iter().map(|&link| network.link(link).name.clone()).collect()
}

pub(crate) fn outputs(network: &Network, switch: &str) -> Vec<String> {
    names(network, &network.switch(switch_id(network, switch)).outputs)
}

pub(crate) fn switch_id(network: &Network, name: &str) -> SwitchId {
    match network.find(name) {
        Some(FaultTarget::Switch(switch)) => switch,
        other => panic!("{name} is {other:?}"),
    }
}

pub(crate) fn link_id(network: &Network, name: &str) -> LinkId {
    match network.find(name) {
        Some(FaultTarget::Link(link)) => link,
        other => panic!("{name} is {other:?}"),
    }
}

pub(crate) fn all_routes(network: &Network) -> Routes {
    Routes::find(network, &|_| true)
}
