//! A network as a graph: built once, read by the simulator.

use crate::{ChannelRule, Marking, NetworkConfig, NetworkError, Topology, planes, settings, topology};
use evb_core::{Bandwidth, Span};

/// A switch, by its index in [`Network::switches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub u16);

/// The dimension of the links between the groups of a dragonfly or a dragonfly+.
pub(crate) const GLOBAL: u8 = 1;

/// One direction of a link, by its index in [`Network::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// One port of a host, by its index in [`Network::endpoints`]: `host * ports + port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub u16);

/// The begin or end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkEnd {
    /// A switch.
    Switch(SwitchId),
    /// A port of a host.
    Endpoint(EndpointId),
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkLink {
    /// `from>to`, with `.n` for the n-th of parallel links: `h3>leaf0`, `leaf0>spine2.1`.
    pub name: String,
    /// The end at which bytes enter.
    pub from: LinkEnd,
    /// The end at which bytes leave.
    pub to: LinkEnd,
    /// Data rate.
    pub rate: Bandwidth,
    /// Delay.
    pub delay: Span,
    /// Marks on packets that find a long queue before it.
    pub marking: Option<Marking>,
    /// The link in the other direction of the same cable; `None` for a one-way link.
    pub reverse: Option<LinkId>,
    /// The dimension of a grid, torus or HyperX that the link runs along; 1 between groups, and 0 in other
    /// topologies.
    pub dimension: u8,
    /// True if a packet changes to the next virtual channel on this link, which closes a ring.
    pub dateline: bool,
    /// Divisor of a port's position for the choice between links like this one ([`Spread`](crate::Spread)): the number
    /// of routes that lead up from a switch with hosts to the lower end of the link, and 1 between switches of one
    /// layer. In a fat tree by levels, parallel cables count as one route, and a link down has the number of routes that
    /// lead up to its upper end: the cables of a switch go to its neighbours in turn there.
    pub stride: u32,
}

/// A switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Its name: `switch0`, `leaf3`, `spine0`.
    pub name: String,
    /// Links that end here, in the order of the ports.
    pub inputs: Vec<LinkId>,
    /// Links that begin here, in the order of the ports.
    pub outputs: Vec<LinkId>,
    /// True if it forwards the head of a packet before the tail has come; otherwise it stores the whole packet first.
    pub cuts_through: bool,
}

/// One port of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The link into the network.
    pub up: LinkId,
    /// The link out of the network.
    pub down: LinkId,
    /// Position among all ports of hosts in the order of the switches that they send to, from 0.
    pub up_place: u16,
    /// Position among all ports of hosts in the order of the switches that they receive from, from 0.
    pub down_place: u16,
}

/// A network as a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// The configuration of the network.
    pub config: NetworkConfig,
    /// All links.
    pub links: Vec<NetworkLink>,
    /// All switches.
    pub switches: Vec<Switch>,
    /// All ports of hosts: the ports of host 0, then those of host 1, ...
    pub endpoints: Vec<Endpoint>,
}

/// The target of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultTarget {
    /// One direction of a link.
    Link(LinkId),
    /// Both directions of a link.
    Cable([LinkId; 2]),
    /// A switch.
    Switch(SwitchId),
    /// A plane: all its links and switches.
    Plane(u8),
}

impl Network {
    /// Builds the network that `config` describes.
    ///
    /// # Errors
    /// A setting is out of range or does not fit the others, or a topology is too large, does not divide evenly or is
    /// not connected. [`Routes::check`](crate::Routes::check) finds out whether the routing has all routes.
    pub fn build(config: &NetworkConfig) -> Result<Self, NetworkError> {
        settings::check(config)?;
        let mut network = match config.planes {
            Some(planes) => planes::build(config, planes.count)?,
            None => topology::build(config)?,
        };
        network.note_cut_through()?;
        settings::check_network(&network)?;
        Ok(network)
    }

    /// Number of hosts.
    pub fn hosts(&self) -> usize {
        self.endpoints.len() / usize::from(self.config.nic.ports)
    }

    /// The endpoint at one port of a host.
    #[inline]
    pub fn endpoint_id(&self, host: u16, port: u8) -> EndpointId {
        EndpointId(host * u16::from(self.config.nic.ports) + u16::from(port))
    }

    /// A link.
    #[inline]
    pub fn link(&self, id: LinkId) -> &NetworkLink {
        &self.links[id.0 as usize]
    }

    /// A switch.
    #[inline]
    pub fn switch(&self, id: SwitchId) -> &Switch {
        &self.switches[usize::from(id.0)]
    }

    /// A port of a host.
    #[inline]
    pub fn endpoint(&self, id: EndpointId) -> &Endpoint {
        &self.endpoints[usize::from(id.0)]
    }

    /// The switch that a port of a host sends to.
    pub fn switch_into(&self, endpoint: EndpointId) -> SwitchId {
        self.link(self.endpoint(endpoint).up).to.switch().expect("a host sends to a switch")
    }

    /// The switch that a port of a host receives from.
    pub fn switch_out_of(&self, endpoint: EndpointId) -> SwitchId {
        self.link(self.endpoint(endpoint).down).from.switch().expect("a host receives from a switch")
    }

    /// The number of the port of its switch at which a link ends; `None` if it ends at a host.
    pub fn port_in(&self, link: LinkId) -> Option<usize> {
        let switch = self.link(link).to.switch()?;
        self.switch(switch).inputs.iter().position(|&input| input == link)
    }

    /// True if every link has one in the other direction: a port of a switch then has the same number for both.
    pub fn is_of_cables(&self) -> bool {
        self.links.iter().all(|link| link.reverse.is_some())
    }

    /// The name of an end of a link: that of a switch, or `h3` or `h3.1`.
    pub fn end_name(&self, end: LinkEnd) -> String {
        match end {
            LinkEnd::Switch(switch) => self.switch(switch).name.clone(),
            LinkEnd::Endpoint(endpoint) => self.config.endpoint_name(endpoint),
        }
    }

    /// The plane of a link, if there are several.
    pub fn plane_of(&self, link: LinkId) -> Option<u8> {
        let planes = self.config.planes?;
        Some((link.0 as usize * usize::from(planes.count) / self.links.len()) as u8)
    }

    /// The group of a switch, over which a route may make a detour ([`Routing::Valiant`](crate::Routing::Valiant)): that of a
    /// dragonfly or a dragonfly+, and in a HyperX the switch itself; `None` in any other topology. Planes count
    /// theirs alike.
    #[inline]
    pub fn group(&self, switch: SwitchId) -> Option<u16> {
        let in_plane = switch.0 % (self.switches.len() as u16 / self.config.plane_count());
        match self.config.topology {
            Topology::Dragonfly { routers, .. } => Some(in_plane / routers),
            // All leaves come before the first spine.
            Topology::DragonflyPlus { groups, leaves, spines, .. } => {
                Some(match in_plane.checked_sub(groups * leaves) {
                    None => in_plane / leaves,
                    Some(spine) => spine / spines,
                })
            }
            Topology::HyperX { .. } => Some(in_plane),
            _ => None,
        }
    }

    /// The link, cable (`leaf0<>spine2`), switch or plane (`plane1`) with this name.
    pub fn find(&self, name: &str) -> Option<FaultTarget> {
        if name.contains("<>") {
            let FaultTarget::Link(there) = self.find(&name.replacen("<>", ">", 1))? else { return None };
            return self.link(there).reverse.map(|back| FaultTarget::Cable([there, back]));
        }
        let switch = || self.switches.iter().position(|switch| switch.name == name);
        let link = || self.links.iter().position(|link| link.name == name);
        switch()
            .map(|place| FaultTarget::Switch(SwitchId(place as u16)))
            .or_else(|| link().map(|place| FaultTarget::Link(LinkId(place as u32))))
            .or_else(|| self.find_plane(name))
    }

    fn find_plane(&self, name: &str) -> Option<FaultTarget> {
        let (number, planes) = (name.strip_prefix("plane")?.parse().ok()?, self.config.planes?);
        (number < planes.count).then_some(FaultTarget::Plane(number))
    }

    /// The virtual channel of a packet for `to` on the link into the network. All priorities are taken for the first.
    pub(crate) fn first_channel(&self, to: EndpointId) -> u8 {
        match self.config.channel_rule() {
            ChannelRule::Destination => {
                (to.0 / self.config.plane_count() % u16::from(self.config.flow.virtual_channels())) as u8
            }
            _ => 0,
        }
    }

    /// The virtual channel of a packet on `next` when it comes over `before` in `channel`.
    pub fn next_channel(&self, before: LinkId, channel: u8, next: LinkId) -> u8 {
        let (before, next) = (self.link(before), self.link(next));
        let channel = match self.config.channel_rule() {
            ChannelRule::Destination | ChannelRule::Priority => channel,
            ChannelRule::Hop => channel + u8::from(before.from.switch().is_some()),
            ChannelRule::Dateline | ChannelRule::Topology => {
                let kept = if before.dimension == next.dimension { channel } else { 0 };
                kept + u8::from(next.dateline)
            }
        };
        channel.min(self.config.flow.virtual_channels() - 1)
    }
}

impl LinkEnd {
    /// The switch, if it is one.
    pub fn switch(self) -> Option<SwitchId> {
        match self {
            Self::Switch(switch) => Some(switch),
            Self::Endpoint(_) => None,
        }
    }
}
