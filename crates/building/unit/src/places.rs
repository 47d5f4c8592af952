//! The place of each node in the lists of sources and destinations.

use evb_core::{NodeId, NodeRange};
use evb_experiment::{Plan, Workload};

/// Places of nodes: builder units are destinations and readout units are sources. If both send to each other, the
/// readout units follow the builder units as destinations, and the builder units follow the readout units as sources.
pub struct Places {
    readouts: NodeRange,
    builders: NodeRange,
    mutual: bool,
}

impl Places {
    /// The places of the nodes of a plan.
    pub fn new(plan: &Plan) -> Self {
        let config = &plan.building;
        let mutual = matches!(&plan.workload, Workload::Traffic(traffic) if traffic.config.pattern.is_mutual());
        Self { readouts: config.readout_nodes(), builders: config.builder_nodes(), mutual }
    }

    /// Number of destinations.
    pub fn destinations(&self) -> usize {
        self.count(self.builders, self.readouts)
    }

    /// Number of sources.
    pub fn sources(&self) -> usize {
        self.count(self.readouts, self.builders)
    }

    /// The place of a node among the destinations.
    pub fn destination(&self, node: NodeId) -> Option<usize> {
        self.place(node, self.builders, self.readouts)
    }

    /// The place of a node among the sources.
    pub fn source(&self, node: NodeId) -> Option<usize> {
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
