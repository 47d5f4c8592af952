//! The memory of one endpoint for large bodies: it writes there, its peers read.
//!
//! # Safety
//! Blocks do not overlap: the free list gives a range to one [`Block`] at a time, and takes it back when that is
//! dropped. A block has one owner until it becomes a body, and is only read from then on. It is kept while a peer may
//! read it. After the end of the endpoint the readers are unknown, and no block is taken.

#![allow(unsafe_code, reason = "memory that other processes read")]

use super::map::Region;
use bytes::Bytes;
use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, Mutex, MutexGuard},
};

/// Alignment of blocks: a cache line.
const ALIGN: usize = 64;

/// The pool.
#[derive(Debug)]
pub(super) struct Pool {
    region: Arc<Region>,
    free: Mutex<FreeList>,
}

impl Pool {
    pub(super) fn new(region: Arc<Region>) -> Arc<Self> {
        let free = Mutex::new(FreeList::new(region.len()));
        Arc::new(Self { region, free })
    }

    /// A block of at least `bytes` bytes with any content, if there is room.
    pub(super) fn take(self: &Arc<Self>, bytes: usize) -> Option<Block> {
        let range = self.free().take(bytes)?;
        Some(Block { pool: Arc::clone(self), range, length: bytes })
    }

    /// A copy of these bytes in the pool, or the bytes themselves if they lie there already.
    pub(super) fn place(self: &Arc<Self>, body: &Bytes) -> Option<(Bytes, usize)> {
        if let Some(offset) = self.region.locate(body) {
            return Some((body.clone(), offset));
        }
        let mut block = self.take(body.len())?;
        block.as_mut().copy_from_slice(body);
        let offset = block.range.start;
        Some((Bytes::from_owner(block), offset))
    }

    /// Refuses all further blocks.
    pub(super) fn close(&self) {
        self.free().closed = true;
    }

    fn free(&self) -> MutexGuard<'_, FreeList> {
        self.free.lock().expect("no code panics under this lock")
    }
}

/// A part of the pool with one owner.
#[derive(Debug)]
pub(super) struct Block {
    pool: Arc<Pool>,
    range: Range<usize>,
    length: usize,
}

impl AsRef<[u8]> for Block {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the range is this block's alone, and whoever writes to it has it by `as_mut`.
        unsafe { self.pool.region.bytes(self.range.start..self.range.start + self.length) }
    }
}

impl AsMut<[u8]> for Block {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: the range is this block's alone, and it is borrowed for as long as the slice.
        unsafe { self.pool.region.bytes_mut(self.range.start..self.range.start + self.length) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.pool.free().give(self.range.clone());
    }
}

/// The free ranges of a pool by their start. Neighbours are merged, so the list is short.
#[derive(Debug)]
struct FreeList {
    ranges: BTreeMap<usize, usize>,
    closed: bool,
}

impl FreeList {
    fn new(length: usize) -> Self {
        Self { ranges: BTreeMap::from([(0, length)]), closed: false }
    }

    /// The first range that is large enough.
    fn take(&mut self, bytes: usize) -> Option<Range<usize>> {
        let wanted = bytes.max(1).checked_next_multiple_of(ALIGN)?;
        if self.closed {
            return None;
        }
        let (&start, &end) = self.ranges.iter().find(|&(start, end)| end - start >= wanted)?;
        self.ranges.remove(&start);
        if end - start > wanted {
            self.ranges.insert(start + wanted, end);
        }
        Some(start..start + wanted)
    }

    fn give(&mut self, range: Range<usize>) {
        let Range { mut start, mut end } = range;
        if let Some(after) = self.ranges.remove(&end) {
            end = after;
        }
        if let Some((&before, &its_end)) = self.ranges.range(..start).next_back()
            && its_end == start
        {
            start = before;
        }
        self.ranges.insert(start, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shm::map::create;
    use proptest::prelude::*;

    fn pool(bytes: usize) -> Arc<Pool> {
        Pool::new(Region::map(create("test", bytes).unwrap(), bytes, true).unwrap())
    }

    #[test]
    fn a_body_of_the_pool_stays_where_it_is() {
        let pool = pool(4096);
        let (copy, offset) = pool.place(&Bytes::from_static(b"abc")).unwrap();
        assert_eq!((&copy[..], offset), (&b"abc"[..], 0));
        let (same, inside) = pool.place(&copy.slice(1..)).unwrap();
        assert_eq!((same.as_ptr(), inside), (copy[1..].as_ptr(), 1));
        assert!(pool.take(4096).is_none() && pool.take(usize::MAX).is_none());
        drop((copy, same));
        assert!(pool.take(4096).is_some(), "all of it is free again");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn blocks_never_overlap_and_come_back(steps in prop::collection::vec((any::<bool>(), 1usize..3000), 1..200)) {
            let pool = pool(16 << 10);
            let mut held: Vec<(Block, u8)> = Vec::new();
            for (number, &(take, value)) in steps.iter().enumerate() {
                if take {
                    let Some(mut block) = pool.take(value) else { continue };
                    block.as_mut().fill(number as u8);
                    held.push((block, number as u8));
                } else if !held.is_empty() {
                    let (block, fill) = held.swap_remove(value % held.len());
                    prop_assert!(block.as_ref().iter().all(|&byte| byte == fill));
                }
            }
            held.clear();
            prop_assert!(pool.take(16 << 10).is_some());
        }
    }
}
