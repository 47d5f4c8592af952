//! Broadcasts by UDP multicast, beside any layer that carries all other messages.
//!
//! A datagram goes to all members of the group at once, without an acknowledgement: a receiver that is too slow loses
//! it. A user that needs all of them must count.

use super::{
    SEPARATOR,
    group::{Datagrams, Group, LONGEST_DATAGRAM},
};
use evb_core::{NodeId, NodeRange};
use evb_transport::{Connect, JoinError, MessageLayer, Refused, Take};
use std::{io, net::Ipv4Addr, time::Duration};

/// Longest broadcast in bytes: a datagram less [`TAG_BYTES`].
const LONGEST: usize = LONGEST_DATAGRAM - TAG_BYTES;
/// Bytes of the sender's id before the payload.
const TAG_BYTES: usize = 2;

/// A layer whose broadcasts go by multicast, on one interface.
#[derive(Debug)]
pub struct WithMulticast<L> {
    layer: L,
    interface: Ipv4Addr,
    group: Group,
    datagram: Box<[u8]>,
}

impl<L> WithMulticast<L> {
    /// Adds multicast on the interface with this address.
    ///
    /// # Errors
    /// The system refuses a socket, or the interface has no multicast.
    pub fn new(layer: L, interface: Ipv4Addr) -> io::Result<Self> {
        let group = Group::join(interface, 0)?;
        Ok(Self { layer, interface, group, datagram: vec![0; LONGEST_DATAGRAM].into() })
    }

    /// The next broadcast of another node: its sender and its length.
    fn next_datagram(&mut self, local: NodeId) -> Option<(NodeId, usize)> {
        while let Some(length) = self.group.receive(&mut self.datagram) {
            let from = NodeId(u16::from_le_bytes([self.datagram[0], self.datagram[1]]));
            if length > TAG_BYTES && from != local {
                return Some((from, length));
            }
        }
        None
    }
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
            self.group =
                Group::join(self.interface, *port).map_err(|error| JoinError::new(format!("multicast: {error}")))?;
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
        match self.group.send(&self.datagram[..length]) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Refused::Full),
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
