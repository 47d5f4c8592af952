//! The network model: what links, switches and network interfaces there are, and which ways lead where.
//!
//! This crate is structure only. Nothing moves here: the simulator moves packets over a [`Network`], under the settings
//! of its [`NetworkConfig`].

mod builder;
mod choice;
mod config;
mod dependency;
mod error;
mod layers;
mod network;
mod presets;
mod routes;
mod settings;
mod topology;
mod ways;

pub use config::{
    Arbitration, Control, Dma, ExplicitLink, Flow, HostConfig, LinkConfig, NetworkConfig, NetworkFault,
    NetworkFaultAction, NicConfig, Routing, Service, Spread, SwitchConfig, Topology, WhenFull,
};
pub use error::NetworkError;
pub use network::{End, Endpoint, EndpointId, Link, LinkId, Network, Switch, SwitchId, Target};
pub use presets::{Preset, preset, presets};
pub use routes::Routes;
