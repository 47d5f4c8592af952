//! A wire that is an interface of this machine: a packet socket of Linux, with a ring of arrived frames in shared memory.

mod filter;
mod ring;
mod socket;

use crate::{Port, wire::Wire};
use evb_core::NodeId;
use ring::Ring;
use socket::Socket;
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

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
}

/// An interface of this machine, as one node uses it.
#[derive(Debug)]
pub struct Interface {
    ring: Ring,
    socket: Socket,
    port: Port,
    is_loopback: bool,
}

impl Interface {
    /// Opens the interface of this name for node `local` of the run with this mark, with memory of `ring_bytes` for frames
    /// that arrive.
    ///
    /// # Errors
    /// [`InterfaceError`] if there is no such interface, or this process may not use it.
    pub fn open(interface: &str, local: NodeId, run: u32, ring_bytes: usize) -> Result<Self, InterfaceError> {
        let failed = |step| {
            move |source: io::Error| match source.kind() {
                io::ErrorKind::PermissionDenied => InterfaceError::NotPermitted,
                _ => InterfaceError::System { interface: interface.to_owned(), step, source },
            }
        };
        let socket = Socket::open().map_err(failed("opening a packet socket"))?;
        let found = socket.find(interface).map_err(failed("looking for it"))?;
        let mtu = found.mtu.min(MOST_MTU);
        if mtu < LEAST_MTU {
            return Err(InterfaceError::ShortFrames { interface: interface.to_owned(), mtu });
        }
        socket.filter(&filter::program(local, run)).map_err(failed("setting a filter"))?;
        let ring = Ring::map(&socket, mtu, ring_bytes).map_err(failed("mapping a ring"))?;
        socket.bind(found.index, false).map_err(failed("binding to it"))?;
        let port = Port { mac: found.mac, mtu, frames: ring.frames() };
        Ok(Self { ring, socket, port, is_loopback: found.is_loopback })
    }
}

impl Wire for Interface {
    fn port(&self) -> Port {
        self.port
    }

    fn hear_own_machine(&mut self) -> io::Result<()> {
        // The loopback interface gives back what it is given.
        if self.is_loopback { Ok(()) } else { self.socket.hear_outgoing() }
    }

    #[inline]
    fn send(&mut self, frames: &[&[u8]]) -> usize {
        self.socket.send(frames)
    }

    #[inline]
    fn receive(&mut self, limit: usize, take: &mut dyn FnMut(&[u8])) -> usize {
        self.ring.take(limit, take)
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
