//! The choice among packets that wait for a link.

use super::{
    Net, UNKNOWN,
    flow_control::Room,
    links::{Port, Waiting},
};
use crate::{
    event::NetEvent,
    packet::{LaneId, Packet, PacketId, Packets},
};
use evb_core::{Stream, Time};
use evb_fabric::{Arbitration, LinkId, Network};
use rand::RngExt;

/// The arbiter of the links.
pub(super) struct Arbiter {
    policy: Arbitration,
    /// False if the first packet that fits is always chosen. Otherwise another one may have a higher priority, or be drawn.
    compares_all: bool,
    /// For each lane the number of its last grant, for [`Arbitration::LeastRecent`]; else empty.
    served: Vec<u64>,
    /// Number of grants so far.
    grants: u64,
}

/// The best packet of those compared so far.
struct Choice {
    place: usize,
    priority: u8,
    /// Others of the same priority.
    equals: u32,
    lane: LaneId,
}

impl Arbiter {
    pub(super) fn new(policy: Arbitration, priorities: u32, network: &Network, channels: u32) -> Self {
        let is_recent = policy == Arbitration::LeastRecent;
        let lanes = if is_recent { network.links.len() * channels.next_power_of_two() as usize } else { 0 };
        let compares_all = priorities > 1 || is_recent || policy == Arbitration::Random;
        Self { policy, compares_all, served: vec![0; lanes], grants: 0 }
    }

    /// Notes that a packet from this lane got a link.
    #[inline]
    pub(super) fn note(&mut self, lane: LaneId) {
        if let Some(served) = self.served.get_mut(lane.0 as usize) {
            self.grants += 1;
            *served = self.grants;
        }
    }

    /// The number of the last grant to a packet from a lane.
    fn last_grant(&self, lane: LaneId) -> u64 {
        self.served.get(lane.0 as usize).copied().unwrap_or_default()
    }

    /// True if the order at an output depends on the grants of other outputs.
    pub(super) fn looks_at_all_outputs(&self) -> bool {
        matches!(self.policy, Arbitration::LeastRecent | Arbitration::Islip)
    }

    /// True if inputs have a queue for each output, and are matched with outputs.
    #[inline]
    pub(super) fn matches_inputs(&self) -> bool {
        self.policy == Arbitration::Islip
    }

    /// The place of a packet among those that wait for a link, in the order of the arbitration: by lane, or by the time
    /// of the request, those of one time by lane.
    #[inline]
    fn place_among(&self, waiting: &[Waiting], packets: &Packets, one: &Waiting) -> usize {
        if matches!(self.policy, Arbitration::RoundRobin | Arbitration::LeastRecent | Arbitration::Islip) {
            return waiting.partition_point(|other| other.lane <= one.lane);
        }
        let place = |one: &Waiting| (packets[one.id].since, one.lane);
        let is_behind = |other: &&Waiting| place(other) > place(one);
        waiting.len() - waiting.iter().rev().take_while(is_behind).count()
    }

    /// True if packets from one lane get a link in the order in which they request it. All their priorities are equal.
    fn keeps_order_of_lanes(&self) -> bool {
        self.policy != Arbitration::Random
    }

    /// Chooses between the best packet so far and another one that fits, too; returns true for the other one.
    #[inline]
    fn prefer(&self, best: &mut Option<Choice>, one: Waiting, place: usize, random: &mut Stream) -> bool {
        let equals = match best {
            Some(best) if one.priority < best.priority => return false,
            Some(best) if one.priority == best.priority && self.policy == Arbitration::LeastRecent => {
                if self.last_grant(one.lane) >= self.last_grant(best.lane) {
                    return false;
                }
                0
            }
            Some(best) if one.priority == best.priority => {
                // Each new one replaces the chosen one with its fair chance.
                best.equals += 1;
                if self.policy != Arbitration::Random || random.random_range(0..=best.equals) > 0 {
                    return false;
                }
                best.equals
            }
            _ => 0,
        };
        *best = Some(Choice { place, priority: one.priority, equals, lane: one.lane });
        true
    }

    /// The place at which the search begins. Packets are in order of their lanes, or of their requests.
    #[inline]
    fn first(&self, port: &Port) -> usize {
        if self.takes_turns() { port.waiting.partition_point(|one| one.lane <= port.turn) } else { 0 }
    }

    /// True if the inputs are served in their order.
    #[inline]
    fn takes_turns(&self) -> bool {
        matches!(self.policy, Arbitration::RoundRobin | Arbitration::Islip)
    }

    /// The place of the packet that goes next among some that can, each with its place, when the input `last` was served last.
    pub(super) fn choose_among(&self, some: &[(usize, Waiting)], last: LaneId, random: &mut Stream) -> Option<usize> {
        let is_before = |(_, one): &(usize, Waiting)| self.takes_turns() && one.lane <= last;
        let (before, next) = some.split_at(some.partition_point(is_before));
        let mut best = None;
        for &(place, one) in next.iter().chain(before) {
            self.prefer(&mut best, one, place, random);
        }
        best.map(|best| best.place)
    }
}

impl Net {
    /// Adds a packet to those that wait for a link; returns their number.
    #[inline]
    pub(super) fn enlist(&mut self, link: LinkId, id: PacketId) -> u32 {
        if self.queues_by_output() {
            return self.enlist_in_queue(link, id);
        }
        self.add_to_waiting(link, id);
        self.links.touch(link);
        self.links[link].waiting.len() as u32
    }

    /// True if packets from one input wait for several outputs at once: in the queues of these (store and forward), or in a
    /// queue for each of them at the input.
    #[inline]
    pub(super) fn queues_by_output(&self) -> bool {
        self.flow.stores_whole_packets() || self.arbiter.matches_inputs()
    }

    /// Adds a packet to the queue for an output, where only the first one from each lane waits for its turn: the time to choose
    /// does not depend on the length of the queue.
    #[inline(never)]
    fn enlist_in_queue(&mut self, link: LinkId, id: PacketId) -> u32 {
        let &Packet { lane, priority, .. } = &self.packets[id];
        // Headers of trimmed packets have come through the same lane as others of a lower priority.
        let is_before = |one: &&Waiting| one.lane == lane && one.priority == priority;
        let mut first = self.links[link].waiting.iter().filter(is_before).map(|one| one.id);
        match first.next().filter(|_| lane != LaneId::NONE && self.arbiter.keeps_order_of_lanes()) {
            Some(first) => {
                let before = std::mem::replace(&mut self.packets[first].last, id);
                self.packets[if before == PacketId::NONE { first } else { before }].next = id;
            }
            None => self.add_to_waiting(link, id),
        }
        self.links.touch(link);
        let waiting = &mut self.counts[link].waiting;
        *waiting += 1;
        *waiting
    }

    #[inline(always)]
    fn add_to_waiting(&mut self, link: LinkId, id: PacketId) {
        let packet = &self.packets[id];
        let one = Waiting { id, lane: packet.lane, wire: packet.wire, priority: packet.priority };
        let port = &mut self.links[link];
        port.waiting.insert(self.arbiter.place_among(&port.waiting, &self.packets, &one), one);
        port.least_wire = if port.waiting.len() == 1 { one.wire } else { port.least_wire.min(one.wire) };
    }

    /// Takes out a packet that waits for a link. The one behind it from the same lane, if any, waits from now on.
    #[inline(always)]
    pub(super) fn take_waiting(&mut self, link: LinkId, place: usize) -> PacketId {
        let Waiting { id, .. } = self.links[link].waiting.remove(place);
        if self.queues_by_output() {
            self.bring_behind(link, id);
        }
        id
    }

    /// The packet behind one in the queue of an output waits in its place.
    #[inline(never)]
    fn bring_behind(&mut self, link: LinkId, id: PacketId) {
        self.counts[link].waiting -= 1;
        let packet = &mut self.packets[id];
        let next = std::mem::replace(&mut packet.next, PacketId::NONE);
        let last = std::mem::replace(&mut packet.last, PacketId::NONE);
        if next != PacketId::NONE {
            self.packets[next].last = if last == next { PacketId::NONE } else { last };
            self.add_to_waiting(link, next);
        }
    }

    /// Takes out all packets that wait for a link.
    pub(super) fn take_all_waiting(&mut self, link: LinkId) -> Vec<PacketId> {
        let mut taken = Vec::new();
        while !self.links[link].waiting.is_empty() {
            let id = self.take_waiting(link, 0);
            self.give_memory_back(link, id, self.queue.now());
            taken.push(id);
        }
        (self.counts[link].queued, self.counts[link].waiting) = (0, 0);
        self.queues.forget_headers(link);
        taken
    }

    /// The place of the waiting packet that gets a link next; else the time at which that may change, or [`UNKNOWN`].
    #[inline(always)]
    pub(super) fn choose(&mut self, link: LinkId) -> Result<usize, Time> {
        if self.lane_arbiter.is_some() {
            return self.choose_by_lane(link);
        }
        let (now, room) = (self.queue.now(), self.room(link));
        let port = &self.links[link];
        if matches!(room, Room::Bytes(bytes) if bytes < port.least_wire) {
            return Err(self.credit_at(link, port.least_wire));
        }
        let (first, count) = (self.arbiter.first(port), port.waiting.len());
        let mut best = None;
        for step in first..first + count {
            let place = if step < count { step } else { step - count };
            let one = self.links[link].waiting[place];
            let fits = match room {
                Room::Any => true,
                Room::Bytes(bytes) => one.wire <= bytes,
                Room::Depends => self.room_at(link, one.id) <= now,
            };
            let is_chosen = fits && self.arbiter.prefer(&mut best, one, place, &mut self.random);
            if is_chosen && !self.arbiter.compares_all {
                break;
            }
        }
        best.map(|best| best.place).ok_or_else(|| self.room_later(link))
    }

    /// Time at which one of the packets that wait for a link will fit behind it, or [`UNKNOWN`].
    pub(super) fn room_later(&mut self, link: LinkId) -> Time {
        let places = 0..self.links[link].waiting.len();
        places.map(|place| self.room_at(link, self.links[link].waiting[place].id)).min().unwrap_or(UNKNOWN)
    }

    /// Withdraws the requests of a packet that waited for several links, but for the granted one.
    #[inline]
    pub(super) fn forget_requests(&mut self, id: PacketId, granted: Option<LinkId>) {
        let packet = &self.packets[id];
        if !self.router.is_adaptive() || packet.lane == LaneId::NONE {
            return;
        }
        for &link in self.router.outputs(self.links.switch_of(packet.lane), packet.to) {
            if granted != Some(link) {
                self.links[link].waiting.retain(|other| other.id != id);
            }
        }
    }

    /// Plans to arbitrate a link at `at`, unless that is [`UNKNOWN`], or something earlier is planned.
    pub(super) fn plan_wake(&mut self, link: LinkId, at: Time) {
        let port = &mut self.links[link];
        if at < port.wake_at {
            port.wake_at = at;
            self.plan(at, NetEvent::Wake { link });
        }
    }

    /// Plans to arbitrate a link at `at` if packets wait for it.
    #[inline]
    pub(super) fn wake_waiting(&mut self, link: LinkId, at: Time) {
        if !self.links[link].waiting.is_empty() {
            self.plan_wake(link, at);
        }
    }
}
