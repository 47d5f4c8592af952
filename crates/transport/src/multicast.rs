//! Broadcasts by UDP multicast, beside any layer that carries all other messages.
//!
//! A datagram goes to all members of the group at once, without an acknowledgement: a receiver that is too slow loses
//! it. A user that needs all of them must count.

use crate::{Connect, JoinError, MessageLayer, Refused, Take};
use evb_core::{NodeId, NodeRange};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::{
    io::{self, ErrorKind},
    net::{Ipv4Addr, SocketAddrV4, UdpSocket},
    time::Duration,
};

/// Longest broadcast in bytes: a datagram less headers and [`TAG_BYTES`].
const LONGEST: usize = 65_507 - TAG_BYTES;
/// Bytes of the sender's id before the payload.
const TAG_BYTES: usize = 2;
/// Bytes that the system keeps for a slow receiver, if it allows.
const RECEIVE_BUFFER: usize = 4 << 20;
/// The group. The port distinguishes several groups on one machine (administratively scoped, RFC 2365).
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 192, 77, 1);
/// Separator between the address of the layer below and the port of the group.
const SEPARATOR: char = '|';

/// A layer whose broadcasts go by multicast, on one interface.
#[derive(Debug)]
pub struct WithMulticast<L> {
    layer: L,
    interface: Ipv4Addr,
    socket: UdpSocket,
    group: SocketAddrV4,
    datagram: Box<[u8]>,
}

impl<L> WithMulticast<L> {
    /// Adds multicast on the interface with this address.
    ///
    /// # Errors
    /// The system refuses a socket, or the interface has no multicast.
    pub fn new(layer: L, interface: Ipv4Addr) -> io::Result<Self> {
        let (socket, group) = open(interface, 0)?;
        Ok(Self { layer, interface, socket, group, datagram: vec![0; TAG_BYTES + LONGEST].into() })
    }

    /// The next broadcast of another node: its sender and its length.
    fn next_datagram(&mut self, local: NodeId) -> Option<(NodeId, usize)> {
        loop {
            match self.socket.recv(&mut self.datagram) {
                Ok(length) if length > TAG_BYTES => {
                    let from = NodeId(u16::from_le_bytes([self.datagram[0], self.datagram[1]]));
                    if from != local {
                        return Some((from, length));
                    }
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}

/// A socket that sends to the group and receives from it; port 0 takes any free one.
fn open(interface: Ipv4Addr, port: u16) -> io::Result<(UdpSocket, SocketAddrV4)> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    // All members on this machine have the same port.
    socket.set_reuse_address(true)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.bind(&SockAddr::from(SocketAddrV4::new(GROUP, port)))?;
    socket.join_multicast_v4(&GROUP, &interface)?;
    socket.set_multicast_if_v4(&interface)?;
    socket.set_multicast_loop_v4(true)?;
    socket.set_nonblocking(true)?;
    let socket = UdpSocket::from(socket);
    let port = socket.local_addr()?.port();
    Ok((socket, SocketAddrV4::new(GROUP, port)))
}

impl<L: Connect + MessageLayer> Connect for WithMulticast<L> {
    fn address(&self) -> String {
        format!("{}{SEPARATOR}{}", self.layer.address(), self.group.port())
    }

    /// All nodes use the port of the node with the lowest id.
    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        let parted = |(node, text): &(NodeId, String)| match text.split_once(SEPARATOR) {
            Some((below, port)) => {
                Ok((*node, below.to_owned(), port.parse().map_err(|_| format!("{text:?}: no port"))?))
            }
            None => Err(format!("{text:?} of {node} has no port of a multicast group")),
        };
        let peers: Vec<(NodeId, String, u16)> =
            peers.iter().map(parted).collect::<Result<_, _>>().map_err(JoinError::new::<String>)?;
        if let Some((_, _, port)) = peers.iter().min().filter(|(node, ..)| *node < self.layer.local()) {
            (self.socket, self.group) =
                open(self.interface, *port).map_err(|error| JoinError::new(format!("multicast: {error}")))?;
        }
        let below: Vec<_> = peers.into_iter().map(|(node, address, _)| (node, address)).collect();
        self.layer.connect(&below)
    }
}

impl<L: MessageLayer> MessageLayer for WithMulticast<L> {
    fn local(&self) -> NodeId {
        self.layer.local()
    }

    fn max_bytes(&self) -> usize {
        self.layer.max_bytes().min(LONGEST)
    }

    fn send(&mut self, to: NodeId, bytes: &[u8]) -> Result<(), Refused> {
        self.layer.send(to, bytes)
    }

    fn has_broadcast(&self) -> bool {
        true
    }

    /// Discards the rest of earlier broadcasts.
    fn expect_broadcasts(&mut self, _from: NodeId, _to: NodeRange, _length: usize) {
        let local = self.local();
        while self.next_datagram(local).is_some() {}
    }

    fn broadcast(&mut self, _to: NodeRange, bytes: &[u8]) -> Result<(), Refused> {
        if bytes.len() > LONGEST {
            return Err(Refused::TooLarge { limit: LONGEST });
        }
        let length = TAG_BYTES + bytes.len();
        self.datagram[..TAG_BYTES].copy_from_slice(&self.layer.local().0.to_le_bytes());
        self.datagram[TAG_BYTES..length].copy_from_slice(bytes);
        match self.socket.send_to(&self.datagram[..length], self.group) {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Err(Refused::Full),
            Err(_) => Err(Refused::Lost),
        }
    }

    fn flush(&mut self) -> bool {
        self.layer.flush()
    }

    /// Broadcasts come first: messages that were sent after them on the layer below must not overtake them here.
    fn receive(&mut self, limit: usize, take: &mut Take<'_>) -> usize {
        let local = self.local();
        for count in 0..limit {
            match self.next_datagram(local) {
                Some((from, length)) => take(from, &self.datagram[TAG_BYTES..length]),
                None => return count + self.layer.receive(limit - count, take),
            }
        }
        limit
    }

    fn lost(&mut self) -> Option<NodeId> {
        self.layer.lost()
    }

    /// Waits only for a short time, since broadcasts do not end the wait.
    fn wait(&mut self, timeout: Duration) {
        self.layer.wait(timeout.min(Duration::from_micros(200)));
    }
}
