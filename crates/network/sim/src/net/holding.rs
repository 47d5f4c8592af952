//! Cut-through between links of different rates. A switch holds a packet for a faster link until all of it can be sent
//! without a gap. One for a slower link does not hold up those behind it for longer than it came in.

use super::{
    Net,
    flow_control::FlowControl,
    links::{Class, Links},
};
use crate::packet::{LaneId, Load, PacketId};
use evb_core::{Bandwidth, Span, Time};
use std::ops::Range;

impl FlowControl {
    /// True if a packet can come into a switch more slowly than it goes out: over links of several rates, or from
    /// interfaces with a lower one (cut-through).
    pub(super) fn may_hold(&self, links: &Links, interface: Option<Bandwidth>) -> bool {
        let (slowest, fastest) = links.rates();
        self.is_cut_through() && interface.into_iter().fold(slowest, Bandwidth::min) < fastest
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

    /// Time for which a switch holds a packet after its head is ready: its last byte is sent when it has come, and the
    /// others before it at the pace of the next link. Of several links that it may take the fastest counts.
    pub(super) fn hold(&self, id: PacketId) -> Span {
        if !self.holds {
            return Span::ZERO;
        }
        let Some(next) = self.fastest_output(id) else { return Span::ZERO };
        let packet = &self.packets[id];
        let came = self.links.class(self.links.link_of(packet.lane));
        let after_head = |time: Span, class: Class| Span(time.0.saturating_sub(class.byte_time.0));
        let going = after_head(next.rate.time_for(packet.wire.into()), next);
        Span(after_head(packet.pace, came).0.saturating_sub(going.0))
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
