//! Wormhole: how long a worm occupies the links that it has taken.
//!
//! Byte k of a worm starts on its link i at X(i, k). Bytes follow each other, byte after byte; a switch passes a byte on
//! once it is there; and a byte is sent only when the byte `slack` places before it has left the buffer ahead and the
//! sender knows it. With equal byte times t, slack B, reaction r and G(i) = X(i, 0), the time of the grant, this
//! recurrence has the solution
//!
//! X(i, k) = max over m >= 0 with m B <= k of G(i + m) + m (t + r) + (k - m B) t,
//!
//! as long as B t is at least the round trip 2 t + link delay + switch delay + r, which the network's own checks demand.
//! So when a worm leaves a link depends only on the grants of the next few links, and is known once the last of these has
//! come; the destination takes bytes as they come.

use super::{NOWHERE, Net, UNKNOWN};
use crate::{
    event::Event,
    packet::{Hop, LaneId, Packet, PacketId},
};
use evb_core::{Span, Time};
use evb_fabric::LinkId;

/// Parameters of wormhole flow: the slack buffers, and the time until the sender knows that there is room.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wormhole {
    /// Bytes of a worm that a switch takes after it has stopped.
    pub(super) slack: u64,
    pub(super) reaction: Span,
}

impl Wormhole {
    /// Time at which a worm leaves the first of these links, which are all from there to its head; `None` as long as
    /// it is not known. `at_end` says that nothing can hold the worm up any more.
    #[inline]
    pub(super) fn left_at(self, worm: &Packet, links: &[Hop], at_end: bool) -> Option<Time> {
        let length = u64::from(worm.wire);
        // The byte that waits for the next grant to come is beyond the end of the worm, or not.
        let is_known = at_end || links.len() as u64 * self.slack >= length;
        is_known.then(|| self.tail_start(links, length, worm.pace) + worm.pace)
    }

    /// Time at which the last byte of a worm starts on the first of these links: the solution above for k = length - 1.
    fn tail_start(self, hops: &[Hop], length: u64, pace: Span) -> Time {
        let last = length - 1;
        let term = |(m, hop): (u64, &Hop)| hop.start + (pace + self.reaction) * m + pace * (last - m * self.slack);
        let within = (0..).zip(hops).take_while(|&(m, _)| m * self.slack <= last);
        within.map(term).max().expect("a worm has taken at least this link")
    }
}

impl Net {
    /// A worm's head goes onto a link, towards a lane.
    pub(super) fn start_worm(&mut self, wormhole: Wormhole, link: LinkId, lane: LaneId, id: PacketId) {
        let (now, class) = (self.queue.now(), self.links.class(link));
        let port = &mut self.links[link];
        port.free_at = UNKNOWN;
        let at_end = port.is_at_endpoint();
        let packet = &mut self.packets[id];
        packet.pace = packet.pace.max(self.faults.slowed(link, port, class.byte_time));
        let arrival = now + packet.pace + class.delay;
        self.packets.push_hop(id, Hop { link, start: now });
        if !at_end {
            self.links[lane].take_place();
            self.arrive(lane, id, arrival);
        }
        let taken = self.packets[id].hops;
        let left_at = self.settle_worm(wormhole, id, taken, at_end);
        if at_end {
            self.queue.push(left_at + class.delay, Event::Deliver(id));
        }
    }

    /// Finds those of the first `taken` links whose leaving time of the worm is now known; returns the last of these
    /// times. `at_end` means that nothing can hold the worm up any more.
    fn settle_worm(&mut self, wormhole: Wormhole, id: PacketId, taken: u16, at_end: bool) -> Time {
        let mut last = Time::ZERO;
        for index in usize::from(self.packets[id].left)..usize::from(taken) {
            let (worm, hops) = (&self.packets[id], self.packets.hops(id));
            let Some(left_at) = wormhole.left_at(worm, &hops[index..], at_end) else { break };
            let Hop { link, start } = hops[index];
            let before = if index == 0 { LaneId::NONE } else { self.links.lane(hops[index - 1].link, 0) };
            self.counts.leave(link, worm.pace * u64::from(worm.wire), start, left_at);
            self.packets[id].left += 1;
            self.links[link].free_at = left_at;
            self.wake_waiting(link, left_at);
            self.leave(before, id, start..left_at);
            last = left_at;
        }
        last
    }

    /// Ends a worm without a route where its head is: the switch takes its bytes and discards them.
    pub(super) fn swallow_worm(&mut self, wormhole: Wormhole, id: PacketId) {
        let taken = self.packets[id].hops;
        // As if its head went on now.
        self.packets.push_hop(id, Hop { link: NOWHERE, start: self.queue.now() });
        self.settle_worm(wormhole, id, taken, true);
    }
}
