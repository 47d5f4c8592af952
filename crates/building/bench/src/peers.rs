//! The other nodes as a node knows them, and its account of data messages with each.

use evb_core::{NodeId, Time};

/// Another node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    /// True if the node is ready to begin.
    pub(crate) ready: bool,
    /// True if the node begins nothing more.
    done: bool,
    /// Data messages that the node has sent to this one, once it has ended.
    pub(crate) ended: Option<u64>,
    /// Data messages sent to the node.
    pub(crate) sent: u64,
    /// Data messages received from the node.
    received: u64,
    /// Number of the last data message received from the node.
    last: u64,
}

/// All nodes by their ids. The node itself is among them, ended from the beginning.
#[derive(Debug)]
pub(crate) struct Peers {
    all: Vec<Peer>,
    local: NodeId,
    /// The latest time at which a node was ready. All nodes come to know the same one.
    pub(crate) last_ready: Time,
    /// Data messages received from all nodes, and sent to all nodes.
    pub(crate) received: u64,
    pub(crate) sent: u64,
    /// Bytes of the data messages received and sent.
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    /// Messages with wrong bytes, a wrong length or an unknown sender, or out of order.
    pub(crate) corrupted: u64,
}

impl Peers {
    pub(crate) fn new(nodes: u16, local: NodeId) -> Self {
        let mut all = vec![Peer::default(); nodes.into()];
        all[local.index()] = Peer { ended: Some(0), ..Peer::default() };
        Self {
            all,
            local,
            last_ready: Time::ZERO,
            received: 0,
            sent: 0,
            received_bytes: 0,
            sent_bytes: 0,
            corrupted: 0,
        }
    }

    pub(crate) fn others(&self) -> impl Iterator<Item = NodeId> + use<> {
        let local = self.local;
        (0..self.all.len() as u16).map(NodeId).filter(move |&node| node != local)
    }

    pub(crate) fn get(&self, node: NodeId) -> &Peer {
        &self.all[node.index()]
    }

    /// Takes note that a node, perhaps this one, is ready since a time.
    pub(crate) fn note_ready(&mut self, from: NodeId, at: Time) {
        match self.all.get_mut(from.index()) {
            Some(peer) => (peer.ready, self.last_ready) = (true, self.last_ready.max(at)),
            None => self.corrupted += 1,
        }
    }

    /// Takes note that a node, perhaps this one, begins nothing more.
    pub(crate) fn note_done(&mut self, from: NodeId) {
        match self.all.get_mut(from.index()) {
            Some(peer) => peer.done = true,
            None => self.corrupted += 1,
        }
    }

    /// Takes note that a peer has ended, and has sent `sent` data messages to this node.
    pub(crate) fn note_end(&mut self, from: NodeId, sent: u64) {
        match self.all.get_mut(from.index()) {
            Some(peer) => peer.ended = Some(sent),
            None => self.corrupted += 1,
        }
    }

    /// Counts a data message, whose number must be above those before it.
    #[inline]
    pub(crate) fn note(&mut self, from: NodeId, number: u64, bytes: usize, whole: bool) {
        let Some(peer) = self.all.get_mut(from.index()) else { return self.corrupted += 1 };
        self.corrupted += u64::from(!whole || number <= peer.last);
        (peer.received, peer.last) = (peer.received + 1, number);
        self.received += 1;
        self.received_bytes += bytes as u64;
    }

    pub(crate) fn note_sent(&mut self, to: NodeId, bytes: usize) {
        self.all[to.index()].sent += 1;
        self.sent += 1;
        self.sent_bytes += bytes as u64;
    }

    pub(crate) fn all_ready(&self) -> bool {
        self.all.iter().all(|peer| peer.ready)
    }

    pub(crate) fn is_done(&self, node: NodeId) -> bool {
        self.get(node).done
    }

    pub(crate) fn all_done(&self) -> bool {
        self.all.iter().all(|peer| peer.done)
    }

    pub(crate) fn all_ended(&self) -> bool {
        self.all.iter().all(|peer| peer.ended.is_some())
    }

    /// Returns true if a node takes part in this measurement and has not ended.
    pub(crate) fn is_missed(&self, node: NodeId) -> bool {
        self.all.get(node.index()).is_some_and(|peer| peer.ended.is_none())
    }

    /// The other nodes that have not ended.
    pub(crate) fn missing(&self) -> impl Iterator<Item = NodeId> {
        self.others().filter(|&node| self.get(node).ended.is_none())
    }

    /// Data messages that others have sent and that did not arrive.
    pub(crate) fn lost(&self) -> u64 {
        self.all.iter().map(|peer| peer.ended.unwrap_or(0).saturating_sub(peer.received)).sum()
    }
}
