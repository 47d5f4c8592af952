//! Errors of opening a cluster.

use crate::{LINKS, NODES};
use evb_os::compiled::CacheError;
use evb_velo::mailbox::RingError;
#[cfg(target_os = "linux")]
use evb_velo_device::DeviceError;
use std::io;
#[cfg(target_os = "linux")]
use std::time::Duration;

/// The reason why a cluster cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum RtlError {
    /// Too few or too many nodes.
    #[error("{nodes} nodes: the hardware joins {} back to back, and up to {} by a switch", NODES.start(), NODES.end())]
    Nodes {
        /// Number of nodes.
        nodes: usize,
    },
    /// An invalid width of the link.
    #[error("a link of {link} wires: use {} or {}", LINKS[..LINKS.len() - 1].iter().map(u32::to_string).collect::<Vec<_>>().join(", "), LINKS[LINKS.len() - 1])]
    Link {
        /// Wires in one direction.
        link: u32,
    },
    /// An invalid mailbox.
    #[error(transparent)]
    Mailbox(#[from] RingError),
    /// A tool does not run.
    #[error(
        "the hardware cannot be simulated: {tool} does not run: {source}\n\
         hint: install Verilator 5 and a C++ compiler (Debian: verilator g++)"
    )]
    NoTool {
        /// The tool.
        tool: &'static str,
        /// The reason.
        source: io::Error,
    },
    /// A tool refuses the sources.
    #[error("{tool} cannot build the simulation of the hardware: {says}\nhint: Verilator 5.006 and g++ 12 can")]
    Build {
        /// The tool.
        tool: &'static str,
        /// The output of the tool.
        says: String,
    },
    /// The rack of a [`Service`](crate::Service) cannot be opened.
    #[cfg(target_os = "linux")]
    #[error(transparent)]
    Rack(#[from] DeviceError),
    /// No process has opened a card of a [`Service`](crate::Service).
    #[cfg(target_os = "linux")]
    #[error("no process has opened a card for {} s", patience.as_secs())]
    NoCard {
        /// The longest time for which a service waits for the first card.
        patience: Duration,
    },
    /// The cache folder cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The library exists, but cannot be opened.
    #[error("the simulation of the hardware cannot be opened: {0}")]
    Open(#[from] libloading::Error),
}
