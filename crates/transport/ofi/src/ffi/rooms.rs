//! Rooms: memory for one long message each. A room is offered to a peer, filled, lent to the reader of the message, and
//! used again. So a message needs no new memory, no zeros and no registration.
//!
//! # Invariant
//! The memory of a room is in one place: with its operation ([`Memory::Room`]), idle, or lent to its readers, who alone have
//! it then. What writes into it is the provider, for a receive or for a peer that the room was offered to. A peer
//! writes once for each offer. Nodes that have proved the token of a run are trusted with that: a provider does not tell
//! one write of a peer from another.

#![allow(unsafe_code, reason = "memory that peers write into is lent to readers")]

use super::{
    endpoint::{Endpoint, Posted, posted},
    memory::{Entry, Memory, Operation, Slab},
};
use crate::OfiError;
use bytes::Bytes;
use evb_libfabric_abi::*;
use std::{ops::Range, slice};

/// Operations in one write.
pub(super) const PIECES: usize = 2;

/// The memory of a room that is idle or lent, and the operation that it belongs to.
pub(super) struct Room {
    memory: Slab,
    bytes: usize,
    operation: Operation,
}

impl AsRef<[u8]> for Room {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the slab has this length, and an idle or lent room is never written (invariant of this module).
        unsafe { slice::from_raw_parts(self.memory.start(), self.bytes) }
    }
}

/// A room of a peer: its address, the key to it, and its number, which the peer hears when the room was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoomAddress {
    pub(crate) address: u64,
    pub(crate) key: u64,
    pub(crate) room: u32,
}

impl Endpoint {
    /// A room of at least `bytes` bytes, idle or new, with any content.
    pub(crate) fn room(&mut self, bytes: usize) -> Result<Operation, OfiError> {
        let mut surplus = Vec::new();
        let idle = self.rooms.take(bytes, |room| surplus.push(room.operation));
        surplus.into_iter().for_each(|operation| self.take(operation));
        if let Some(Room { memory, operation, .. }) = idle {
            self.objects.entries[operation.index()].memory = Some(Memory::Room(memory));
            return Ok(operation);
        }
        let memory = Slab::new(bytes);
        self.add_registered(memory.start(), bytes, Memory::Room(memory))
    }

    /// Takes a room back that is not busy.
    pub(crate) fn keep(&mut self, operation: Operation) {
        if let Some(room) = self.take_room(operation) {
            let mut surplus = None;
            self.rooms.keep(room, |room| surplus = Some(room.operation));
            surplus.into_iter().for_each(|operation| self.take(operation));
        }
    }

    /// The memory of a room that is not busy, which leaves its operation.
    fn take_room(&mut self, operation: Operation) -> Option<Room> {
        let entry = &mut self.objects.entries[operation.index()];
        assert!(!entry.busy, "the provider has this memory");
        match entry.memory.take() {
            Some(Memory::Room(memory)) => Some(Room { memory, bytes: entry.bytes, operation }),
            other => {
                entry.memory = other;
                None
            }
        }
    }

    /// Leaves a room to a peer that is to write into it: address and key for it. The room is busy until a completion says
    /// that it was written, or until [`release`](Self::release).
    pub(crate) fn open_to_writes(&mut self, room: Operation) -> (u64, u64) {
        let by_address = self.limits.by_address;
        let entry = &mut self.objects.entries[room.index()];
        assert!(!entry.busy && matches!(entry.memory, Some(Memory::Room(_))), "not a room");
        entry.clear_start();
        entry.busy = true;
        // SAFETY: the registration is open: endpoints that peers write to register all their rooms.
        let key = unsafe { entry.registration.as_ref() }.map_or(0, |registration| registration.key);
        (if by_address { entry.start as u64 } else { 0 }, key)
    }

    /// Returns true if a peer has begun to write into a room, and its write is not over.
    pub(super) fn is_written(&self) -> bool {
        let open = |entry: &&Entry| entry.busy && matches!(entry.memory, Some(Memory::Room(_)));
        self.limits.writes && self.objects.entries.iter().filter(open).any(Entry::has_start)
    }

    /// Ends the right of a peer to write into a room: it has promised not to.
    pub(crate) fn release(&mut self, room: Operation) {
        let entry = &mut self.objects.entries[room.index()];
        assert!(self.limits.writes && matches!(entry.memory, Some(Memory::Room(_))), "not a room to write to");
        entry.busy = false;
    }

    /// The room that a peer has written into, by its number; `None` if no peer was to write there.
    pub(super) fn written(&mut self, number: u64) -> Option<Operation> {
        let room = Operation(u32::try_from(number).ok()?);
        let entry = self.objects.entries.get_mut(room.index())?;
        let was_open = entry.busy && matches!(entry.memory, Some(Memory::Room(_)));
        was_open.then(|| entry.busy = false).map(|()| room)
    }

    /// Lends a part of a room to the readers of its message. The room is idle when they have dropped it.
    pub(crate) fn lend(&mut self, operation: Operation, part: Range<usize>) -> Bytes {
        self.take_room(operation).map_or_else(Bytes::new, |room| self.rooms.lend(room, part))
    }

    /// Writes the first bytes of one operation, and then of another, to a room of a peer. The completion is that of the last
    /// one.
    pub(crate) fn write(&mut self, parts: [(Operation, usize); PIECES], to: u64, place: RoomAddress) -> Posted {
        let entries = &self.objects.entries;
        let pieces = parts.map(|(operation, bytes)| {
            let entry = &entries[operation.index()];
            assert!(!entry.busy && entry.memory.is_some() && bytes <= entry.bytes, "not memory to send");
            IoVec { iov_base: entry.start.cast(), iov_len: bytes }
        });
        let mut descriptors = parts.map(|(operation, _)| entries[operation.index()].descriptor);
        let [(first, length), (last, more)] = parts;
        let there = RmaIov { addr: place.address, len: length + more, key: place.key };
        let message = MsgRma {
            msg_iov: pieces.as_ptr(),
            desc: descriptors.as_mut_ptr(),
            iov_count: PIECES,
            addr: to,
            rma_iov: &raw const there,
            rma_iov_count: 1,
            context: entries[last.index()].context.cast(),
            data: place.room.into(),
        };
        let endpoint = self.objects.endpoint;
        // SAFETY: the endpoint is open. The message is read during the call only; memory and context stay until the
        // completion (invariant 3 of the folder).
        let result =
            unsafe { ((*(*endpoint).rma).writemsg)(endpoint, &raw const message, FI_REMOTE_CQ_DATA | FI_COMPLETION) };
        if result == 0 {
            parts.iter().for_each(|part| self.objects.entries[part.0.index()].busy = true);
            self.objects.entries[last.index()].joined = Some(first);
        }
        posted(result)
    }

    /// The operation whose memory was written before that of this one, if the write is over.
    pub(crate) fn take_joined(&mut self, operation: Operation) -> Option<Operation> {
        self.objects.entries[operation.index()].joined.take()
    }
}
