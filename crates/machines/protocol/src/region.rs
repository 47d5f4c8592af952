//! The readout units that a builder asks first for an event.

use crate::{Built, Config, Fragment, Protocol};
use alloc::sync::Arc;
use evb_core::{EventId, NodeId, SourceId, some_of, stream};
use serde::{Deserialize, Serialize};

/// Purpose of the random stream of regions.
const REGIONS: u64 = 3;

/// The choice of the readout units of the first phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstPhase {
    /// The same units for every event: this many, from the first one.
    Units(u16),
    /// A region of interest, drawn by seed and event number. So every node knows it without a message, and a builder
    /// that builds an event again asks the same units.
    Region {
        /// Fewest units of a region, at least 1.
        least: u16,
        /// Most units of a region.
        most: u16,
        /// Seed of the run.
        seed: u64,
    },
}

impl FirstPhase {
    /// The units of an event, out of this number of units.
    pub fn of(self, event: EventId, units: u16) -> Region {
        match self {
            Self::Units(first) => Region::First(first),
            Self::Region { least, most, seed } => {
                let mut random = stream(seed ^ event.0.wrapping_mul(0x9e37_79b9_7f4a_7c15), NodeId(0), REGIONS);
                let mut drawn = some_of(&mut random, (least, most), units);
                drawn.sort_unstable();
                Region::Drawn(drawn.into())
            }
        }
    }
}

impl Config {
    /// The readout units that a builder asks first for an event: all, unless the protocol says otherwise.
    pub fn first_phase(&self, event: EventId) -> Region {
        match self.protocol {
            Protocol::Push | Protocol::Pull => Region::First(self.readout_units),
            Protocol::Phased { first, .. } => first.of(event, self.readout_units),
        }
    }
}

/// A set of readout units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Region {
    /// The units before this one.
    First(u16),
    /// These units, in ascending order.
    Drawn(Arc<[u16]>),
}

impl Region {
    /// All units of any event builder.
    pub const ALL: Self = Self::First(u16::MAX);

    /// True if the unit with this index belongs to the region.
    #[inline]
    pub fn contains(&self, unit: usize) -> bool {
        match self {
            Self::First(end) => unit < usize::from(*end),
            Self::Drawn(units) => units.binary_search_by(|&drawn| usize::from(drawn).cmp(&unit)).is_ok(),
        }
    }
}

impl<B> Built<B> {
    /// The sources that were asked for the event, each with its fragment; `None` is a fragment that did not come.
    pub fn wanted(&self) -> impl Iterator<Item = (SourceId, Option<&Fragment<B>>)> {
        let all = (0..).map(SourceId).zip(self.fragments.iter().map(Option::as_ref));
        all.filter(|(source, _)| self.asked.contains(source.index()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn a_region_depends_on_seed_and_event_alone_and_keeps_its_bounds() {
        let region = |seed, event| FirstPhase::Region { least: 3, most: 6, seed }.of(EventId(event), 8);
        let units = |event| (0..8).filter(|&unit| region(1, event).contains(unit)).count();
        assert!((1..=100).all(|event| (3..=6).contains(&units(event)) && region(1, event) == region(1, event)));
        let regions = |seed| (1..=100).map(move |event| region(seed, event)).collect::<Vec<_>>();
        assert!(regions(1) != regions(2) && regions(1)[1..].iter().any(|other| *other != regions(1)[0]));
        assert!((1..=100).map(units).any(|count| count == 3) && (1..=100).map(units).any(|count| count == 6));
    }

    #[test]
    fn the_first_units_are_the_same_for_every_event() {
        let region = FirstPhase::Units(3).of(EventId(7), 8);
        assert!((0..8).all(|unit| region.contains(unit) == (unit < 3)));
        assert!((0..60_000).all(|unit| Region::ALL.contains(unit)));
    }
}
