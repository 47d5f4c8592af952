//! Layers of a network, for routing in trees: the positions of the ports of hosts, and the strides of the links.

use crate::{EndpointId, LinkId, Network, SwitchId};
use std::collections::VecDeque;

/// Sets the positions of the ports of hosts and the strides of the links between two layers. The layer of a switch is
/// its distance in hops from the nearest switch with hosts.
pub(crate) fn number(network: &mut Network) {
    for (place, endpoint) in by_switch(network, Network::switch_into).into_iter().enumerate() {
        network.endpoints[usize::from(endpoint.0)].up_place = place as u16;
    }
    for (place, endpoint) in by_switch(network, Network::switch_out_of).into_iter().enumerate() {
        network.endpoints[usize::from(endpoint.0)].down_place = place as u16;
    }
    stride(network);
}

/// The ports of hosts in the order of their switches.
fn by_switch(network: &Network, switch_of: fn(&Network, EndpointId) -> SwitchId) -> Vec<EndpointId> {
    let mut endpoints = endpoints(network);
    endpoints.sort_by_key(|&endpoint| switch_of(network, endpoint));
    endpoints
}

fn endpoints(network: &Network) -> Vec<EndpointId> {
    (0..network.endpoints.len()).map(|place| EndpointId(place as u16)).collect()
}

/// Gives both directions of a cable the number of routes that lead up to its lower end: the route down is chosen as the
/// route up.
fn stride(network: &mut Network) {
    let layers = layers(network);
    let layer = |switch: SwitchId| layers[usize::from(switch.0)];
    let mut order: Vec<_> = (0..network.switches.len()).map(|place| SwitchId(place as u16)).collect();
    order.sort_by_key(|&switch| layer(switch));
    let mut routes = vec![1_u32; network.switches.len()];
    for switch in order {
        let is_up = |&(_, to): &(LinkId, SwitchId)| layer(to) > layer(switch);
        let up: Vec<_> = neighbours(network, switch).filter(is_up).collect();
        let here = routes[usize::from(switch.0)];
        for &(link, to) in &up {
            let there = &mut routes[usize::from(to.0)];
            *there = here.saturating_mul(up.len() as u32).max(*there);
            let reverse = network.link(link).reverse;
            std::iter::once(link).chain(reverse).for_each(|link| network.links[link.0 as usize].stride = here);
        }
    }
}

/// The layer of each switch, breadth first from the switches with hosts.
pub(crate) fn layers(network: &Network) -> Vec<u16> {
    let mut layers = vec![None; network.switches.len()];
    let mut open: VecDeque<_> = endpoints(network)
        .into_iter()
        .flat_map(|endpoint| [network.switch_into(endpoint), network.switch_out_of(endpoint)])
        .map(|switch| (switch, 0))
        .collect();
    while let Some((switch, layer)) = open.pop_front() {
        let known = &mut layers[usize::from(switch.0)];
        if known.is_none() {
            *known = Some(layer);
            open.extend(neighbours(network, switch).map(|(_, to)| (to, layer + 1)));
        }
    }
    layers.into_iter().map(|layer| layer.unwrap_or(u16::MAX)).collect()
}

/// The links from a switch to others, in the order of the ports.
fn neighbours(network: &Network, switch: SwitchId) -> impl Iterator<Item = (LinkId, SwitchId)> {
    let to = |&link: &LinkId| network.link(link).to.switch().map(|to| (link, to));
    network.switch(switch).outputs.iter().filter_map(to)
}
