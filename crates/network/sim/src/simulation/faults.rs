//! Faults of the network, as the nodes see them.

use super::Simulation;
use crate::statistics::NetworkCounts;
use evb_core::NodeId;

impl Simulation<'_> {
    /// A fault of the network takes effect.
    pub(super) fn fault(&mut self, index: usize) {
        let fault = &self.plan.network.faults[index];
        let (before, counts) = (self.cut_off(), self.network_counts());
        self.net.fault(self.targets[index], fault.action);
        let new = self.cut_off().into_iter().filter(|node| !before.contains(node));
        let names = new.map(|node| self.plan.building.node_name(node)).collect();
        let (now, is_loaded) = (self.net.queue.now(), self.messages.len() > 0);
        if let Some(log) = &mut self.statistics.faults {
            log.note(now, fault, is_loaded, counts, names);
        }
    }

    /// A fault of the network ends.
    pub(super) fn mend(&mut self, index: usize) {
        let fault = &self.plan.network.faults[index];
        self.net.mend(self.targets[index], fault.action);
        if let Some(log) = &mut self.statistics.faults {
            log.note_end(self.net.queue.now(), fault);
        }
    }

    /// The nodes that can send nothing, or receive nothing.
    fn cut_off(&self) -> Vec<NodeId> {
        let nodes = (0..self.plan.building.nodes()).map(NodeId);
        nodes.filter(|&node| self.plan.host(node).is_some_and(|host| self.net.is_cut_off(host))).collect()
    }

    /// Counts of the network until now.
    pub(crate) fn network_counts(&self) -> NetworkCounts {
        NetworkCounts { gone: self.statistics.packets_gone(), rerouted: self.net.rerouted_packets() }
    }
}
