//! Bundles: the fragments of several sources and events that a readout unit sends as one.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The sources and the blocks of an event builder whose readout units send bundles. The counts of fragments of each
/// builder and readout unit are numbers of bundles then, and their bytes include the index of each bundle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bundles {
    /// Number of sources of all readout units.
    pub sources: u64,
    /// Events in a block; the most of them, if their number follows the load.
    pub block: u32,
    /// Numbers of the sources that were not read, in ascending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub masked: Vec<u16>,
    /// Number of sources with faults.
    pub faulty_sources: u64,
    /// Faults by the number of the source, then by kind. Sources without faults are left out. If very many sources have
    /// faults, only the first are here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub faults: BTreeMap<u16, BTreeMap<String, u64>>,
}

impl Bundles {
    /// Adds the faults of another slice, which has the same sources.
    pub fn add(&mut self, slice: &Self) {
        for (source, faults) in &slice.faults {
            let sum = self.faults.entry(*source).or_default();
            faults.iter().for_each(|(fault, count)| *sum.entry(fault.clone()).or_default() += count);
        }
        self.faulty_sources = self.faulty_sources.max(slice.faulty_sources).max(self.faults.len() as u64);
    }
}
