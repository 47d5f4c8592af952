//! Waiting for one message from each of some nodes.

use alloc::{vec, vec::Vec};
use evb_core::{NodeId, NodeRange};

/// Counts messages until there is one from each node. A node may be ahead of the others: what it sends too early counts for
/// the next time.
pub(crate) struct OneFromEach {
    nodes: NodeRange,
    /// Messages of each node that have not been used.
    there: Vec<u32>,
    /// Nodes of which none is there.
    missing: usize,
}

impl OneFromEach {
    pub(crate) fn new(nodes: NodeRange) -> Self {
        Self { nodes, there: vec![0; nodes.count.into()], missing: nodes.count.into() }
    }

    /// A message has come; those of other nodes do not count.
    pub(crate) fn add(&mut self, from: NodeId) {
        if !self.nodes.contains(from) {
            return;
        }
        let there = &mut self.there[usize::from(from.0 - self.nodes.first.0)];
        self.missing -= usize::from(*there == 0);
        *there = there.saturating_add(1);
    }

    /// Uses one of each, if they are all there.
    pub(crate) fn take(&mut self) -> bool {
        if self.missing > 0 {
            return false;
        }
        self.there.iter_mut().for_each(|there| *there -= 1);
        self.missing = self.there.iter().filter(|&&there| there == 0).count();
        true
    }
}
