//! Background traffic: what shares the simulated network with the workload.

use super::{Plan, TrafficPlan};
use evb_core::{NodeId, Span};
use evb_sources::SourceSpec;
use serde::{Deserialize, Serialize};

/// Traffic that shares the network, the links and the interfaces of the hosts with the workload, and that no unit of the
/// workload knows of. Its nodes follow those of the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackgroundPlan {
    /// Name in the record.
    pub name: String,
    /// The pattern, the load and the messages of each sender.
    pub traffic: TrafficPlan,
    /// The host of the first sender; the others follow, one on each host.
    pub sender_host: u16,
    /// The host of the first receiver; the others follow, one on each host.
    pub receiver_host: u16,
    /// The sizes of the messages.
    pub message: SourceSpec,
    /// Time after the start at which it begins.
    pub from: Span,
    /// Time after the start at which it ends; `None` if it ends with the workload.
    pub until: Option<Span>,
    /// The priority of its messages.
    pub priority: BackgroundPriority,
}

/// The priority of background traffic, beside that of the data of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackgroundPriority {
    /// The same.
    Same,
    /// A lower one.
    Lower,
}

impl BackgroundPlan {
    /// The host of one of its nodes; `None` for any other node.
    pub fn host(&self, node: NodeId) -> Option<u16> {
        let (senders, receivers) = (self.traffic.config.senders, self.traffic.config.receivers);
        if senders.contains(node) {
            Some(self.sender_host + (node.0 - senders.first.0))
        } else {
            receivers.contains(node).then(|| self.receiver_host + (node.0 - receivers.first.0))
        }
    }

    /// The index of the receiver on the host of a sender.
    pub fn receiver_beside(&self, sender: NodeId) -> Option<u16> {
        let index = self.host(sender)?.checked_sub(self.receiver_host)?;
        Some(index).filter(|&index| index < self.traffic.config.receivers.count)
    }
}

impl Plan {
    /// Number of nodes, those of background traffic included.
    pub fn all_nodes(&self) -> u16 {
        let of = |background: &BackgroundPlan| {
            background.traffic.config.senders.count + background.traffic.config.receivers.count
        };
        self.building.nodes() + self.background.iter().map(of).sum::<u16>()
    }

    /// The index of the background traffic that a node is of; `None` for a node of the workload.
    #[inline]
    pub fn background_of(&self, node: NodeId) -> Option<usize> {
        if node.0 < self.building.nodes() {
            return None;
        }
        self.background.iter().position(|background| background.host(node).is_some())
    }

    /// The name of a node. One of background traffic has the name of that, and its index among its senders or receivers.
    pub fn node_name(&self, node: NodeId) -> String {
        let Some(background) = self.background_of(node).map(|index| &self.background[index]) else {
            return self.building.node_name(node);
        };
        let (senders, receivers) = (background.traffic.config.senders, background.traffic.config.receivers);
        match senders.contains(node) {
            true => format!("sender {} of {}", node.0 - senders.first.0, background.name),
            false => format!("receiver {} of {}", node.0 - receivers.first.0, background.name),
        }
    }

    /// The priority of fragments and data of the workload in the network: above background traffic of lower priority.
    pub fn data_priority(&self) -> u8 {
        u8::from(self.background.iter().any(|background| background.priority == BackgroundPriority::Lower))
    }
}
