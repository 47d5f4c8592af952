//! A socket that sends to a multicast group and receives from it.

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::{
    io::{self, ErrorKind},
    net::{Ipv4Addr, SocketAddrV4},
};

/// Longest datagram in bytes.
pub(super) const LONGEST_DATAGRAM: usize = 65_507;
/// Bytes that the system keeps for a slow receiver, if it allows.
const RECEIVE_BUFFER: usize = 4 << 20;
/// The group. The port distinguishes several groups on one machine (administratively scoped, RFC 2365).
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 192, 77, 1);

/// Datagrams to all members of a group, of which each may get lost, come twice or late.
pub trait Datagrams: Send {
    /// Sends a datagram; false if there is no room for it now.
    ///
    /// # Errors
    /// The system refuses to send to the group.
    fn send(&mut self, bytes: &[u8]) -> io::Result<bool>;

    /// Takes the next datagram into `buffer`, and returns its length.
    fn receive(&mut self, buffer: &mut [u8]) -> Option<usize>;
}

/// A member of the group on one interface.
#[derive(Debug)]
pub struct Group {
    pub(crate) socket: mio::net::UdpSocket,
    address: SocketAddrV4,
}

impl Group {
    /// Joins the group on the interface with this address; port 0 takes any free one.
    ///
    /// # Errors
    /// The system refuses a socket, or the interface has no multicast.
    pub fn join(interface: Ipv4Addr, port: u16) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        // All members on this machine have the same port.
        socket.set_reuse_address(true)?;
        socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
        socket.bind(&SockAddr::from(SocketAddrV4::new(GROUP, port)))?;
        socket.join_multicast_v4(&GROUP, &interface)?;
        socket.set_multicast_if_v4(&interface)?;
        socket.set_multicast_loop_v4(true)?;
        socket.set_nonblocking(true)?;
        let socket = std::net::UdpSocket::from(socket);
        let port = socket.local_addr()?.port();
        Ok(Self { socket: mio::net::UdpSocket::from_std(socket), address: SocketAddrV4::new(GROUP, port) })
    }

    /// The port of the group.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Datagrams for Group {
    fn send(&mut self, bytes: &[u8]) -> io::Result<bool> {
        match self.socket.send_to(bytes, self.address.into()) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Option<usize> {
        loop {
            match self.socket.recv(buffer) {
                Ok(length) => return Some(length),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}
