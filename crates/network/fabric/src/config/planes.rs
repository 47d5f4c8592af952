//! Several networks of one kind beside each other.

use serde::{Deserialize, Serialize};

/// Copies of the topology that no link joins. Each host has a port in each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planes {
    /// Number of copies, at least 2.
    pub count: u8,
    /// What goes over which plane.
    pub choice: PlaneChoice,
}

/// The choice of the plane. What the chosen one does not carry to the receiver, as its host knows, takes the next plane that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaneChoice {
    /// Each packet takes the plane whose port is free first; the packets of a connection take the planes in turn.
    Packet,
    /// The messages of a host take the planes in turn.
    Message,
    /// One plane for each pair of hosts: the sum of their numbers, modulo the number of planes.
    Pair,
    /// One plane for each receiver: the number of its host, modulo the number of planes.
    Destination,
}
