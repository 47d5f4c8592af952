//! What carries frames below the protocol.

use crate::Port;
use std::{io, os::fd::BorrowedFd};

/// An interface to an Ethernet, or to something that looks like one. Frames may be lost, doubled, harmed and swapped.
pub trait Wire: Send + 'static {
    /// Properties of the interface.
    fn port(&self) -> Port;

    /// Lets frames in that nodes of this machine send over this same interface, for node `node` of the run with this mark.
    ///
    /// # Errors
    /// If that cannot be.
    fn hear_own_machine(&mut self) -> io::Result<()>;

    /// Sends frames, each with its Ethernet header; those without bytes are left out. Returns how many were taken, which is
    /// all unless the interface is busy.
    fn send(&mut self, frames: &[&[u8]]) -> usize;

    /// Calls `take` with at most `limit` frames that have arrived; returns their number.
    fn receive(&mut self, limit: usize, take: &mut dyn FnMut(&[u8])) -> usize;

    /// A file that can be read when frames have arrived, and written when frames may be sent.
    fn file(&self) -> BorrowedFd<'_>;
}
