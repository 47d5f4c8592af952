//! The sender of super-fragments of a builder of the first stage: built events become super-fragments for one readout
//! unit of the second.
//!
//! The number of an event chooses its builder in all groups (`Assignment::ByNumber`), so groups need no messages
//! between them. The price is that a slow slice holds up the others.

use crate::{Payload, blocks::Blocks};
use evb_core::{EventId, SourceId};
use evb_experiment::{Plan, StageLink};
use evb_protocol::{Built, Fragment, FragmentStatus};
use std::collections::BTreeMap;

/// The events of one builder that the second stage has not taken yet. Events end in any order; super-fragments leave in
/// that of their numbers. The slots of the builder bound the number of events here.
pub struct SuperFragmentSender<B> {
    blocks: Blocks,
    slices: u64,
    /// Number of the next super-fragment.
    next: u64,
    waiting: BTreeMap<u64, Vec<Built<B>>>,
    /// Events of the super-fragments that have left, without their fragments.
    gone: BTreeMap<u64, Vec<Built<B>>>,
}

impl<B: Payload> SuperFragmentSender<B> {
    /// The sender of any builder of a group, or `None` in an event builder without a next stage.
    pub fn new(plan: &Plan) -> Option<Self> {
        let slices = plan.building.builder_units.into();
        let (waiting, gone) = (BTreeMap::new(), BTreeMap::new());
        matches!(plan.link, StageLink::Outlets { .. }).then(|| Self {
            blocks: Blocks::new(plan),
            slices,
            next: 1,
            waiting,
            gone,
        })
    }

    /// Takes a built event.
    pub fn add(&mut self, event: Built<B>) {
        let number = (self.blocks.block_of(event.event).0 - 1) / self.slices + 1;
        self.waiting.entry(number).or_default().push(event);
    }

    /// The next super-fragment, when all its events are built: the fragments of the group for one event, or for a block
    /// of them, as a bundle. Its number in the slice counts from 1 without a gap.
    pub fn pop(&mut self) -> Option<(u64, Fragment<B>)> {
        let events = self.waiting.first_entry().filter(|entry| *entry.key() == self.next)?;
        if (events.get().len() as u64) < self.blocks.size(EventId(self.next)) {
            return None;
        }
        let (number, mut events) = events.remove_entry();
        self.next += 1;
        events.sort_unstable_by_key(|event| event.event);
        let super_fragment = bundle(&mut events);
        self.gone.insert(number, events);
        Some((number, super_fragment))
    }

    /// The events of a super-fragment that the second stage has taken.
    pub fn taken(&mut self, number: u64) -> Vec<Built<B>> {
        self.gone.remove(&number).unwrap_or_default()
    }
}

/// Bundles the fragments of consecutive events, which are left without them.
fn bundle<B: Payload>(events: &mut [Built<B>]) -> Fragment<B> {
    let event = events.first().map_or(EventId(1), |event| event.event);
    let status =
        if events.iter().all(|event| event.complete) { FragmentStatus::Good } else { FragmentStatus::Corrupted };
    let mut fragments: Vec<_> = events.iter_mut().flat_map(|event| event.fragments.drain(..)).flatten().collect();
    fragments.sort_by_key(|fragment| (fragment.event, fragment.source));
    let (payload, length, checksum) = B::bundle(event, &fragments);
    let mut bundle =
        Fragment { event, source: SourceId(0), length, checksum, mark: None, counter: None, status, payload };
    if status != FragmentStatus::Good {
        bundle.checksum = B::checksum(&bundle);
    }
    bundle
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use evb_core::{ByteCount, Time};
    use evb_protocol::{Config, Region};
    use evb_sources::SourceSpec;

    /// The second of three builders, with blocks of two events and two sources.
    fn sender() -> SuperFragmentSender<Bytes> {
        let mut plan = Plan::new(Config::new(2, 3), SourceSpec::Fixed { size: ByteCount(2) });
        assert!(SuperFragmentSender::<Bytes>::new(&plan).is_none());
        plan.bundling.block = 2;
        plan.link = StageLink::Outlets { unit: 0, paths: Vec::new() };
        SuperFragmentSender::new(&plan).expect("a sender")
    }

    fn built(event: u64) -> Built<Bytes> {
        let fragment = |source: u16| Fragment {
            event: EventId(event),
            source: SourceId(source),
            length: 2,
            checksum: 0,
            mark: None,
            counter: None,
            status: FragmentStatus::Good,
            payload: Bytes::from(vec![event as u8, source as u8]),
        };
        let fragments = [1, 0].map(|source| Some(fragment(source))).into();
        Built { event: EventId(event), opened: Time::ZERO, complete: true, asked: Region::ALL, fragments }
    }

    #[test]
    fn super_fragments_leave_in_order_and_whole() {
        let mut sender = sender();
        // Blocks 2, 5 and 8 are its own: events 3 and 4, 9 and 10, 15 and 16.
        for event in [10, 9, 4, 16] {
            sender.add(built(event));
            assert_eq!(sender.pop(), None);
        }
        sender.add(Built { complete: false, ..built(3) });
        let (first, second) = (sender.pop().expect("events 3 and 4"), sender.pop().expect("events 9 and 10"));
        assert_eq!((first.0, first.1.status), (1, FragmentStatus::Corrupted));
        assert_eq!((second.0, second.1.status, sender.pop()), (2, FragmentStatus::Good, None));
        let mut parts = Vec::new();
        Bytes::parts(EventId(9), &second.1, &mut parts).expect("a bundle of events 9 and 10");
        let contents: Vec<_> = parts.iter().map(|part| Bytes::part(&second.1.payload, part).payload.to_vec()).collect();
        assert_eq!(contents, [[9, 0], [9, 1], [10, 0], [10, 1]]);
        let events = |sender: &mut SuperFragmentSender<Bytes>, number| {
            sender.taken(number).iter().map(|one| one.event.0).collect::<Vec<_>>()
        };
        assert_eq!([1, 1, 2].map(|number| events(&mut sender, number)), [vec![3, 4], vec![], vec![9, 10]]);
    }
}
