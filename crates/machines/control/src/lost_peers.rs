//! Reports of lost peers, and the rule that finds the nodes that are cut off.
//!
//! A node whose network is cut reports that it has lost all its peers, and each of them reports that it has lost that
//! node. Run control hears both sides, if its own network is another one, so one report alone proves nothing. Reports
//! are collected for [`Config::report_window`](crate::Config::report_window) after the first one. They make a graph:
//! two nodes are *disconnected* if one of them has lost the other. Nodes of the same
//! [group](crate::Config::groups) exchange nothing, and reports about each other do not count. When the window ends,
//! nodes are given up one at a time until no nodes are disconnected any more:
//!
//! 1. The event manager, if it hangs: more than half of its peers have lost it, and it has lost none. Or if it would be
//!    alone: no node of some group would be left to it, and it is disconnected from more nodes than each of those is.
//! 2. Each node that is disconnected from the event manager, since no run continues without one. So of a network that
//!    is split, the side of the event manager stays.
//! 3. The node that is disconnected from most others. If several are, the one with most reports that no other node
//!    confirms. If several are again, the one that the run needs least: one that is not required, is not the last of its
//!    group, and is in a later group, and so a builder unit rather than a readout unit.
//!
//! Reports by and about a node that is given up no longer count. A node that is disconnected from all its peers, while
//! these are disconnected from no other node, is given up at once: more reports would change nothing.
//!
//! An event manager that is cut off has no builder units left, and perhaps no open event. So its report that the run is
//! over waits for the end of the window, too.
//!
//! Run control's own connection comes first: a node whose connection to run control ends is gone at once, and reports
//! by and about it are dropped.

use alloc::collections::{BTreeMap, BTreeSet};
use core::cmp::Reverse;
use evb_core::{NodeId, Time};

/// The reports by and about one node.
#[derive(Clone, Debug, Default)]
struct Reports {
    /// Nodes that this one has lost.
    lost: BTreeSet<NodeId>,
    /// Nodes that this one has lost, and nodes that have lost it.
    disconnected: BTreeSet<NodeId>,
}

/// The nodes of a run, as far as the rule needs them.
pub(crate) trait Members {
    /// The event manager.
    fn event_manager(&self) -> NodeId;
    /// Number of nodes of the run with which this node exchanges messages.
    fn peers(&self, node: NodeId) -> usize;
    /// True if some group has no nodes but these.
    fn covers_group(&self, nodes: &BTreeSet<NodeId>) -> bool;
    /// How much the run needs a node.
    fn need(&self, node: NodeId) -> u32;
}

/// A node that is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CutOffNode {
    pub(crate) node: NodeId,
    /// Number of nodes from which it is disconnected.
    pub(crate) disconnected: u16,
    /// The only node from which it is disconnected, if that one may be cut off just as well.
    pub(crate) alternative: Option<NodeId>,
}

/// Reports of lost peers by which no node was given up yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct LostPeers {
    reports: BTreeMap<NodeId, Reports>,
    /// End of the window.
    until: Option<Time>,
}

impl LostPeers {
    /// Returns the end of the window, or `None` without reports.
    pub(crate) const fn until(&self) -> Option<Time> {
        self.until
    }

    /// Takes the report that `by` has lost `peer`. The first report sets the end of the window.
    pub(crate) fn add(&mut self, by: NodeId, peer: NodeId, until: Time) {
        self.until.get_or_insert(until);
        let reports = self.reports.entry(by).or_default();
        reports.lost.insert(peer);
        reports.disconnected.insert(peer);
        self.reports.entry(peer).or_default().disconnected.insert(by);
    }

    /// Drops all reports.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Drops the reports by and about a node.
    pub(crate) fn forget(&mut self, node: NodeId) {
        for peer in self.reports.remove(&node).unwrap_or_default().disconnected {
            if let Some(reports) = self.reports.get_mut(&peer) {
                reports.lost.remove(&node);
                reports.disconnected.remove(&node);
            }
        }
        self.reports.retain(|_, reports| !reports.disconnected.is_empty());
        if self.reports.is_empty() {
            self.until = None;
        }
    }

    /// The one of these nodes that is disconnected from all its peers, while they are disconnected from no other node.
    pub(crate) fn isolated(&self, nodes: [NodeId; 2], members: &impl Members) -> Option<CutOffNode> {
        let is_isolated = |node: &NodeId| {
            let Some(reports) = self.reports.get(node) else { return false };
            reports.disconnected.len() > 1
                && reports.disconnected.len() >= members.peers(*node)
                && reports.disconnected.iter().all(|peer| self.disconnected(*peer) == 1)
        };
        nodes.into_iter().find(is_isolated).map(|node| self.describe(node))
    }

    /// The next node to give up, by all reports; `None` if no nodes are disconnected.
    pub(crate) fn next(&self, members: &impl Members) -> Option<CutOffNode> {
        let manager = members.event_manager();
        let node = match self.reports.get(&manager) {
            Some(reports) if self.is_manager_cut_off(manager, reports, members) => manager,
            Some(reports) => *reports.disconnected.iter().max_by_key(|peer| (self.disconnected(**peer), **peer))?,
            None => self.most_disconnected(members)?,
        };
        Some(self.describe(node))
    }

    fn is_manager_cut_off(&self, manager: NodeId, reports: &Reports, members: &impl Members) -> bool {
        let count = reports.disconnected.len();
        let hangs = reports.lost.is_empty() && 2 * count > members.peers(manager);
        let is_centre = reports.disconnected.iter().all(|peer| self.disconnected(*peer) < count);
        count > 1 && (hangs || is_centre && members.covers_group(&reports.disconnected))
    }

    /// The node against which there is most evidence; of several the one that the run needs least.
    fn most_disconnected(&self, members: &impl Members) -> Option<NodeId> {
        let most = self.reports.values().map(|reports| reports.disconnected.len()).max()?;
        let nodes = self.reports.keys().copied().filter(|node| self.disconnected(*node) == most);
        nodes.max_by_key(|node| (self.unconfirmed(*node), Reverse(members.need(*node)), *node))
    }

    /// Number of reports by a node that no other node confirms.
    fn unconfirmed(&self, node: NodeId) -> usize {
        let is_confirmed = |peer: &NodeId| {
            let reports = self.reports.get(peer);
            reports.is_some_and(|reports| {
                reports.disconnected.iter().any(|other| *other != node && self.has_lost(*other, *peer))
            })
        };
        let lost = self.reports.get(&node).into_iter().flat_map(|reports| &reports.lost);
        lost.filter(|peer| !is_confirmed(peer)).count()
    }

    fn has_lost(&self, by: NodeId, peer: NodeId) -> bool {
        self.reports.get(&by).is_some_and(|reports| reports.lost.contains(&peer))
    }

    /// Number of nodes from which a node is disconnected.
    fn disconnected(&self, node: NodeId) -> usize {
        self.reports.get(&node).map_or(0, |reports| reports.disconnected.len())
    }

    fn describe(&self, node: NodeId) -> CutOffNode {
        let disconnected = self.disconnected(node);
        let only = self.reports.get(&node).and_then(|reports| reports.disconnected.first().copied());
        let is_alternative = |other: &NodeId| {
            disconnected == 1 && self.disconnected(*other) == 1 && self.unconfirmed(*other) == self.unconfirmed(node)
        };
        let alternative = only.filter(is_alternative);
        CutOffNode { node, disconnected: disconnected as u16, alternative }
    }
}
