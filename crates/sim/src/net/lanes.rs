//! Buffers at the receiving end of links: room, credits, queues and pauses.

use super::{Contents, Discipline, LinkState, Net, Room, UNKNOWN, time_for};
use crate::{
    event::Event,
    packet::{NO_LANE, PacketId},
    queue::Queue,
};
use evb_fabric::{End, WhenFull};

impl Net {
    /// The room behind a link.
    #[inline]
    pub(super) fn room(&mut self, now: u64, link: u32) -> Room {
        if self.channels > 1 {
            return Room::Depends;
        }
        let LinkState { port, lane } = &mut self.links[link as usize];
        match &mut lane.contents {
            Contents::Bytes(_) | Contents::Places(_) if matches!(port.to(), End::Endpoint(_)) => Room::Any,
            Contents::Places(places) if places.iter().any(|&at| at <= now) => Room::Any,
            Contents::Bytes(credit) => {
                credit.settle(now);
                Room::Bytes(credit.free)
            }
            Contents::Places(_) | Contents::Store { .. } => Room::Depends,
        }
    }

    /// When the buffer behind a link with one virtual channel will have room for some bytes, if that is known.
    pub(super) fn credit_at(&self, link: u32, bytes: u32) -> Option<u64> {
        let Contents::Bytes(credit) = &self.links[link as usize].lane.contents else { return None };
        Some(credit.room_at(bytes)).filter(|&time| time != UNKNOWN)
    }

    /// From when on a link, once it is free, may take a packet: at or before `now`, later, or [`UNKNOWN`].
    #[inline]
    pub(super) fn room_at(&mut self, now: u64, link: u32, id: PacketId) -> u64 {
        let channel = match self.discipline {
            Discipline::Store { .. } => {
                let paused = self.port(link).paused & (1 << self.packets[id].priority.min(7)) != 0;
                return if paused { UNKNOWN } else { 0 };
            }
            _ if matches!(self.port(link).to(), End::Endpoint(_)) => return 0,
            Discipline::Worm { .. } => 0,
            Discipline::CutThrough { .. } => self.next_channel(link, id),
        };
        let need = self.packets[id].wire;
        match &mut self.lane_mut((link << self.shift) | u32::from(channel)).contents {
            Contents::Places([one, other]) => (*one).min(*other),
            Contents::Bytes(credit) => {
                credit.settle(now);
                credit.room_at(need)
            }
            Contents::Store { .. } => 0,
        }
    }

    /// A packet that is never held up once it has a link starts on one.
    pub(super) fn start_whole(
        &mut self,
        queue: &mut Queue<Event>,
        now: u64,
        link: u32,
        lane: u32,
        came_from: u32,
        id: PacketId,
    ) {
        let class = self.port(link).class(&self.classes);
        let length = self.packets[id].wire;
        let needed = self.slowed(link, time_for(length.into(), class.rate));
        let packet = &mut self.packets[id];
        // A packet that comes in slowly cannot go out fast, unless it is stored in between.
        let stored = matches!(self.discipline, Discipline::Store { .. }) && came_from != NO_LANE;
        packet.pace = if stored { needed } else { packet.pace.max(needed) };
        let pace = packet.pace;
        let left_at = now + pace;
        let counts = &mut self.counts[link as usize];
        counts.busy += pace;
        counts.held += pace;
        let port = self.port_mut(link);
        port.free_at = left_at;
        let to = port.to();
        self.note_leaving(queue, came_from, id, left_at);
        match (to, self.discipline) {
            (End::Endpoint(_), _) => queue.push(left_at + class.delay, Event::Deliver(id)),
            (End::Switch(_), Discipline::Store { .. }) => {
                self.packets[id].lane = lane;
                queue.push(left_at + class.delay + self.switch_delay, Event::Request(id));
            }
            (End::Switch(_), _) => {
                let capacity = self.capacity;
                if let Contents::Bytes(credit) = &mut self.lane_mut(lane).contents {
                    credit.free -= length;
                    let held = capacity - u64::from(credit.free);
                    let counts = &mut self.counts[link as usize];
                    counts.most_bytes = counts.most_bytes.max(held);
                }
                self.enter_lane(queue, lane, id, now + class.byte_time + class.delay);
            }
        }
    }

    /// The packet in front of a lane will have left it at `at`.
    pub(super) fn leave_lane(&mut self, queue: &mut Queue<Event>, lane: u32, id: PacketId, at: u64) {
        let link = self.link_of(lane);
        match self.discipline {
            Discipline::Worm { reaction, .. } => self.leave_place(queue, lane, at, reaction),
            Discipline::CutThrough { reaction } => {
                let bytes = self.packets[id].wire;
                if let Contents::Bytes(credit) = &mut self.lane_mut(lane).contents {
                    credit.give_back(at + reaction, bytes);
                }
                if !self.links[link as usize].port.waiting.is_empty() {
                    self.plan_wake(queue, link, at + reaction);
                }
                self.next_in_lane(queue, lane, at);
            }
            Discipline::Store { full: WhenFull::Drop, .. } => {}
            Discipline::Store { .. } => {
                let drain = self.drains.insert((lane, self.packets[id].wire));
                queue.push(at, Event::Drained { drain });
            }
        }
    }

    /// Whether a packet that comes to the queue of an output does not fit any more; else it is in it now.
    pub(super) fn drops(&mut self, now: u64, link: u32, id: PacketId) -> bool {
        let Discipline::Store { queue, full, .. } = self.discipline else { return false };
        let packet = &self.packets[id];
        let port = self.port(link);
        let sending = if port.free_at > now { u64::from(self.packets[port.holder].wire) } else { 0 };
        let counts = &mut self.counts[link as usize];
        let held = counts.queued + sending + u64::from(packet.wire);
        // The queue of a network interface is its host's memory.
        if full == WhenFull::Drop && packet.lane != NO_LANE && held > queue {
            counts.dropped += 1;
            return true;
        }
        counts.queued += u64::from(packet.wire);
        counts.most_bytes = counts.most_bytes.max(held);
        false
    }

    /// A packet has come into a switch whole (store and forward): its sender may have to pause.
    pub(super) fn store(&mut self, queue: &mut Queue<Event>, now: u64, id: PacketId) {
        let Discipline::Store { queue: most, full, reaction } = self.discipline else { return };
        if full == WhenFull::Drop {
            return;
        }
        let (lane, bytes) = (self.packets[id].lane, u64::from(self.packets[id].wire));
        let account = self.account(lane);
        let Contents::Store { held, pausing } = &mut self.lane_mut(account).contents else { return };
        *held += bytes;
        if *held >= most && !std::mem::replace(pausing, true) {
            let link = self.link_of(lane);
            self.counts[link as usize].pauses += 1;
            queue.push(now + reaction, Event::Pause { lane });
        }
    }

    /// Bytes that came through a lane have left the switch: the pause may be over.
    pub(crate) fn drained(&mut self, queue: &mut Queue<Event>, now: u64, drain: u32) {
        let (lane, bytes) = self.drains.remove(drain);
        let Discipline::Store { queue: most, reaction, .. } = self.discipline else { return };
        let account = self.account(lane);
        let Contents::Store { held, pausing } = &mut self.lane_mut(account).contents else { return };
        *held -= u64::from(bytes);
        if *pausing && *held <= most / 2 {
            *pausing = false;
            queue.push(now + reaction, Event::Unpause { lane });
        }
    }

    /// The sender of a link begins or ends a pause.
    pub(crate) fn pause(&mut self, lane: u32, begin: bool) {
        let link = self.link_of(lane);
        let mask = match self.discipline {
            Discipline::Store { full: WhenFull::PriorityPause, .. } => 1 << self.channel_of(lane),
            _ => u8::MAX,
        };
        let port = &mut self.links[link as usize].port;
        port.paused = if begin { port.paused | mask } else { port.paused & !mask };
        self.touch(link);
    }

    /// The lane that bytes are accounted to: without priorities in the pause, all priorities share one.
    fn account(&self, lane: u32) -> u32 {
        match self.discipline {
            Discipline::Store { full: WhenFull::PriorityPause, .. } => lane,
            _ => lane - self.channel_of(lane),
        }
    }
}
