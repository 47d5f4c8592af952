//! The choice of a pair of ports between several equal routes.

use crate::{EndpointId, LinkId, Network, Rails, Spread};

impl Spread {
    /// A number for the choice between equal routes from one port to another, of which `route` is the first link of
    /// any; the caller takes it modulo the number of routes. `variant` counts the choices of a pair so far; only `Pair`
    /// uses it.
    #[inline]
    pub fn index(
        self,
        network: &Network,
        seed: u64,
        from: EndpointId,
        to: EndpointId,
        variant: u32,
        route: LinkId,
    ) -> u32 {
        let link = network.link(route);
        match self {
            Self::Source => u32::from(network.endpoint(from).up_place) / link.stride,
            Self::Destination => u32::from(network.endpoint(to).down_place) / link.stride,
            Self::Switch => {
                (u32::from(network.switch_into(from).0) + u32::from(network.switch_out_of(to).0)) / link.stride
            }
            Self::Pair => {
                let pair = u64::from(from.0) << 48 | u64::from(to.0) << 32 | u64::from(variant);
                let switch = link.from.switch().map_or(0, |switch| switch.0);
                (mix(mix(seed ^ mix(pair)) ^ u64::from(switch)) >> 32) as u32
            }
        }
    }
}

impl Rails {
    /// The port of a host at which the route with this number from a port arrives. `same` is the port of the host with
    /// the number of the port that sends.
    pub fn port(self, network: &Network, seed: u64, from: EndpointId, same: EndpointId, variant: u32) -> EndpointId {
        match self {
            Self::Separate => same,
            Self::Joined => {
                let ports = u16::from(network.config.nic.ports);
                let first = same.0 - same.0 % ports;
                let pair = u64::from(from.0) << 48 | u64::from(first) << 32 | u64::from(variant);
                EndpointId(first + (mix(seed ^ mix(!pair)) % u64::from(ports)) as u16)
            }
        }
    }
}

/// One step of splitmix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
#[inline]
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
