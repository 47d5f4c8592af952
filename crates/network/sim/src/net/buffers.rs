//! Flow control: the room in the buffer at the end of each link, and the packets that enter and leave it.

mod trains;

pub(super) use trains::Sequence;

use super::{
    UNKNOWN,
    counts::Counts,
    credit::Credit,
    lane::Contents,
    links::{Ends, Links},
    worm::Wormhole,
};
use crate::{
    event::Event,
    packet::{LaneId, Packet, PacketId, Packets},
    queue::Queue,
    slab::Slab,
};
use evb_core::{Span, Time};
use evb_fabric::{Flow, LinkId, WhenFull};

/// The rules by which all buffers of a network work.
pub(super) struct Buffers {
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
        /// Bytes of each queue.
        queue: u64,
        full: WhenFull,
        reaction: Span,
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

impl Buffers {
    /// The rules, and the number of virtual channels, or priorities, of each link.
    pub(super) fn new(flow: Flow, switch_delay: Span) -> (Self, u32) {
        let (discipline, channels) = match flow {
            Flow::Wormhole { slack, reaction } => (Discipline::Worm(Wormhole { slack: slack.0, reaction }), 1),
            Flow::CutThrough { buffer, reaction, virtual_channels } => {
                let buffer = u32::try_from(buffer.0).unwrap_or(u32::MAX);
                (Discipline::CutThrough { buffer, reaction }, virtual_channels)
            }
            Flow::StoreAndForward { queue, full, reaction, priorities } => {
                (Discipline::Store { queue: queue.0, full, reaction }, priorities)
            }
        };
        (Self { discipline, switch_delay, drains: Slab::default() }, channels.into())
    }

    /// The contents of an empty buffer.
    pub(super) fn empty(&self) -> Contents {
        match self.discipline {
            Discipline::Worm(_) => Contents::Places([Time::ZERO; 2]),
            Discipline::CutThrough { buffer, .. } => Contents::Bytes(Credit::new(buffer)),
            Discipline::Store { .. } => Contents::Store { held: 0, pausing: false },
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

    /// A switch takes a packet whole before it sends it on.
    #[inline]
    pub(super) fn store_whole_packets(&self) -> bool {
        matches!(self.discipline, Discipline::Store { .. })
    }

    /// The room behind a link.
    #[inline]
    pub(super) fn room(&self, links: &mut Links, now: Time, link: LinkId) -> Room {
        if !links.has_one_channel() {
            return Room::Depends;
        }
        let Ends { port, lane } = links.ends_mut(link);
        match &mut lane.contents {
            Contents::Bytes(_) | Contents::Places(_) if port.is_at_endpoint() => Room::Any,
            Contents::Places(places) if places.iter().any(|&at| at <= now) => Room::Any,
            Contents::Bytes(credit) => {
                credit.settle(now);
                Room::Bytes(credit.free)
            }
            Contents::Places(_) | Contents::Store { .. } => Room::Depends,
        }
    }

    /// Time at which the buffer behind a link with one virtual channel will have room for some bytes, or [`UNKNOWN`].
    pub(super) fn credit_at(&self, links: &Links, link: LinkId, bytes: u32) -> Time {
        match &links[links.lane(link, 0)].contents {
            Contents::Bytes(credit) => credit.room_at(bytes),
            Contents::Places(_) | Contents::Store { .. } => UNKNOWN,
        }
    }

    /// Time from which a link, once it is free, may take a packet: at or before `now`, later, or [`UNKNOWN`].
    #[inline]
    pub(super) fn room_at(&self, links: &mut Links, now: Time, link: LinkId, packet: &Packet) -> Time {
        let channel = match self.discipline {
            Discipline::Store { .. } => {
                let paused = links[link].paused & (1 << packet.priority.min(7)) != 0;
                return if paused { UNKNOWN } else { Time::ZERO };
            }
            _ if links[link].is_at_endpoint() => return Time::ZERO,
            Discipline::Worm(_) => 0,
            Discipline::CutThrough { .. } => links.next_channel(link, packet),
        };
        let lane = links.lane(link, channel);
        match &mut links[lane].contents {
            Contents::Places([one, other]) => (*one).min(*other),
            Contents::Bytes(credit) => {
                credit.settle(now);
                credit.room_at(packet.wire)
            }
            Contents::Store { .. } => Time::ZERO,
        }
    }

    /// The virtual channel that a packet takes on a link.
    #[inline]
    pub(super) fn channel(&self, links: &Links, link: LinkId, packet: &Packet) -> u8 {
        match self.discipline {
            Discipline::Store { .. } => links.existing(packet.priority),
            _ => links.next_channel(link, packet),
        }
    }

    /// Takes a packet's bytes of a buffer (cut-through); returns the number of bytes taken then.
    #[inline]
    pub(super) fn take_credit(&self, links: &mut Links, lane: LaneId, bytes: u32) -> u64 {
        match (&mut links[lane].contents, self.discipline) {
            (Contents::Bytes(credit), Discipline::CutThrough { buffer, .. }) => {
                credit.free -= bytes;
                u64::from(buffer - credit.free)
            }
            _ => 0,
        }
    }

    /// A packet's head comes into the buffer of a switch at `arrival`.
    #[inline]
    pub(super) fn enter(
        &self,
        queue: &mut Queue<Event>,
        links: &mut Links,
        packets: &mut Packets,
        lane: LaneId,
        id: PacketId,
        arrival: Time,
    ) {
        let packet = &mut packets[id];
        packet.lane = lane;
        packet.since = arrival;
        packet.next = PacketId::NONE;
        let buffer = &mut links[lane];
        if buffer.left_at != UNKNOWN {
            let left_at = std::mem::replace(&mut buffer.left_at, UNKNOWN);
            queue.push((arrival + self.switch_delay).max(left_at), Event::Request(id));
        } else if buffer.behind.0 == PacketId::NONE {
            buffer.behind = (id, id);
        } else {
            let last = std::mem::replace(&mut buffer.behind.1, id);
            packets[last].next = id;
        }
    }

    /// The last byte of a packet comes into a switch, which stores it, at `arrival`.
    pub(super) fn enter_whole(
        &self,
        queue: &mut Queue<Event>,
        packets: &mut Packets,
        lane: LaneId,
        id: PacketId,
        arrival: Time,
    ) {
        packets[id].lane = lane;
        queue.push(arrival + self.switch_delay, Event::Request(id));
    }

    /// The packet in front of a lane will have left it at `at`.
    #[inline]
    pub(super) fn leave(
        &mut self,
        queue: &mut Queue<Event>,
        links: &mut Links,
        packets: &Packets,
        lane: LaneId,
        id: PacketId,
        at: Time,
    ) {
        let reaction = match self.discipline {
            Discipline::Store { full: WhenFull::Drop, .. } => return,
            Discipline::Store { .. } => {
                let drain = self.drains.insert((lane, packets[id].wire));
                return queue.push(at.max(queue.now()), Event::Drained { drain });
            }
            Discipline::Worm(Wormhole { reaction, .. }) => {
                links[lane].free_place(at + reaction);
                reaction
            }
            Discipline::CutThrough { reaction, .. } => {
                self.credit(queue, links, lane, at + reaction, packets[id].wire);
                return self.bring_next(queue, links, packets, lane, at);
            }
        };
        // A packet of a train that was split may have left before.
        links.wake_waiting(queue, links.link_of(lane), (at + reaction).max(queue.now()));
        self.bring_next(queue, links, packets, lane, at);
    }

    /// The sender of the link of a lane will know from `at` on that bytes are free (cut-through).
    #[inline]
    pub(super) fn credit(&self, queue: &mut Queue<Event>, links: &mut Links, lane: LaneId, at: Time, bytes: u32) {
        if let Contents::Bytes(credit) = &mut links[lane].contents {
            credit.give_back(at, bytes);
        }
        // A packet of a train that was split may have left before.
        links.wake_waiting(queue, links.link_of(lane), at.max(queue.now()));
    }

    /// The packet in front of a lane will have left it at `at`; returns the time from which the sender of its link, who
    /// is told, knows it (cut-through).
    pub(super) fn leave_for_sender(
        &self,
        queue: &mut Queue<Event>,
        links: &mut Links,
        packets: &Packets,
        lane: LaneId,
        at: Time,
    ) -> Time {
        self.bring_next(queue, links, packets, lane, at);
        match self.discipline {
            Discipline::CutThrough { reaction, .. } => at + reaction,
            Discipline::Worm(_) | Discipline::Store { .. } => UNKNOWN,
        }
    }

    /// The packet in front of a lane will have left at `at`: the next one comes to the front.
    fn bring_next(&self, queue: &mut Queue<Event>, links: &mut Links, packets: &Packets, lane: LaneId, at: Time) {
        let buffer = &mut links[lane];
        let next = buffer.behind.0;
        if next == PacketId::NONE {
            buffer.left_at = at;
            return;
        }
        buffer.behind.0 = packets[next].next;
        queue.push((packets[next].since + self.switch_delay).max(at), Event::Request(next));
    }

    /// Takes a packet into the queue of an output (store and forward); returns false if it does not fit.
    #[inline]
    pub(super) fn admit(
        &self,
        links: &Links,
        packets: &Packets,
        counts: &mut Counts,
        now: Time,
        link: LinkId,
        id: PacketId,
    ) -> bool {
        let Discipline::Store { queue, full, .. } = self.discipline else { return true };
        let (packet, port) = (&packets[id], &links[link]);
        let sending = if port.free_at > now { u64::from(packets[port.holder].wire) } else { 0 };
        let wire = u64::from(packet.wire);
        let held = counts[link].queued + sending + wire;
        // The queue of a network interface is its host's memory.
        if full == WhenFull::Drop && packet.lane != LaneId::NONE && held > queue {
            counts[link].dropped += 1;
            return false;
        }
        counts[link].queued += wire;
        counts.note_bytes(link, held);
        true
    }

    /// A packet has come into a switch whole (store and forward): its sender may have to pause.
    #[inline(always)]
    pub(super) fn store(&self, queue: &mut Queue<Event>, links: &mut Links, counts: &mut Counts, packet: &Packet) {
        let Discipline::Store { queue: most, full, reaction } = self.discipline else { return };
        if full == WhenFull::Drop {
            return;
        }
        let lane = packet.lane;
        let account = self.account(links, lane);
        let Contents::Store { held, pausing } = &mut links[account].contents else { return };
        *held += u64::from(packet.wire);
        if *held >= most && !std::mem::replace(pausing, true) {
            counts[links.link_of(lane)].pauses += 1;
            queue.push(queue.now() + reaction, Event::Pause { lane });
        }
    }

    /// Bytes that came through a lane have left the switch: the pause may be over.
    pub(super) fn drained(&mut self, queue: &mut Queue<Event>, links: &mut Links, drain: u32) {
        let (lane, bytes) = self.drains.remove(drain);
        let Discipline::Store { queue: most, reaction, .. } = self.discipline else { return };
        let account = self.account(links, lane);
        let Contents::Store { held, pausing } = &mut links[account].contents else { return };
        *held -= u64::from(bytes);
        if *pausing && *held <= most / 2 {
            *pausing = false;
            queue.push(queue.now() + reaction, Event::Unpause { lane });
        }
    }

    /// The sender of a link begins or ends a pause.
    pub(super) fn pause(&self, links: &mut Links, lane: LaneId, begin: bool) {
        let link = links.link_of(lane);
        let mask = match self.discipline {
            Discipline::Store { full: WhenFull::PriorityPause, .. } => 1 << links.channel_of(lane),
            _ => u8::MAX,
        };
        let port = &mut links[link];
        port.paused = if begin { port.paused | mask } else { port.paused & !mask };
        links.touch(link);
    }

    /// The lane to which bytes are accounted: without priorities in the pause, all priorities share one.
    fn account(&self, links: &Links, lane: LaneId) -> LaneId {
        match self.discipline {
            Discipline::Store { full: WhenFull::PriorityPause, .. } => lane,
            _ => links.lane(links.link_of(lane), 0),
        }
    }
}
