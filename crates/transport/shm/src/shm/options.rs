//! Options of a shared-memory endpoint.

use evb_transport::{DEFAULT_MAX_BODY, Token};
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// Options of a shared-memory endpoint: the run's token and the limits. Endpoints of a run may differ in all but token
/// and number of nodes. A receiver's `ring_bytes` and `max_body` apply to messages that are sent to it.
#[derive(Clone, Debug)]
pub struct ShmOptions {
    /// The secret of the run, known to its nodes only.
    pub token: Token,
    /// Number of nodes of the run; ids are below it.
    pub nodes: u16,
    /// Longest time that the process of a peer may stand still before it is given up. The time between two calls of a
    /// node does not matter. The loss of a peer is found within [`receive`](evb_transport::Transport::receive) and
    /// [`wait`](evb_transport::Transport::wait). Signs of life come eight times in this time, and at most every millisecond.
    pub peer_timeout: Duration,
    /// Longest time that [`Shm::connect`](super::Shm::connect) takes.
    pub connect_timeout: Duration,
    /// A flag that ends joining early when it is set.
    pub stop: Arc<AtomicBool>,
    /// Longest time until a new process shows the token, and for each further step.
    pub handshake_timeout: Duration,
    /// Longest body in bytes, sent and received.
    pub max_body: usize,
    /// Bytes of the ring in which each peer sends to this node: a power of two from 4 KiB to 1 GiB. Only used parts
    /// take memory.
    pub ring_bytes: usize,
    /// Bytes of the pool from which large bodies are sent, rounded up to whole pages. Only used parts take memory. When
    /// it is full, bodies go in pieces through the rings.
    pub pool_bytes: usize,
    /// Length above which bodies go by reference, in bytes. At most an eighth of a ring is used.
    pub inline_bytes: usize,
}

impl ShmOptions {
    /// The defaults: 10 s of silence, 30 s to connect, 64 MiB bodies, rings of 256 KiB, a pool of 32 MiB, bodies by reference above 1 KiB.
    #[must_use]
    pub fn new(nodes: u16, token: Token) -> Self {
        Self {
            token,
            nodes,
            peer_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(30),
            stop: Arc::default(),
            handshake_timeout: Duration::from_secs(2),
            max_body: DEFAULT_MAX_BODY,
            ring_bytes: 256 << 10,
            pool_bytes: 32 << 20,
            inline_bytes: 1 << 10,
        }
    }
}
