//! The network engine: moves packets over links and through switches in virtual time.
//!
//! A packet costs one or two events per link, whatever its length. That is exact, since nothing but a grant changes how
//! bytes flow: see `worm` for how long a stalled worm stands on its links. The rules are those of
//! `docs/networks/model.md`; a simulator that moves single bytes checks them in `tests/`.

mod arbitration;
mod deadlock;
mod faults;
mod lanes;
mod port;
mod routing;
mod worm;

use crate::{
    event::Event,
    packet::{NO_LANE, Packet, PacketId, Packets},
    queue::Queue,
    slab::Slab,
    trace::Trace,
};
use evb_core::{NodeId, Stream, stream};
use evb_fabric::{Arbitration, EndpointId, Flow, Link, Network, NetworkError, Routes, WhenFull};
pub(crate) use port::LinkCounts;
use port::{Class, Contents, Credit, Harm, Lane, LinkState, Port, UNKNOWN, Waiting};

/// The purpose of the network's random stream.
const ARBITRATION: u64 = 100;

/// What the engine tells its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The last byte of this packet leaves the network interface of its sender at this time.
    Sent { endpoint: EndpointId, at: u64 },
    /// A packet was lost on its way: dropped, or without a way.
    Lost(PacketId),
}

/// How buffers work, in bytes and picoseconds.
#[derive(Clone, Copy, Debug)]
enum Discipline {
    Worm { slack: u64, reaction: u64 },
    CutThrough { reaction: u64 },
    Store { queue: u64, full: WhenFull, reaction: u64 },
}

/// Whether the buffer behind a link can take a packet now.
#[derive(Clone, Copy)]
enum Room {
    /// It can take any.
    Any,
    /// It can take one of at most so many bytes.
    Bytes(u32),
    /// That depends on more than the size of the packet.
    Depends,
}

/// A network with packets on it.
pub(crate) struct Net {
    pub(crate) network: Network,
    routes: Routes,
    discipline: Discipline,
    /// Cut-through: bytes of each buffer.
    capacity: u64,
    /// Virtual channels, or priorities, of each link.
    channels: u32,
    /// A lane is the number of its link, shifted by this, and that of the channel.
    shift: u32,
    switch_delay: u64,
    /// Different priorities of packets.
    priorities: u32,
    /// Arbitration draws among equal packets.
    draws: bool,
    links: Vec<LinkState>,
    /// Rates and delays of the links.
    classes: Vec<Class>,
    /// The buffers of the virtual channels beyond the first.
    more_lanes: Vec<Lane>,
    counts: Vec<LinkCounts>,
    /// What is wrong with links on purpose; only those marked as harmed are looked up.
    harms: Vec<Harm>,
    /// Lanes and bytes of the packets that are about to leave a switch (store and forward with pauses).
    drains: Slab<(u32, u32)>,
    /// Ports to be arbitrated at the present time.
    dirty: Vec<u32>,
    pub(crate) packets: Packets,
    random: Stream,
    seed: u64,
    /// Dispersive routing: which way each pair of endpoints takes now.
    ways: Vec<routing::Way>,
    /// For adaptive routing: where the search for a free link begins.
    rotation: u32,
    pub(crate) notices: Vec<Notice>,
    pub(crate) trace: Trace,
    /// Links taken by all packets, from the start.
    pub(crate) packet_hops: u64,
    pub(crate) route_changes: u64,
    /// What was measured before this time does not count.
    measured_from: u64,
}

impl Net {
    /// An empty network.
    ///
    /// # Errors
    /// When some endpoint cannot reach another one.
    pub(crate) fn new(network: Network, seed: u64, trace: Trace) -> Result<Self, NetworkError> {
        let routes = Routes::find(&network, &|_| true);
        routes.check(&network)?;
        let (discipline, channels, buffer) = discipline(network.config.flow);
        let endpoints = network.endpoints.len();
        let shift = channels.next_power_of_two().trailing_zeros();
        let more = network.links.len() * (channels as usize - 1);
        let contents = || match discipline {
            Discipline::Worm { .. } => Contents::Places([0, 0]),
            Discipline::CutThrough { .. } => Contents::Bytes(Credit::new(buffer)),
            Discipline::Store { .. } => Contents::Store { held: 0, pausing: false },
        };
        let mut classes = Vec::new();
        let state = |link| LinkState { port: Port::new(link, &mut classes), lane: Lane::new(contents()) };
        let links = network.links.iter().map(state).collect();
        let pairs = if routing::is_dispersive(&network) { endpoints * endpoints } else { 0 };
        Ok(Self {
            links,
            classes,
            more_lanes: (0..more).map(|_| Lane::new(contents())).collect(),
            counts: vec![LinkCounts::default(); network.links.len()],
            harms: vec![Harm { corrupt_one_in: 0, slowness: 1.0 }; network.links.len()],
            switch_delay: network.config.switch.delay.0,
            priorities: if let Discipline::Store { .. } = discipline { channels } else { 1 },
            draws: network.config.switch.arbitration == Arbitration::Random,
            network,
            routes,
            discipline,
            capacity: u64::from(buffer),
            channels,
            shift,
            drains: Slab::default(),
            dirty: Vec::new(),
            packets: Packets::new(),
            random: stream(seed, NodeId(0), ARBITRATION),
            seed,
            ways: vec![routing::Way::default(); pairs],
            rotation: 0,
            notices: Vec::new(),
            trace,
            packet_hops: 0,
            route_changes: 0,
            measured_from: 0,
        })
    }

    /// What was counted at each link, in the order of the links.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&Link, &LinkCounts)> {
        self.network.links.iter().zip(&self.counts)
    }

    /// How far apart the events of a packet mostly are: the time of the largest packet on the slowest link.
    pub(crate) fn reach(&self) -> u64 {
        let nic = &self.network.config.nic;
        let largest = (nic.packet.0 + nic.header.0).max(nic.minimum.0);
        let slowest = self.classes.iter().map(|class| class.rate).min().unwrap_or(1);
        // A packet size without bound says nothing.
        time_for(largest.min(1 << 16), slowest).max(nic.overhead.0)
    }

    /// Forgets what was counted so far.
    pub(crate) fn begin_to_measure(&mut self, now: u64) {
        self.measured_from = now;
        for counts in &mut self.counts {
            // What waits goes on waiting.
            *counts = LinkCounts { queued: counts.queued, ..LinkCounts::default() };
        }
    }

    /// Hands a packet to the network interface of its sender, which asks for its link at `at`.
    pub(crate) fn send(&mut self, queue: &mut Queue<Event>, at: u64, packet: Packet) -> PacketId {
        let id = self.packets.insert(packet);
        queue.push(at, Event::Request(id));
        id
    }

    /// A packet's head is ready to go on.
    pub(crate) fn request(&mut self, queue: &mut Queue<Event>, now: u64, id: PacketId) {
        let packet = &mut self.packets[id];
        packet.since = now;
        if packet.lane == NO_LANE {
            let up = self.network.endpoints[packet.from.0 as usize].up.0;
            return self.wait_for(queue, now, up, id);
        }
        self.store(queue, now, id);
        self.route(queue, now, id);
    }

    /// Gives a link to a packet.
    fn grant(&mut self, queue: &mut Queue<Event>, now: u64, link: u32, id: PacketId) {
        self.packet_hops += 1;
        self.forget_other_requests(link, id);
        let came_from = self.packets[id].lane;
        self.note_grant(now, link, id);
        let channel = self.take_channel(link, id);
        let lane = (link << self.shift) | u32::from(channel);
        let port = self.port_mut(link);
        (port.holder, port.turn) = (id, came_from);
        if port.harmed {
            self.harm(link, id);
        }
        self.trace.grant(now, id, &self.packets[id], link, &self.network);
        match self.discipline {
            Discipline::Worm { slack, reaction } => self.start_worm(queue, now, link, id, slack, reaction),
            _ => self.start_whole(queue, now, link, lane, came_from, id),
        }
    }

    fn note_grant(&mut self, now: u64, link: u32, id: PacketId) {
        let packet = &self.packets[id];
        let counts = &mut self.counts[link as usize];
        counts.packets += 1;
        counts.bytes += u64::from(packet.wire);
        counts.waited += now - packet.since.max(self.measured_from).min(now);
        counts.queued = counts.queued.saturating_sub(u64::from(packet.wire));
        self.note_patience(now, id);
    }

    /// The virtual channel on the link: the first in each dimension, the next one beyond the dateline.
    fn take_channel(&mut self, link: u32, id: PacketId) -> u8 {
        let channel = match self.discipline {
            Discipline::Store { .. } => self.packets[id].priority.min(self.channels as u8 - 1),
            _ => self.next_channel(link, id),
        };
        let dimension = self.port(link).dimension;
        let packet = &mut self.packets[id];
        (packet.dimension, packet.channel) = (dimension, channel);
        channel
    }

    #[inline]
    fn port(&self, link: u32) -> &Port {
        &self.links[link as usize].port
    }

    #[inline]
    fn port_mut(&mut self, link: u32) -> &mut Port {
        &mut self.links[link as usize].port
    }

    /// The link that a lane is at the end of.
    #[inline]
    fn link_of(&self, lane: u32) -> u32 {
        lane >> self.shift
    }

    /// Which virtual channel of its link a lane is.
    #[inline]
    fn channel_of(&self, lane: u32) -> u32 {
        lane & ((1 << self.shift) - 1)
    }

    #[inline]
    fn lane_mut(&mut self, lane: u32) -> &mut Lane {
        let (link, channel) = (self.link_of(lane), self.channel_of(lane));
        if channel == 0 {
            &mut self.links[link as usize].lane
        } else {
            &mut self.more_lanes[(link * (self.channels - 1) + channel - 1) as usize]
        }
    }

    /// The time at which the tail of a packet leaves the place before a link is known now.
    fn note_leaving(&mut self, queue: &mut Queue<Event>, before: u32, id: PacketId, at: u64) {
        if before == NO_LANE {
            let endpoint = self.packets[id].from;
            self.notices.push(Notice::Sent { endpoint, at });
        } else {
            self.leave_lane(queue, before, id, at);
        }
    }

    /// A packet's head comes into the buffer of a switch at `arrival`.
    fn enter_lane(&mut self, queue: &mut Queue<Event>, lane: u32, id: PacketId, arrival: u64) {
        let packet = &mut self.packets[id];
        (packet.lane, packet.since, packet.next) = (lane, arrival, PacketId::NONE);
        let buffer = self.lane_mut(lane);
        if buffer.left_at != UNKNOWN {
            let left_at = std::mem::replace(&mut buffer.left_at, UNKNOWN);
            queue.push((arrival + self.switch_delay).max(left_at), Event::Request(id));
        } else if buffer.behind.0 == PacketId::NONE {
            buffer.behind = (id, id);
        } else {
            let last = std::mem::replace(&mut buffer.behind.1, id);
            self.packets[last].next = id;
        }
    }

    /// The packet in front of a lane will have left at `at`: the next one comes to the front.
    fn next_in_lane(&mut self, queue: &mut Queue<Event>, lane: u32, at: u64) {
        let buffer = self.lane_mut(lane);
        let next = buffer.behind.0;
        if next == PacketId::NONE {
            buffer.left_at = at;
            return;
        }
        let (behind, since) = (self.packets[next].next, self.packets[next].since);
        self.lane_mut(lane).behind.0 = behind;
        queue.push((since + self.switch_delay).max(at), Event::Request(next));
    }

    /// A packet is lost where it is.
    fn lose(&mut self, queue: &mut Queue<Event>, now: u64, id: PacketId) {
        let lane = self.packets[id].lane;
        if let (Discipline::Worm { slack, reaction }, true) = (self.discipline, lane != NO_LANE) {
            self.swallow_worm(queue, now, id, slack, reaction);
        }
        self.note_leaving(queue, lane, id, now);
        self.trace.lose(now, id, &self.packets[id]);
        self.notices.push(Notice::Lost(id));
    }
}

/// How buffers work, how many each link has, and (cut-through) of how many bytes.
fn discipline(flow: Flow) -> (Discipline, u32, u32) {
    match flow {
        Flow::Wormhole { slack, reaction } => (Discipline::Worm { slack: slack.0, reaction: reaction.0 }, 1, 0),
        Flow::CutThrough { buffer, reaction, virtual_channels } => {
            let buffer = u32::try_from(buffer.0).unwrap_or(u32::MAX);
            (Discipline::CutThrough { reaction: reaction.0 }, u32::from(virtual_channels), buffer)
        }
        Flow::StoreAndForward { queue, full, reaction, priorities } => {
            (Discipline::Store { queue: queue.0, full, reaction: reaction.0 }, u32::from(priorities), 0)
        }
    }
}

/// Picoseconds for a byte at a rate in bits per second, rounded.
pub(crate) fn byte_time(rate: u64) -> u64 {
    ((8_000_000_000_000 + rate / 2) / rate).max(1)
}

/// Picoseconds for some bytes at a rate in bits per second, rounded up.
#[inline]
pub(crate) fn time_for(bytes: u64, rate: u64) -> u64 {
    match bytes.checked_mul(8_000_000_000_000) {
        Some(product) => product.div_ceil(rate),
        None => u64::try_from((u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(rate))).unwrap_or(u64::MAX),
    }
}
