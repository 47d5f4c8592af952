//! UDP multicast: a datagram goes to all members of a group at once, without an acknowledgement.
//!
//! [`WithMulticast`] is a message layer for benchmarks, whose broadcasts may be lost. [`ReliableMulticast`] is a transport
//! for event building, whose broadcasts arrive once and in order: a connection beside the group says what was sent, and
//! brings again what was lost.

mod group;
mod incoming;
mod layer;
mod outgoing;
mod over_tcp;
mod reliable;
mod wire;

pub use group::{Datagrams, Group};
pub use layer::WithMulticast;
pub use reliable::{MulticastOptions, ReliableMulticast};
pub use wire::Tag;

/// Separator between the address of the transport or layer below and what belongs to the group.
const SEPARATOR: char = '|';
