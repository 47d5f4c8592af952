//! Options of an endpoint on Ethernet.

use evb_transport::{DEFAULT_MAX_BODY, Token};
use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// Number of checks in the longest silence. A peer is given up after one more check without a sign of life.
pub(crate) const LOOKS: u32 = 8;
/// The highest priority of a VLAN tag.
pub(crate) const HIGHEST_PRIORITY: u8 = 7;

/// Options of an endpoint on Ethernet: the run's token and the limits.
#[derive(Clone, Debug)]
pub struct EthernetOptions {
    /// The secret of the run, known to its nodes only. It never leaves this node.
    pub token: Token,
    /// Number of nodes of the run; ids are below it.
    pub nodes: u16,
    /// Longest silence of a peer.
    pub peer_timeout: Duration,
    /// Longest time that joining the peers takes.
    pub connect_timeout: Duration,
    /// A flag that ends joining early when it is set.
    pub stop: Arc<AtomicBool>,
    /// Longest body in bytes, sent and received.
    pub max_body: usize,
    /// Most bytes that wait for one peer, with 36 bytes for each message. One message always fits.
    pub send_queue_bytes: usize,
    /// Priority of all frames, from 1 to 7, in a VLAN tag without a VLAN; 0 for no tag.
    pub priority: u8,
    /// Most megabits that are sent to a peer in a second; 0 for no limit.
    pub megabits: u32,
}

impl EthernetOptions {
    /// The defaults: 10 s of silence, 30 s to connect, 64 MiB bodies, 4 MiB waiting for each peer, no tag, no limit of the
    /// rate.
    #[must_use]
    pub fn new(nodes: u16, token: Token) -> Self {
        Self {
            token,
            nodes,
            peer_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(30),
            stop: Arc::default(),
            max_body: DEFAULT_MAX_BODY,
            send_queue_bytes: 4 << 20,
            priority: 0,
            megabits: 0,
        }
    }
}
