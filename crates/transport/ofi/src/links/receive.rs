//! Incoming messages: their order and their buffers.

use super::{BufferRole, Links};
use crate::{
    ffi::{Operation, Posted},
    peer::Arrival,
    tags::{Tag, TagKind},
};

impl Links {
    /// Returns the buffer of the next message of a peer to the provider: the message was used.
    #[inline]
    pub(crate) fn consume(&mut self, from: usize) {
        let Some(peer) = self.peers[from].as_deref_mut() else { return };
        let Some(arrival) = peer.pop() else { return };
        let owes = peer.status_owed;
        self.recycle(arrival.operation);
        if owes {
            self.owe(from);
        }
    }

    /// Discards the messages that have arrived from a peer.
    pub(crate) fn discard(&mut self, index: usize) {
        let Some(peer) = self.peer(index) else { return };
        let arrivals: Vec<_> = peer.drain().collect();
        arrivals.into_iter().for_each(|arrival| self.recycle(arrival.operation));
    }

    /// Forgets a peer that is gone, with all its state.
    pub(crate) fn forget(&mut self, index: usize) {
        self.discard(index);
        self.abandon_rooms(index);
        self.peers[index] = None;
    }

    /// Handles an arrived message: in place, or out of place.
    #[inline]
    pub(super) fn arrived(&mut self, operation: Operation, tag: u64, bytes: usize) {
        let Tag { kind, from, low, .. } = self.tags.decode(tag);
        if kind == TagKind::Data
            && let Some(peer) = self.peers.get_mut(from.index()).and_then(Option::as_deref_mut)
        {
            let ahead = self.tags.low(low.wrapping_sub(peer.key).wrapping_sub(peer.expected));
            if peer.put(ahead, Arrival { operation, bytes }) {
                peer.accepted = true;
                peer.hear();
                self.moved = true;
                return self.activate(from.index());
            }
        }
        match kind {
            TagKind::Data => self.rejected += 1,
            TagKind::Status => self.hear_status(operation, bytes, from, low),
            TagKind::Room => self.hear_notes(operation, bytes, from, low),
            TagKind::Hello => self.hear_hello(operation, bytes, from),
        }
        self.recycle(operation);
        self.post_receives();
    }

    /// Frees a receive, or the room of a message that is not read. A receive is posted again by the next poll, after what
    /// the user answers has left: its peer may use it when it hears of it, which is later.
    #[inline]
    pub(super) fn recycle(&mut self, operation: Operation) {
        match self.roles[operation.index()] {
            BufferRole::Receive { large } => {
                self.idle_receives[usize::from(large)].push(operation);
            }
            BufferRole::Room { .. } => self.end_room(operation),
            _ => {}
        }
    }

    /// Posts all idle receives: no message may arrive before its buffer.
    #[inline]
    pub(super) fn post_receives(&mut self) {
        for large in [false, true] {
            let size = usize::from(large);
            while let Some(&operation) = self.idle_receives[size].last() {
                let (tag, ignore) = self.tags.any(large);
                if self.endpoint.receive(operation, tag, ignore) != Posted::Yes {
                    break;
                }
                self.idle_receives[size].pop();
            }
        }
    }
}
