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
/// Largest size of a [class](class_of) in bytes. Ranges above it have their exact size.
const LARGEST_CLASS: usize = 256 << 10;

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
        // SAFETY: the range is this block's alone, and is written only through `as_mut`.
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

/// The free memory of a pool. A returned range of a common size waits for the next body of that size, the latest first,
/// because it may still be in a cache. All other free ranges are kept by their start, and neighbours are merged.
#[derive(Debug)]
struct FreeList {
    ranges: BTreeMap<usize, usize>,
    /// The starts of waiting ranges, by the [class](class_of) of their size.
    waiting: Vec<Vec<usize>>,
    closed: bool,
}

impl FreeList {
    fn new(length: usize) -> Self {
        let waiting = vec![Vec::new(); class_of(LARGEST_CLASS) + 1];
        Self { ranges: BTreeMap::from([(0, length)]), waiting, closed: false }
    }

    /// A range of at least `bytes` bytes.
    fn take(&mut self, bytes: usize) -> Option<Range<usize>> {
        if self.closed {
            return None;
        }
        let class = class_of(bytes);
        let Some(waiting) = self.waiting.get_mut(class) else {
            return self.find(bytes.checked_next_multiple_of(ALIGN)?);
        };
        let size = size_of_class(class);
        match waiting.pop() {
            Some(start) => Some(start..start + size),
            None => self.find(size),
        }
    }

    fn give(&mut self, range: Range<usize>) {
        match self.waiting.get_mut(class_of(range.len())) {
            Some(waiting) => waiting.push(range.start),
            None => self.merge(range),
        }
    }

    /// A range of `wanted` bytes. If there is none, waiting ranges are merged to make room.
    fn find(&mut self, wanted: usize) -> Option<Range<usize>> {
        self.cut(wanted).or_else(|| {
            self.merge_waiting();
            self.cut(wanted)
        })
    }

    /// Cuts `wanted` bytes from the first range that is large enough.
    fn cut(&mut self, wanted: usize) -> Option<Range<usize>> {
        let (&start, &end) = self.ranges.iter().find(|&(start, end)| end - start >= wanted)?;
        self.ranges.remove(&start);
        if end - start > wanted {
            self.ranges.insert(start + wanted, end);
        }
        Some(start..start + wanted)
    }

    /// Merges all waiting ranges with their neighbours.
    #[cold]
    fn merge_waiting(&mut self) {
        for class in 0..self.waiting.len() {
            while let Some(start) = self.waiting[class].pop() {
                self.merge(start..start + size_of_class(class));
            }
        }
    }

    fn merge(&mut self, range: Range<usize>) {
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

/// The class of a size in bytes: four of them for each doubling, so at most a fifth of a range is unused.
const fn class_of(bytes: usize) -> usize {
    let lines = bytes.div_ceil(ALIGN);
    if lines <= 4 {
        return lines.saturating_sub(1);
    }
    // The two bits after the highest one tell the quarter of a doubling, counted from the size below.
    let octave = (lines - 1).ilog2() as usize;
    4 * (octave - 1) + ((lines - 1) >> (octave - 2)) - 4
}

/// The size of the ranges of a class in bytes.
const fn size_of_class(class: usize) -> usize {
    if class < 4 {
        return (class + 1) * ALIGN;
    }
    let octave = class / 4 + 1;
    ((class % 4 + 5) * ALIGN) << (octave - 2)
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

    #[test]
    fn the_classes_of_sizes_follow_each_other() {
        for bytes in 0..=LARGEST_CLASS {
            let class = class_of(bytes);
            let size = size_of_class(class);
            assert!(size >= bytes.max(1) && size.is_multiple_of(ALIGN), "{bytes} B in class {class} of {size} B");
            assert!(class == 0 || size_of_class(class - 1) < bytes, "{bytes} B fit into the class before {class}");
            assert!(bytes <= 4 * ALIGN || size - bytes.next_multiple_of(ALIGN) < size / 5, "{bytes} B in {size} B");
        }
        assert_eq!(size_of_class(class_of(LARGEST_CLASS)), LARGEST_CLASS);
    }

    #[test]
    fn a_returned_range_is_the_next_of_its_size_and_makes_room_for_others() {
        let pool = pool(16 << 10);
        let blocks: Vec<_> = (0..8).map(|_| pool.take(2048).unwrap()).collect();
        assert!(pool.take(1).is_none(), "the pool is full");
        let latest = blocks.last().unwrap().range.clone();
        drop(blocks);
        assert_eq!(pool.take(2000).unwrap().range, latest);
        assert!(pool.take(64).is_some() && pool.take(16 << 10).is_some(), "waiting ranges are merged");
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
