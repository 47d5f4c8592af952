//! Trains: consecutive packets of one message as one object, as long as nothing comes between them.
//!
//! The first packet of a train is a packet like any other and finds out when it gets each link. The others follow it at
//! an equal distance in time, so their times are known without an event for each. The last one is looked at again when
//! it gets a link, since something may follow it.
//!
//! A train is exact only while each of its packets gets each link as soon as it requests it. So all trains are given up as
//! soon as another packet requests a link of one, its sender has to pause, or a buffer may be full: the simulation
//! starts again, packet by packet. When the measurement begins or ends, trains are split: all packets that have not got a
//! link continue alone, from where they are at that time. Those that have got it remain a train.
//!
//! Splitting a train where another packet meets it, in place of starting again, was wrong in one of ten thousand random
//! experiments, about the room in buffers.

mod following;
mod splitting;

use super::{NOWHERE, flow_control::Sequence, links::Links};
use crate::{
    packet::{LaneId, PacketId, TrainId},
    slab::Slab,
};
use evb_core::{Span, Time};
use evb_fabric::LinkId;
use smallvec::SmallVec;

/// All trains under way.
pub(super) type Trains = Slab<TrainId, Train>;

/// A train.
pub(super) struct Train {
    /// Its first packet, which represents all.
    pub(super) id: PacketId,
    /// Number of packets.
    pub(super) length: u32,
    /// Bytes of each on the wire.
    wire: u32,
    /// Time between two packets on each link.
    spacing: Span,
    /// The links that the first packet has got, in order.
    runs: SmallVec<[Run; 6]>,
    /// The link that the first packet requests at the present time and will get, or [`NOWHERE`].
    asked: LinkId,
    /// Packets whose arrival was counted.
    counted: u32,
}

/// A train on one link.
struct Run {
    link: LinkId,
    /// The buffer that the packets come from.
    before: LaneId,
    /// The buffer that they come into.
    lane: LaneId,
    /// Time at which the first packet got the link.
    start: Time,
    /// Time that each packet needs.
    pace: Span,
    /// Packets that are counted as having got the link.
    passed: u32,
    /// Packets that certainly find room behind the link.
    sure: u32,
    /// True until the last packet has got the link.
    active: bool,
}

impl Train {
    /// A train in the interface of its sender.
    pub(super) fn new(id: PacketId, length: u32, wire: u32) -> Self {
        Self { id, length, wire, spacing: Span::ZERO, runs: SmallVec::new(), asked: NOWHERE, counted: 0 }
    }

    /// The packets whose first one got the link of a run, or does something else, at `first`.
    fn sequence(&self, first: Time, count: u32) -> Sequence {
        Sequence { first, spacing: self.spacing, count, wire: self.wire }
    }

    /// Number of packets that do something before `end`, if the first one does it at `first`.
    fn before(&self, end: Time, first: Time) -> u32 {
        if end <= first {
            return 0;
        }
        let others = (end.since(first).0 - 1) / self.spacing.0;
        others.min(u64::from(self.length) - 1) as u32 + 1
    }

    /// Time at which a packet got or will get the link of a run.
    fn time(&self, run: &Run, packet: u32) -> Time {
        run.start + self.spacing * packet.into()
    }

    /// The place of the run on a link.
    fn run_on(&self, link: LinkId) -> usize {
        self.runs.iter().position(|run| run.link == link).unwrap_or(self.runs.len())
    }

    /// True if its last packet gets the link of a run at `now`.
    fn ends_at(&self, now: Time, run: usize) -> bool {
        self.time(&self.runs[run], self.length - 1) == now
    }

    /// The run on the link to the destination.
    fn last_run(&self, links: &Links) -> Option<&Run> {
        self.runs.last().filter(|run| links[run.link].is_at_endpoint())
    }
}
