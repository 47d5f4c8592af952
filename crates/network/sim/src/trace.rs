//! The trace: one line for each step of a packet. `docs/reference/trace.md` describes the format.

use crate::packet::{Packet, PacketId};
use evb_core::Time;
use evb_fabric::{LinkId, Network};
use std::io::{self, Write};

/// Writes the trace, or nothing.
#[derive(Default)]
pub(crate) struct Trace {
    out: Option<Box<dyn Write + Send>>,
    /// The number of the packet at each place, counted in the order of sending, from 1.
    numbers: Vec<u64>,
    sent: u64,
    error: Option<io::Error>,
}

impl Trace {
    pub(crate) fn new(out: Option<Box<dyn Write + Send>>) -> Self {
        Self { out, ..Self::default() }
    }

    /// True if it writes.
    pub(crate) fn is_on(&self) -> bool {
        self.out.is_some()
    }

    /// A packet is handed to its network interface.
    #[inline]
    pub(crate) fn send(&mut self, now: Time, id: PacketId, packet: &Packet) {
        if self.out.is_none() {
            return;
        }
        let place = id.0 as usize;
        if self.numbers.len() <= place {
            self.numbers.resize(place + 1, 0);
        }
        self.sent += 1;
        self.numbers[place] = self.sent;
        self.line(now, "send", id, packet, "-");
    }

    /// A switch has made a copy of a packet, which has the packet's number.
    pub(crate) fn copy(&mut self, id: PacketId, copy: PacketId) {
        if self.out.is_some() {
            let (number, place) = (self.numbers[id.0 as usize], copy.0 as usize);
            self.numbers.resize(self.numbers.len().max(place + 1), 0);
            self.numbers[place] = number;
        }
    }

    /// A packet has got a link.
    #[inline]
    pub(crate) fn grant(&mut self, now: Time, id: PacketId, packet: &Packet, network: &Network, link: LinkId) {
        if self.out.is_some() {
            self.line(now, "link", id, packet, &network.link(link).name);
        }
    }

    /// A packet has arrived at its destination.
    #[inline]
    pub(crate) fn deliver(&mut self, now: Time, id: PacketId, packet: &Packet) {
        let what = if packet.corrupted { "corrupt" } else { "deliver" };
        self.line(now, what, id, packet, "-");
    }

    /// A packet is lost.
    pub(crate) fn lose(&mut self, now: Time, id: PacketId, packet: &Packet) {
        self.line(now, "lose", id, packet, "-");
    }

    #[inline]
    fn line(&mut self, now: Time, what: &str, id: PacketId, packet: &Packet, link: &str) {
        if self.out.is_some() {
            self.write(now, what, id, packet, link);
        }
    }

    #[cold]
    fn write(&mut self, now: Time, what: &str, id: PacketId, packet: &Packet, link: &str) {
        let Some(out) = &mut self.out else { return };
        let number = self.numbers[id.0 as usize];
        let (from, to) = (packet.from.0, packet.to.0);
        let written = writeln!(out, "{} {what} {number} {from} {to} {} {link}", now.0, packet.wire);
        if let Err(error) = written {
            // A trace that cannot be written ends; `finish` reports the error.
            self.out = None;
            self.error = Some(error);
        }
    }

    /// Ends the trace.
    ///
    /// # Errors
    /// The first error in writing it.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if let Some(out) = &mut self.out {
            out.flush()?;
        }
        self.error.take().map_or(Ok(()), Err)
    }
}
