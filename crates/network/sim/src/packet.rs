//! Packets under way, and the store that holds them.

use crate::message::MessageId;
use evb_core::{Span, Time};
use evb_fabric::{EndpointId, LinkId};

/// A packet, by its place in the [`Packets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PacketId(pub(crate) u32);

impl PacketId {
    /// No packet.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// The buffer of one virtual channel, or priority, at the end of a link. The engine numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LaneId(pub(crate) u32);

impl LaneId {
    /// No lane: the packet's head is still in its network interface.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// A train of packets. The engine numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrainId(pub(crate) u32);

impl TrainId {
    /// No train: the packet is alone.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

impl From<u32> for TrainId {
    fn from(place: u32) -> Self {
        Self(place)
    }
}

impl From<TrainId> for u32 {
    fn from(TrainId(place): TrainId) -> Self {
        place
    }
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// A part of a message.
    Message,
    /// A part of a message of background traffic.
    Background,
    /// A mapper's message, which `message` numbers. It follows its own route.
    SourceRouted,
    /// A segment of a connection, or a reply, which `message` numbers.
    Connection,
    /// The header of a segment that a switch trimmed.
    Header,
    /// The same of a connection of background traffic.
    BackgroundConnection,
    /// A copy that a learning bridge sent where its destination is not.
    Stray,
}

impl Load {
    /// True for background traffic.
    #[inline]
    pub(crate) const fn is_background(self) -> bool {
        matches!(self, Self::Background | Self::BackgroundConnection)
    }

    /// True for segments of connections, and replies.
    #[inline]
    pub(crate) const fn is_of_connection(self) -> bool {
        matches!(self, Self::Connection | Self::BackgroundConnection)
    }
}

/// A packet under way: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Packet {
    pub(crate) from: EndpointId,
    pub(crate) to: EndpointId,
    /// The message that it is a part of, for the sender's use.
    pub(crate) message: MessageId,
    /// Bytes of that.
    pub(crate) payload: u32,
    /// Bytes on the wire.
    pub(crate) wire: u32,
    /// Higher goes first.
    pub(crate) priority: u8,
    /// Virtual channel of the link it last took.
    pub(crate) channel: u8,
    /// Dimension of the link it last took.
    pub(crate) dimension: u8,
    /// Destroyed on its way; it is thrown away where it arrives.
    pub(crate) corrupted: bool,
    /// True when it waited too long at some switch (dispersive routing), or found a long queue (marking).
    pub(crate) congested: bool,
    /// What it carries.
    pub(crate) load: Load,
    /// The routes that its sender knew, by number; or 1 and the number of the group that it goes to first
    /// (Valiant, UGAL).
    pub(crate) route: u16,
    /// A number that its choice among equal routes depends on, beside its ends.
    pub(crate) variant: u32,
    /// Links taken so far.
    pub(crate) hops: u16,
    /// Links taken of which it is known when it leaves them.
    pub(crate) left: u16,
    /// The input buffer that its head is in, or [`LaneId::NONE`].
    pub(crate) lane: LaneId,
    /// The packet behind it in the same buffer, while neither is in front, or behind it in the queue of an output.
    pub(crate) next: PacketId,
    /// The last packet behind it, while it is the first one from its lane in the queue of an output.
    pub(crate) last: PacketId,
    /// The train whose first packet it is, or [`TrainId::NONE`].
    pub(crate) train: TrainId,
    /// Time at which its head entered that buffer; once it requests a link, the time of that.
    pub(crate) since: Time,
    /// Time that it needs on the link that it last took, or in its interface before; under wormhole flow the longest time that
    /// any of them needs for one byte of it.
    pub(crate) pace: Span,
}

impl Packet {
    /// An empty packet in the interface of its sender.
    pub(crate) fn new(from: EndpointId, to: EndpointId) -> Self {
        Self {
            from,
            to,
            message: MessageId(0),
            payload: 0,
            wire: 0,
            priority: 0,
            channel: 0,
            dimension: 0,
            corrupted: false,
            congested: false,
            load: Load::Message,
            route: 0,
            variant: 0,
            hops: 0,
            left: 0,
            lane: LaneId::NONE,
            next: PacketId::NONE,
            last: PacketId::NONE,
            train: TrainId::NONE,
            since: Time::ZERO,
            pace: Span::ZERO,
        }
    }
}

impl Packet {
    /// True if a connection sent it, and it has nothing but a header.
    #[inline]
    pub(crate) fn is_header(&self) -> bool {
        self.load == Load::Header || self.load.is_of_connection() && self.payload == 0
    }
}

/// Time at which a worm's first byte went onto a link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hop {
    pub(crate) link: LinkId,
    pub(crate) start: Time,
}

impl Hop {
    /// The place of a hop that was not taken yet.
    const NONE: Self = Self { link: LinkId(u32::MAX), start: Time::ZERO };
}

/// All packets under way. A place is used again after its packet has been delivered.
pub(crate) struct Packets {
    packets: Vec<Packet>,
    spare: Vec<PacketId>,
    /// `stride` hops for each packet; kept for worms only.
    hops: Vec<Hop>,
    stride: usize,
}

impl Packets {
    pub(crate) fn new() -> Self {
        Self { packets: Vec::new(), spare: Vec::new(), hops: Vec::new(), stride: 8 }
    }

    pub(crate) fn insert(&mut self, packet: Packet) -> PacketId {
        if let Some(id) = self.spare.pop() {
            self.packets[id.0 as usize] = packet;
            return id;
        }
        self.packets.push(packet);
        PacketId(u32::try_from(self.packets.len() - 1).expect("fewer packets than 2^32 are under way at once"))
    }

    pub(crate) fn remove(&mut self, id: PacketId) -> Packet {
        self.spare.push(id);
        let packet = self.packets[id.0 as usize].clone();
        // It occupies no link any more.
        self.packets[id.0 as usize].hops = 0;
        self.packets[id.0 as usize].left = 0;
        packet
    }

    /// Packets under way now.
    pub(crate) fn len(&self) -> usize {
        self.packets.len() - self.spare.len()
    }

    /// All places, also those of packets that are gone: they have no hops.
    pub(crate) fn ids(&self) -> impl Iterator<Item = PacketId> + use<> {
        (0..self.packets.len() as u32).map(PacketId)
    }

    /// The links that a worm has taken and when its head went onto them.
    #[inline]
    pub(crate) fn hops(&self, id: PacketId) -> &[Hop] {
        let (first, taken) = (id.0 as usize * self.stride, usize::from(self.packets[id.0 as usize].hops));
        self.hops.get(first..first + taken).unwrap_or(&[])
    }

    /// Notes that a worm's head goes onto a link.
    #[inline]
    pub(crate) fn push_hop(&mut self, id: PacketId, hop: Hop) {
        let taken = self.packets[id.0 as usize].hops as usize;
        if taken >= self.stride {
            self.widen();
        }
        let place = id.0 as usize * self.stride + taken;
        if place >= self.hops.len() {
            self.hops.resize((self.packets.len()) * self.stride, Hop::NONE);
        }
        self.hops[place] = hop;
        self.packets[id.0 as usize].hops += 1;
    }

    /// Makes room for longer routes.
    fn widen(&mut self) {
        let (old, new) = (self.stride, self.stride * 2);
        let mut hops = vec![Hop::NONE; self.packets.len() * new];
        for (from, to) in self.hops.chunks(old).zip(hops.chunks_mut(new)) {
            to[..from.len()].copy_from_slice(from);
        }
        self.hops = hops;
        self.stride = new;
    }
}

impl std::ops::Index<PacketId> for Packets {
    type Output = Packet;
    #[inline]
    fn index(&self, id: PacketId) -> &Packet {
        &self.packets[id.0 as usize]
    }
}

impl std::ops::IndexMut<PacketId> for Packets {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id.0 as usize]
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_packet_is_one_cache_line() {
        assert_eq!(size_of::<super::Packet>(), 64);
    }
}
