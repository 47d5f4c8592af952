//! Options that the endpoints of all media have in common.

use crate::{DEFAULT_MAX_BODY, Token};
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// Options of an endpoint that do not depend on its medium: the run's token and the limits.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// The secret of the run, known to its nodes only.
    pub token: Token,
    /// Number of nodes of the run; ids are below it.
    pub nodes: u16,
    /// Longest silence of a peer, and of this node towards its peers.
    pub peer_timeout: Duration,
    /// Longest time that joining the peers takes.
    pub connect_timeout: Duration,
    /// Longest time until a new connection shows the token, for media with connections.
    pub handshake_timeout: Duration,
    /// A flag that ends joining early when it is set.
    pub stop: Arc<AtomicBool>,
    /// Longest body in bytes, sent and received.
    pub max_body: usize,
}

impl EndpointOptions {
    /// The defaults: 10 s of silence, 30 s to connect, 2 s for a handshake, 64 MiB bodies.
    #[must_use]
    pub fn new(nodes: u16, token: Token) -> Self {
        Self {
            token,
            nodes,
            peer_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(2),
            stop: Arc::default(),
            max_body: DEFAULT_MAX_BODY,
        }
    }
}
