//! The copies of a network that make its planes.

use crate::builder::{TopologySize, name_links};
use crate::{
    Endpoint, EndpointId, LinkEnd, LinkId, Network, NetworkConfig, NetworkError, NetworkLink, NicConfig, PlaneChoice,
    Planes, Rails, Routing, Switch, SwitchId, Topology, topology,
};
use evb_connection::{Transport, UltraEthernetControl};

/// Checks that each plane has one port of a host, and that the rest of the network goes with the choice.
pub(crate) fn check(config: &NetworkConfig) -> Result<(), NetworkError> {
    let Some(Planes { count, choice }) = config.planes else { return Ok(()) };
    if config.nic.ports != count || count < 2 {
        return Err(NetworkError::PortsOfPlanes { ports: config.nic.ports, planes: count });
    }
    let by_packet = choice == PlaneChoice::Packet;
    let grants =
        matches!(config.transport, Transport::UltraEthernet(ultra) if ultra.control == UltraEthernetControl::Rccc);
    let joins = matches!(config.routing, Routing::Dispersive { rails: Rails::Joined, .. });
    let unsuitable = [
        (
            matches!(config.topology, Topology::Infiniband { .. }),
            "topology.type = \"infiniband\", whose files have all cables",
        ),
        (joins, "routing.rails = \"joined\", for no link joins them"),
        (
            choice == PlaneChoice::Message && config.transport.connects(),
            "planes.choice = \"message\" over connections, which are streams",
        ),
        (
            by_packet && grants,
            "planes.choice = \"packet\" with control.type = \"rccc\", whose receivers grant for one link",
        ),
        (!by_packet && config.nic.dma.is_some(), "nic.dma, unless planes.choice is \"packet\""),
    ];
    match unsuitable.into_iter().find(|(is_set, _)| *is_set) {
        Some((_, what)) => Err(NetworkError::NotInPlanes { what }),
        None => Ok(()),
    }
}

/// Builds one plane, and copies it. Port n of each host is in plane n.
pub(crate) fn build(config: &NetworkConfig, count: u8) -> Result<Network, NetworkError> {
    let one = NetworkConfig { planes: None, nic: NicConfig { ports: 1, ..config.nic.clone() }, ..config.clone() };
    let plane = topology::build(&one)?;
    let (hosts, switches, links) = (plane.endpoints.len(), plane.switches.len(), plane.links.len());
    let all = |number: usize| number as u64 * u64::from(count);
    TopologySize { endpoints: all(hosts), switches: all(switches), links: all(links - 2 * hosts) }.check()?;
    let copies: Vec<_> = (0..count).map(|number| PlaneCopy { plane: &plane, count, number }).collect();
    let mut network = Network {
        config: config.clone(),
        links: copies.iter().flat_map(PlaneCopy::links).collect(),
        switches: copies.iter().flat_map(PlaneCopy::switches).collect(),
        endpoints: (0..hosts).flat_map(|host| copies.iter().map(move |copy| copy.endpoint(host))).collect(),
    };
    name_links(&mut network);
    Ok(network)
}

/// One of several copies of a plane.
struct PlaneCopy<'a> {
    plane: &'a Network,
    count: u8,
    number: u8,
}

impl PlaneCopy<'_> {
    fn links(&self) -> impl Iterator<Item = NetworkLink> {
        self.plane.links.iter().map(|link| NetworkLink {
            from: self.end(link.from),
            to: self.end(link.to),
            reverse: link.reverse.map(|reverse| self.link(reverse)),
            ..link.clone()
        })
    }

    fn switches(&self) -> impl Iterator<Item = Switch> {
        let of = |links: &[LinkId]| links.iter().map(|&link| self.link(link)).collect();
        self.plane.switches.iter().map(move |switch| Switch {
            name: format!("{}.{}", switch.name, self.number),
            inputs: of(&switch.inputs),
            outputs: of(&switch.outputs),
            cuts_through: switch.cuts_through,
        })
    }

    fn endpoint(&self, host: usize) -> Endpoint {
        let endpoint = self.plane.endpoints[host];
        Endpoint { up: self.link(endpoint.up), down: self.link(endpoint.down), ..endpoint }
    }

    fn end(&self, end: LinkEnd) -> LinkEnd {
        match end {
            LinkEnd::Switch(switch) => {
                LinkEnd::Switch(SwitchId(switch.0 + u16::from(self.number) * self.plane.switches.len() as u16))
            }
            LinkEnd::Endpoint(host) => {
                LinkEnd::Endpoint(EndpointId(host.0 * u16::from(self.count) + u16::from(self.number)))
            }
        }
    }

    fn link(&self, link: LinkId) -> LinkId {
        LinkId(link.0 + u32::from(self.number) * self.plane.links.len() as u32)
    }
}
