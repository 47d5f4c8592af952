//! Buffers at the receiving end of links: room, credits, queues and pauses.

use super::{Discipline, Net, UNKNOWN, time_for, worm::scaled};
use crate::{
    event::Event,
    packet::{NO_LANE, PacketId},
    queue::Queue,
};
use evb_fabric::{End, WhenFull};

impl Net {
    /// From when on a link, once it is free, may take a packet: at or before `now`, later, or [`UNKNOWN`].
    pub(super) fn room_at(&mut self, now: u64, link: u32, id: PacketId) -> u64 {
        let wire = self.wires[link as usize];
        let packet = &self.packets[id];
        match self.discipline {
            Discipline::Store { .. } => {
                let paused = self.ports[link as usize].paused & (1 << packet.priority.min(7)) != 0;
                if paused { UNKNOWN } else { 0 }
            }
            _ if matches!(wire.to, End::Endpoint(_)) => 0,
            Discipline::Worm { .. } => {
                let [one, other] = self.lanes[link as usize].places;
                one.min(other)
            }
            Discipline::CutThrough { .. } => {
                let channel = self.next_channel(&wire, id);
                let need = u64::from(packet.wire);
                let lane = &mut self.lanes[(link * self.channels + u32::from(channel)) as usize];
                lane.settle(now);
                let mut free = lane.free;
                if free >= need {
                    return 0;
                }
                for &(time, bytes) in &lane.returns {
                    free += bytes;
                    if free >= need {
                        return time;
                    }
                }
                UNKNOWN
            }
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
        let wire = self.wires[link as usize];
        let port = &mut self.ports[link as usize];
        let packet = &mut self.packets[id];
        let length = u64::from(packet.wire);
        let needed = scaled(time_for(length, wire.rate), port.slowness);
        // A packet that comes in slowly cannot go out fast, unless it is stored in between.
        let stored = matches!(self.discipline, Discipline::Store { .. }) && came_from != NO_LANE;
        packet.pace = if stored { needed } else { packet.pace.max(needed) };
        let left_at = now + packet.pace;
        port.free_at = left_at;
        port.counts.busy += packet.pace;
        port.counts.held += packet.pace;
        self.note_leaving(queue, came_from, id, left_at);
        match (wire.to, self.discipline) {
            (End::Endpoint(_), _) => queue.push(left_at + wire.delay, Event::Deliver(id)),
            (End::Switch(_), Discipline::Store { .. }) => {
                self.packets[id].lane = lane;
                queue.push(left_at + wire.delay + self.switch_delay, Event::Request(id));
            }
            (End::Switch(_), _) => {
                let buffer = &mut self.lanes[lane as usize];
                buffer.free -= length;
                let counts = &mut self.ports[link as usize].counts;
                counts.most_bytes = counts.most_bytes.max(self.capacity - buffer.free);
                self.enter_lane(queue, lane, id, now + wire.byte_time + wire.delay);
            }
        }
    }

    /// The packet in front of a lane will have left it at `at`.
    pub(super) fn leave_lane(&mut self, queue: &mut Queue<Event>, lane: u32, id: PacketId, at: u64) {
        let link = lane / self.channels;
        match self.discipline {
            Discipline::Worm { reaction, .. } => self.leave_place(queue, lane, at, reaction),
            Discipline::CutThrough { reaction } => {
                let bytes = u64::from(self.packets[id].wire);
                self.lanes[lane as usize].returns.push_back((at + reaction, bytes));
                if !self.ports[link as usize].waiting.is_empty() {
                    self.plan_wake(queue, link, at + reaction);
                }
                self.next_in_lane(queue, lane, at);
            }
            Discipline::Store { full: WhenFull::Drop, .. } => {}
            Discipline::Store { .. } => queue.push(at, Event::Drained { lane, bytes: self.packets[id].wire }),
        }
    }

    /// Whether a packet that comes to the queue of an output does not fit any more; else it is in it now.
    pub(super) fn drops(&mut self, now: u64, link: u32, id: PacketId) -> bool {
        let Discipline::Store { queue, full, .. } = self.discipline else { return false };
        let packet = &self.packets[id];
        let port = &mut self.ports[link as usize];
        let sending = port.holder.filter(|_| port.free_at > now).map_or(0, |id| u64::from(self.packets[id].wire));
        let held = port.queued + sending + u64::from(packet.wire);
        // The queue of a network interface is its host's memory.
        if full == WhenFull::Drop && packet.lane != NO_LANE && held > queue {
            port.counts.dropped += 1;
            return true;
        }
        port.queued += u64::from(packet.wire);
        port.counts.most_bytes = port.counts.most_bytes.max(held);
        false
    }

    /// A packet has come into a switch whole (store and forward): its sender may have to pause.
    pub(super) fn store(&mut self, queue: &mut Queue<Event>, now: u64, id: PacketId) {
        let Discipline::Store { queue: most, full, reaction } = self.discipline else { return };
        if full == WhenFull::Drop {
            return;
        }
        let (lane, bytes) = (self.packets[id].lane, u64::from(self.packets[id].wire));
        let account = self.account(lane) as usize;
        let buffer = &mut self.lanes[account];
        buffer.held += bytes;
        if buffer.held >= most && !buffer.pausing {
            buffer.pausing = true;
            self.ports[(lane / self.channels) as usize].counts.pauses += 1;
            queue.push(now + reaction, Event::Pause { lane });
        }
    }

    /// Bytes that came through a lane have left the switch: the pause may be over.
    pub(crate) fn drained(&mut self, queue: &mut Queue<Event>, now: u64, lane: u32, bytes: u32) {
        let Discipline::Store { queue: most, reaction, .. } = self.discipline else { return };
        let account = self.account(lane) as usize;
        let buffer = &mut self.lanes[account];
        buffer.held -= u64::from(bytes);
        if buffer.pausing && buffer.held <= most / 2 {
            buffer.pausing = false;
            queue.push(now + reaction, Event::Unpause { lane });
        }
    }

    /// The sender of a link begins or ends a pause.
    pub(crate) fn pause(&mut self, lane: u32, begin: bool) {
        let link = lane / self.channels;
        let mask = match self.discipline {
            Discipline::Store { full: WhenFull::PriorityPause, .. } => 1 << (lane % self.channels),
            _ => u8::MAX,
        };
        let port = &mut self.ports[link as usize];
        port.paused = if begin { port.paused | mask } else { port.paused & !mask };
        self.touch(link);
    }

    /// The lane that bytes are accounted to: without priorities in the pause, all priorities share one.
    fn account(&self, lane: u32) -> u32 {
        match self.discipline {
            Discipline::Store { full: WhenFull::PriorityPause, .. } => lane,
            _ => lane - lane % self.channels,
        }
    }
}
