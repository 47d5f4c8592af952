//! Options of a TCP endpoint.

use evb_transport::{DEFAULT_MAX_BODY, Token};
use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

/// Options of a TCP endpoint: addresses, the run's token and the limits.
#[derive(Clone, Debug)]
pub struct TcpOptions {
    /// Address to listen on; port 0 lets the system choose the port.
    pub listen: SocketAddr,
    /// The secret of the run, known to its nodes only.
    pub token: Token,
    /// Seals all frames. All nodes of a run must do the same.
    pub encrypt: bool,
    /// Number of nodes of the run; ids are below it.
    pub nodes: u16,
    /// Longest silence of a peer, and of this node towards its peers. A node must call
    /// [`receive`](evb_transport::Transport::receive), [`flush`](evb_transport::Transport::flush) or [`wait`](evb_transport::Transport::wait)
    /// more often than every half of it.
    pub peer_timeout: Duration,
    /// Longest time that [`Tcp::connect`](super::Tcp::connect) takes.
    pub connect_timeout: Duration,
    /// A flag that ends joining early when it is set.
    pub stop: Arc<AtomicBool>,
    /// Longest time until a new connection shows the token.
    pub handshake_timeout: Duration,
    /// Longest body in bytes, sent and received.
    pub max_body: usize,
    /// Most bytes that wait for one peer, headers included. One message always fits.
    pub send_queue_bytes: usize,
    /// Size of the system's socket buffers in bytes; `None` leaves them to the system, which lets them grow. Below 64
    /// KiB a loopback connection may stall for seconds: the system drops segments that do not fit.
    pub socket_buffer_bytes: Option<usize>,
}

impl TcpOptions {
    /// The defaults: this machine only, 10 s of silence, 30 s to connect, 64 MiB bodies, 4 MiB waiting for each peer.
    #[must_use]
    pub fn new(nodes: u16, token: Token) -> Self {
        Self {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            token,
            encrypt: false,
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
