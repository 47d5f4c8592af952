//! A packet socket of Linux, with a ring of arrived frames in shared memory.
//!
//! The ring is version 2 of the kernel's. Version 3 delivers frames in blocks, which delays each by a timer.

mod filter;
mod ring;
mod socket;

use crate::interface::{Address, Failure};
use ring::Ring;
pub(crate) use socket::{InterfaceProperties, Socket};
use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
};

/// A socket that is bound to an interface, and its ring.
#[derive(Debug)]
pub(crate) struct Packets {
    ring: Ring,
    socket: Socket,
}

impl Packets {
    /// Binds a socket to an interface, with memory of `ring_bytes` for frames that arrive.
    pub(crate) fn open(
        socket: Socket,
        found: &InterfaceProperties,
        address: Address,
        ring_bytes: usize,
    ) -> Result<Self, Failure> {
        let failed = |step| move |source| (step, source);
        socket.filter(&filter::program(address)).map_err(failed("setting a filter"))?;
        let ring = Ring::map(&socket, found.mtu, ring_bytes).map_err(failed("mapping a ring"))?;
        socket.bind(found.index, false).map_err(failed("binding to it"))?;
        Ok(Self { ring, socket })
    }

    /// Frames that the ring holds.
    pub(crate) const fn frames(&self) -> usize {
        self.ring.frames()
    }

    /// Receives also frames that other sockets of this machine send over the interface.
    pub(crate) fn hear_outgoing(&self) -> io::Result<()> {
        self.socket.hear_outgoing()
    }

    #[inline]
    pub(crate) fn send(&self, frames: &[&[u8]]) -> usize {
        self.socket.send(frames)
    }

    #[inline]
    pub(crate) fn receive(&mut self, limit: usize, take: &mut dyn FnMut(&[u8])) -> usize {
        self.ring.take(limit, take)
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
