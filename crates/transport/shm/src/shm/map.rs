//! Words in memory that processes share.
//!
//! # Safety
//! A region is backed as long as it lives (crate `memory`). Its words are only ever used as atomics, by all sides.

#![allow(unsafe_code, reason = "takes shared memory for atomics")]

use crate::sync::AtomicU64;
pub(super) use evb_os::memory::{Region, close_to_writers, create};
use std::{io, os::fd::AsFd, ptr::NonNull, sync::Arc};

/// A region as words. A clone is another handle of the same region.
#[derive(Clone, Debug)]
pub(super) struct Words {
    start: NonNull<AtomicU64>,
    count: usize,
    /// Owner of the memory. Stores to a read-only region would fault; its words are only loaded.
    _region: Arc<Region>,
}

// SAFETY: atomics may be shared, and the region lives as long as any handle.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    pub(super) fn map(file: impl AsFd, count: usize, writable: bool) -> io::Result<Self> {
        let region = Region::map(file, count * size_of::<AtomicU64>(), writable)?;
        Ok(Self { start: region.start().cast(), count, _region: region })
    }
}

impl AsRef<[AtomicU64]> for Words {
    #[inline]
    fn as_ref(&self) -> &[AtomicU64] {
        // SAFETY: a mapping begins at a page, has these words, and lives as long as `self`; all accesses are atomic.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_one_mapping_writes_another_reads() {
        let file = create("test", 4096).unwrap();
        let (ours, theirs) = (Words::map(&file, 512, true).unwrap(), Words::map(&file, 512, false).unwrap());
        close_to_writers(&file).unwrap();
        ours.as_ref()[511].store(7, Ordering::Release);
        assert_eq!(theirs.as_ref()[511].load(Ordering::Acquire), 7);
    }
}
