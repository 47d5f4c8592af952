//! The network engine: moves packets over links and through switches in virtual time.
//!
//! A packet of any length costs one or two events per link. That is exact, since only a grant changes the flow of
//! bytes: `worm` computes the time for which a stalled worm stands on its links. The rules are those of
//! `docs/reference/networks/model.md`; a simulator that moves single bytes checks them in `tests/`.
//!
//! [`Net`] leads each packet from part to part: the router chooses the link to ask for, the arbiter gives the link, and
//! the buffers tell when there is room for it.

mod arbitration;
mod bridges;
mod buffers;
mod counts;
mod credit;
mod deadlock;
mod faults;
mod lane;
mod links;
mod routing;
mod source_routed;
mod trains;
mod views;
mod worm;

use crate::{
    border::{Border, Credit},
    event::Event,
    message::MessageId,
    packet::{LaneId, Load, Packet, PacketId, Packets, TrainId},
    queue::Queue,
    trace::Trace,
};
use arbitration::Arbiter;
use bridges::Bridges;
use buffers::Buffers;
use counts::Counts;
pub(crate) use counts::LinkCounts;
use evb_core::{NodeId, Span, Stream, Time, stream};
use evb_fabric::{End, EndpointId, Link, LinkId, Network, NetworkError, Routing};
use faults::Faults;
use links::{Links, Waiting};
use routing::Router;
use source_routed::SourceRoutedPackets;
use trains::Trains;

/// The purpose of the network's random stream.
const ARBITRATION: u64 = 100;

/// A time that is not known yet.
const UNKNOWN: Time = Time::MAX;

/// A link that does not exist: the head of a worm without a way goes there.
const NOWHERE: LinkId = LinkId(u32::MAX);

/// An effect of the engine on its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The last byte of a packet leaves the network interface of its sender at this time.
    Sent { endpoint: EndpointId, at: Time },
    /// A packet was lost on its way: dropped, or without a way.
    Lost(PacketId),
    /// A train was split before its last packets left the network interface: these are still to be cut from the message.
    Uncut { message: MessageId, packets: u32, bytes: u32 },
}

/// A network with packets on it.
pub(crate) struct Net {
    pub(crate) network: Network,
    pub(crate) packets: Packets,
    links: Links,
    buffers: Buffers,
    router: Router,
    arbiter: Arbiter,
    faults: Faults,
    /// Hosts know the routes, or bridges learn them.
    has_rules: bool,
    bridges: Option<Bridges>,
    letters: SourceRoutedPackets,
    /// Packets on their way that are no part of a message.
    without_message: u64,
    counts: Counts,
    trains: Trains,
    /// True if something comes between the packets of a train: the simulation has to start again, packet by packet.
    pub(crate) gives_up: bool,
    /// Trains whose first packet has got the link to their destination.
    pub(crate) arriving: u32,
    /// The draws of router and arbiter.
    random: Stream,
    pub(crate) effects: Vec<Effect>,
    /// What leaves this part of the network.
    pub(crate) border: Border,
    pub(crate) trace: Trace,
}

impl Net {
    /// An empty network.
    ///
    /// # Errors
    /// If some endpoint cannot reach another one.
    pub(crate) fn new(network: Network, seed: u64, trace: Trace, border: Border) -> Result<Self, NetworkError> {
        let switch = &network.config.switch;
        let (buffers, channels) = Buffers::new(network.config.flow, switch.delay);
        let router = Router::new(&network, seed)?;
        let priorities = if buffers.store_whole_packets() { channels } else { 1 };
        Ok(Self {
            packets: Packets::new(),
            links: Links::new(&network, channels, || buffers.empty()),
            has_rules: matches!(network.config.routing, Routing::Learning { .. }),
            bridges: Bridges::of(&network, &router.routes),
            router,
            arbiter: Arbiter::new(switch.arbitration, priorities),
            faults: Faults::new(network.links.len()),
            letters: SourceRoutedPackets::default(),
            without_message: 0,
            counts: Counts::new(network.links.len()),
            trains: Trains::default(),
            gives_up: false,
            arriving: 0,
            random: stream(seed, NodeId(0), ARBITRATION),
            effects: Vec::new(),
            border,
            trace,
            buffers,
            network,
        })
    }

    /// The links in their order, and the counts of each.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&Link, &LinkCounts)> {
        self.network.links.iter().zip(self.counts.iter())
    }

    /// Links taken by all packets, from the start.
    pub(crate) fn packet_hops(&self) -> u64 {
        self.counts.packet_hops
    }

    /// Number of changes of route by pairs of endpoints (dispersive routing).
    pub(crate) fn route_changes(&self) -> u64 {
        self.router.changes
    }

    /// Usual distance in time of the events of a packet: the time of the largest packet on the slowest link.
    pub(crate) fn reach(&self) -> Span {
        let nic = &self.network.config.nic;
        let largest = (nic.packet.0 + nic.header.0).max(nic.minimum.0);
        // A packet size without bound gives no scale.
        self.links.slowest_rate().time_for(largest.min(1 << 16)).max(nic.overhead)
    }

    /// Clears the counts.
    pub(crate) fn begin_to_measure(&mut self, now: Time) {
        self.counts.begin(now);
    }

    /// The way of each packet depends on its ends and its variant alone, and packets never wait for each other in a ring.
    pub(crate) fn is_steady(&self) -> bool {
        self.router.is_steady(&self.network)
    }

    /// The variant of the way that a new packet takes.
    pub(crate) fn variant(&self, from: EndpointId, to: EndpointId, stream: u32) -> u32 {
        self.router.variant(from, to, stream)
    }

    /// Hands a packet to the network interface of its sender, which asks for its link at `at`.
    pub(crate) fn send(&mut self, queue: &mut Queue<Event>, at: Time, mut packet: Packet) -> PacketId {
        packet.pace = self.pace_of_interface(packet.wire);
        packet.view = self.router.view(packet.from);
        let id = self.packets.insert(packet);
        queue.push(at, Event::Request(id));
        id
    }

    /// Time that the interface of a sender needs for a packet, or (wormhole) for one byte of it.
    fn pace_of_interface(&self, wire: u32) -> Span {
        match (self.network.config.nic.rate, self.buffers.wormhole()) {
            (None, _) => Span::ZERO,
            (Some(rate), Some(_)) => rate.byte_time(),
            (Some(rate), None) => rate.time_for(wire.into()),
        }
    }

    /// A packet's head is ready to go on.
    pub(crate) fn request(&mut self, queue: &mut Queue<Event>, id: PacketId) {
        let packet = &mut self.packets[id];
        packet.since = queue.now();
        if packet.train != TrainId::NONE {
            return self.request_for_train(queue, id);
        }
        if packet.lane == LaneId::NONE {
            let up = self.network.endpoint(packet.from).up;
            return self.wait_for(queue, up, id);
        }
        self.buffers.store(queue, &mut self.links, &mut self.counts, packet);
        self.route(queue, id);
    }

    /// A link may have become free, or the buffer behind it.
    pub(crate) fn wake(&mut self, now: Time, link: LinkId) {
        self.links.wake(now, link);
    }

    /// The sender of a link begins or ends a pause.
    pub(crate) fn pause(&mut self, lane: LaneId, begin: bool) {
        let link = self.links.link_of(lane);
        if begin && self.links[link].running {
            self.gives_up = true;
        }
        self.buffers.pause(&mut self.links, lane, begin);
    }

    /// Bytes that came through a lane have left the switch.
    pub(crate) fn drained(&mut self, queue: &mut Queue<Event>, drain: u32) {
        self.buffers.drained(queue, &mut self.links, drain);
    }

    /// Takes a packet that has arrived out of the network, with all its train.
    #[inline]
    pub(crate) fn take(&mut self, now: Time, id: PacketId) -> Packet {
        self.trace.deliver(now, id, &self.packets[id]);
        let packet = self.remove(id);
        self.router.note_arrival(&packet);
        packet
    }

    /// Forgets a packet that is out of the network.
    pub(crate) fn remove(&mut self, id: PacketId) -> Packet {
        let packet = self.packets.remove(id);
        self.without_message -= u64::from(packet.load != Load::Message);
        packet
    }

    /// True if links are to be arbitrated at the present time.
    #[inline]
    pub(crate) fn is_dirty(&self) -> bool {
        self.links.any_touched()
    }

    /// Gives links to packets: the last thing that happens at a time, link by link in ascending order.
    pub(crate) fn arbitrate(&mut self, queue: &mut Queue<Event>) {
        let touched = self.links.take_touched();
        for &link in &touched {
            self.links.untouch(link);
            self.arbitrate_link(queue, link);
        }
        self.links.recycle(touched);
    }

    /// The links of a circle in which each waits for the next one, in that order, by name, and since when they do.
    pub(crate) fn deadlock(&mut self, now: Time) -> Option<(Vec<String>, Time)> {
        let (circle, since) = deadlock::find(&mut self.links, &self.packets, &self.buffers, now)?;
        Some((circle.iter().map(|&link| self.network.link(link).name.clone()).collect(), since))
    }

    /// A packet that is first in its buffer asks for a link, or for any of several.
    fn route(&mut self, queue: &mut Queue<Event>, id: PacketId) {
        let packet = &self.packets[id];
        if self.has_rules {
            return self.route_by_rules(queue, id);
        }
        let (switch, to) = (self.links.switch_of(packet.lane), packet.to);
        let link = match self.router.outputs(switch, to) {
            [] => return self.lose(queue, id),
            &[link] => link,
            outputs if !self.router.is_adaptive() => self.router.pick(&self.network, &mut self.random, packet, outputs),
            // It lies in the queue of one output.
            _ if self.buffers.store_whole_packets() => {
                self.router.shortest_queue(&self.links, &self.counts, &mut self.random, switch, to)
            }
            _ => return self.route_adaptively(queue, id),
        };
        self.wait_for(queue, link, id);
    }

    /// Takes any link that is free at once, the search beginning at one drawn at random, or else waits for all.
    fn route_adaptively(&mut self, queue: &mut Queue<Event>, id: PacketId) {
        let packet = &self.packets[id];
        let now = queue.now();
        let outputs = self.router.outputs(self.links.switch_of(packet.lane), packet.to);
        let has_room = |links: &mut Links, link: LinkId| {
            links[link].is_idle(now) && self.buffers.room_at(links, now, link, packet) <= now
        };
        let free = routing::from_any(outputs, &mut self.random).find(|&link| has_room(&mut self.links, link));
        if let Some(link) = free {
            return self.grant(queue, link, id);
        }
        for index in 0..outputs.len() {
            let packet = &self.packets[id];
            let link = self.router.outputs(self.links.switch_of(packet.lane), packet.to)[index];
            self.wait_for(queue, link, id);
        }
    }

    /// Puts a packet among those that wait for a link.
    fn wait_for(&mut self, queue: &mut Queue<Event>, link: LinkId, id: PacketId) {
        if self.links[link].running {
            self.gives_up = true;
        }
        if self.has_rules && self.is_dead_end(link, id) {
            return self.lose(queue, id);
        }
        if !self.buffers.admit(&self.links, &self.packets, &mut self.counts, queue.now(), link, id) {
            return self.lose(queue, id);
        }
        let waiting = self.arbiter.enlist(&mut self.links, &self.packets, link, id);
        let most = &mut self.counts[link].most_waiting;
        *most = waiting.max(*most);
    }

    fn arbitrate_link(&mut self, queue: &mut Queue<Event>, link: LinkId) {
        let (now, port) = (queue.now(), &self.links[link]);
        if port.waiting.is_empty() || port.failed {
            if port.running {
                self.follow(queue, link);
            }
            return;
        }
        if port.free_at > now {
            return self.links.plan_wake(queue, link, port.free_at);
        }
        match self.arbiter.choose(&mut self.links, &self.packets, &self.buffers, &mut self.random, now, link) {
            Ok(place) => {
                let Waiting { id, .. } = self.links[link].waiting.remove(place);
                self.grant(queue, link, id);
                self.links.wake_waiting(queue, link, self.links[link].free_at);
            }
            Err(later) => self.links.plan_wake(queue, link, later),
        }
    }

    /// Gives a link to a packet.
    fn grant(&mut self, queue: &mut Queue<Event>, link: LinkId, id: PacketId) {
        self.router.forget_requests(&mut self.links, &self.packets, id, Some(link));
        let packet = &mut self.packets[id];
        self.counts.grant(queue.now(), link, packet);
        self.router.note_patience(queue.now(), packet);
        packet.channel = self.buffers.channel(&self.links, link, packet);
        let lane = self.links.lane(link, packet.channel);
        let port = &mut self.links[link];
        packet.dimension = port.dimension;
        port.holder = id;
        port.turn = packet.lane;
        packet.corrupted |= self.faults.corrupts(link, port, self.counts[link].packets);
        self.trace.grant(queue.now(), id, packet, &self.network, link);
        match self.buffers.wormhole() {
            Some(wormhole) => self.start_worm(queue, wormhole, link, lane, id),
            None => self.start_whole(queue, link, lane, id),
        }
    }

    /// A packet that is never held up once it has a link starts on one, towards a lane.
    fn start_whole(&mut self, queue: &mut Queue<Event>, link: LinkId, lane: LaneId, id: PacketId) {
        let (now, class) = (queue.now(), self.links.class(link));
        let port = &mut self.links[link];
        let packet = &mut self.packets[id];
        let (before, wire) = (packet.lane, packet.wire);
        let needed = self.faults.slowed(link, port, class.rate.time_for(wire.into()));
        // A packet that comes in slowly cannot go out fast, unless it is stored in between.
        let is_stored = self.buffers.store_whole_packets() && before != LaneId::NONE;
        packet.pace = if is_stored { needed } else { packet.pace.max(needed) };
        let (left_at, train) = (now + packet.pace, packet.train);
        self.counts.leave(link, packet.pace, now, left_at);
        port.free_at = left_at;
        let end = port.to();
        if train == TrainId::NONE {
            self.leave(queue, before, id, left_at);
        } else {
            self.start_run(queue, train, link, lane);
        }
        match end {
            End::Endpoint(_) if train != TrainId::NONE => {}
            End::Endpoint(_) => queue.push(left_at + class.delay, Event::Deliver(id)),
            End::Switch(_) if self.buffers.store_whole_packets() => {
                self.buffers.enter_whole(queue, &mut self.packets, lane, id, left_at + class.delay);
            }
            End::Switch(_) => {
                let held = self.buffers.take_credit(&mut self.links, lane, wire);
                self.counts.note_bytes(link, held);
                let arrival = now + class.byte_time + class.delay;
                if let Some(part) = self.border.beyond(end) {
                    let packet = self.packets.remove(id);
                    return self.border.post_packet(part, packet, lane, arrival);
                }
                self.buffers.enter(queue, &mut self.links, &mut self.packets, lane, id, arrival);
            }
        }
        if train != TrainId::NONE {
            self.follow_from_start(queue, train);
        }
    }

    /// The tail of a packet leaves the place before a link at `at`.
    fn leave(&mut self, queue: &mut Queue<Event>, before: LaneId, id: PacketId, at: Time) {
        if before == LaneId::NONE && self.packets[id].load == Load::SourceRoutedPacket {
            // It took its turn beside the packets of messages.
        } else if before == LaneId::NONE {
            self.effects.push(Effect::Sent { endpoint: self.packets[id].from, at });
        } else if let Some(part) = self.beyond_link(before) {
            let at = self.buffers.leave_for_sender(queue, &mut self.links, &self.packets, before, at);
            let bytes = self.packets[id].wire;
            self.border.post_credit(part, Credit { lane: before, bytes, at });
        } else {
            self.buffers.leave(queue, &mut self.links, &self.packets, before, id, at);
        }
    }

    /// The other part of the network from which a lane is filled.
    #[inline]
    fn beyond_link(&self, lane: LaneId) -> Option<usize> {
        if !self.border.is_there() {
            return None;
        }
        self.border.beyond(self.network.link(self.links.link_of(lane)).from)
    }

    /// A packet comes from another part of the network.
    pub(crate) fn enter(&mut self, queue: &mut Queue<Event>, packet: Packet) {
        let (lane, arrival) = (packet.lane, packet.since);
        let id = self.packets.insert(packet);
        self.buffers.enter(queue, &mut self.links, &mut self.packets, lane, id, arrival);
    }

    /// Another part of the network tells that bytes of a buffer there will be free.
    pub(crate) fn credit(&mut self, queue: &mut Queue<Event>, Credit { lane, bytes, at }: Credit) {
        self.buffers.credit(queue, &mut self.links, lane, at, bytes);
    }

    /// Takes over what another part of the network has counted.
    pub(crate) fn take_over(&mut self, other: &Self, is_of_other: impl Fn(End) -> bool) {
        self.counts.take_over(&other.counts, |link| is_of_other(self.network.link(link).from));
    }

    /// A packet is lost where it is.
    fn lose(&mut self, queue: &mut Queue<Event>, id: PacketId) {
        let (now, lane) = (queue.now(), self.packets[id].lane);
        if let Some(wormhole) = self.buffers.wormhole().filter(|_| lane != LaneId::NONE) {
            self.swallow_worm(queue, wormhole, id);
        }
        self.leave(queue, lane, id, now);
        self.trace.lose(now, id, &self.packets[id]);
        self.effects.push(Effect::Lost(id));
    }
}
