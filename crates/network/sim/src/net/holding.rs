//! Cut-through between links of different rates, and switches that store packets beside others that cut through. A switch
//! holds a packet for a faster link until all of it can be sent without a gap. One for a slower link does not hold up those
//! behind it for longer than it came in. A switch that stores packets holds each until its tail has come.

use super::{
    Net,
    flow_control::FlowControl,
    links::{Class, Links},
};
use crate::{
    event::NetEvent,
    packet::{LaneId, Load, PacketId},
};
use evb_core::{Bandwidth, Span, Time};
use evb_fabric::Network;
use std::ops::Range;

impl FlowControl {
    /// True if a switch may hold packets: some come in more slowly than they go out, over links of several rates or from
    /// interfaces with a lower one, or some switches store packets (cut-through).
    pub(super) fn may_hold(&self, links: &Links, network: &Network) -> bool {
        let (slowest, fastest) = links.rates();
        let is_uneven = network.config.nic.rate.into_iter().fold(slowest, Bandwidth::min) < fastest;
        self.is_cut_through() && (is_uneven || network.is_mixed())
    }
}

impl Net {
    /// Time until which a switch holds a packet whose head is ready; `None` if it requests a link now.
    #[inline]
    pub(super) fn held_until(&self, id: PacketId) -> Option<Time> {
        if !self.holds {
            return None;
        }
        let packet = &self.packets[id];
        if packet.lane == LaneId::NONE {
            return None;
        }
        let at = packet.since + self.flow.switch_delay() + self.hold(id);
        (at > self.queue.now()).then_some(at)
    }

    /// Time for which a switch holds a packet after its head is ready.
    pub(super) fn hold(&self, id: PacketId) -> Span {
        if self.holds { self.hold_after_head(id) } else { Span::ZERO }
    }

    /// A switch that cuts through sends the last byte of a packet when it has come, and the others before it at the pace of the
    /// next link; of several links that the packet may take the fastest counts. A switch that stores waits for the last byte.
    fn hold_after_head(&self, id: PacketId) -> Span {
        let packet = &self.packets[id];
        let came = self.links.class(self.links.link_of(packet.lane));
        let after_head = |time: Span, class: Class| Span(time.0.saturating_sub(class.byte_time.0));
        let coming = after_head(packet.pace, came);
        if !self.network.switch(self.links.switch_of(packet.lane)).cuts_through {
            return coming;
        }
        let Some(next) = self.fastest_output(id) else { return Span::ZERO };
        let going = after_head(next.rate.time_for(packet.wire.into()), next);
        Span(coming.0.saturating_sub(going.0))
    }

    /// The head of a packet comes into a switch at `head`, and its tail at `tail`, in a network with queues at outputs: a switch
    /// that stores whole packets takes no notice before the tail.
    pub(super) fn arrive_at_queues(&mut self, lane: LaneId, id: PacketId, head: Time, tail: Time) {
        self.packets[id].lane = lane;
        let cuts_through = self.network.switch(self.links.switch_of(lane)).cuts_through;
        let noticed = if cuts_through { head + self.hold_after_head(id) } else { tail };
        self.plan(noticed + self.flow.switch_delay(), NetEvent::Request(id));
    }

    /// Time at which the tail of a packet that is lost will have left the link that it came over; `None` if it has. Until then
    /// the link is its, and counts its bytes (queues at outputs).
    pub(super) fn comes_until(&self, id: PacketId) -> Option<Time> {
        let lane = self.packets[id].lane;
        if !self.flow.stores_whole_packets() || lane == LaneId::NONE {
            return None;
        }
        let port = &self.links[self.links.link_of(lane)];
        (port.holder == id && port.free_at > self.queue.now()).then_some(port.free_at)
    }

    /// Time at which a packet has been read from a lane, which it leaves in this time: a switch reads at the rate of the link that
    /// it came over, or of the next one if that is faster.
    #[inline]
    pub(super) fn read_at(&self, lane: LaneId, id: PacketId, leaving: Range<Time>) -> Time {
        if !self.holds {
            return leaving.end;
        }
        let came = self.links.class(self.links.link_of(lane));
        leaving.end.min(leaving.start + came.rate.time_for(self.packets[id].wire.into()))
    }

    /// The class of the fastest link that a packet in a switch may take next.
    fn fastest_output(&self, id: PacketId) -> Option<Class> {
        let packet = &self.packets[id];
        let turn = (packet.load == Load::SourceRouted).then(|| self.next_turn(id));
        let switch = self.links.switch_of(packet.lane);
        let outputs = match &turn {
            Some(link) => link.as_slice(),
            None if self.router.takes_detours() => &self.network.switch(switch).outputs,
            None => self.router.outputs_of(packet.route, switch, packet.to),
        };
        outputs.iter().map(|&link| self.links.class(link)).max_by_key(|class| class.rate)
    }
}
