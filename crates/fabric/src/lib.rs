//! The network model: what links, switches and network interfaces there are, and which ways lead where.
//!
//! This crate is structure only. Nothing moves here: the simulator moves packets over a [`Network`], under the settings
//! of its [`NetworkConfig`].

mod config;
mod network;

pub use config::{
    Arbitration, Control, Dma, ExplicitLink, Flow, HostConfig, LinkConfig, NetworkConfig, NetworkFault, NetworkFaultAction, NicConfig, Routing, Spread,
    SwitchConfig, Topology, WhenFull,
};
pub use network::{Endpoint, EndpointId, End, Link, LinkId, Network, Switch, SwitchId};
