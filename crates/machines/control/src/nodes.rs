//! The nodes as run control sees them.

use alloc::{vec, vec::Vec};
use evb_core::NodeId;

/// The kind of a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its process or its connection ended.
    Gone,
    /// It and its peers have lost each other, although run control may still reach it.
    Unreachable {
        /// Number of nodes that it has lost, or that have lost it.
        disconnected: u16,
        /// Number of nodes of the run with which it exchanges messages.
        peers: u16,
        /// The only node from which it is disconnected, if that one may be cut off just as well.
        alternative: Option<NodeId>,
    },
    /// It could not continue.
    Failed,
    /// It did not finish while nothing moved.
    Silent,
}

/// One node.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// True when it takes orders.
    joined: bool,
    /// True when its peers reach it.
    connected: bool,
    /// Resets that it was ordered and has not confirmed.
    resets: u32,
    /// True when it has not yet done what was asked of all nodes last.
    pending: bool,
    /// True when it is lost to this run.
    lost: bool,
    /// True when it is lost to this run and there for the next one.
    waiting: bool,
}

/// All nodes.
#[derive(Clone, Debug)]
pub(crate) struct Nodes(Vec<Node>);

impl Nodes {
    pub(crate) fn new(count: u16) -> Self {
        Self(vec![Node::default(); count.into()])
    }

    pub(crate) fn knows(&self, node: NodeId) -> bool {
        node.index() < self.0.len()
    }

    fn select(&self, predicate: impl Fn(&Node) -> bool) -> Vec<NodeId> {
        let nodes = (0_u16..).map(NodeId).zip(&self.0);
        nodes.filter(|(_, node)| predicate(node)).map(|(id, _)| id).collect()
    }

    /// Nodes that take orders.
    pub(crate) fn joined(&self) -> Vec<NodeId> {
        self.select(|node| node.joined)
    }

    /// Nodes that are lost to this run.
    pub(crate) fn lost(&self) -> Vec<NodeId> {
        self.select(|node| node.lost)
    }

    /// Nodes that have not joined.
    pub(crate) fn absent(&self) -> Vec<NodeId> {
        self.select(|node| !node.joined)
    }

    /// Nodes that still have to do what was asked of all.
    pub(crate) fn pending(&self) -> Vec<NodeId> {
        self.select(|node| node.pending)
    }

    pub(crate) fn none_pending(&self) -> bool {
        self.0.iter().all(|node| !node.pending)
    }

    /// True when all nodes that still have something to do are lost.
    pub(crate) fn only_lost_pending(&self) -> bool {
        self.0.iter().all(|node| !node.pending || node.lost)
    }

    pub(crate) fn any_lost(&self) -> bool {
        self.0.iter().any(|node| node.lost)
    }

    pub(crate) fn all_connected(&self) -> bool {
        self.0.iter().all(|node| node.joined && node.connected)
    }

    pub(crate) fn is_joined(&self, node: NodeId) -> bool {
        self.0[node.index()].joined
    }

    pub(crate) fn is_pending(&self, node: NodeId) -> bool {
        self.0[node.index()].pending
    }

    pub(crate) fn is_lost(&self, node: NodeId) -> bool {
        self.0[node.index()].lost
    }

    /// Marks a node that takes orders, and has no connection to its peers.
    pub(crate) fn join(&mut self, node: NodeId) {
        self.0[node.index()] = Node { joined: true, ..Node::default() };
    }

    /// Notes that all nodes are ordered to reset.
    pub(crate) fn reset_all(&mut self) {
        self.0.iter_mut().filter(|node| node.joined).for_each(|node| node.resets += 1);
        self.disconnect_all();
    }

    /// Notes that a node has confirmed a reset.
    pub(crate) fn confirm_reset(&mut self, node: NodeId) {
        let resets = &mut self.0[node.index()].resets;
        *resets = resets.saturating_sub(1);
    }

    pub(crate) fn is_resetting(&self, node: NodeId) -> bool {
        self.0[node.index()].resets > 0
    }

    /// Marks a lost node that is there for the next run.
    pub(crate) fn wait(&mut self, node: NodeId) {
        self.0[node.index()].waiting = self.0[node.index()].lost;
    }

    /// True when nodes are lost, and all of them are there for the next run.
    pub(crate) fn all_lost_wait(&self) -> bool {
        self.any_lost() && self.0.iter().all(|node| !node.lost || node.waiting)
    }

    /// Marks the nodes of this run as having something to do.
    pub(crate) fn ask_those_of_run(&mut self) {
        self.0.iter_mut().for_each(|node| node.pending = node.joined && !node.lost);
    }

    /// Marks a node that takes no orders any more.
    pub(crate) fn leave(&mut self, node: NodeId) {
        let node = &mut self.0[node.index()];
        *node = Node { lost: node.lost, ..Node::default() };
    }

    /// Marks all nodes as having something to do.
    pub(crate) fn ask_all(&mut self) {
        self.0.iter_mut().for_each(|node| node.pending = node.joined);
    }

    /// Marks a node that has done what was asked.
    pub(crate) fn answer(&mut self, node: NodeId) {
        self.0[node.index()].pending = false;
    }

    /// Marks a node as lost to this run; false when it was.
    pub(crate) fn lose(&mut self, node: NodeId) -> bool {
        let node = &mut self.0[node.index()];
        node.connected = false;
        !core::mem::replace(&mut node.lost, true)
    }

    /// Marks a lost node as part of the run again.
    pub(crate) fn restore(&mut self, node: NodeId) {
        self.0[node.index()] = Node { joined: true, connected: true, pending: true, ..Node::default() };
    }

    /// Marks all nodes as connected.
    pub(crate) fn connect_all(&mut self) {
        self.0.iter_mut().for_each(|node| node.connected = true);
    }

    /// Marks all nodes as not connected.
    pub(crate) fn disconnect_all(&mut self) {
        self.0.iter_mut().for_each(|node| node.connected = false);
    }

    /// Marks a node as not connected: the next run connects all nodes anew.
    pub(crate) fn disconnect(&mut self, node: NodeId) {
        self.0[node.index()].connected = false;
    }

    /// Begins a run: no node is lost to it.
    pub(crate) fn begin_run(&mut self) {
        self.0.iter_mut().for_each(|node| (node.lost, node.waiting) = (false, false));
        self.ask_all();
    }
}
