//! Who gets a link: packets that wait, and the choice among them.

use super::{Net, Room, UNKNOWN, Waiting};
use crate::{event::Event, packet::PacketId, queue::Queue};
use evb_fabric::Arbitration;
use rand::RngExt;

impl Net {
    /// Puts a packet among those that wait for a link.
    pub(super) fn wait_for(&mut self, queue: &mut Queue<Event>, now: u64, link: u32, id: PacketId) {
        if self.drops(now, link, id) {
            return self.lose(queue, now, id);
        }
        let packet = &self.packets[id];
        let one = Waiting { id, lane: packet.lane, wire: packet.wire, priority: packet.priority };
        let place = self.place_among(link, &one);
        let port = self.port_mut(link);
        port.waiting.insert(place, one);
        port.least_wire = if port.waiting.len() == 1 { one.wire } else { port.least_wire.min(one.wire) };
        let waiting = port.waiting.len() as u32;
        let counts = &mut self.counts[link as usize];
        counts.most_waiting = counts.most_waiting.max(waiting);
        self.touch(link);
    }

    /// The place of a packet among those that wait for a link, in the order that the arbitration goes by: by lane, or by
    /// when they asked, those of one time by lane.
    pub(super) fn place_among(&self, link: u32, one: &Waiting) -> usize {
        let waiting = &self.port(link).waiting;
        if self.network.config.switch.arbitration == Arbitration::RoundRobin {
            return waiting.partition_point(|other| other.lane <= one.lane);
        }
        let since = self.packets[one.id].since;
        let is_behind = |other: &&Waiting| other.lane > one.lane && self.packets[other.id].since == since;
        waiting.len() - waiting.iter().rev().take_while(is_behind).count()
    }

    /// Marks a link for arbitration when everything of the present time has happened.
    #[inline]
    pub(super) fn touch(&mut self, link: u32) {
        let port = &mut self.links[link as usize].port;
        if !std::mem::replace(&mut port.dirty, true) {
            self.dirty.push(link);
        }
    }

    /// A link may have become free, or the buffer behind it.
    pub(crate) fn wake(&mut self, now: u64, link: u32) {
        let port = &mut self.links[link as usize].port;
        if port.wake_at <= now {
            port.wake_at = UNKNOWN;
        }
        self.touch(link);
    }

    pub(super) fn plan_wake(&mut self, queue: &mut Queue<Event>, link: u32, at: u64) {
        let port = &mut self.links[link as usize].port;
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
            self.links[link as usize].port.dirty = false;
            self.arbitrate_link(queue, queue.now(), link);
        }
        dirty.clear();
        // What was touched meanwhile follows in a round of its own.
        dirty.append(&mut self.dirty);
        self.dirty = dirty;
    }

    pub(super) fn arbitrate_link(&mut self, queue: &mut Queue<Event>, now: u64, link: u32) {
        let port = &self.links[link as usize].port;
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
                let Waiting { id, .. } = self.port_mut(link).waiting.remove(place);
                self.grant(queue, now, link, id);
                let port = &self.links[link as usize].port;
                if !port.waiting.is_empty() && port.free_at != UNKNOWN {
                    self.plan_wake(queue, link, port.free_at);
                }
            }
            Err(Some(later)) => self.plan_wake(queue, link, later),
            Err(None) => {}
        }
    }

    /// Which of the waiting packets goes next; else when that may change, if that is known.
    pub(super) fn choose(&mut self, now: u64, link: u32) -> Result<usize, Option<u64>> {
        let room = self.room(now, link);
        let port = self.port(link);
        if matches!(room, Room::Bytes(bytes) if bytes < port.least_wire) {
            return Err(self.credit_at(link, port.least_wire));
        }
        let count = port.waiting.len();
        // The packets are in order of their lanes, or of their coming; with priorities the best one may be any.
        let (first, several) = match self.network.config.switch.arbitration {
            Arbitration::RoundRobin => {
                let turn = port.turn;
                (port.waiting.partition_point(|one| one.lane <= turn), self.priorities > 1)
            }
            Arbitration::Oldest => (0, self.priorities > 1),
            Arbitration::Random => (0, true),
        };
        let (mut best, mut equals) = (None::<(usize, u8)>, 0_u32);
        for step in first..first + count {
            let place = if step < count { step } else { step - count };
            let one = self.port(link).waiting[place];
            let fits = match room {
                Room::Any => true,
                Room::Bytes(bytes) => one.wire <= bytes,
                Room::Depends => self.room_at(now, link, one.id) <= now,
            };
            if !fits {
                continue;
            }
            match best {
                Some((_, priority)) if one.priority < priority => continue,
                Some((_, priority)) if one.priority == priority => {
                    // Each new one takes the place of the chosen one with its fair chance.
                    equals += 1;
                    if !self.draws || self.random.random_range(0..=equals) > 0 {
                        continue;
                    }
                }
                _ => equals = 0,
            }
            best = Some((place, one.priority));
            if !several {
                break;
            }
        }
        best.map(|(place, _)| place).ok_or_else(|| self.room_later(now, link))
    }

    /// When one of the packets that wait for a link will fit behind it, if that is known.
    pub(super) fn room_later(&mut self, now: u64, link: u32) -> Option<u64> {
        let count = self.port(link).waiting.len();
        let times = (0..count).map(|place| {
            let id = self.port(link).waiting[place].id;
            self.room_at(now, link, id)
        });
        times.min().filter(|&time| time != UNKNOWN)
    }
}
