//! The typed description of a network; the experiment file resolves to it.

mod faults;
mod flow;
mod interfaces;
mod planes;
mod routing;
mod topology;

use crate::EndpointId;
use evb_connection::Transport;
use evb_core::{Bandwidth, ByteCount, Span};
use serde::{Deserialize, Serialize};
use std::ops::Range;

pub use faults::{MapperConfig, NetworkFault, NetworkFaultAction};
pub use flow::{
    Arbitration, ChannelRule, Flow, Marking, SharedMemory, SwitchConfig, Watchdog, WatchdogAction, WhenFull,
};
pub use interfaces::{Dma, HostConfig, Jitter, JitterPer, JitterSpread, NicConfig, Service};
pub use planes::{PlaneChoice, Planes};
pub use routing::{FlowletChoice, Rails, Routing, Spread, Ties};
pub use topology::{ExplicitLink, SubnetCable, SubnetHostCable, SubnetSwitch, Topology, TreeLevel};

/// A whole network: its topology and the behaviour of its parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkConfig {
    /// The preset of the values; empty without one.
    #[serde(default)]
    pub preset: String,
    /// The switches and links.
    pub topology: Topology,
    /// Copies of the topology; `None` if there is one network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planes: Option<Planes>,
    /// The default for every link.
    pub link: LinkConfig,
    /// Hosts whose cables differ from `link`; no host twice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_links: Vec<HostLinks>,
    /// The behaviour of every switch.
    pub switch: SwitchConfig,
    /// The flow control: the fate of a packet that cannot move.
    pub flow: Flow,
    /// The routing of packets.
    pub routing: Routing,
    /// The behaviour of every network interface.
    pub nic: NicConfig,
    /// The behaviour of every host.
    pub host: HostConfig,
    /// The network of control messages.
    pub control: Control,
    /// The connections that carry messages.
    #[serde(default, skip_serializing_if = "is_default")]
    pub transport: Transport,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkConfig {
    /// Data rate.
    pub rate: Bandwidth,
    /// Time from the end of sending a byte to its arrival: cable and transceivers.
    pub delay: Span,
}

/// The cables of some hosts, where they differ from the other links: from every port of a host to its switch, and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostLinks {
    /// The first host.
    pub first: u16,
    /// Number of hosts, at least 1.
    pub count: u16,
    /// Rate of each cable; that of all links by default.
    pub rate: Option<Bandwidth>,
    /// Delay of each cable; that of all links by default.
    pub delay: Option<Span>,
}

/// Returns true if a value is the default of its type.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The network of control messages (all messages but fragments).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Control {
    /// Through the same network as the fragments.
    Shared,
    /// Through a separate network without contention.
    Separate {
        /// Time from sender to receiver, beside the length of the message.
        delay: Span,
        /// Rate of its links.
        rate: Bandwidth,
    },
}

impl NetworkConfig {
    /// A network in which only links of this rate take time. Interfaces send packets of up to `packet` bytes without
    /// headers, one message at a time. Routes are fixed, spread by source.
    pub fn plain(topology: Topology, rate: Bandwidth, flow: Flow, packet: ByteCount) -> Self {
        Self {
            preset: String::new(),
            topology,
            planes: None,
            link: LinkConfig { rate, delay: Span::ZERO },
            host_links: Vec::new(),
            switch: SwitchConfig {
                delay: Span::ZERO,
                arbitration: Arbitration::RoundRobin,
                marking: None,
                memory: None,
                trimming: false,
                cut_through: None,
                lanes: None,
            },
            flow,
            routing: Routing::Fixed { spread: Spread::Source },
            nic: NicConfig {
                ports: 1,
                rate: None,
                overhead: Span::ZERO,
                packet,
                header: ByteCount(0),
                minimum: ByteCount(0),
                messages: 1,
                queue: NicConfig::QUEUE,
                service: Service::InTurn,
                keeps_step: false,
                dma: None,
                jitter: None,
            },
            host: HostConfig { send: Span::ZERO, receive: Span::ZERO, jitter: None },
            control: Control::Shared,
            transport: Transport::None,
        }
    }

    /// The cable of a host, unless a listed link says otherwise.
    pub fn host_link(&self, host: u16) -> LinkConfig {
        let own = self.host_links.iter().find(|links| links.hosts().contains(&u32::from(host)));
        LinkConfig {
            rate: own.and_then(|own| own.rate).unwrap_or(self.link.rate),
            delay: own.and_then(|own| own.delay).unwrap_or(self.link.delay),
        }
    }

    /// The rate of the cable of a port of a host, if its host has one of its own.
    pub(crate) fn own_rate(&self, endpoint: EndpointId) -> Option<Bandwidth> {
        let host = u32::from(endpoint.0 / u16::from(self.nic.ports));
        self.host_links.iter().find(|links| links.hosts().contains(&host))?.rate
    }

    /// Number of planes; 1 where there is one network.
    #[inline]
    pub fn plane_count(&self) -> u16 {
        self.planes.map_or(1, |planes| planes.count.into())
    }

    /// The name of a port of a host: `h3`, or `h3.1` where hosts have several ports.
    pub fn endpoint_name(&self, endpoint: EndpointId) -> String {
        let ports = u16::from(self.nic.ports);
        match ports {
            1 => format!("h{}", endpoint.0),
            _ => format!("h{}.{}", endpoint.0 / ports, endpoint.0 % ports),
        }
    }
}

impl HostLinks {
    /// The numbers of the hosts.
    pub fn hosts(&self) -> Range<u32> {
        u32::from(self.first)..u32::from(self.first) + u32::from(self.count)
    }
}
