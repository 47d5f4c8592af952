//! The events of each block.

use evb_core::EventId;
use evb_experiment::{Bundling, Plan};
use evb_protocol::{BlockSize, Config};
use std::{collections::VecDeque, ops::Range};

/// The events of each block, whose number may change during the run. To the machines a block is one event.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// Sizes in the order of their first blocks; at least one.
    sizes: VecDeque<BlockSize>,
    /// Blocks before the newest size that may still be asked for.
    span: u64,
    /// Most events in a block whose size may change, or `None` if all blocks have the same size.
    largest: Option<u32>,
    /// The index of this slice and the number of slices n: each has every nth block.
    slice: (u64, u64),
}

impl Blocks {
    /// The blocks of a plan, all of the size that they have at first. The last one may have fewer events.
    pub(crate) fn new(plan: &Plan) -> Self {
        let slice = plan.bundling.slice.map_or((0, 1), |(slice, slices)| (slice.into(), slices.into()));
        let Bundling { block, last, .. } = plan.bundling;
        let first = BlockSize { from: EventId(1), first: EventId(1), events: block };
        let last = plan.building.events.zip(last).map(|(number, events)| {
            let before = number.saturating_sub(1).saturating_mul(block.into());
            BlockSize { from: EventId(number), first: EventId(before.saturating_add(1)), events }
        });
        let span = u64::from(plan.building.buffer_events).saturating_mul(Config::SPAN_FACTOR as u64);
        Self { sizes: [first].into_iter().chain(last).collect(), span, largest: plan.bundling.largest, slice }
    }

    /// The events of a block.
    pub(crate) fn events_of(&self, block: EventId) -> Range<u64> {
        let (slice, slices) = self.slice;
        let of_all = block.0.saturating_sub(1).saturating_mul(slices).saturating_add(slice + 1);
        let (before, events) = self.before(of_all);
        before.saturating_add(1)..before.saturating_add(events).saturating_add(1)
    }

    /// Number of events in a block.
    pub(crate) fn size(&self, block: EventId) -> u64 {
        self.before(block.0).1
    }

    /// Number of events in all blocks up to this one, in the slice that has it.
    pub(crate) fn through(&self, block: EventId) -> u64 {
        let (before, events) = self.before(block.0);
        if block.0 == 0 { 0 } else { before.saturating_add(events) }
    }

    /// Number of events before the block with this number, and in it.
    fn before(&self, number: u64) -> (u64, u64) {
        let BlockSize { from, first, events } = self.size_at(|size| size.from.0 <= number);
        let blocks = number.saturating_sub(from.0);
        ((first.0 - 1).saturating_add(blocks.saturating_mul(events.into())), events.into())
    }

    /// The block of an event, in the slice that has it.
    pub(crate) fn block_of(&self, event: EventId) -> EventId {
        let BlockSize { from, first, events } = self.size_at(|size| size.first <= event);
        let number = from.0 + event.0.saturating_sub(first.0) / u64::from(events);
        EventId((number - 1) / self.slice.1 + 1)
    }

    /// Adds a size, which holds from a block on. A size that is known already changes nothing: builders pass on what
    /// the event manager has said itself. Nor does a size that cannot be.
    pub(crate) fn change(&mut self, size: BlockSize) {
        let newest = self.sizes.back().map_or(EventId(1), |newest| newest.from);
        let may_be = (1..=self.largest.unwrap_or(0)).contains(&size.events) && size.first.0 > 0;
        if size.from < newest || !may_be {
            return;
        }
        if size.from == newest {
            self.sizes.pop_back();
        }
        self.sizes.push_back(size);
        let oldest = size.from.0.saturating_sub(self.span);
        while self.sizes.get(1).is_some_and(|second| second.from.0 <= oldest) {
            self.sizes.pop_front();
        }
    }

    /// The newest size that matches, or the oldest one.
    fn size_at(&self, predicate: impl Fn(&BlockSize) -> bool) -> BlockSize {
        let above = self.sizes.partition_point(predicate);
        self.sizes[above.saturating_sub(1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_sources::SourceSpec;

    fn blocks(block: u32, slice: Option<(u16, u16)>) -> Blocks {
        let mut plan = Plan::new(Config::new(1, 1), SourceSpec::Fixed { size: "2 B".parse().expect("a size") });
        plan.bundling.block = block;
        plan.bundling.slice = slice;
        plan.bundling.largest = Some(8).filter(|_| slice.is_none());
        plan.building.buffer_events = 2;
        Blocks::new(&plan)
    }

    /// The events of the first blocks, each of which is found again by its events.
    fn events(blocks: &Blocks, of: Range<u64>) -> Vec<Vec<u64>> {
        of.map(EventId)
            .map(|block| {
                let events = blocks.events_of(block);
                assert!(events.clone().all(|event| blocks.block_of(EventId(event)) == block), "{block} {events:?}");
                events.collect()
            })
            .collect()
    }

    fn size(from: u64, first: u64, events: u32) -> BlockSize {
        BlockSize { from: EventId(from), first: EventId(first), events }
    }

    #[test]
    fn blocks_follow_each_other() {
        let blocks = blocks(3, None);
        assert_eq!(events(&blocks, 1..3), [[1, 2, 3], [4, 5, 6]]);
        assert_eq!([0, 1, 2].map(|block| blocks.through(EventId(block))), [0, 3, 6]);
    }

    #[test]
    fn the_last_block_has_what_is_left() {
        let mut plan = Plan::new(Config::new(1, 1), SourceSpec::Fixed { size: "2 B".parse().expect("a size") });
        plan.bundling = Bundling { block: 3, last: Some(2), ..Bundling::default() };
        plan.building.events = Some(3);
        let blocks = Blocks::new(&plan);
        assert_eq!(events(&blocks, 1..4), [vec![1, 2, 3], vec![4, 5, 6], vec![7, 8]]);
        assert_eq!([2, 3].map(|block| blocks.through(EventId(block))), [6, 8]);
        // A last block may be the first.
        plan.building.events = Some(1);
        assert_eq!(events(&Blocks::new(&plan), 1..2), [[1, 2]]);
    }

    #[test]
    fn slices_have_the_blocks_in_turn() {
        let of = |slice| events(&blocks(2, Some((slice, 3))), 1..3).concat();
        assert_eq!([0, 1, 2].map(of), [[1, 2, 7, 8], [3, 4, 9, 10], [5, 6, 11, 12]]);
    }

    #[test]
    fn sizes_change_during_the_run() {
        let mut blocks = blocks(1, None);
        blocks.change(size(3, 3, 2));
        blocks.change(size(5, 7, 1));
        assert_eq!(events(&blocks, 1..7), [vec![1], vec![2], vec![3, 4], vec![5, 6], vec![7], vec![8]]);
        // The same by another way.
        blocks.change(size(3, 3, 2));
        blocks.change(size(5, 7, 1));
        assert_eq!(events(&blocks, 4..7), [vec![5, 6], vec![7], vec![8]]);
    }

    #[test]
    fn the_first_block_may_have_another_size() {
        let mut blocks = blocks(1, None);
        blocks.change(size(1, 1, 3));
        assert_eq!(events(&blocks, 1..3), [[1, 2, 3], [4, 5, 6]]);
    }

    #[test]
    fn impossible_sizes_are_ignored() {
        let mut blocks = blocks(1, None);
        for impossible in [size(2, 2, 0), size(2, 2, 9), size(2, 0, 2), size(0, 1, 2)] {
            blocks.change(impossible);
        }
        blocks.change(size(u64::MAX, u64::MAX, 8));
        assert_eq!(events(&blocks, 1..4), [[1], [2], [3]]);
        assert_eq!(blocks.events_of(EventId(u64::MAX)).count(), 0, "numbers end somewhere");
    }

    #[test]
    fn only_sizes_that_may_be_asked_for_are_kept() {
        let mut blocks = blocks(1, None);
        for block in 2..10_000 {
            blocks.change(size(block, block, 1 + block as u32 % 2));
        }
        assert!(blocks.sizes.len() as u64 <= blocks.span + 2, "{}", blocks.sizes.len());
    }
}
