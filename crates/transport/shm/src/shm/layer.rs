//! Shared memory as a message layer: a message is a record, and nothing is allocated on the way.

use super::{Shm, lane::longest, peer::ReceiveTurn};
use evb_core::NodeId;
use evb_transport::{MessageLayer, Refused, Take};
use std::time::Duration;

impl MessageLayer for Shm {
    fn local(&self) -> NodeId {
        self.local
    }

    /// The longest record: 3/8 of a ring, less a word. Endpoints of a message layer have rings of one size.
    fn max_bytes(&self) -> usize {
        longest(self.options.ring_bytes / 8)
    }

    #[inline]
    fn send(&mut self, to: NodeId, bytes: &[u8]) -> Result<(), Refused> {
        let (index, limit) = (to.index(), longest(self.options.ring_bytes / 8));
        if bytes.is_empty() || bytes.len() > limit {
            return Err(Refused::TooLarge { limit });
        }
        let Some(Some(peer)) = self.peers.get_mut(index) else { return Err(Refused::Lost) };
        if !peer.takes_messages() {
            return Err(Refused::Lost);
        }
        self.unflushed.insert(index);
        if peer.send_bytes(bytes) {
            self.blocked.remove(index);
            return Ok(());
        }
        self.blocked.insert(index);
        Err(Refused::Full)
    }

    #[inline]
    fn flush(&mut self) -> bool {
        self.flush_all()
    }

    #[inline]
    fn receive(&mut self, limit: usize, take: &mut Take<'_>) -> usize {
        let mut gone = Vec::new();
        let count = self.sweep(limit, |visit, limit| {
            let (count, turn) = visit.peer.receive_bytes(limit, visit.scratch, &mut *take);
            if turn == ReceiveTurn::Lost {
                gone.push(visit.peer.node());
            }
            (count, turn)
        });
        self.gone.append(&mut gone);
        count
    }

    fn lost(&mut self) -> Option<NodeId> {
        self.gone.pop()
    }

    fn wait(&mut self, timeout: Duration) {
        self.sleep(timeout);
    }
}
