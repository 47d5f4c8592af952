//! Traffic shaping at the source: packing of fragments.

use crate::{Fragment, Message, Shaping};
use alloc::{collections::VecDeque, vec::Vec};
use evb_core::{NodeId, Span, Time, Transmit};

/// A packet that is being filled for one builder.
struct OpenPacket<B> {
    builder: NodeId,
    fragments: Vec<Fragment<B>>,
    bytes: u64,
    deadline: Time,
}

/// Packs the fragments of one readout unit.
pub(crate) struct Shaper<B> {
    /// Bytes that fill a packet, and the longest wait; `None` sends each fragment by itself.
    packet: Option<(u64, Span)>,
    filling: Vec<OpenPacket<B>>,
    out: VecDeque<Transmit<Message<B>>>,
}

impl<B> Shaper<B> {
    pub(crate) fn new(shaping: Shaping, builders: impl Iterator<Item = NodeId>) -> Self {
        let packet = match shaping {
            // Slots belong to the unit layer.
            Shaping::None | Shaping::BarrelShifter { .. } | Shaping::RateDivision { .. } => None,
            Shaping::Grouping { packet, timeout } => Some((packet.0, timeout)),
        };
        let empty = |builder| OpenPacket { builder, fragments: Vec::new(), bytes: 0, deadline: Time::MAX };
        Self { packet, filling: builders.map(empty).collect(), out: VecDeque::new() }
    }

    /// Takes a fragment for the builder with this index.
    #[inline]
    pub(crate) fn push(&mut self, now: Time, builder: usize, fragment: Fragment<B>) {
        match self.packet {
            None => {
                let to = self.filling[builder].builder.into();
                self.out.push_back(Transmit { to, message: Message::Fragment(fragment) });
            }
            Some((size, timeout)) => self.fill(now + timeout, size, builder, fragment),
        }
    }

    /// Puts a fragment into the packet for its builder. The packet is sent when it is full or at its deadline.
    fn fill(&mut self, deadline: Time, size: u64, builder: usize, fragment: Fragment<B>) {
        let length = u64::from(fragment.length);
        if self.filling[builder].bytes + length > size {
            self.close(builder);
        }
        let filling = &mut self.filling[builder];
        if filling.fragments.is_empty() {
            filling.deadline = deadline;
        }
        filling.fragments.push(fragment);
        filling.bytes += length;
        if filling.bytes >= size {
            self.close(builder);
        }
    }

    /// Sends a message behind all fragments for the builder with this index.
    pub(crate) fn push_behind(&mut self, builder: usize, message: Message<B>) {
        self.close(builder);
        self.out.push_back(Transmit { to: self.filling[builder].builder.into(), message });
    }

    /// Sends the packet for one builder.
    fn close(&mut self, builder: usize) {
        let filling = &mut self.filling[builder];
        let fragments = core::mem::take(&mut filling.fragments);
        filling.bytes = 0;
        filling.deadline = Time::MAX;
        if !fragments.is_empty() {
            self.out.push_back(Transmit { to: filling.builder.into(), message: Message::Packet(fragments) });
        }
    }

    /// Sends the packets that have waited long enough.
    pub(crate) fn handle_timeout(&mut self, now: Time) {
        for builder in 0..self.filling.len() {
            if self.filling[builder].deadline <= now {
                self.close(builder);
            }
        }
    }

    /// Drops the packet for a builder that is gone.
    pub(crate) fn forget(&mut self, builder: NodeId) {
        for filling in self.filling.iter_mut().filter(|filling| filling.builder == builder) {
            filling.fragments.clear();
            filling.bytes = 0;
            filling.deadline = Time::MAX;
        }
        self.out.retain(|transmit| transmit.to != builder.into());
    }

    pub(crate) fn poll(&mut self) -> Option<Transmit<Message<B>>> {
        self.out.pop_front()
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.packet?;
        self.filling.iter().map(|f| f.deadline).min().filter(|&deadline| deadline < Time::MAX)
    }
}
