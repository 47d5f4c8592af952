//! A queue of messages for each peer of a network interface, served in random order.

use evb_core::{NodeId, Stream};
use hashbrown::HashMap;
use rand::RngExt as _;
use std::collections::VecDeque;

/// The messages that wait in one interface, by peer.
pub(crate) struct Peers<M> {
    queues: HashMap<NodeId, VecDeque<M>>,
    /// The peers for which messages wait.
    waiting: Vec<NodeId>,
    random: Stream,
}

impl<M: Copy> Peers<M> {
    pub(crate) fn new(random: Stream) -> Self {
        Self { queues: HashMap::new(), waiting: Vec::new(), random }
    }

    /// Adds a message for a peer.
    pub(crate) fn post(&mut self, peer: NodeId, message: M) {
        let queue = self.queues.entry(peer).or_default();
        if queue.is_empty() {
            self.waiting.push(peer);
        }
        queue.push_back(message);
    }

    /// Passes the first message of a peer drawn at random to `cut`; `cut` returns true if nothing is left of the message.
    pub(crate) fn serve<T>(&mut self, cut: impl FnOnce(M) -> (T, bool)) -> Option<T> {
        if self.waiting.is_empty() {
            return None;
        }
        let index = self.random.random_range(0..self.waiting.len());
        let queue = self.queues.get_mut(&self.waiting[index])?;
        let (part, is_last) = cut(*queue.front()?);
        if is_last {
            queue.pop_front();
        }
        if queue.is_empty() {
            self.waiting.swap_remove(index);
        }
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_core::stream;

    #[test]
    fn each_peer_is_served_in_order_and_none_is_left_out() {
        let mut peers = Peers::new(stream(1, NodeId(0), 0));
        for message in 0..30 {
            peers.post(NodeId((message % 3) as u16), message);
        }
        let served: Vec<u32> = std::iter::from_fn(|| peers.serve(|message| (message, true))).collect();
        assert_eq!(served.len(), 30);
        for peer in 0..3 {
            let of_peer: Vec<_> = served.iter().filter(|message| **message % 3 == peer).collect();
            assert!(of_peer.is_sorted(), "{served:?}");
        }
        assert!(!served.is_sorted(), "some peer goes first by chance");
        assert_eq!(peers.serve(|message| (message, true)), None);
    }
}
