//! The message layer of one node: messages of up to 64 B unchanged, longer ones in pieces.
//!
//! The sending thread tells whether more of a message follows, so no byte is spent on it. All threads of a node share
//! one requester and one way, so pieces stay in order, and each receiver assembles the pieces of each sender.

use crate::cluster::{Cluster, Wait};
use crate::{CYCLE, RtlOptions};
use evb_core::{NodeId, Span};
use evb_transport::{MessageLayer, Refused, Take, VirtualTime};
use evb_velo::{LINE_BYTES, Recombiner, registers::Control};
use std::{fmt, sync::Arc, time::Duration};

/// The thread that sends whole messages and last pieces.
const LAST: u64 = 0;
/// The thread that sends pieces with successors.
const MORE: u64 = 1;

/// One node of a simulated cluster.
pub struct RtlLayer {
    cluster: Arc<Cluster>,
    node: usize,
    max_bytes: usize,
    recombiner: Recombiner,
    /// The unfinished message of each sender, which keeps it below `max_bytes`.
    begun: Vec<Vec<u8>>,
    /// True if the last cycle of a wait was that of a poll.
    has_polled: bool,
}

impl RtlLayer {
    pub(crate) fn new(cluster: Arc<Cluster>, node: usize, options: &RtlOptions) -> Self {
        let begun = vec![Vec::new(); cluster.nodes()];
        Self { cluster, node, max_bytes: options.max_bytes, recombiner: Recombiner::new(), begun, has_polled: false }
    }

    /// Reads a register of the unit, which takes some cycles.
    pub fn register(&mut self, register: Control) -> u32 {
        self.cluster.host(self.node).bus.ask(register);
        // The request goes, and its answer is there in the second cycle after that.
        while !self.cluster.host(self.node).bus.is_settled() && !self.cluster.is_broken() {
            self.use_up(Wait { cycles: 1, ends_early: false });
        }
        self.use_up(Wait { cycles: 1, ends_early: false });
        self.cluster.host(self.node).bus.read
    }

    fn use_up(&self, wait: Wait) {
        self.cluster.pass(self.node, wait);
    }
}

impl MessageLayer for RtlLayer {
    fn local(&self) -> NodeId {
        NodeId(self.node as u16)
    }

    fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    fn send(&mut self, to: NodeId, bytes: &[u8]) -> Result<(), Refused> {
        if bytes.is_empty() || bytes.len() > self.max_bytes {
            return Err(Refused::TooLarge { limit: self.max_bytes });
        }
        let mut host = self.cluster.host(self.node);
        if to.index() == self.node || !host.peers.is_here(to.index()) || self.cluster.is_broken() {
            return Err(Refused::Lost);
        }
        if !host.has_room() {
            host.starved = true;
            drop(host);
            self.use_up(Wait { cycles: 1, ends_early: false });
            return Err(Refused::Full);
        }
        let pieces = bytes.chunks(LINE_BYTES as usize);
        let last = pieces.len() - 1;
        for (index, piece) in pieces.enumerate() {
            host.store(if index < last { MORE } else { LAST }, to.index(), piece);
        }
        Ok(())
    }

    /// Returns true at once: stores leave by themselves.
    fn flush(&mut self) -> bool {
        true
    }

    fn receive(&mut self, limit: usize, take: &mut Take<'_>) -> usize {
        if !std::mem::take(&mut self.has_polled) {
            self.use_up(Wait { cycles: 1, ends_early: false });
        }
        let (mut host, mut count) = (self.cluster.host(self.node), 0);
        while count < limit
            && let Some(packet) = host.take()
        {
            let Some(entry) = self.recombiner.accept(&packet) else { continue };
            let begun = &mut self.begun[entry.source.node as usize];
            if entry.source.thread == LAST {
                let from = NodeId(entry.source.node as u16);
                count += 1;
                if begun.is_empty() {
                    take(from, entry.bytes());
                    continue;
                }
                begun.extend_from_slice(entry.bytes());
                take(from, begun);
                begun.clear();
            } else {
                begun.extend_from_slice(entry.bytes());
            }
        }
        count
    }

    fn lost(&mut self) -> Option<NodeId> {
        let mut host = self.cluster.host(self.node);
        if self.cluster.is_broken() {
            host.peers.give_up(self.node);
        }
        host.peers.lost()
    }

    /// Polls in each cycle. The next `receive` uses the result of the last of these polls.
    fn wait(&mut self, timeout: Duration) {
        let cycles = (Span::from(timeout).0 / CYCLE.0).max(1);
        self.use_up(Wait { cycles, ends_early: true });
        self.cluster.host(self.node).starved = false;
        self.has_polled = true;
    }

    fn virtual_time(&self) -> Option<VirtualTime> {
        Some(self.cluster.time().clone())
    }

    fn pass(&mut self, span: Span) {
        self.use_up(Wait { cycles: span.0.div_ceil(CYCLE.0), ends_early: false });
    }
}

impl Drop for RtlLayer {
    fn drop(&mut self) {
        self.cluster.leave(self.node);
    }
}

impl fmt::Debug for RtlLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RtlLayer").field("node", &self.node).finish_non_exhaustive()
    }
}
