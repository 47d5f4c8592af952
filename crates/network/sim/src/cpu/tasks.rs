//! What has turns on the workers: nodes, and what works beside them.

use evb_core::NodeId;
use evb_experiment::{Keep, Plan};

/// A node, or what works beside a builder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Node(NodeId),
    /// The thread that stores the events of a builder.
    Writer(NodeId),
    /// A process that selects events for a builder.
    FilterUnit(NodeId, u16),
}

impl Task {
    /// The node that carries it, or that it works for.
    pub(crate) const fn node(self) -> NodeId {
        let (Self::Node(node) | Self::Writer(node) | Self::FilterUnit(node, _)) = self;
        node
    }

    /// A name for people: that of the node, with what works beside it.
    pub(crate) fn name(self, plan: &Plan) -> String {
        let node = plan.node_name(self.node());
        match self {
            Self::Node(_) => node,
            Self::Writer(_) => format!("{node}.writer"),
            Self::FilterUnit(_, unit) => format!("{node}.filter{unit}"),
        }
    }
}

/// The tasks of a plan, each with a place in lists: nodes, then writers, then filter units.
pub(super) struct Tasks {
    nodes: usize,
    first_builder: usize,
    builders: usize,
    writers: usize,
    /// Filter units of each builder.
    filter_units: usize,
}

impl Tasks {
    pub(super) fn of(plan: &Plan) -> Self {
        let builders = plan.building.builder_nodes();
        Self {
            nodes: plan.building.nodes().into(),
            first_builder: builders.first.index(),
            builders: builders.count.into(),
            writers: if has_writers(plan) { builders.count.into() } else { 0 },
            filter_units: local_filter_units(plan).into(),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.nodes + self.writers + self.builders * self.filter_units
    }

    pub(super) fn place(&self, task: Task) -> usize {
        let builder = |node: NodeId| node.index() - self.first_builder;
        match task {
            Task::Node(node) => node.index(),
            Task::Writer(node) => self.nodes + builder(node),
            Task::FilterUnit(node, unit) => {
                self.nodes + self.writers + builder(node) * self.filter_units + usize::from(unit)
            }
        }
    }

    /// What works beside a node.
    pub(super) fn beside(&self, node: NodeId) -> impl Iterator<Item = Task> {
        let is_builder = (self.first_builder..self.first_builder + self.builders).contains(&node.index());
        let writer = (is_builder && self.writers > 0).then_some(Task::Writer(node));
        let units = if is_builder { self.filter_units as u16 } else { 0 };
        writer.into_iter().chain((0..units).map(move |unit| Task::FilterUnit(node, unit)))
    }
}

/// True if each builder has a thread that stores its events, and takes time for it.
pub(crate) fn has_writers(plan: &Plan) -> bool {
    plan.storage.keep != Keep::None && plan.network.cpu.as_ref().is_some_and(|cpu| cpu.storing_takes_time())
}

/// Filter units of each builder that share its computer. Those of other machines have cores of their own.
pub(crate) fn local_filter_units(plan: &Plan) -> u16 {
    let has_cores = plan.network.cpu.is_some();
    plan.filter.units.as_ref().filter(|_| has_cores).map_or(0, |units| units.units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_task_has_its_own_place() {
        let tasks = Tasks { nodes: 5, first_builder: 3, builders: 2, writers: 2, filter_units: 3 };
        let of = |node: u16| [Task::Node(NodeId(node))].into_iter().chain(tasks.beside(NodeId(node)));
        let mut places: Vec<_> = (0..5).flat_map(of).map(|task| tasks.place(task)).collect();
        places.sort_unstable();
        assert_eq!(places, (0..tasks.len()).collect::<Vec<_>>());
    }
}
