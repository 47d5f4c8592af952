//! The buffers as trains need them: many equal packets at equal distances in time.

use super::{Contents, Discipline, FlowControl};
use crate::{
    net::Net,
    packet::{LaneId, PacketId},
};
use evb_core::{Span, Time};

/// Equal packets that take or leave a place one after the other.
#[derive(Clone, Copy)]
pub(in crate::net) struct Sequence {
    /// Time of the first one.
    pub(in crate::net) first: Time,
    pub(in crate::net) spacing: Span,
    pub(in crate::net) count: u32,
    /// Bytes of each on the wire.
    pub(in crate::net) wire: u32,
}

impl FlowControl {
    /// Time from a place in a buffer becoming free to the sender knowing it; `None` where packets need no room, since
    /// switches store them.
    #[inline]
    pub(in crate::net) fn reaction(&self) -> Option<Span> {
        match self.discipline {
            Discipline::CutThrough { reaction, .. } => Some(reaction),
            Discipline::Worm(_) | Discipline::Store { .. } => None,
        }
    }

    #[inline]
    pub(in crate::net) fn switch_delay(&self) -> Span {
        self.switch_delay
    }
}

impl Net {
    /// Packets leave a lane one after the other, unless they are stopped (cut-through).
    pub(in crate::net) fn leave_evenly(&mut self, lane: LaneId, leaving: Sequence) {
        if let (Some(reaction), Contents::Bytes(credit)) = (self.flow.reaction(), &mut self.links[lane].contents) {
            let known_at = leaving.first + reaction;
            credit.give_back_evenly(known_at, leaving.wire, leaving.count, leaving.spacing);
            self.wake_waiting(self.links.link_of(lane), known_at);
        }
    }

    /// The last packets of those that were to leave a lane have been stopped.
    pub(in crate::net) fn withhold(&mut self, lane: LaneId, count: u32, wire: u32) {
        if let Contents::Bytes(credit) = &mut self.links[lane].contents {
            credit.withhold(count, wire);
        }
    }

    /// Packets that were stopped are in a lane, behind the one in front and before those that came after them
    /// (cut-through). They are linked from the first to the last.
    pub(in crate::net) fn stop_behind(&mut self, lane: LaneId, (first, last): (PacketId, PacketId)) {
        let behind = &mut self.links[lane].behind;
        self.packets[last].next = behind.0;
        *behind = (first, if behind.0 == PacketId::NONE { last } else { behind.1 });
    }

    /// Takes the room behind a link for packets that came one after the other (cut-through); returns the most bytes
    /// that lay there. Nothing else has taken or looked for room there since the first of them came.
    pub(in crate::net) fn take_evenly(&mut self, lane: LaneId, taking: Sequence) -> u64 {
        match (&mut self.links[lane].contents, self.flow.discipline) {
            (Contents::Bytes(credit), Discipline::CutThrough { buffer, .. }) => {
                let free = credit.take_evenly(taking.first, taking.spacing, taking.count, taking.wire);
                u64::from(buffer - free)
            }
            _ => 0,
        }
    }

    /// Bytes of a buffer that the sender knows to be free, and that are not (cut-through); no bounds otherwise.
    pub(in crate::net) fn free_and_held(&mut self, lane: LaneId) -> Option<(u32, u32)> {
        match (&mut self.links[lane].contents, self.flow.discipline) {
            (Contents::Bytes(credit), Discipline::CutThrough { buffer, .. }) => {
                credit.settle(self.queue.now());
                Some((credit.free, buffer - credit.free))
            }
            _ => None,
        }
    }

    /// True if a sender need not pause when one more packet of this size than now comes over its link (store and forward).
    pub(in crate::net) fn is_calm(&self, lane: LaneId, wire: u32) -> bool {
        let Discipline::Store { queue, .. } = self.flow.discipline else { return true };
        match &self.links[self.flow.account(&self.links, lane)].contents {
            Contents::Store(stored) => !stored.pausing && stored.held + u64::from(wire) < queue,
            _ => true,
        }
    }
}
