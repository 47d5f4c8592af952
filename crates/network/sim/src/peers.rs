//! A queue of messages for each peer of a network interface. The peers are served in turn.

use evb_core::NodeId;
use hashbrown::HashMap;
use std::collections::VecDeque;

/// The messages that wait in one interface, by peer.
pub(crate) struct Peers<M> {
    queues: HashMap<NodeId, VecDeque<M>>,
    /// The peers for which messages wait, in the order of their turns.
    waiting: VecDeque<NodeId>,
    /// The peers whose first message is being sent.
    active: VecDeque<NodeId>,
    most_active: usize,
}

impl<M: Copy> Peers<M> {
    /// Queues of an interface that sends the messages of this many peers at once.
    pub(crate) fn new(most_active: usize) -> Self {
        Self { queues: HashMap::new(), waiting: VecDeque::new(), active: VecDeque::new(), most_active }
    }

    /// Adds a message for a peer.
    pub(crate) fn post(&mut self, peer: NodeId, message: M) {
        let queue = self.queues.entry(peer).or_default();
        queue.push_back(message);
        if queue.len() == 1 {
            self.waiting.push_back(peer);
        }
    }

    /// Passes the message of the next packet to `cut`, which returns true if nothing is left of the message.
    pub(crate) fn serve<T>(&mut self, cut: impl FnOnce(M) -> (T, bool)) -> Option<T> {
        while self.active.len() < self.most_active {
            let Some(peer) = self.waiting.pop_front() else { break };
            self.active.push_back(peer);
        }
        let peer = self.active.pop_front()?;
        let queue = self.queues.get_mut(&peer)?;
        let (part, is_last) = cut(*queue.front()?);
        if !is_last {
            self.active.push_back(peer);
            return Some(part);
        }
        queue.pop_front();
        if !queue.is_empty() {
            self.waiting.push_back(peer);
        }
        Some(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves an interface with three messages for each of three peers. A message has two packets; its number is
    /// `10 * peer + index`.
    fn served(most_active: usize) -> Vec<u32> {
        let mut peers = Peers::new(most_active);
        for index in 0..3 {
            (0..3).for_each(|peer| peers.post(NodeId(peer), u32::from(10 * peer + index)));
        }
        let mut packets = [0; 30];
        let mut cut = |message: u32| {
            packets[message as usize] += 1;
            (message, packets[message as usize] == 2)
        };
        std::iter::from_fn(|| peers.serve(&mut cut)).collect()
    }

    #[test]
    fn a_peer_has_its_turn_after_a_message_of_each_other_one() {
        assert_eq!(served(1), [0, 0, 10, 10, 20, 20, 1, 1, 11, 11, 21, 21, 2, 2, 12, 12, 22, 22]);
    }

    #[test]
    fn packets_of_peers_that_are_served_at_once_take_turns() {
        assert_eq!(served(2)[..8], [0, 10, 0, 10, 20, 1, 20, 1]);
        assert_eq!(served(3)[..6], [0, 10, 20, 0, 10, 20]);
    }

    #[test]
    fn a_peer_that_is_being_served_does_not_lose_its_turn_to_itself() {
        let mut peers = Peers::new(2);
        peers.post(NodeId(0), 'a');
        assert_eq!(peers.serve(|message| (message, false)), Some('a'));
        peers.post(NodeId(0), 'b');
        peers.post(NodeId(1), 'c');
        let order: String = std::iter::from_fn(|| peers.serve(|message| (message, true))).collect();
        assert_eq!(order, "acb");
    }
}
