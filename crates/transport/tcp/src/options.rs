//! Options of a TCP endpoint.

use evb_transport::EndpointOptions;
use socket2::SockRef;
use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    os::fd::AsFd,
};

/// Options of a TCP endpoint. A node must call [`receive`](evb_transport::Transport::receive),
/// [`flush`](evb_transport::Transport::flush) or [`wait`](evb_transport::Transport::wait) more often than every half of
/// `endpoint.peer_timeout`.
#[derive(Clone, Debug)]
pub struct TcpOptions {
    /// What all transports have in common.
    pub endpoint: EndpointOptions,
    /// Address to listen on; port 0 lets the system choose the port.
    pub listen: SocketAddr,
    /// Seals all frames. All nodes of a run must do the same.
    pub encrypt: bool,
    /// Most bytes that wait for one peer, headers included. One message always fits.
    pub send_queue_bytes: usize,
    /// Size of the system's socket buffers in bytes; `None` leaves them to the system, which lets them grow. Below 64
    /// KiB a loopback connection may stall for seconds: the system drops segments that do not fit.
    pub socket_buffer_bytes: Option<usize>,
    /// The congestion control of all connections, such as `cubic`; `None` for that of the system.
    pub congestion_control: Option<String>,
}

impl TcpOptions {
    /// Default of `send_queue_bytes`.
    pub const SEND_QUEUE_BYTES: usize = 4 << 20;

    /// Gives a socket its congestion control.
    pub(crate) fn set_congestion_control(&self, socket: &impl AsFd) -> io::Result<()> {
        let mut name = self.congestion_control.iter();
        name.try_for_each(|name| SockRef::from(socket).set_tcp_congestion(name.as_bytes()))
    }

    /// The defaults: this machine only, in clear, 4 MiB waiting for each peer.
    #[must_use]
    pub fn new(endpoint: EndpointOptions) -> Self {
        Self {
            endpoint,
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            encrypt: false,
            send_queue_bytes: Self::SEND_QUEUE_BYTES,
            socket_buffer_bytes: None,
            congestion_control: None,
        }
    }
}
