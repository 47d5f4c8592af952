//! Which slices hold a time.

use super::nanoseconds;
use crate::hits::Slicing;

/// The slices of the time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Windows {
    /// Start of the first slice, length of all and of their overlaps, in nanoseconds.
    pub(super) from: i64,
    pub(super) length: i64,
    overlap: i64,
}

impl Windows {
    pub(super) fn new(slicing: &Slicing) -> Self {
        let from = i64::try_from(slicing.from_ns.unwrap_or(0)).unwrap_or(i64::MAX);
        Self { from, length: nanoseconds(slicing.length).max(1), overlap: nanoseconds(slicing.overlap) }
    }

    /// The first slice that ends behind this time, its overlap included: all before it are over.
    pub(super) fn first(self, time: i64) -> u64 {
        let since = time.saturating_sub(self.from).saturating_sub(self.overlap);
        u64::try_from(since.div_euclid(self.length).saturating_add(1)).unwrap_or(0).max(1)
    }

    /// The last slice that has begun at this time; 0 if none has.
    pub(super) fn last(self, time: i64) -> u64 {
        u64::try_from(time.saturating_sub(self.from).div_euclid(self.length).saturating_add(1)).unwrap_or(0)
    }

    /// The end of a slice, its overlap included.
    pub(super) fn end(self, slice: u64) -> i64 {
        let length = i64::try_from(slice).unwrap_or(i64::MAX).saturating_mul(self.length);
        self.from.saturating_add(length).saturating_add(self.overlap)
    }
}
