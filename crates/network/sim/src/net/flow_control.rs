//! Flow control: the room in the buffer at the end of each link, and the packets that enter and leave it.

mod trains;

pub(super) use trains::Sequence;

use super::{
    Net, UNKNOWN,
    credit::Credit,
    lane::{Contents, Lane, Stored},
    links::{Ends, Links},
    worm::Wormhole,
};
use crate::{
    event::NetEvent,
    packet::{LaneId, Packet, PacketId},
    slab::Slab,
};
use evb_core::{Span, Time};
use evb_fabric::{Flow, LinkId, WhenFull};
use std::ops::Range;

/// The rules of all buffers of a network.
pub(super) struct FlowControl {
    discipline: Discipline,
    switch_delay: Span,
    /// Lanes and bytes of the packets that are about to leave a switch (store and forward with pauses).
    drains: Slab<u32, (LaneId, u32)>,
}

/// The discipline of buffers.
#[derive(Clone, Copy, Debug)]
enum Discipline {
    Worm(Wormhole),
    CutThrough {
        /// Bytes of each buffer.
        buffer: u32,
        reaction: Span,
    },
    Store {
        /// Bytes of each queue of an output.
        queue: u64,
        full: WhenFull,
        /// The highest priority.
        highest: u8,
    },
}

/// The room for a packet in the buffer behind a link.
#[derive(Clone, Copy)]
pub(super) enum Room {
    /// Room for any packet.
    Any,
    /// Room for a packet of at most this many bytes.
    Bytes(u32),
    /// Room that depends on more than the size of the packet.
    Depends,
}

impl FlowControl {
    /// The rules, and the number of virtual channels, or priorities, of each link.
    pub(super) fn new(flow: Flow, switch_delay: Span) -> (Self, u32) {
        let (discipline, channels) = match flow {
            Flow::Wormhole { slack, reaction } => (Discipline::Worm(Wormhole { slack: slack.0, reaction }), 1),
            Flow::CutThrough { buffer, reaction, virtual_channels, .. } => {
                let buffer = u32::try_from(buffer.0).unwrap_or(u32::MAX);
                (Discipline::CutThrough { buffer, reaction }, virtual_channels)
            }
            Flow::StoreAndForward { queue, full, priorities, .. } => {
                (Discipline::Store { queue: queue.0, full, highest: priorities.saturating_sub(1) }, priorities)
            }
        };
        (Self { discipline, switch_delay, drains: Slab::default() }, channels.into())
    }

    /// The contents of an empty buffer.
    pub(super) fn empty(&self) -> Contents {
        match self.discipline {
            Discipline::Worm(_) => Contents::Places([Time::ZERO; 2]),
            Discipline::CutThrough { buffer, .. } => Contents::Bytes(Credit::new(buffer)),
            Discipline::Store { .. } => Contents::Store(Stored::default()),
        }
    }

    /// The highest priority of packets (store and forward).
    pub(super) fn highest_priority(&self) -> u8 {
        match self.discipline {
            Discipline::Store { highest, .. } => highest,
            Discipline::Worm(_) | Discipline::CutThrough { .. } => 0,
        }
    }

    /// Bytes of each queue of an output (store and forward).
    pub(super) fn queue_size(&self) -> u64 {
        match self.discipline {
            Discipline::Store { queue, .. } => queue,
            Discipline::Worm(_) | Discipline::CutThrough { .. } => 0,
        }
    }

    /// The parameters of wormhole flow; `None` under another flow.
    #[inline]
    pub(super) fn wormhole(&self) -> Option<Wormhole> {
        match self.discipline {
            Discipline::Worm(wormhole) => Some(wormhole),
            _ => None,
        }
    }

    /// True if a switch receives a packet whole before it forwards it.
    #[inline]
    pub(super) fn stores_whole_packets(&self) -> bool {
        matches!(self.discipline, Discipline::Store { .. })
    }

    /// True if the head of a packet leaves a switch before its tail has come, and a buffer has room for all of it.
    #[inline]
    pub(super) fn is_cut_through(&self) -> bool {
        matches!(self.discipline, Discipline::CutThrough { .. })
    }

    /// The virtual channel that a packet takes on a link.
    #[inline]
    pub(super) fn channel(&self, links: &Links, link: LinkId, packet: &Packet) -> u8 {
        match self.discipline {
            Discipline::Store { .. } => links.existing(packet.priority),
            _ => links.next_channel(link, packet),
        }
    }

    /// True if a pause is for one priority.
    pub(super) fn pauses_by_priority(&self) -> bool {
        matches!(self.discipline, Discipline::Store { full: WhenFull::PriorityPause, .. })
    }

    /// The lane to which bytes are accounted: without priorities in the pause, all priorities share one.
    pub(super) fn account(&self, links: &Links, lane: LaneId) -> LaneId {
        if self.pauses_by_priority() { lane } else { links.lane(links.link_of(lane), 0) }
    }
}

impl Net {
    /// The room behind a link.
    #[inline]
    pub(super) fn room(&mut self, link: LinkId) -> Room {
        if !self.links.has_one_channel() || self.arbiter.matches_inputs() {
            return Room::Depends;
        }
        let now = self.queue.now();
        let Ends { port, lane } = self.links.ends_mut(link);
        match &mut lane.contents {
            Contents::Bytes(_) | Contents::Places(_) if port.is_at_endpoint() => Room::Any,
            Contents::Places(places) if places.iter().any(|&at| at <= now) => Room::Any,
            Contents::Bytes(credit) => {
                credit.settle(now);
                Room::Bytes(credit.free)
            }
            Contents::Places(_) | Contents::Store(_) => Room::Depends,
        }
    }

    /// Time at which the buffer behind a link with one virtual channel will have room for some bytes, or [`UNKNOWN`].
    pub(super) fn credit_at(&self, link: LinkId, bytes: u32) -> Time {
        match &self.links[self.links.lane(link, 0)].contents {
            Contents::Bytes(credit) => credit.room_at(bytes),
            Contents::Places(_) | Contents::Store(_) => UNKNOWN,
        }
    }

    /// Time from which a link, once it is free, may take a packet: at once, later, or [`UNKNOWN`].
    #[inline]
    pub(super) fn room_at(&mut self, link: LinkId, id: PacketId) -> Time {
        let room = self.room_behind(link, id);
        if self.arbiter.matches_inputs() { room.max(self.input_free_at(id)) } else { room }
    }

    /// Time from which there is room for a packet behind a link: at once, later, or [`UNKNOWN`].
    #[inline]
    fn room_behind(&mut self, link: LinkId, id: PacketId) -> Time {
        let packet = &self.packets[id];
        let channel = match self.flow.discipline {
            Discipline::Store { .. } => {
                let paused = self.links[link].paused & (1 << packet.priority.min(7)) != 0;
                return if paused { UNKNOWN } else { Time::ZERO };
            }
            _ if self.links[link].is_at_endpoint() => return Time::ZERO,
            Discipline::Worm(_) => 0,
            Discipline::CutThrough { .. } => self.links.next_channel(link, packet),
        };
        let lane = self.links.lane(link, channel);
        match &mut self.links[lane].contents {
            Contents::Places([one, other]) => (*one).min(*other),
            Contents::Bytes(credit) => {
                credit.settle(self.queue.now());
                credit.room_at(packet.wire)
            }
            Contents::Store(_) => Time::ZERO,
        }
    }

    /// Bytes that lie in the buffers behind a link, as its sender knows, or wait for it. Where packets are stored there are
    /// no such buffers, and the queue holds the packet that is being sent.
    pub(super) fn load(&self, link: LinkId) -> u64 {
        let waiting = self.counts[link].queued;
        let Discipline::CutThrough { buffer, .. } = self.flow.discipline else {
            return waiting + self.being_sent(link);
        };
        let now = self.queue.now();
        let held = |lane: &Lane| match &lane.contents {
            Contents::Bytes(credit) => buffer - credit.free_at(now),
            Contents::Places(_) | Contents::Store(_) => 0,
        };
        waiting + self.links.lanes(link).map(|lane| u64::from(held(lane))).sum::<u64>()
    }

    /// Bytes of the packet that is being sent over a link, counted whole.
    #[inline]
    fn being_sent(&self, link: LinkId) -> u64 {
        let port = &self.links[link];
        if port.free_at > self.queue.now() { self.packets[port.holder].wire.into() } else { 0 }
    }

    /// Takes a packet's bytes of a buffer (cut-through); returns the number of bytes taken then.
    #[inline]
    pub(super) fn take_credit(&mut self, lane: LaneId, bytes: u32) -> u64 {
        match (&mut self.links[lane].contents, self.flow.discipline) {
            (Contents::Bytes(credit), Discipline::CutThrough { buffer, .. }) => {
                credit.free -= bytes;
                u64::from(buffer - credit.free)
            }
            _ => 0,
        }
    }

    /// The head of a packet arrives in the buffer of a switch at `arrival`.
    #[inline]
    pub(super) fn arrive(&mut self, lane: LaneId, id: PacketId, arrival: Time) {
        let packet = &mut self.packets[id];
        packet.lane = lane;
        packet.since = arrival;
        packet.next = PacketId::NONE;
        if self.arbiter.matches_inputs() {
            // Those before it wait in other queues.
            return self.plan(arrival + self.flow.switch_delay, NetEvent::Request(id));
        }
        let buffer = &mut self.links[lane];
        if buffer.left_at != UNKNOWN {
            let left_at = std::mem::replace(&mut buffer.left_at, UNKNOWN);
            self.plan((arrival + self.flow.switch_delay).max(left_at), NetEvent::Request(id));
        } else if buffer.behind.0 == PacketId::NONE {
            buffer.behind = (id, id);
        } else {
            let last = std::mem::replace(&mut buffer.behind.1, id);
            self.packets[last].next = id;
        }
    }

    /// The packet in front of a lane leaves it in this time.
    #[inline]
    pub(super) fn leave_buffer(&mut self, lane: LaneId, id: PacketId, leaving: Range<Time>) {
        let at = leaving.end;
        let reaction = match self.flow.discipline {
            Discipline::Store { full: WhenFull::Drop, .. } => return,
            Discipline::Store { .. } => {
                if !self.copies.leave(id) {
                    return;
                }
                let drain = self.flow.drains.insert((lane, self.packets[id].wire));
                return self.plan(at.max(self.queue.now()), NetEvent::Drained { drain });
            }
            Discipline::Worm(Wormhole { reaction, .. }) => {
                self.links[lane].free_place(at + reaction);
                reaction
            }
            Discipline::CutThrough { reaction, .. } => {
                self.credit(lane, at + reaction, self.packets[id].wire);
                return self.read(lane, id, leaving);
            }
        };
        // A packet of a train that was split may have left before.
        self.wake_waiting(self.links.link_of(lane), (at + reaction).max(self.queue.now()));
        self.bring_next(lane, at);
    }

    /// The sender of the link of a lane will know from `at` on that bytes are free (cut-through).
    #[inline]
    pub(super) fn credit(&mut self, lane: LaneId, at: Time, bytes: u32) {
        if let Contents::Bytes(credit) = &mut self.links[lane].contents {
            self.gives_up |= !credit.give_back(at, bytes);
        }
        // A packet of a train that was split may have left before.
        self.wake_waiting(self.links.link_of(lane), at.max(self.queue.now()));
    }

    /// The packet in front of a lane leaves it in this time. Returns the time at which the sender of its link, which is
    /// in another partition, learns it (cut-through).
    pub(super) fn leave_for_sender(&mut self, lane: LaneId, id: PacketId, leaving: Range<Time>) -> Time {
        let at = leaving.end;
        self.read(lane, id, leaving);
        match self.flow.discipline {
            Discipline::CutThrough { reaction, .. } => at + reaction,
            Discipline::Worm(_) | Discipline::Store { .. } => UNKNOWN,
        }
    }

    /// A packet is read from a lane while it leaves: then the next one comes to the front, or the input is free.
    #[inline(always)]
    fn read(&mut self, lane: LaneId, id: PacketId, leaving: Range<Time>) {
        let at = self.read_at(lane, id, leaving);
        if self.arbiter.matches_inputs() { self.occupy_input(lane, at) } else { self.bring_next(lane, at) }
    }

    /// Brings the next packet to the front of a lane, from which the one before will have been read at `at`.
    fn bring_next(&mut self, lane: LaneId, at: Time) {
        let buffer = &mut self.links[lane];
        let next = buffer.behind.0;
        if next == PacketId::NONE {
            buffer.left_at = at;
            return;
        }
        buffer.behind.0 = self.packets[next].next;
        // A packet of a train that was split may have left before: interfaces slower than the links leave gaps in it.
        let front = (self.packets[next].since + self.flow.switch_delay).max(at);
        self.plan(front.max(self.queue.now()), NetEvent::Request(next));
    }

    /// Takes a packet, or its header, into the queue of an output (store and forward); returns false if it is lost.
    #[inline]
    pub(super) fn take_in(&mut self, link: LinkId, id: PacketId) -> bool {
        if self.queues.trims() {
            return self.take_in_or_trim(link, id);
        }
        let fits = self.admit(link, id);
        if !fits {
            self.note_drop(link);
        }
        fits
    }

    /// A packet is dropped before a link: by its queue, or where senders pause by its watchdog.
    #[cold]
    fn note_drop(&mut self, link: LinkId) {
        let counts = &mut self.counts[link];
        let drops = if self.network.config.flow.pauses() { &mut counts.watchdog_dropped } else { &mut counts.dropped };
        *drops += 1;
    }

    /// Takes a packet into the queue of an output (store and forward); returns false if it does not fit.
    #[inline]
    pub(super) fn admit(&mut self, link: LinkId, id: PacketId) -> bool {
        let Discipline::Store { queue, full, .. } = self.flow.discipline else {
            if self.arbiter.matches_inputs() || self.router.compares_loads() {
                self.counts[link].queued += u64::from(self.packets[id].wire);
            }
            return true;
        };
        let (packet, sending) = (&self.packets[id], self.being_sent(link));
        let wire = u64::from(packet.wire);
        let held = self.counts[link].queued + sending + wire;
        let (lane, wire_bytes) = (packet.lane, packet.wire);
        // The queue of a network interface is its host's memory.
        if lane != LaneId::NONE {
            let fits = (full != WhenFull::Drop || held <= queue) && !self.is_dropped_by_watchdog(link, packet.priority);
            if !fits || !self.take_memory(link, lane, wire_bytes) {
                return false;
            }
            self.mark(link, id, held - wire);
        }
        self.counts[link].queued += wire;
        self.counts.note_bytes(link, held);
        true
    }

    /// Marks a segment of a connection if the queue before a link, of this many bytes, is long.
    fn mark(&mut self, link: LinkId, id: PacketId, queued: u64) {
        let packet = &mut self.packets[id];
        let is_segment = packet.load.is_of_connection() && packet.payload > 0;
        if is_segment && self.queues.marks(link, queued, &mut self.random) {
            packet.congested = true;
            self.counts[link].marked += 1;
        }
    }

    /// A switch looks at a packet that has come (store and forward): its sender may have to pause. Returns false if the packet is
    /// lost, since the sender was asked to pause and there is no headroom for it.
    #[inline(always)]
    pub(super) fn store(&mut self, id: PacketId) -> bool {
        match self.flow.discipline {
            Discipline::Store { full: WhenFull::Pause | WhenFull::PriorityPause, .. } => self.take_into_input(id),
            _ => true,
        }
    }

    fn take_into_input(&mut self, id: PacketId) -> bool {
        let &Packet { lane, wire, .. } = &self.packets[id];
        let (link, switch) = (self.links.link_of(lane), usize::from(self.links.switch_of(lane).0));
        let account = self.flow.account(&self.links, lane);
        if self.comes_from_storm(link, id) {
            self.counts[link].watchdog_dropped += 1;
            return false;
        }
        let Contents::Store(stored) = &mut self.links[account].contents else { return true };
        let Some((is_full, headroom)) = self.ingress.take(stored, switch, link, wire.into()) else {
            self.counts[link].ingress_dropped += 1;
            return false;
        };
        let begins = is_full && !std::mem::replace(&mut stored.pausing, true);
        let counts = &mut self.counts[link];
        counts.most_headroom = headroom.max(counts.most_headroom);
        if begins {
            self.ask_to_pause(lane, true);
        }
        true
    }

    /// Bytes that came through a lane have left the switch: the pause may be over.
    pub(super) fn drained(&mut self, drain: u32) {
        let (lane, bytes) = self.flow.drains.remove(drain);
        let switch = usize::from(self.links.switch_of(lane).0);
        let account = self.flow.account(&self.links, lane);
        let Contents::Store(stored) = &mut self.links[account].contents else { return };
        let has_room = self.ingress.give_back(stored, switch, bytes.into());
        if has_room && std::mem::take(&mut stored.pausing) {
            self.ask_to_pause(lane, false);
        }
    }
}
