//! Waiting for one message from each of some nodes.

use alloc::{vec, vec::Vec};
use evb_core::{NodeId, NodeRange};

/// Counts messages until there is one from each node. A node may be ahead of the others: an early message counts for
/// the next cycle.
pub(crate) struct OneFromEach {
    nodes: NodeRange,
    /// Unused messages of each node.
    there: Vec<u32>,
    /// Number of nodes without an unused message.
    missing: usize,
}

impl OneFromEach {
    pub(crate) fn new(nodes: NodeRange) -> Self {
        Self { nodes, there: vec![0; nodes.count.into()], missing: nodes.count.into() }
    }

    /// Counts a message; messages of other nodes are ignored.
    pub(crate) fn add(&mut self, from: NodeId) {
        if !self.nodes.contains(from) {
            return;
        }
        let there = &mut self.there[usize::from(from.0 - self.nodes.first.0)];
        self.missing -= usize::from(*there == 0);
        *there = there.saturating_add(1);
    }

    /// Uses one message of each node, if there is one from each.
    pub(crate) fn take(&mut self) -> bool {
        if self.missing > 0 {
            return false;
        }
        self.there.iter_mut().for_each(|there| *there -= 1);
        self.missing = self.there.iter().filter(|&&there| there == 0).count();
        true
    }
}
