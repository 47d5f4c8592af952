//! Ids of nodes, events and sources.

use core::{
    fmt, iter,
    num::{NonZeroU32, NonZeroU64},
    ops::RangeInclusive,
};
use serde::{Deserialize, Serialize};

/// A node of the event builder. Ids are dense: the event manager is 0, the readout units follow, then the builder
/// units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The id as an index into a table of all nodes.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// A range of consecutive node ids. A machine addresses a message to one node or to all readout units with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRange {
    /// The first node of the range.
    pub first: NodeId,
    /// Number of nodes in the range.
    pub count: u16,
}

impl NodeRange {
    /// The nodes of the range in ascending order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = NodeId> + DoubleEndedIterator + Clone {
        (self.first.0..self.first.0 + self.count).map(NodeId)
    }

    /// Returns true if `node` belongs to the range.
    pub const fn contains(self, node: NodeId) -> bool {
        node.0 >= self.first.0 && node.0 - self.first.0 < self.count
    }
}

impl From<NodeId> for NodeRange {
    fn from(first: NodeId) -> Self {
        Self { first, count: 1 }
    }
}

/// The number of an event, counted from 1 by the event manager; it never wraps within a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventId(pub u64);

impl EventId {
    /// The event after this one.
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A source of fragments: the index of a readout unit, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceId(pub u16);

impl SourceId {
    /// The id as an index into a table of all sources.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A second identity of a fragment beside its event number: a bunch crossing, an orbit, the low bits of a timestamp.
/// All fragments of one event carry marks that agree, as [`MarkComparison`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Mark(NonZeroU32);

impl Mark {
    /// The mark with this value. The two largest values are one mark.
    pub const fn new(value: u32) -> Self {
        // One more than the value, so that an optional mark takes four bytes.
        match NonZeroU32::new(value.saturating_add(1)) {
            Some(stored) => Self(stored),
            None => Self(NonZeroU32::MAX),
        }
    }

    /// The value of the mark.
    pub const fn value(self) -> u32 {
        self.0.get() - 1
    }

    /// The bits of an optional mark: 0 for none.
    pub const fn to_bits(mark: Option<Self>) -> u32 {
        match mark {
            Some(mark) => mark.0.get(),
            None => 0,
        }
    }

    /// The optional mark with these bits.
    pub const fn from_bits(bits: u32) -> Option<Self> {
        match NonZeroU32::new(bits) {
            Some(stored) => Some(Self(stored)),
            None => None,
        }
    }
}

/// When two marks agree: those of clocks that are read a tick apart may differ by a few.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkComparison {
    /// Largest difference of marks that agree, counted around the end of their range.
    pub tolerance: u32,
    /// Lowest bits of a mark that are compared, 1 to 32.
    pub bits: u8,
}

impl MarkComparison {
    /// Marks agree if they are equal.
    pub const EXACT: Self = Self { tolerance: 0, bits: 32 };

    /// The bits of a mark that are compared.
    pub const fn value(self, mark: Mark) -> u32 {
        mark.value() & self.mask()
    }

    /// Returns true if both marks may be of one event.
    pub const fn agree(self, one: Mark, other: Mark) -> bool {
        let ahead = one.value().wrapping_sub(other.value());
        ahead & self.mask() <= self.tolerance || ahead.wrapping_neg() & self.mask() <= self.tolerance
    }

    /// The values that agree with a mark: one range, or two where they go around the end.
    pub fn values(self, mark: Mark) -> impl Iterator<Item = RangeInclusive<u32>> {
        let (value, end) = (self.value(mark), self.mask());
        let (low, high) = (value.wrapping_sub(self.tolerance) & end, value.wrapping_add(self.tolerance) & end);
        let (first, second) = if self.tolerance > end / 2 {
            (0..=end, None)
        } else if low <= high {
            (low..=high, None)
        } else {
            (0..=high, Some(low..=end))
        };
        iter::once(first).chain(second)
    }

    const fn mask(self) -> u32 {
        u32::MAX >> (32 - self.bits as u32)
    }
}

/// The number that a source gave its fragment, as it came: the raw event counter of a front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Counter(NonZeroU64);

impl Counter {
    /// The counter with this value. The two largest values are one.
    pub const fn new(value: u64) -> Self {
        // One more than the value, so that an optional counter takes eight bytes.
        match NonZeroU64::new(value.saturating_add(1)) {
            Some(stored) => Self(stored),
            None => Self(NonZeroU64::MAX),
        }
    }

    /// The value of the counter.
    pub const fn value(self) -> u64 {
        self.0.get() - 1
    }

    /// The bits of an optional counter: 0 for none.
    pub const fn to_bits(counter: Option<Self>) -> u64 {
        match counter {
            Some(counter) => counter.0.get(),
            None => 0,
        }
    }

    /// The optional counter with these bits.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match NonZeroU64::new(bits) {
            Some(stored) => Some(Self(stored)),
            None => None,
        }
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(f)
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{collections::BTreeSet, vec::Vec};

    fn agreeing(comparison: MarkComparison, mark: u32) -> impl Iterator<Item = u32> {
        comparison.values(Mark::new(mark)).flatten()
    }

    #[test]
    fn marks_agree_within_their_tolerance_and_around_the_end_of_their_range() {
        for tolerance in [0, 1, 3, 7, 8, 20] {
            let comparison = MarkComparison { tolerance, bits: 4 };
            for mark in 0..40 {
                let by_range: BTreeSet<_> = agreeing(comparison, mark).collect();
                let by_pair = |other: &u32| comparison.agree(Mark::new(mark), Mark::new(*other));
                assert_eq!(by_range, (0..16).filter(by_pair).collect(), "{comparison:?} {mark}");
            }
        }
        assert_eq!(agreeing(MarkComparison { tolerance: 1, bits: 4 }, 15).collect::<Vec<_>>(), [0, 14, 15]);
        assert!(MarkComparison { tolerance: 2, bits: 32 }.agree(Mark::new(0), Mark::new(u32::MAX - 1)));
        assert_eq!(agreeing(MarkComparison::EXACT, 7).collect::<Vec<_>>(), [7]);
    }
}
