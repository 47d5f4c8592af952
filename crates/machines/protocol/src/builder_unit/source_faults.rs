//! The faults of a builder by the source that has them.

use crate::{Fault, FaultCounts};
use alloc::collections::BTreeMap;
use evb_core::SourceId;

/// Most sources that are named. A simulation has thousands of builders with thousands of sources each.
const MOST_NAMED: usize = 64;

/// The faults of the first sources that have some.
#[derive(Clone, Debug, Default)]
pub(super) struct SourceFaults(BTreeMap<SourceId, FaultCounts>);

impl SourceFaults {
    pub(super) fn count(&mut self, source: SourceId, fault: Fault) {
        if self.0.len() < MOST_NAMED || self.0.contains_key(&source) {
            self.0.entry(source).or_default().count(fault);
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SourceId, &FaultCounts)> {
        self.0.iter().map(|(source, counts)| (*source, counts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sources_with_faults_are_named() {
        let mut faults = SourceFaults::default();
        for source in (0..100).chain(0..100) {
            faults.count(SourceId(source), Fault::Missing);
        }
        assert_eq!(faults.iter().count(), MOST_NAMED);
        assert!(faults.iter().all(|(_, counts)| counts.get(Fault::Missing) == 2));
    }
}
