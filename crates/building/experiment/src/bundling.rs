//! The sources of the readout units and the events of a block: what a readout unit puts into one bundle.
//!
//! Blocks that follow the load are the default: at low rates there are none. Files that inject faults have single
//! events, because a block is lost or repeated as one, and so have files with shaping, whose buckets already hold many
//! events. The last block of a run by number may be smaller, which all nodes know from the plan.

use evb_core::{ByteCount, SourceId};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The content of the bundles of all readout units.
///
/// A unit with one source that reads single events makes no bundles. Sources are numbered through all units, in the order
/// of the units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bundling {
    /// Events in a block, at least 1; at first, if their number follows the load. The machines know blocks only.
    pub block: u32,
    /// Most events in a block, if their number follows the load.
    #[serde(default)]
    pub largest: Option<u32>,
    /// Events in the last block of the run, if they are fewer than those of the others.
    #[serde(default)]
    pub last: Option<u32>,
    /// First source of each readout unit, in order, and then the number of all sources; empty if each unit has one.
    pub bounds: Vec<u16>,
    /// Sources that are not read, in ascending order.
    pub masked: Vec<SourceId>,
    /// Zero-suppressed sources in ascending order, each with the part of the events that it has no fragment of.
    pub suppressed: Vec<(SourceId, f64)>,
    /// Largest fragment of one source, where bundles are larger than that.
    pub max_fragment: Option<ByteCount>,
    /// The index and the number of the slices, where the bundles come from a first stage: slice `i` of `n` has every `n`-th
    /// block.
    #[serde(default)]
    pub slice: Option<(u16, u16)>,
}

impl Default for Bundling {
    /// One source in each readout unit, and single events.
    fn default() -> Self {
        Self {
            block: 1,
            largest: None,
            last: None,
            bounds: Vec::new(),
            masked: Vec::new(),
            suppressed: Vec::new(),
            max_fragment: None,
            slice: None,
        }
    }
}

impl Bundling {
    /// Bytes of a bundle behind its entries.
    pub const TAIL_BYTES: u64 = 20;
    /// Bytes of a bundle for each of its fragments, beside the payload.
    pub const ENTRY_BYTES: u64 = 20;

    /// True if no readout unit makes bundles.
    pub fn is_plain(&self) -> bool {
        let is_alone = self.bounds.is_empty() && self.slice.is_none();
        !self.has_blocks() && is_alone && self.masked.is_empty() && self.suppressed.is_empty()
    }

    /// True if events are built in blocks.
    pub const fn has_blocks(&self) -> bool {
        self.largest_block() > 1
    }

    /// Most events in a block.
    pub const fn largest_block(&self) -> u32 {
        match self.largest {
            Some(largest) => largest,
            None => self.block,
        }
    }

    /// Number of sources of this many readout units, masked ones included.
    pub fn sources(&self, units: u16) -> u16 {
        self.bounds.first().zip(self.bounds.last()).map_or(units, |(first, end)| end - first)
    }

    /// The sources of a readout unit, masked ones included.
    pub fn sources_of(&self, unit: u16) -> Range<u16> {
        let unit_index = usize::from(unit);
        match self.bounds.get(unit_index..unit_index + 2) {
            Some(&[first, end]) => first..end,
            _ => unit..unit.saturating_add(1),
        }
    }

    /// The sources of a readout unit that are read.
    pub fn read_by(&self, unit: u16) -> impl Iterator<Item = SourceId> {
        self.sources_of(unit).map(SourceId).filter(|source| !self.is_masked(*source))
    }

    /// True if a source is not read.
    pub fn is_masked(&self, source: SourceId) -> bool {
        self.masked.binary_search(&source).is_ok()
    }

    /// True if a readout unit sends bundles: it has several sources, blocks of events, an event without a fragment that is
    /// complete, or super-fragments of a first stage.
    pub fn bundles(&self, unit: u16) -> bool {
        let mut sources = self.read_by(unit);
        let (first, second) = (sources.next(), sources.next());
        let is_single = matches!((first, second), (Some(source), None) if self.suppression(source).is_none());
        self.has_blocks() || self.slice.is_some() || !is_single
    }

    /// The part of the events of which a source has no fragment; `None` if it must have one of each.
    pub fn suppression(&self, source: SourceId) -> Option<f64> {
        let place = self.suppressed.binary_search_by_key(&source, |(source, _)| *source).ok()?;
        Some(self.suppressed[place].1)
    }

    /// Bytes of a bundle of this many fragments of this size.
    pub const fn bundle_bytes(fragments: u64, each: ByteCount) -> u64 {
        Self::TAIL_BYTES + fragments * (Self::ENTRY_BYTES + each.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_numbered_through_all_units() {
        let bundling = Bundling { bounds: vec![0, 2, 3, 6], masked: vec![SourceId(4)], ..Bundling::default() };
        assert_eq!([0, 1, 2].map(|unit| bundling.sources_of(unit)), [0..2, 2..3, 3..6]);
        assert_eq!(bundling.read_by(2).collect::<Vec<_>>(), [SourceId(3), SourceId(5)]);
        assert_eq!([0, 1, 2].map(|unit| bundling.bundles(unit)), [true, false, true]);
        assert_eq!(Bundling::default().sources_of(7), 7..8);
        assert!(!Bundling::default().bundles(7));
    }

    #[test]
    fn an_event_may_have_no_fragment_only_inside_a_bundle() {
        let bundling = Bundling { suppressed: vec![(SourceId(1), 0.5)], ..Bundling::default() };
        assert_eq!([0, 1, 2].map(|unit| bundling.bundles(unit)), [false, true, false]);
        let masked = Bundling { masked: vec![SourceId(1)], ..Bundling::default() };
        assert_eq!([0, 1, 2].map(|unit| masked.bundles(unit)), [false, true, false]);
    }
}
