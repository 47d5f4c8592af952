//! Peers that are gone for this node, and what they may still read. A peer that was silent may be stopped, and wake up in the
//! middle of a body that it was lent. So its bodies stay as they are until it has given them back, or its socket has closed:
//! the system closes it when the process ends, and the peer's [link](super::link) when the last body is dropped.

use super::{
    Shm,
    lending::Lending,
    link::{self, Link},
    map::Words,
};
use mio::unix::SourceFd;
use std::{os::fd::AsRawFd, sync::Arc};

/// What a peer that is gone still has of this node. It has one body at least, so there are never more than the pool has room for.
#[derive(Debug)]
pub(super) struct Borrower {
    pub(super) link: Arc<Link>,
    /// The credit page on which it gives back.
    pub(super) room: Words,
    pub(super) lending: Lending,
}

impl Borrower {
    /// Takes back what was given back; whether there may be more.
    fn still_reads(&mut self) -> bool {
        self.lending.collect(link::returned(&self.room));
        !self.lending.is_empty() && !self.link.is_closed()
    }
}

impl Shm {
    /// Has no part with a peer any more. If the peer does not know that yet, it hears so.
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

    /// Takes back what peers have given back; whether there was something.
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

    /// Takes back what peers that are gone have given back, and what the ends of their processes have freed.
    #[cold]
    pub(super) fn collect_from_leaving(&mut self) {
        self.leaving.retain_mut(Borrower::still_reads);
    }
}
