//! Why there is no cluster.

use crate::{LINKS, NODES};
use evb_shim::CacheError;
use evb_velo::mailbox::RingError;
use std::io;

/// Why there is no cluster.
#[derive(Debug, thiserror::Error)]
pub enum RtlError {
    /// Too few or too many nodes.
    #[error("{nodes} nodes: the hardware joins {} back to back, and up to {} by a switch", NODES.start(), NODES.end())]
    Nodes {
        /// Number of nodes.
        nodes: usize,
    },
    /// No such link.
    #[error("a link of {link} wires: use {} or {}", LINKS[..LINKS.len() - 1].iter().map(u32::to_string).collect::<Vec<_>>().join(", "), LINKS[LINKS.len() - 1])]
    Link {
        /// Wires in one direction.
        link: u32,
    },
    /// No such mailbox.
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
        /// Why.
        source: io::Error,
    },
    /// A tool does not take the sources.
    #[error("{tool} cannot build the simulation of the hardware: {says}\nhint: Verilator 5.006 and g++ 12 can")]
    Build {
        /// The tool.
        tool: &'static str,
        /// What it said.
        says: String,
    },
    /// The cache folder is of no use.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The library is there, but does not open.
    #[error("the simulation of the hardware cannot be opened: {0}")]
    Open(#[from] libloading::Error),
}
