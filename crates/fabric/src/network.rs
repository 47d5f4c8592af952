//! A network as a graph: built once, read by the simulator.

use crate::NetworkConfig;
use evb_core::{Bandwidth, Span};

/// A switch, by its place in [`Network::switches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchId(pub u16);

/// One direction of a link, by its place in [`Network::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// One port of a host, by its place in [`Network::endpoints`]: `host * ports + port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub u16);

/// Where a link begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At a switch.
    Switch(SwitchId),
    /// At a port of a host.
    Endpoint(EndpointId),
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// `from>to`, with `.n` for the n-th of parallel links: `h3>leaf0`, `leaf0>spine2.1`.
    pub name: String,
    /// Where bytes enter.
    pub from: End,
    /// Where they leave.
    pub to: End,
    /// Data rate.
    pub rate: Bandwidth,
    /// Delay.
    pub delay: Span,
    /// The link in the other direction of the same cable; `None` for a one-way link.
    pub reverse: Option<LinkId>,
    /// The dimension of a grid or torus that the link runs along; 0 elsewhere.
    pub dimension: u8,
    /// Whether a packet that passes goes on in the next virtual channel: the link that closes a ring.
    pub dateline: bool,
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
}

/// One port of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// The link into the network.
    pub up: LinkId,
    /// The link out of the network.
    pub down: LinkId,
    /// Which of the host ports of the switch that `up` leads to this is, from 0.
    pub up_index: u16,
    /// Which of the host ports of the switch that `down` comes from this is, from 0.
    pub down_index: u16,
}

/// A network as a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// What it was built from.
    pub config: NetworkConfig,
    /// All links.
    pub links: Vec<Link>,
    /// All switches.
    pub switches: Vec<Switch>,
    /// All ports of hosts: the ports of host 0, then those of host 1, ...
    pub endpoints: Vec<Endpoint>,
}
