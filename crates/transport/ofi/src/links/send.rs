//! Outgoing messages: from slots, injected or as bodies, and the handling of a full provider.

use super::{BufferRole, Links};
use crate::{
    ffi::{Operation, Posted},
    tags::{Tag, TagKind},
};

/// Number of slots that are added at a time.
const MORE_SLOTS: usize = 16;

impl Links {
    /// A slot to fill and send. With `more`, slots are added if none is free.
    #[inline]
    pub(crate) fn slot(&mut self, large: bool, more: bool) -> Option<Operation> {
        if self.slots[usize::from(large)].is_empty() && more && !large {
            let (count, bytes) = (MORE_SLOTS, self.frame_bytes());
            self.slots[0] = self.add(count, bytes, BufferRole::Free).ok()?;
        }
        self.slots[usize::from(large)].pop()
    }

    #[inline]
    pub(crate) fn memory_mut(&mut self, slot: Operation) -> &mut [u8] {
        self.endpoint.memory_mut(slot)
    }

    #[inline]
    pub(crate) fn memory(&self, operation: Operation) -> &[u8] {
        self.endpoint.memory(operation)
    }

    /// Frees a slot that was not sent.
    pub(crate) fn give_back(&mut self, slot: Operation, large: bool) {
        self.slots[usize::from(large)].push(slot);
    }

    /// Sends a slot as the next message to a peer that has a credit.
    #[inline]
    pub(crate) fn send(&mut self, to: usize, slot: Operation, bytes: usize, large: bool) -> Posted {
        let Some(peer) = self.peers[to].as_deref_mut() else { return Posted::Failed(0) };
        let tag = Tag { kind: TagKind::Data, large, from: self.local, low: peer.their_key.wrapping_add(peer.sent) };
        let result = self.endpoint.send(slot, bytes, peer.address, self.tags.encode(tag));
        if result == Posted::Yes {
            peer.sent += 1;
            peer.outstanding += 1;
            peer.spoke = true;
            self.roles[slot.index()] = BufferRole::Slot { to: to as u16, large };
        }
        self.note(to, result)
    }

    /// Sends a copy of at most [`inject_bytes`](Links::inject_bytes) as the next message.
    #[inline]
    pub(crate) fn inject(&mut self, to: usize, bytes: &[u8]) -> Posted {
        let Some(peer) = self.peers[to].as_deref_mut() else { return Posted::Failed(0) };
        let low = peer.their_key.wrapping_add(peer.sent);
        let tag = Tag { kind: TagKind::Data, large: false, from: self.local, low };
        let result = self.endpoint.inject(bytes, peer.address, self.tags.encode(tag));
        if result == Posted::Yes {
            peer.sent += 1;
            peer.spoke = true;
        }
        self.note(to, result)
    }

    #[inline]
    pub(super) fn note(&mut self, peer: usize, result: Posted) -> Posted {
        match result {
            Posted::Yes => {}
            Posted::Again => self.blocked = true,
            Posted::Failed(error) => self.fail(peer, error),
        }
        result
    }

    #[cold]
    pub(super) fn fail(&mut self, peer: usize, error: i32) {
        let reason = format!("its connection failed: {}", self.endpoint.describe(error));
        self.give_up(peer, reason);
    }

    /// Gives a peer up: nothing goes to it or comes from it any more.
    pub(crate) fn give_up(&mut self, index: usize, reason: String) {
        let Some(peer) = self.peer(index) else { return };
        if peer.failure.is_none() {
            peer.failure = Some(reason);
        }
        self.activate(index);
    }
}
