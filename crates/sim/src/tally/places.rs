//! The place of each node in the lists of sources and destinations.

use evb_core::{NodeId, NodeRange};
use evb_protocol::Config;

/// Places of nodes: builder units are destinations and readout units are sources. If both send to each other, the
/// readout units follow the builder units as destinations, and the builder units follow the readout units as sources.
pub(crate) struct Places {
    readouts: NodeRange,
    builders: NodeRange,
    mutual: bool,
}

impl Places {
    pub(crate) fn new(config: &Config, mutual: bool) -> Self {
        Self { readouts: config.readout_nodes(), builders: config.builder_nodes(), mutual }
    }

    pub(crate) fn destinations(&self) -> usize {
        self.count(self.builders, self.readouts)
    }

    pub(crate) fn sources(&self) -> usize {
        self.count(self.readouts, self.builders)
    }

    pub(crate) fn destination(&self, node: NodeId) -> Option<usize> {
        self.place(node, self.builders, self.readouts)
    }

    pub(crate) fn source(&self, node: NodeId) -> Option<usize> {
        self.place(node, self.readouts, self.builders)
    }

    fn count(&self, first: NodeRange, then: NodeRange) -> usize {
        usize::from(first.count) + if self.mutual { usize::from(then.count) } else { 0 }
    }

    fn place(&self, node: NodeId, first: NodeRange, then: NodeRange) -> Option<usize> {
        match node {
            _ if first.contains(node) => Some(usize::from(node.0 - first.first.0)),
            _ if self.mutual && then.contains(node) => Some(usize::from(first.count + node.0 - then.first.0)),
            _ => None,
        }
    }
}
