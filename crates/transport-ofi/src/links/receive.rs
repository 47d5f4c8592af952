//! Incoming messages: their order, their buffers, and bodies in buffers of their own.

use super::{Links, Role};
use crate::{
    ffi::{Memory, Operation, Posted},
    peer::Arrival,
    tags::{Kind, Tag},
};
use bytes::Bytes;
use evb_core::NodeId;

impl Links {
    /// Receives the body of message `number` into a buffer of its own, and lets the peer send it. The body never
    /// arrives before the buffer is posted: with libfabric 1.17, `shm` confuses unexpected messages with others.
    pub(crate) fn receive_body(&mut self, from: usize, number: u64, bytes: usize) -> Option<Operation> {
        let key = self.peer(from)?.key;
        let operation = self.endpoint.own(vec![0; bytes]).ok()?;
        let sender = NodeId(from as u16);
        let tag = Tag { kind: Kind::Data, large: true, from: sender, low: key.wrapping_add(number) };
        match self.endpoint.receive(operation, self.tags.encode(tag), 0) {
            Posted::Yes => {
                self.set_role(operation, Role::Room { from: from as u16, done: None });
                self.permits.push_back((from as u16, number));
                self.send_permits();
                Some(operation)
            }
            other => {
                self.endpoint.take(operation);
                let _ = self.note(from, other);
                None
            }
        }
    }

    /// The length of a body, if it has arrived.
    pub(crate) fn body_length(&self, room: Operation) -> Option<usize> {
        match self.roles[room.index()] {
            Role::Room { done, .. } => done,
            _ => None,
        }
    }

    /// Takes a body that has arrived.
    pub(crate) fn take_body(&mut self, room: Operation) -> Bytes {
        self.roles[room.index()] = Role::Free;
        match self.endpoint.take(room) {
            Some(Memory::Own(body)) => body.into(),
            _ => Bytes::new(),
        }
    }

    /// Abandons a body that nobody waits for any more.
    pub(super) fn orphan(&mut self, room: Operation) {
        if self.body_length(room).is_some() {
            self.take_body(room);
        } else {
            self.roles[room.index()] = Role::Orphan;
            self.endpoint.cancel(room);
        }
    }

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
        for arrival in arrivals {
            self.recycle(arrival.operation);
            arrival.body.into_iter().for_each(|room| self.orphan(room));
        }
    }

    /// Forgets a peer that is gone, with all its state.
    pub(crate) fn forget(&mut self, index: usize) {
        self.discard(index);
        self.peers[index] = None;
    }

    /// Handles an arrived message: in place, or out of place.
    #[inline]
    pub(super) fn arrived(&mut self, operation: Operation, tag: u64, bytes: usize) {
        let Tag { kind, from, low, .. } = self.tags.decode(tag);
        if kind == Kind::Data
            && let Some(peer) = self.peers.get_mut(from.index()).and_then(Option::as_deref_mut)
        {
            let ahead = self.tags.low(low.wrapping_sub(peer.key).wrapping_sub(peer.expected));
            if peer.put(ahead, Arrival { operation, bytes, body: None }) {
                peer.accepted = true;
                peer.hear();
                self.moved = true;
                return self.activate(from.index());
            }
        }
        match kind {
            Kind::Data => self.rejected += 1,
            Kind::Status => self.hear_status(operation, bytes, from, low),
            Kind::Permit => self.hear_permit(from, low),
            Kind::Hello => self.hear_hello(operation, bytes, from),
        }
        self.recycle(operation);
    }

    /// Frees a receive.
    #[inline]
    pub(super) fn recycle(&mut self, operation: Operation) {
        if let Role::Receive { large } = self.roles[operation.index()] {
            self.idle_receives[usize::from(large)].push(operation);
            self.post_receives();
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
