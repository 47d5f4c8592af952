//! Messages between mappers, and their routes.

use crate::Map;
use alloc::{sync::Arc, vec::Vec};
use evb_core::Span;

/// A step of a route: the port by which a packet leaves a switch, counted from the one by which it came in.
pub type Turn = i16;

/// A source route: one turn for each switch on the way.
pub type Route = Vec<Turn>;

/// The reverse of a route.
///
/// ```
/// assert_eq!(evb_mapper::back(&[3, -1]).collect::<Vec<_>>(), [1, -3]);
/// ```
pub fn back(route: &[Turn]) -> impl Iterator<Item = Turn> + '_ {
    route.iter().rev().map(|turn| -turn)
}

/// The address of an interface, as its manufacturer gave it. Of several mappers the one with the lowest leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

/// A message between mappers. `number` is that of the probe of its mapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A mapper asks for the host at the end of a route.
    Scout {
        /// The number of the probe.
        number: u32,
        /// The mapper that asks.
        mapper: Address,
        /// The route of the message, for the way back.
        route: Route,
    },
    /// A message that comes back to its sender by its route alone, if the switches are where the sender thinks.
    Loop {
        /// The number of the probe.
        number: u32,
        /// The mapper that sent it.
        mapper: Address,
    },
    /// The answer to a scout.
    Reply {
        /// The number of the probe.
        number: u32,
        /// The host that answers.
        host: Address,
        /// The leader that it knows: itself, if none.
        leader: Address,
        /// Time since it heard of that leader.
        silent_for: Span,
    },
    /// The leader sends a host the map.
    Map {
        /// The number of the probe.
        number: u32,
        /// The map.
        map: Arc<Map>,
        /// The route of the message, for the way back.
        route: Route,
    },
    /// A host has the map.
    Taken {
        /// The number of the probe.
        number: u32,
    },
}

/// A message on its way out of a mapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its route.
    pub route: Route,
    /// The message.
    pub message: Message,
}
