//! A wire that is an interface of this machine, through one of two kinds of sockets: packet sockets and AF_XDP.

use crate::{
    Port,
    packet::{Found, Packets, Socket},
    wire::Wire,
    xdp::Queue,
};
use evb_core::NodeId;
use std::{io, os::fd::BorrowedFd, str::FromStr};

/// Most bytes behind an Ethernet header that a frame has, whatever the interface takes: jumbo frames of most switches.
const MOST_MTU: usize = 9216;
/// Fewest that the protocol works with.
const LEAST_MTU: usize = 256;

/// The socket of Linux through which frames go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SocketKind {
    /// A packet socket, which works on each interface.
    #[default]
    Packet,
    /// A socket of AF_XDP, which needs a driver for it, and an interface for each node.
    Xdp,
}

impl SocketKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Packet, Self::Xdp];

    /// The name of a kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Packet => "packet",
            Self::Xdp => "xdp",
        }
    }
}

impl FromStr for SocketKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or(())
    }
}

/// The reason why an interface cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// This process may not open packet sockets.
    #[error("frames of Ethernet need the capability CAP_NET_RAW, which this process does not have")]
    NotPermitted,
    /// There is no such interface, or the system refuses something.
    #[error("cannot use the interface {interface:?}: {step}: {source}")]
    System {
        /// The name of the interface.
        interface: String,
        /// What was tried.
        step: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// Frames of this interface are too short.
    #[error("cannot use the interface {interface:?}: its frames have {mtu} bytes, and {least} are needed", least = LEAST_MTU)]
    ShortFrames {
        /// The name of the interface.
        interface: String,
        /// Bytes behind an Ethernet header.
        mtu: usize,
    },
    /// AF_XDP does not work here.
    #[error("cannot use AF_XDP on the interface {interface:?}: {step}: {source}")]
    NoXdp {
        /// The name of the interface.
        interface: String,
        /// What was tried.
        step: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

/// A step that failed, and the system's answer.
pub(crate) type Failure = (&'static str, io::Error);

/// What a node hears: frames for it of the run with this mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub(crate) local: NodeId,
    pub(crate) run: u32,
}

/// An interface of this machine, as one node uses it.
#[derive(Debug)]
pub struct Interface {
    way: Way,
    found: Found,
}

#[derive(Debug)]
enum Way {
    Packets(Packets),
    Xdp(Box<Queue>),
}

impl Interface {
    /// Opens the interface of this name for node `local` of the run with this mark, through a socket of this kind, with
    /// memory of `ring_bytes` for frames that arrive.
    ///
    /// # Errors
    /// [`InterfaceError`] if there is no such interface, or this process may not use it.
    pub fn open(
        interface: &str,
        local: NodeId,
        run: u32,
        ring_bytes: usize,
        kind: SocketKind,
    ) -> Result<Self, InterfaceError> {
        let failed = |(step, source): Failure| match source.kind() {
            io::ErrorKind::PermissionDenied => InterfaceError::NotPermitted,
            _ => InterfaceError::System { interface: interface.to_owned(), step, source },
        };
        let no_xdp = |(step, source)| InterfaceError::NoXdp { interface: interface.to_owned(), step, source };
        let socket = Socket::open().map_err(|source| failed(("opening a packet socket", source)))?;
        let mut found = socket.find(interface).map_err(|source| failed(("looking for it", source)))?;
        found.mtu = found.mtu.min(MOST_MTU);
        if found.mtu < LEAST_MTU {
            return Err(InterfaceError::ShortFrames { interface: interface.to_owned(), mtu: found.mtu });
        }
        let address = Address { local, run };
        let way = match kind {
            SocketKind::Packet => Way::Packets(Packets::open(socket, &found, address, ring_bytes).map_err(failed)?),
            SocketKind::Xdp => Way::Xdp(Box::new(Queue::open(&found, address, ring_bytes).map_err(no_xdp)?)),
        };
        Ok(Self { way, found })
    }
}

impl Wire for Interface {
    fn port(&self) -> Port {
        let frames = match &self.way {
            Way::Packets(packets) => packets.frames(),
            Way::Xdp(queue) => queue.frames(),
        };
        Port { mac: self.found.mac, mtu: self.found.mtu, frames }
    }

    fn hear_own_machine(&mut self) -> io::Result<()> {
        match &self.way {
            // The loopback interface gives back what it is given.
            Way::Packets(_) if self.found.is_loopback => Ok(()),
            Way::Packets(packets) => packets.hear_outgoing(),
            Way::Xdp(_) => Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "no other node of this machine hears what is sent through AF_XDP",
            )),
        }
    }

    #[inline]
    fn send(&mut self, frames: &[&[u8]]) -> usize {
        match &mut self.way {
            Way::Packets(packets) => packets.send(frames),
            Way::Xdp(queue) => queue.send(frames),
        }
    }

    #[inline]
    fn receive(&mut self, limit: usize, take: &mut dyn FnMut(&[u8])) -> usize {
        match &mut self.way {
            Way::Packets(packets) => packets.receive(limit, take),
            Way::Xdp(queue) => queue.receive(limit, take),
        }
    }

    fn file(&self) -> BorrowedFd<'_> {
        match &self.way {
            Way::Packets(packets) => packets.file(),
            Way::Xdp(queue) => queue.file(),
        }
    }
}
