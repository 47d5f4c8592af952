//! Peers that are gone for this node, and bodies that they may still read. A silent peer may be stopped, and wake up
//! while it reads a lent body. So its bodies stay unchanged until it has returned them, or its socket has closed. The
//! system closes the socket when the process ends, and the peer's [link](super::link) when the last body is dropped.

use super::{
    Shm,
    lending::Lending,
    link::{self, SharedLink},
    map::Words,
};
use mio::unix::SourceFd;
use std::{os::fd::AsRawFd, sync::Arc};

/// Bodies of this node that a gone peer holds. There is at least one, so there are never more borrowers than the pool
/// has room for.
#[derive(Debug)]
pub(super) struct Borrower {
    pub(super) link: Arc<SharedLink>,
    /// The credit page on which the peer returns bodies.
    pub(super) room: Words,
    pub(super) lending: Lending,
}

impl Borrower {
    /// Collects returned bodies; returns true if some are still lent.
    fn still_reads(&mut self) -> bool {
        self.lending.collect(link::returned(&self.room));
        !self.lending.is_empty() && !self.link.is_closed()
    }
}

impl Shm {
    /// Ends the relation with a peer, and tells the peer if it does not know.
    #[cold]
    pub(super) fn drop_peer(&mut self, index: usize) {
        self.lanes.retain(|lane| usize::from(lane.node) != index);
        for set in [&mut self.unflushed, &mut self.blocked, &mut self.lending] {
            set.remove(index);
        }
        if let Some(peer) = self.peers[index].take() {
            let _ = self.poll.registry().deregister(&mut SourceFd(&peer.link.socket.as_raw_fd()));
            self.leaving.extend(peer.part());
        }
    }

    /// Collects bodies that peers have returned; returns true if there were any.
    pub(super) fn collect(&mut self) -> bool {
        let mut found = false;
        for index in 0..self.peers.len() {
            if !self.lending.contains(index) {
                continue;
            }
            let Some(peer) = &mut self.peers[index] else { continue };
            found |= peer.collect();
            if peer.lending.is_empty() {
                self.lending.remove(index);
            }
        }
        found
    }

    /// Collects bodies that gone peers have returned, and those of ended processes.
    #[cold]
    pub(super) fn collect_from_leaving(&mut self) {
        self.leaving.retain_mut(Borrower::still_reads);
    }
}
