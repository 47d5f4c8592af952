//! Rooms: memory for one long message each. A room is offered to a peer, filled, lent to the reader of the message, and
//! used again. So a message needs no new memory, no zeros and no registration.
//!
//! # Invariant
//! A room is in one place: idle or with its operation ([`Memory::Room`]), or with its reader ([`Lent`]), who alone has the
//! memory then. What writes into it is the provider, for a receive or for a peer that the room was offered to. A peer
//! writes once for each offer. Nodes that have proved the token of a run are trusted with that: a provider does not tell
//! one write of a peer from another.

#![allow(unsafe_code, reason = "memory that peers write into is lent to readers")]

use super::{
    endpoint::Endpoint,
    memory::{Memory, Operation, Slab},
};
use crate::OfiError;
use bytes::Bytes;
use evb_libfabric_abi::*;
use std::{
    ops::Range,
    slice,
    sync::{Arc, Mutex, PoisonError},
};

/// Most bytes of rooms that are kept while nobody uses them.
const IDLE_BYTES: usize = 32 << 20;

/// Rooms that their readers have dropped.
type Home = Mutex<Vec<(Operation, Slab)>>;

/// The rooms of an endpoint that are in nobody's use.
#[derive(Default)]
pub(super) struct Rooms {
    idle: Vec<Operation>,
    idle_bytes: usize,
    home: Arc<Home>,
}

/// A part of a room, with its reader.
struct Lent {
    memory: Option<Slab>,
    range: Range<usize>,
    room: Operation,
    home: Arc<Home>,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        let Some(memory) = &self.memory else { return &[] };
        let start = memory.start().wrapping_add(self.range.start);
        // SAFETY: `lend` has checked the range, and nobody writes while the room is lent (invariant of this module).
        unsafe { slice::from_raw_parts(start, self.range.len()) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let memory = self.memory.take().map(|memory| (self.room, memory));
        self.home.lock().unwrap_or_else(PoisonError::into_inner).extend(memory);
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
        self.take_home();
        let entries = &self.objects.entries;
        let fits = |room: &Operation| (bytes..=2 * bytes).contains(&entries[room.index()].bytes);
        if let Some(index) = self.rooms.idle.iter().rposition(fits) {
            let room = self.rooms.idle.remove(index);
            self.rooms.idle_bytes -= entries[room.index()].bytes;
            return Ok(room);
        }
        let memory = Slab::new(bytes);
        self.add_registered(memory.start(), bytes, Memory::Room(memory))
    }

    /// Takes a room back that is not busy.
    pub(crate) fn keep(&mut self, room: Operation) {
        let bytes = self.objects.entries[room.index()].bytes;
        if self.rooms.idle_bytes + bytes > IDLE_BYTES {
            self.take(room);
        } else {
            self.rooms.idle.push(room);
            self.rooms.idle_bytes += bytes;
        }
    }

    fn take_home(&mut self) {
        let home = std::mem::take(&mut *self.rooms.home.lock().unwrap_or_else(PoisonError::into_inner));
        for (room, memory) in home {
            self.objects.entries[room.index()].memory = Some(Memory::Room(memory));
            self.keep(room);
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

    /// Lends a part of a room to the reader of its message. The room is idle when the bytes are dropped.
    pub(crate) fn lend(&mut self, room: Operation, range: Range<usize>) -> Bytes {
        let entry = &mut self.objects.entries[room.index()];
        assert!(!entry.busy && range.start <= range.end && range.end <= entry.bytes, "not a part of a filled room");
        match entry.memory.take() {
            Some(Memory::Room(memory)) => {
                Bytes::from_owner(Lent { memory: Some(memory), range, room, home: Arc::clone(&self.rooms.home) })
            }
            other => {
                entry.memory = other;
                Bytes::new()
            }
        }
    }

    /// Sends the first bytes of some operations, one after another in one message, to a place of a peer. The completion is
    /// that of the last one.
    pub(crate) fn put(&mut self, parts: &[(Operation, usize)], to: u64, place: Place) -> super::Posted {
        let mut pieces = [IoVec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PIECES];
        let mut descriptors = [std::ptr::null_mut(); PIECES];
        let mut total = 0;
        for (index, &(operation, bytes)) in parts.iter().enumerate() {
            let entry = &self.objects.entries[operation.index()];
            assert!(!entry.busy && entry.memory.is_some() && bytes <= entry.bytes, "not memory to send");
            pieces[index] = IoVec { iov_base: entry.start.cast(), iov_len: bytes };
            descriptors[index] = entry.descriptor;
            total += bytes;
        }
        let Some(&(last, _)) = parts.last() else { return super::Posted::Failed(FI_EINVAL as i32) };
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
        super::endpoint::posted(result)
    }

    /// The operation that was sent before this one in a message that has left.
    pub(crate) fn take_joined(&mut self, operation: Operation) -> Option<Operation> {
        self.objects.entries[operation.index()].joined.take()
    }
}

/// Most operations in one message.
const PIECES: usize = 2;
