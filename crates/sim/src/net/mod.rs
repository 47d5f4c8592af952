//! The network engine: moves packets over links and through switches in virtual time.
//!
//! A packet costs one or two events per link, whatever its length. That is exact, since nothing but a grant changes how
//! bytes flow: see `worm` for how long a stalled worm stands on its links. The rules are those of
//! `docs/networks/model.md`; a simulator that moves single bytes checks them in `tests/`.

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
    trace::Trace,
};
use evb_core::{NodeId, Stream, stream};
use evb_fabric::{Arbitration, End, EndpointId, Flow, Link, Network, NetworkError, Routes, WhenFull};
pub(crate) use port::LinkCounts;
use port::{Lane, Port, UNKNOWN};
use rand::RngExt;

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

/// What the engine needs to know of a link at every packet, close together.
#[derive(Clone, Copy)]
struct Wire {
    to: End,
    delay: u64,
    /// Time for one byte, rounded.
    byte_time: u64,
    rate: u64,
    dimension: u8,
    dateline: bool,
}

/// A network with packets on it.
pub(crate) struct Net {
    pub(crate) network: Network,
    routes: Routes,
    discipline: Discipline,
    /// Cut-through: bytes of each buffer.
    capacity: u64,
    /// Lanes per link.
    channels: u32,
    switch_delay: u64,
    wires: Vec<Wire>,
    ports: Vec<Port>,
    lanes: Vec<Lane>,
    /// Ports to be arbitrated at the present time.
    dirty: Vec<u32>,
    pub(crate) packets: Packets,
    random: Stream,
    seed: u64,
    /// Dispersive routing: which way each pair of endpoints takes now.
    variants: Vec<u32>,
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
        let pairs = if routing::is_dispersive(&network) { endpoints * endpoints } else { 0 };
        Ok(Self {
            wires: network.links.iter().map(wire).collect(),
            ports: network.links.iter().map(|_| Port::new()).collect(),
            lanes: (0..network.links.len() * channels as usize).map(|_| Lane::new(buffer)).collect(),
            switch_delay: network.config.switch.delay.0,
            network,
            routes,
            discipline,
            capacity: buffer,
            channels,
            dirty: Vec::new(),
            packets: Packets::new(),
            random: stream(seed, NodeId(0), ARBITRATION),
            seed,
            variants: vec![0; pairs],
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
        self.network.links.iter().zip(self.ports.iter().map(|port| &port.counts))
    }

    /// Forgets what was counted so far.
    pub(crate) fn begin_to_measure(&mut self, now: u64) {
        self.measured_from = now;
        self.ports.iter_mut().for_each(|port| port.counts = LinkCounts::default());
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
        packet.asked = now;
        if packet.lane == NO_LANE {
            let up = self.network.endpoints[packet.from.0 as usize].up.0;
            return self.wait_for(queue, now, up, id);
        }
        self.store(queue, now, id);
        self.route(queue, now, id);
    }

    /// Puts a packet among those that wait for a link.
    fn wait_for(&mut self, queue: &mut Queue<Event>, now: u64, link: u32, id: PacketId) {
        if self.drops(now, link, id) {
            return self.lose(queue, now, id);
        }
        let port = &mut self.ports[link as usize];
        port.waiting.push_back(id);
        port.counts.most_waiting = port.counts.most_waiting.max(port.waiting.len() as u32);
        self.touch(link);
    }

    /// Marks a link for arbitration when everything of the present time has happened.
    #[inline]
    fn touch(&mut self, link: u32) {
        let port = &mut self.ports[link as usize];
        if !std::mem::replace(&mut port.dirty, true) {
            self.dirty.push(link);
        }
    }

    /// A link may have become free, or the buffer behind it.
    pub(crate) fn wake(&mut self, now: u64, link: u32) {
        let port = &mut self.ports[link as usize];
        if port.wake_at <= now {
            port.wake_at = UNKNOWN;
        }
        self.touch(link);
    }

    fn plan_wake(&mut self, queue: &mut Queue<Event>, link: u32, at: u64) {
        let port = &mut self.ports[link as usize];
        if at < port.wake_at {
            port.wake_at = at;
            queue.push(at, Event::Wake { link });
        }
    }

    /// Whether there is something to arbitrate at the present time.
    #[inline]
    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Gives links to packets: the last thing that happens at a time, link by link in ascending order.
    pub(crate) fn arbitrate(&mut self, queue: &mut Queue<Event>) {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        for &link in &dirty {
            self.ports[link as usize].dirty = false;
            self.arbitrate_link(queue, queue.now(), link);
        }
        dirty.clear();
        // What was touched meanwhile follows in a round of its own.
        dirty.append(&mut self.dirty);
        self.dirty = dirty;
    }

    fn arbitrate_link(&mut self, queue: &mut Queue<Event>, now: u64, link: u32) {
        let port = &self.ports[link as usize];
        if port.waiting.is_empty() || port.failed {
            return;
        }
        if port.free_at > now {
            if port.free_at != UNKNOWN {
                self.plan_wake(queue, link, port.free_at);
            }
            return;
        }
        match self.choose(now, link) {
            Ok(place) => {
                let id = self.ports[link as usize].waiting.remove(place).expect("a place that was just found");
                self.grant(queue, now, link, id);
                let port = &self.ports[link as usize];
                if !port.waiting.is_empty() && port.free_at != UNKNOWN {
                    self.plan_wake(queue, link, port.free_at);
                }
            }
            Err(Some(later)) => self.plan_wake(queue, link, later),
            Err(None) => {}
        }
    }

    /// Which of the waiting packets goes next; else when that may change, if that is known.
    fn choose(&mut self, now: u64, link: u32) -> Result<usize, Option<u64>> {
        let mut later = UNKNOWN;
        let mut chosen: Option<(usize, u8, u32)> = None;
        let mut eligible = 0_u32;
        let arbitration = self.network.config.switch.arbitration;
        for place in 0..self.ports[link as usize].waiting.len() {
            let id = self.ports[link as usize].waiting[place];
            let room_at = self.room_at(now, link, id);
            if room_at > now {
                later = later.min(room_at);
                continue;
            }
            let (lane, priority) = (self.packets[id].lane, self.packets[id].priority);
            let rank = match arbitration {
                Arbitration::Oldest => 0,
                Arbitration::RoundRobin => lane.wrapping_sub(self.ports[link as usize].turn).wrapping_sub(1),
                Arbitration::Random => 0,
            };
            let best = match chosen {
                None => true,
                Some((_, best, _)) if priority != best => priority > best,
                Some((.., best)) if arbitration == Arbitration::RoundRobin => rank < best,
                // One of several that are equal: each new one takes the place of the chosen one with its fair chance.
                Some(_) if arbitration == Arbitration::Random => {
                    eligible += 1;
                    self.random.random_range(0..=eligible) == 0
                }
                Some(_) => false,
            };
            if best {
                if chosen.is_none_or(|(_, best, _)| best != priority) {
                    eligible = 0;
                }
                chosen = Some((place, priority, rank));
                // The queue of an output is in order already.
                if arbitration == Arbitration::Oldest && self.channels == 1 {
                    break;
                }
            }
        }
        chosen.map(|(place, ..)| place).ok_or((later != UNKNOWN).then_some(later))
    }

    /// Gives a link to a packet.
    fn grant(&mut self, queue: &mut Queue<Event>, now: u64, link: u32, id: PacketId) {
        self.packet_hops += 1;
        self.forget_other_requests(link, id);
        let wire = self.wires[link as usize];
        let came_from = self.packets[id].lane;
        self.note_grant(now, link, id);
        self.take_channel(&wire, id);
        let lane = link * self.channels + u32::from(self.packets[id].channel);
        let port = &mut self.ports[link as usize];
        (port.holder, port.turn) = (Some(id), came_from);
        if port.corrupt_one_in > 0 && port.counts.packets.is_multiple_of(port.corrupt_one_in) {
            self.packets[id].corrupted = true;
        }
        self.trace.grant(now, id, &self.packets[id], link, &self.network);
        match self.discipline {
            Discipline::Worm { slack, reaction } => {
                self.start_worm(queue, now, link, id, slack, reaction);
            }
            _ => self.start_whole(queue, now, link, lane, came_from, id),
        }
    }

    fn note_grant(&mut self, now: u64, link: u32, id: PacketId) {
        let packet = &self.packets[id];
        let port = &mut self.ports[link as usize];
        port.counts.packets += 1;
        port.counts.bytes += u64::from(packet.wire);
        port.counts.waited += now - packet.asked.max(self.measured_from).min(now);
        port.queued = port.queued.saturating_sub(u64::from(packet.wire));
        self.note_patience(now, id);
    }

    /// The virtual channel on the link: the first in each dimension, the next one beyond the dateline.
    fn take_channel(&mut self, wire: &Wire, id: PacketId) {
        let channel = match self.discipline {
            Discipline::Store { .. } => self.packets[id].priority.min(self.channels as u8 - 1),
            _ => self.next_channel(wire, id),
        };
        let packet = &mut self.packets[id];
        (packet.dimension, packet.channel) = (wire.dimension, channel);
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
        (packet.lane, packet.arrival) = (lane, arrival);
        let buffer = &mut self.lanes[lane as usize];
        if buffer.left_at == UNKNOWN {
            buffer.behind.push_back(id);
        } else {
            let front_at = arrival.max(buffer.left_at);
            buffer.left_at = UNKNOWN;
            queue.push(front_at + self.switch_delay, Event::Request(id));
        }
    }

    /// The packet in front of a lane has left at `at`: the next one comes to the front.
    fn next_in_lane(&mut self, queue: &mut Queue<Event>, lane: u32, at: u64) {
        let buffer = &mut self.lanes[lane as usize];
        match buffer.behind.pop_front() {
            None => buffer.left_at = at,
            Some(next) => {
                let front_at = self.packets[next].arrival.max(at);
                queue.push(front_at + self.switch_delay, Event::Request(next));
            }
        }
    }

    /// A packet is lost where it is.
    fn lose(&mut self, queue: &mut Queue<Event>, now: u64, id: PacketId) {
        let lane = self.packets[id].lane;
        if let (Discipline::Worm { slack, reaction }, true) = (self.discipline, lane != NO_LANE) {
            self.settle_worm(queue, id, true, slack, reaction);
        }
        self.note_leaving(queue, lane, id, now);
        self.trace.lose(now, id, &self.packets[id]);
        self.notices.push(Notice::Lost(id));
    }
}

fn discipline(flow: Flow) -> (Discipline, u32, u64) {
    match flow {
        Flow::Wormhole { slack, reaction } => (Discipline::Worm { slack: slack.0, reaction: reaction.0 }, 1, 0),
        Flow::CutThrough { buffer, reaction, virtual_channels } => {
            (Discipline::CutThrough { reaction: reaction.0 }, u32::from(virtual_channels), buffer.0)
        }
        Flow::StoreAndForward { queue, full, reaction, priorities } => {
            (Discipline::Store { queue: queue.0, full, reaction: reaction.0 }, u32::from(priorities), 0)
        }
    }
}

fn wire(link: &Link) -> Wire {
    Wire {
        to: link.to,
        delay: link.delay.0,
        byte_time: byte_time(link.rate.0),
        rate: link.rate.0,
        dimension: link.dimension,
        dateline: link.dateline,
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
