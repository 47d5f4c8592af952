//! The transport straight on Ethernet: a light protocol in its own frames, without IP and TCP.
//!
//! [`Ethernet`] is the endpoint of a node on an interface of this machine. Frames are numbered, acknowledged one by one and
//! sent again when they are lost; receivers grant credit for the memory that they have. Nodes find each other by their
//! numbers, and prove to each other that they have the token of the run. `docs/reference/ethernet-wire.md` describes the
//! bytes.
//!
//! The protocol is a machine without clock and socket ([`Endpoint`] drives it), so that tests can run it through losses in
//! virtual time, and over any [`Wire`].

mod endpoint;
mod factory;
mod frame;
mod hello;
mod interface;
mod keys;
mod layer;
mod link;
mod machine;
mod options;
mod packet;
mod wire;

pub use endpoint::Endpoint;
pub use factory::Ethernet;
pub use frame::{ETHERTYPE, HEADER_BYTES, Mac};
pub use interface::{Interface, InterfaceError};
pub use layer::EndpointLayer;
pub use machine::{Counts, Port};
pub use options::EthernetOptions;
pub use wire::Wire;

use evb_core::NodeId;
use evb_transport::Token;

/// Memory for frames that arrive at a node, in bytes.
pub const RING_BYTES: usize = 2 << 20;

/// Opens the interface of this name for a node of the run with this token.
///
/// # Errors
/// [`InterfaceError`] if the interface does not exist, or this process may not use it.
pub fn open_interface(interface: &str, local: NodeId, token: &Token) -> Result<Interface, InterfaceError> {
    Interface::open(interface, local, keys::Keys::new(token).run(), RING_BYTES)
}
