//! The nodes as run control sees them.

use alloc::{vec, vec::Vec};
use evb_core::NodeId;

/// The way in which a node was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its process or its connection has ended.
    Gone,
    /// A peer cannot reach it, although run control may still do.
    Unreachable {
        /// The peer.
        by: NodeId,
    },
    /// It could not go on.
    Failed,
    /// It did not finish while nothing moved.
    Silent,
}

/// One node.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// It takes orders.
    joined: bool,
    /// Its peers reach it.
    connected: bool,
    /// It has not yet done what was asked of all nodes last.
    pending: bool,
    /// It is lost to this run.
    lost: bool,
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

    fn those(&self, is_such: impl Fn(&Node) -> bool) -> Vec<NodeId> {
        let nodes = (0_u16..).map(NodeId).zip(&self.0);
        nodes.filter(|(_, node)| is_such(node)).map(|(id, _)| id).collect()
    }

    /// Nodes that take orders.
    pub(crate) fn joined(&self) -> Vec<NodeId> {
        self.those(|node| node.joined)
    }

    /// Nodes that have not joined.
    pub(crate) fn absent(&self) -> Vec<NodeId> {
        self.those(|node| !node.joined)
    }

    /// Nodes that still have to do what was asked of all.
    pub(crate) fn pending(&self) -> Vec<NodeId> {
        self.those(|node| node.pending)
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

    /// The node takes orders, and has no connection to its peers.
    pub(crate) fn join(&mut self, node: NodeId) {
        self.0[node.index()] = Node { joined: true, ..Node::default() };
    }

    /// The node takes no orders any more.
    pub(crate) fn leave(&mut self, node: NodeId) {
        let node = &mut self.0[node.index()];
        *node = Node { lost: node.lost, ..Node::default() };
    }

    /// All nodes get something to do.
    pub(crate) fn ask_all(&mut self) {
        self.0.iter_mut().for_each(|node| node.pending = node.joined);
    }

    /// The node has done what was asked.
    pub(crate) fn answer(&mut self, node: NodeId) {
        self.0[node.index()].pending = false;
    }

    /// Marks a node as lost to this run; false when it was.
    pub(crate) fn lose(&mut self, node: NodeId) -> bool {
        let node = &mut self.0[node.index()];
        node.connected = false;
        !core::mem::replace(&mut node.lost, true)
    }

    /// A lost node has its place again.
    pub(crate) fn restore(&mut self, node: NodeId) {
        self.0[node.index()] = Node { joined: true, connected: true, pending: true, lost: false };
    }

    /// All nodes reach each other.
    pub(crate) fn connect_all(&mut self) {
        self.0.iter_mut().for_each(|node| node.connected = true);
    }

    /// No node has a connection.
    pub(crate) fn disconnect_all(&mut self) {
        self.0.iter_mut().for_each(|node| node.connected = false);
    }

    /// A run begins: nobody is lost to it.
    pub(crate) fn begin_run(&mut self) {
        self.0.iter_mut().for_each(|node| node.lost = false);
        self.ask_all();
    }
}
