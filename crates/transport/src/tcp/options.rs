//! What a TCP endpoint is told.

use crate::{DEFAULT_MAX_BODY, Token};
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// What a TCP endpoint is told: addresses, the run's token and the limits.
#[derive(Clone, Debug)]
pub struct TcpOptions {
    /// Where peers connect to; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// What all nodes of this run know and nobody else.
    pub token: Token,
    /// Number of nodes of the run; ids are below it.
    pub nodes: u16,
    /// Longest silence of a peer, and of this node towards its peers: a node must call
    /// [`receive`](crate::Transport::receive), [`flush`](crate::Transport::flush) or [`wait`](crate::Transport::wait) more
    /// often than every half of it.
    pub peer_timeout: Duration,
    /// Longest time that [`Tcp::connect`](super::Tcp::connect) takes.
    pub connect_timeout: Duration,
    /// Ends joining early, when it is set.
    pub stop: Arc<AtomicBool>,
    /// Longest time that a connection may take to show the token.
    pub handshake_timeout: Duration,
    /// Longest body in bytes, sent and received.
    pub max_body: usize,
    /// Most bytes that wait for one peer, headers included. One message always fits.
    pub send_queue_bytes: usize,
    /// Size of the system's socket buffers in bytes; `None` leaves them to the system, which lets them grow. Below
    /// 64 KiB a loopback connection may stall for seconds: the system drops segments that do not fit.
    pub socket_buffer_bytes: Option<usize>,
}

impl TcpOptions {
    /// The defaults: this machine only, 10 s of silence, 30 s to connect, 64 MiB bodies, 4 MiB waiting for each peer.
    #[must_use]
    pub fn new(nodes: u16, token: Token) -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            token,
            nodes,
            peer_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(30),
            stop: Arc::default(),
            handshake_timeout: Duration::from_secs(2),
            max_body: DEFAULT_MAX_BODY,
            send_queue_bytes: 4 << 20,
            socket_buffer_bytes: None,
        }
    }
}
