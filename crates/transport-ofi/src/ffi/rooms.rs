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
    memory::{Memory, Operation, Slab},
};
use crate::OfiError;
use bytes::Bytes;
use evb_libfabric_abi::*;
use std::{ops::Range, ptr, slice};

/// Most operations in one message.
const PIECES: usize = 2;

/// The memory of a room that is idle or lent, and the operation that it belongs to.
pub(super) struct Room {
    memory: Slab,
    bytes: usize,
    operation: Operation,
}

impl AsRef<[u8]> for Room {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the slab has this length, and nobody writes into a room that is idle or lent (invariant of this module).
        unsafe { slice::from_raw_parts(self.memory.start(), self.bytes) }
    }
}

/// The place of a long message at its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The receive with this tag.
    Tag(u64),
    /// The memory of this room, from this address.
    Memory { address: u64, key: u64, room: u32 },
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
        entry.busy = true;
        // SAFETY: the registration is open: endpoints that peers write to register all their rooms.
        let key = unsafe { entry.registration.as_ref() }.map_or(0, |registration| registration.key);
        (if by_address { entry.start as u64 } else { 0 }, key)
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

    /// Sends the first bytes of some operations, one after another in one message, to a place of a peer. The completion is
    /// that of the last one.
    pub(crate) fn put(&mut self, parts: &[(Operation, usize)], to: u64, place: Place) -> Posted {
        let mut pieces = [IoVec { iov_base: ptr::null_mut(), iov_len: 0 }; PIECES];
        let mut descriptors = [ptr::null_mut(); PIECES];
        let mut total = 0;
        for (index, &(operation, bytes)) in parts.iter().enumerate() {
            let entry = &self.objects.entries[operation.index()];
            assert!(!entry.busy && entry.memory.is_some() && bytes <= entry.bytes, "not memory to send");
            pieces[index] = IoVec { iov_base: entry.start.cast(), iov_len: bytes };
            descriptors[index] = entry.descriptor;
            total += bytes;
        }
        let Some(&(last, _)) = parts.last() else { return Posted::Failed(FI_EINVAL as i32) };
        let (endpoint, context) = (self.objects.endpoint, self.objects.entries[last.index()].context.cast());
        let (count, descriptors) = (parts.len(), descriptors.as_mut_ptr());
        // SAFETY: the endpoint is open. Pieces and descriptors are read during the call only; memory and context stay until
        // the completion (invariant 3 of the folder).
        let result = unsafe {
            match place {
                Place::Tag(tag) => {
                    ((*(*endpoint).tagged).sendv)(endpoint, pieces.as_ptr(), descriptors, count, to, tag, context)
                }
                Place::Memory { address, key, room } => {
                    let there = RmaIov { addr: address, len: total, key };
                    let message = MsgRma {
                        msg_iov: pieces.as_ptr(),
                        desc: descriptors,
                        iov_count: count,
                        addr: to,
                        rma_iov: &raw const there,
                        rma_iov_count: 1,
                        context,
                        data: room.into(),
                    };
                    ((*(*endpoint).rma).writemsg)(endpoint, &raw const message, FI_REMOTE_CQ_DATA | FI_COMPLETION)
                }
            }
        };
        if result == 0 {
            parts.iter().for_each(|part| self.objects.entries[part.0.index()].busy = true);
            self.objects.entries[last.index()].joined = (count > 1).then(|| parts[0].0);
        }
        posted(result)
    }

    /// The operation that was sent before this one in a message that has left.
    pub(crate) fn take_joined(&mut self, operation: Operation) -> Option<Operation> {
        self.objects.entries[operation.index()].joined.take()
    }
}
