//! The number of triggers that fill a block.
//!
//! A block costs about as much as a single event. So while events wait for builders, blocks may grow: the same builders
//! then build more events. Where builders wait for events, no event must wait for a block to fill: it starts with what
//! is there.
//!
//! A size of blocks holds from a block on, and travels before it (`Message::BlockSize`). A size in each message would
//! be another protocol, and a rule that all nodes follow by themselves would need a load that all of them see. The size
//! follows the queue of blocks, not a measured rate, because a queue shows at once that builders have too much to do.

use evb_core::{Span, Time};

/// Longest time for which a trigger waits for others, where the size of blocks follows the load.
const PATIENCE: Span = Span::from_micros(100);
/// Time without a queue after which blocks become smaller.
const CALM: Span = Span::from_millis(100);

/// The block that is being filled with triggers.
pub(crate) struct Filling {
    /// Triggers that fill a block.
    size: u64,
    filled: u64,
    /// The times of the first of these triggers, and of the last.
    since: Time,
    latest: Time,
    /// The load that the size follows, or `None` if it is fixed.
    load: Option<Load>,
}

/// The measured load.
struct Load {
    /// Most triggers in a block.
    most: u64,
    /// Number of waiting blocks from which there is a queue: one for each builder.
    queue: u64,
    /// Blocks since the size was changed.
    started: u64,
    /// The last time at which there was a queue, or the size was changed.
    queued: Time,
}

/// Blocks that start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full {
    /// Number of blocks.
    pub(crate) blocks: u64,
    /// Triggers in each of them.
    pub(crate) size: u64,
    /// The time of their first trigger.
    pub(crate) since: Time,
}

impl Filling {
    /// Blocks of this size. If there is a largest size, they have it under load, for this many builders.
    pub(crate) fn new(size: u32, largest: Option<u32>, builders: u16) -> Self {
        let load = |most: u32| Load { most: most.into(), queue: builders.into(), started: 0, queued: Time::ZERO };
        Self { size: size.into(), filled: 0, since: Time::ZERO, latest: Time::ZERO, load: largest.map(load) }
    }

    /// Takes triggers that came at a time.
    pub(crate) const fn add(&mut self, at: Time, count: u64) {
        if self.filled == 0 {
            self.since = at;
        }
        self.filled += count;
        self.latest = at;
    }

    /// The blocks that are full, if there are any. `waiting` blocks wait for builders; the run ends after `room` more
    /// triggers.
    pub(crate) fn full(&mut self, now: Time, waiting: u64, room: u64) -> Option<Full> {
        self.follow(now, waiting);
        let size = self.size.min(room);
        if size == 0 || self.filled < size {
            return None;
        }
        Some(self.start(self.filled.min(room) / size, size))
    }

    /// The block that is not full, if it has triggers and need not be full. Blocks are not larger than that from now
    /// on.
    pub(crate) fn rest(&mut self, now: Time, room: u64) -> Option<Full> {
        let size = self.filled.min(room);
        if size == 0 || self.load.is_none() {
            return None;
        }
        self.resize(now, size);
        Some(self.start(1, size))
    }

    /// The time at which the block starts, full or not, or `None` if it waits until it is full. While others wait for
    /// builders, it would only wait behind them. Without `room` it never starts: the run has all its triggers.
    pub(crate) fn deadline(&self, waiting: u64, room: u64) -> Option<Time> {
        let load = self.load.as_ref()?;
        (self.filled > 0 && room > 0 && waiting < load.queue).then(|| self.since + PATIENCE)
    }

    fn start(&mut self, blocks: u64, size: u64) -> Full {
        let full = Full { blocks, size, since: self.since };
        self.filled -= blocks * size;
        self.since = self.latest;
        if let Some(load) = &mut self.load {
            load.started += blocks;
        }
        full
    }

    /// Follows the load. A size is judged after a block for each builder, so a change is rare beside the blocks.
    fn follow(&mut self, now: Time, waiting: u64) {
        let Some(load) = &mut self.load else { return };
        if waiting < load.queue {
            if now.since(load.queued) >= CALM {
                self.resize(now, self.size / 2);
            }
            return;
        }
        load.queued = now;
        if load.started >= load.queue {
            self.resize(now, self.size * 2);
        }
    }

    fn resize(&mut self, now: Time, size: u64) {
        let Some(load) = &mut self.load else { return };
        self.size = size.clamp(1, load.most);
        load.started = 0;
        load.queued = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    /// The number of blocks and their size, of blocks that are full.
    fn full(filling: &mut Filling, now: Time, waiting: u64) -> Option<(u64, u64)> {
        filling.full(now, waiting, u64::MAX).map(|full| (full.blocks, full.size))
    }

    #[test]
    fn blocks_of_a_fixed_size_wait_until_they_are_full() {
        let mut filling = Filling::new(10, None, 2);
        filling.add(at(1), 7);
        assert_eq!((full(&mut filling, at(1), 99), filling.deadline(0, u64::MAX)), (None, None));
        filling.add(at(5), 18);
        assert_eq!(filling.full(at(5), 99, u64::MAX), Some(Full { blocks: 2, size: 10, since: at(1) }));
        filling.add(at(7), 5);
        assert_eq!(filling.full(at(7), 99, u64::MAX), Some(Full { blocks: 1, size: 10, since: at(5) }));
        filling.add(at(9), 3);
        assert_eq!(filling.rest(at(9), u64::MAX), None);
    }

    #[test]
    fn blocks_grow_while_others_wait() {
        let mut filling = Filling::new(1, Some(4), 2);
        filling.add(at(0), 100);
        let mut next = |waiting| {
            filling.add(at(1), 1);
            filling.filled = 2 * filling.size;
            full(&mut filling, at(1), waiting)
        };
        // One more of a size than builders: then the next ones are larger, up to the largest.
        let sizes = [next(1), next(1), next(2), next(2), next(2), next(9), next(9)];
        assert_eq!(sizes.map(|full| full.map(|(_, size)| size)), [1, 1, 2, 2, 4, 4, 4].map(Some));
    }

    #[test]
    fn no_trigger_waits_long_for_others() {
        let mut filling = Filling::new(1, Some(64), 1);
        filling.resize(at(0), 64);
        filling.add(at(10), 3);
        filling.add(at(20), 2);
        assert_eq!((full(&mut filling, at(20), 0), filling.deadline(0, u64::MAX)), (None, Some(at(110))));
        assert_eq!(filling.deadline(1, u64::MAX), None, "it would wait for a builder");
        assert_eq!(filling.deadline(0, 0), None, "the run has all its triggers");
        let rest = filling.rest(at(110), u64::MAX);
        assert_eq!(rest, Some(Full { blocks: 1, size: 5, since: at(10) }));
        assert_eq!((filling.size, filling.rest(at(110), u64::MAX), filling.deadline(0, u64::MAX)), (5, None, None));
    }

    #[test]
    fn blocks_shrink_when_none_has_waited_for_long() {
        let mut filling = Filling::new(1, Some(64), 2);
        filling.resize(at(0), 8);
        for (now, size) in [(99_000, 8), (100_000, 4), (199_000, 4), (200_000, 2), (300_000, 1), (400_000, 1)] {
            filling.add(at(now), 8);
            assert_eq!(full(&mut filling, at(now), 1), Some((8 / size, size)), "{now}");
        }
    }

    #[test]
    fn the_last_block_ends_the_run() {
        let mut filling = Filling::new(4, Some(4), 1);
        filling.add(at(1), 11);
        let mut next = |room| filling.full(at(1), 0, room).map(|full| (full.blocks, full.size));
        assert_eq!([next(6), next(2), next(0)], [Some((1, 4)), Some((1, 2)), None]);
    }
}
