//! The network as one partition of a larger one: packets and credits from the other partitions.

use super::Net;
use crate::{
    packet::{LaneId, Packet},
    partition_border::CreditNotice,
};
use evb_fabric::LinkEnd;

impl Net {
    /// Takes a packet from another partition, whose head comes into a lane here.
    pub(crate) fn enter(&mut self, packet: Packet) {
        let (lane, arrival) = (packet.lane, packet.since);
        let id = self.packets.insert(packet);
        self.arrive(lane, id, arrival);
    }

    /// Takes a credit from another partition, where bytes of a buffer will be free.
    pub(crate) fn take_back_credit(&mut self, CreditNotice { lane, bytes, at }: CreditNotice) {
        self.credit(lane, at, bytes);
    }

    /// The other partition that a lane is filled from; `None` if it is this one.
    #[inline]
    pub(super) fn partition_before(&self, lane: LaneId) -> Option<usize> {
        if !self.border.is_there() {
            return None;
        }
        self.border.beyond(self.network.link(self.links.link_of(lane)).from)
    }

    /// Adds the counts of another partition, which has the links that `is_of_other` names.
    pub(crate) fn take_over(&mut self, other: &Self, is_of_other: impl Fn(LinkEnd) -> bool) {
        self.counts.take_over(&other.counts, |link| is_of_other(self.network.link(link).from));
    }
}
