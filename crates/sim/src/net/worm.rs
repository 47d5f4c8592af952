//! Wormhole: how long a worm stands on the links that it has taken.
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

use super::{Contents, Lane, Net, UNKNOWN};
use crate::{
    event::Event,
    packet::{Hop, NO_LANE, PacketId},
    queue::Queue,
};
use evb_fabric::End;

impl Net {
    /// A worm's head goes onto a link.
    pub(super) fn start_worm(
        &mut self,
        queue: &mut Queue<Event>,
        now: u64,
        link: u32,
        id: PacketId,
        slack: u64,
        reaction: u64,
    ) {
        let class = self.port(link).class(&self.classes);
        let byte_time = self.slowed(link, class.byte_time);
        let port = self.port_mut(link);
        port.free_at = UNKNOWN;
        let at_end = matches!(port.to(), End::Endpoint(_));
        let packet = &mut self.packets[id];
        packet.pace = packet.pace.max(byte_time);
        let arrival = now + packet.pace + class.delay;
        self.packets.push_hop(id, Hop { link, start: now });
        if !at_end {
            take_place(self.lane_mut(link));
            self.enter_lane(queue, link, id, arrival);
        }
        let taken = usize::from(self.packets[id].hops);
        let left = self.settle_worm(queue, id, taken, at_end, slack, reaction);
        if at_end {
            queue.push(left + class.delay, Event::Deliver(id));
        }
    }

    /// A worm without a way ends where its head is: the switch takes its bytes and throws them away.
    pub(super) fn swallow_worm(&mut self, queue: &mut Queue<Event>, now: u64, id: PacketId, slack: u64, reaction: u64) {
        let taken = usize::from(self.packets[id].hops);
        // As if its head went on now, onto a link that does not exist.
        self.packets.push_hop(id, Hop { link: NO_LANE, start: now });
        self.settle_worm(queue, id, taken, true, slack, reaction);
    }

    /// Finds the links, of the first `taken`, that it is now known when the worm will leave them; gives the last of these
    /// times. `at_end` says that nothing can hold the worm up any more.
    pub(super) fn settle_worm(
        &mut self,
        queue: &mut Queue<Event>,
        id: PacketId,
        taken: usize,
        at_end: bool,
        slack: u64,
        reaction: u64,
    ) -> u64 {
        let (length, pace) = (u64::from(self.packets[id].wire), self.packets[id].pace);
        let mut left_at = 0;
        for index in usize::from(self.packets[id].left)..taken {
            // The byte that waits for the next grant to come is beyond the end of the worm, or not.
            if !at_end && (taken - index) as u64 * slack < length {
                break;
            }
            let hops = &self.packets.hops(id)[index..];
            left_at = tail_start(hops, length, pace, slack, reaction) + pace;
            let Hop { link, start } = hops[0];
            let before = if index == 0 { NO_LANE } else { self.packets.hops(id)[index - 1].link };
            self.packets[id].left += 1;
            let held = left_at.saturating_sub(start.max(self.measured_from));
            let counts = &mut self.counts[link as usize];
            counts.busy += (length * pace).min(held);
            counts.held += held;
            let port = self.port_mut(link);
            port.free_at = left_at;
            if !port.waiting.is_empty() {
                self.plan_wake(queue, link, left_at);
            }
            self.note_leaving(queue, before, id, left_at);
        }
        left_at
    }

    /// The worm in front of a buffer will have left it at `at`.
    pub(super) fn leave_place(&mut self, queue: &mut Queue<Event>, lane: u32, at: u64, reaction: u64) {
        if let Contents::Places(places) = &mut self.lane_mut(lane).contents {
            let taken = usize::from(places[0] != UNKNOWN);
            places[taken] = at + reaction;
        }
        if !self.links[lane as usize].port.waiting.is_empty() {
            self.plan_wake(queue, lane, at + reaction);
        }
        self.next_in_lane(queue, lane, at);
    }
}

/// When the last byte of a worm starts on the first of these links: the solution above for k = length - 1.
fn tail_start(hops: &[Hop], length: u64, pace: u64, slack: u64, reaction: u64) -> u64 {
    let last = length - 1;
    let term = |(m, hop): (u64, &Hop)| hop.start + m * (pace + reaction) + (last - m * slack) * pace;
    let within = (0..).zip(hops).take_while(|&(m, _)| m * slack <= last);
    within.map(term).max().expect("a worm has taken at least this link")
}

/// Takes the place that is free for longest.
fn take_place(lane: &mut Lane) {
    if let Contents::Places(places) = &mut lane.contents {
        let free = usize::from(places[1] < places[0]);
        places[free] = UNKNOWN;
    }
}
