//! Options of a shared-memory endpoint.

use evb_transport::EndpointOptions;

/// Options of a shared-memory endpoint. Endpoints of a run may differ in all but token and number of nodes. A receiver's
/// `ring_bytes` and `max_body` apply to messages that are sent to it. The time between two calls of a node does not matter
/// for `endpoint.peer_timeout`, but only whether its process runs: signs of life come eight times in it, and at most every
/// millisecond. The loss of a peer is found within [`receive`](evb_transport::Transport::receive) and
/// [`wait`](evb_transport::Transport::wait).
#[derive(Clone, Debug)]
pub struct ShmOptions {
    /// What all transports have in common.
    pub endpoint: EndpointOptions,
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
    /// Default of `ring_bytes`.
    pub const RING_BYTES: usize = 256 << 10;
    /// Default of `pool_bytes`.
    pub const POOL_BYTES: usize = 32 << 20;

    /// The defaults: rings of 256 KiB, a pool of 32 MiB, bodies by reference above 1 KiB.
    #[must_use]
    pub fn new(endpoint: EndpointOptions) -> Self {
        Self { endpoint, ring_bytes: Self::RING_BYTES, pool_bytes: Self::POOL_BYTES, inline_bytes: 1 << 10 }
    }
}
