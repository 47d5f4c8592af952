//! The other nodes as a node knows them: packets to and from them, and those that have left.

use evb_core::NodeId;

/// Another node.
#[derive(Clone, Debug, Default)]
struct Peer {
    /// Packets stored for the node, and packets taken from it.
    sent: u64,
    taken: u64,
    /// The number of packets that it had stored for this node when it left.
    gone: Option<u64>,
    /// True if its loss was reported.
    reported: bool,
}

/// All nodes by number; the node itself is among them and never has a packet.
#[derive(Clone, Debug)]
pub(crate) struct Peers(Vec<Peer>);

impl Peers {
    pub(crate) fn new(nodes: usize) -> Self {
        Self(vec![Peer::default(); nodes])
    }

    /// Returns true if the node exists and has not left.
    pub(crate) fn is_here(&self, node: usize) -> bool {
        self.0.get(node).is_some_and(|peer| peer.gone.is_none())
    }

    pub(crate) fn note_sent(&mut self, to: usize) {
        self.0[to].sent += 1;
    }

    pub(crate) fn note_taken(&mut self, from: usize) {
        self.0[from].taken += 1;
    }

    /// Packets stored for a node.
    pub(crate) fn sent(&self, to: usize) -> u64 {
        self.0[to].sent
    }

    /// Takes note that a node has left, and had stored `sent` packets for this one.
    pub(crate) fn note_gone(&mut self, node: usize, sent: u64) {
        self.0[node].gone = Some(sent);
    }

    /// Takes note that nothing comes any more from any node but this one.
    pub(crate) fn give_up(&mut self, local: usize) {
        for (_, peer) in self.0.iter_mut().enumerate().filter(|(node, _)| *node != local) {
            peer.gone = Some(peer.taken);
        }
    }

    /// Returns true if [`lost`](Self::lost) has a node.
    pub(crate) fn has_news(&self) -> bool {
        self.0.iter().any(Peer::is_news)
    }

    /// A node that has left and whose packets have all been taken; each node once.
    pub(crate) fn lost(&mut self) -> Option<NodeId> {
        let node = self.0.iter().position(Peer::is_news)?;
        self.0[node].reported = true;
        Some(NodeId(node as u16))
    }
}

impl Peer {
    fn is_news(&self) -> bool {
        !self.reported && self.gone.is_some_and(|sent| sent == self.taken)
    }
}
