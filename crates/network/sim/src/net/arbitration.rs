//! The choice among packets that wait for a link.

use super::{
    UNKNOWN,
    buffers::{Buffers, Room},
    links::{Links, Port, Waiting},
};
use crate::packet::{PacketId, Packets};
use evb_core::{Stream, Time};
use evb_fabric::{Arbitration, LinkId};
use rand::RngExt;

/// The arbiter of the links.
pub(super) struct Arbiter {
    policy: Arbitration,
    /// True if the first packet that fits is not always chosen: another one may have a higher priority, or be drawn.
    looks_at_all: bool,
}

/// The best packet of those looked at so far.
struct Choice {
    place: usize,
    priority: u8,
    /// Others of the same priority.
    equals: u32,
}

impl Arbiter {
    pub(super) fn new(policy: Arbitration, priorities: u32) -> Self {
        Self { policy, looks_at_all: priorities > 1 || policy == Arbitration::Random }
    }

    /// Puts a packet among those that wait for a link; returns their number.
    #[inline]
    pub(super) fn enlist(&self, links: &mut Links, packets: &Packets, link: LinkId, id: PacketId) -> u32 {
        let packet = &packets[id];
        let one = Waiting { id, lane: packet.lane, wire: packet.wire, priority: packet.priority };
        let port = &mut links[link];
        port.waiting.insert(self.place_among(&port.waiting, packets, &one), one);
        port.least_wire = if port.waiting.len() == 1 { one.wire } else { port.least_wire.min(one.wire) };
        let waiting = port.waiting.len() as u32;
        links.touch(link);
        waiting
    }

    /// The place of a packet among those that wait for a link, in the order of the arbitration: by lane, or by the time
    /// of asking, those of one time by lane.
    #[inline]
    fn place_among(&self, waiting: &[Waiting], packets: &Packets, one: &Waiting) -> usize {
        if self.policy == Arbitration::RoundRobin {
            return waiting.partition_point(|other| other.lane <= one.lane);
        }
        let since = packets[one.id].since;
        let is_behind = |other: &&Waiting| other.lane > one.lane && packets[other.id].since == since;
        waiting.len() - waiting.iter().rev().take_while(is_behind).count()
    }

    /// The place of the waiting packet that goes next; else the time at which that may change, or [`UNKNOWN`].
    #[inline]
    pub(super) fn choose(
        &self,
        links: &mut Links,
        packets: &Packets,
        buffers: &Buffers,
        random: &mut Stream,
        now: Time,
        link: LinkId,
    ) -> Result<usize, Time> {
        let room = buffers.room(links, now, link);
        let port = &links[link];
        if matches!(room, Room::Bytes(bytes) if bytes < port.least_wire) {
            return Err(buffers.credit_at(links, link, port.least_wire));
        }
        let fits = |links: &mut Links, one: &Waiting| match room {
            Room::Any => true,
            Room::Bytes(bytes) => one.wire <= bytes,
            Room::Depends => buffers.room_at(links, now, link, &packets[one.id]) <= now,
        };
        let (first, count) = (self.first(port), port.waiting.len());
        let mut best = None;
        for step in first..first + count {
            let place = if step < count { step } else { step - count };
            let one = links[link].waiting[place];
            if fits(links, &one) && self.prefer(&mut best, one, place, random) && !self.looks_at_all {
                break;
            }
        }
        best.map(|best| best.place).ok_or_else(|| room_later(links, packets, buffers, now, link))
    }

    /// Chooses between the best packet so far and another one that fits, too; returns true for the other one.
    #[inline]
    fn prefer(&self, best: &mut Option<Choice>, one: Waiting, place: usize, random: &mut Stream) -> bool {
        let equals = match best {
            Some(best) if one.priority < best.priority => return false,
            Some(best) if one.priority == best.priority => {
                // Each new one takes the place of the chosen one with its fair chance.
                best.equals += 1;
                if self.policy != Arbitration::Random || random.random_range(0..=best.equals) > 0 {
                    return false;
                }
                best.equals
            }
            _ => 0,
        };
        *best = Some(Choice { place, priority: one.priority, equals });
        true
    }

    /// The place at which the search begins. Packets are in order of their lanes, or of their coming.
    #[inline]
    fn first(&self, port: &Port) -> usize {
        match self.policy {
            Arbitration::RoundRobin => port.waiting.partition_point(|one| one.lane <= port.turn),
            Arbitration::Oldest | Arbitration::Random => 0,
        }
    }
}

/// Time at which one of the packets that wait for a link will fit behind it, or [`UNKNOWN`].
fn room_later(links: &mut Links, packets: &Packets, buffers: &Buffers, now: Time, link: LinkId) -> Time {
    let places = 0..links[link].waiting.len();
    let times = places.map(|place| {
        let id = links[link].waiting[place].id;
        buffers.room_at(links, now, link, &packets[id])
    });
    times.min().unwrap_or(UNKNOWN)
}
