//! The network model: links, switches, network interfaces and routes.
//!
//! This crate is structure only. The simulator moves packets over a [`Network`], under the settings of its
//! [`NetworkConfig`].
//!
//! # Example
//! A topology becomes a network, and the network gets its routes:
//!
//! ```
//! use evb_fabric::{Network, NetworkConfig, Routes, Topology, preset};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ideal = preset("ideal").ok_or("no such preset")?;
//! let config = NetworkConfig { topology: Topology::Crossbar { ports: 4 }, ..toml::from_str(ideal.toml)? };
//! let network = Network::build(&config)?;
//! assert_eq!(network.hosts(), 4);
//!
//! let routes = Routes::find(&network, &|_| true);
//! routes.check(&network)?;
//! # Ok(())
//! # }
//! ```

mod builder;
mod choice;
mod config;
mod cut_through;
mod dependency;
mod distances;
mod error;
mod headroom;
mod lane_weights;
mod layers;
mod network;
mod planes;
mod presets;
mod routes;
mod settings;
mod subnet;
mod subscription;
mod topology;

pub use config::{
    Arbitration, ChannelRule, Control, Dma, ExplicitLink, Flow, FlowletChoice, HostConfig, HostLinks, Jitter,
    JitterPer, JitterSpread, LinkConfig, MapperConfig, Marking, NetworkConfig, NetworkFault, NetworkFaultAction,
    NicConfig, PlaneChoice, Planes, Rails, Routing, Service, SharedMemory, Spread, SubnetCable, SubnetHostCable,
    SubnetSwitch, SwitchConfig, Ties, Topology, TreeLevel, Watchdog, WatchdogAction, WhenFull,
};
pub use error::NetworkError;
pub use headroom::Headroom;
pub use lane_weights::{LaneWeight, LaneWeights};
use network::GLOBAL;
pub use network::{Endpoint, EndpointId, FaultTarget, LinkEnd, LinkId, Network, NetworkLink, Switch, SwitchId};
pub use presets::{Preset, preset, presets};
pub use routes::Routes;
pub use subnet::{SubnetError, SubnetFile, SubnetFiles, SubnetHost, SubnetProblem};
pub use subscription::LevelRates;
