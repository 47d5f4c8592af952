//! A wire that is an interface of this machine, through a packet socket.

use crate::{
    Port,
    packet::{InterfaceProperties, Packets, Socket},
    wire::Wire,
};
use evb_core::NodeId;
use std::{io, os::fd::BorrowedFd};

/// Most bytes behind an Ethernet header that a frame has, whatever the interface takes: jumbo frames of most switches.
const MOST_MTU: usize = 9216;
/// Fewest that the protocol works with.
const LEAST_MTU: usize = 256;

/// The reason why an interface cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// This process may not open packet sockets.
    #[error("frames of Ethernet need the capability CAP_NET_RAW, which this process does not have")]
    NotPermitted,
    /// The interface does not exist, or the system refuses something.
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
    packets: Packets,
    found: InterfaceProperties,
}

impl Interface {
    /// Opens the interface of this name for node `local` of the run with this mark, with memory of `ring_bytes` for frames that
    /// arrive.
    ///
    /// # Errors
    /// [`InterfaceError`] if the interface does not exist, or this process may not use it.
    pub fn open(interface: &str, local: NodeId, run: u32, ring_bytes: usize) -> Result<Self, InterfaceError> {
        let failed = |(step, source): Failure| match source.kind() {
            io::ErrorKind::PermissionDenied => InterfaceError::NotPermitted,
            _ => InterfaceError::System { interface: interface.to_owned(), step, source },
        };
        let socket = Socket::open().map_err(|source| failed(("opening a packet socket", source)))?;
        let mut found = socket.find(interface).map_err(|source| failed(("looking for it", source)))?;
        found.mtu = found.mtu.min(MOST_MTU);
        if found.mtu < LEAST_MTU {
            return Err(InterfaceError::ShortFrames { interface: interface.to_owned(), mtu: found.mtu });
        }
        let packets = Packets::open(socket, &found, Address { local, run }, ring_bytes).map_err(failed)?;
        Ok(Self { packets, found })
    }
}

impl Wire for Interface {
    fn port(&self) -> Port {
        Port { mac: self.found.mac, mtu: self.found.mtu, frames: self.packets.frames() }
    }

    fn hear_own_machine(&mut self) -> io::Result<()> {
        // The loopback interface returns what is sent over it.
        if self.found.is_loopback { Ok(()) } else { self.packets.hear_outgoing() }
    }

    #[inline]
    fn send(&mut self, frames: &[&[u8]]) -> usize {
        self.packets.send(frames)
    }

    #[inline]
    fn receive(&mut self, limit: usize, take: &mut dyn FnMut(&[u8])) -> usize {
        self.packets.receive(limit, take)
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.packets.file()
    }
}
