//! The link of two endpoints: their shared memory, and the socket for rings and the detection of an end.
//!
//! # Safety
//! [`Lent`] exposes bytes of the sender's pool. The sender keeps them unchanged until this side has flipped the bit of
//! their slot, which happens when the last handle is dropped, or the socket has closed, which no handle outlives. That
//! holds also when one side has given the other up. A sender that breaks this rule can change the content of a body, as
//! it could before it sent it, and nothing else: bodies are only ever read as bytes, and their position was checked
//! when they arrived.

#![allow(unsafe_code, reason = "bodies that lie in the memory of another process")]

use super::{
    bell::Ringer,
    lane::CONTROL_WORDS,
    lending::SLOT_WORDS,
    map::{Region, Words},
};
use crate::sync::{AtomicU64, Ordering, fence};
use std::{
    io::{self, Read, Write},
    ops::Range,
    os::unix::net::UnixStream,
    sync::Arc,
};

/// The byte that ends a sleep.
pub(super) const RING: u8 = 1;
/// The byte that announces that no message follows those in the lane.
pub(super) const GOODBYE: u8 = 2;
/// The byte that announces that this side takes the other for lost, and reads and sends nothing any more.
pub(super) const GIVEN_UP: u8 = 3;

/// Words of a credit page: the receiver's position, and on other lines the slots that it has returned.
pub(super) const CREDIT_WORDS: usize = 512;
const RETURNED_WORD: usize = 16;

/// The position up to which the receiver of a credit page has read.
#[inline]
pub(super) fn read_until(credit: &Words) -> &AtomicU64 {
    &credit.as_ref()[0]
}

/// The bits of the slots that the receiver has returned.
#[inline]
pub(super) fn returned(credit: &Words) -> &[AtomicU64] {
    &credit.as_ref()[RETURNED_WORD..RETURNED_WORD + SLOT_WORDS]
}

/// News from the socket.
#[derive(Debug)]
pub(super) enum Heard {
    /// No news.
    Nothing,
    /// The peer sends no more, and may still use its bodies.
    Left,
    /// The peer takes this side for lost, and may still use its bodies.
    GaveUp,
    /// The process has ended, or has left and dropped all its bodies.
    Closed,
    /// The socket has failed.
    Failed(io::Error),
}

/// This side's part of what a peer sends. Bodies keep it alive: the peer sees the socket close when the last of them is
/// gone.
#[derive(Debug)]
pub(super) struct SharedLink {
    pub(super) socket: UnixStream,
    /// The peer's lane; only its bell is used here.
    lane: Words,
    /// The credit page for the peer, written by this side.
    pub(super) credit: Words,
    /// The peer's pool.
    pool: Arc<Region>,
    room: Ringer,
}

impl SharedLink {
    pub(super) fn new(socket: UnixStream, lane: Words, credit: Words, pool: Arc<Region>) -> Self {
        debug_assert!(lane.as_ref().len() > CONTROL_WORDS);
        Self { socket, lane, credit, pool, room: Ringer::default() }
    }

    /// Sends one byte. A socket that takes none is full of them, or its end is noticed elsewhere.
    pub(super) fn tell(&self, byte: u8) {
        let _ = (&self.socket).write(&[byte]);
    }

    /// Reads the peer's bytes up to the one that ends its part.
    pub(super) fn hear(&self) -> Heard {
        let mut bytes = [0; 64];
        loop {
            match (&self.socket).read(&mut bytes) {
                Ok(0) => return Heard::Closed,
                Ok(count) if bytes[..count].contains(&GOODBYE) => return Heard::Left,
                Ok(count) if bytes[..count].contains(&GIVEN_UP) => return Heard::GaveUp,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Heard::Nothing,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // It has not read what this node sent to its socket.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Heard::Closed,
                Err(error) => return Heard::Failed(error),
            }
        }
    }

    /// Returns true if the peer's socket has closed, whatever it sent before.
    pub(super) fn is_closed(&self) -> bool {
        loop {
            match self.hear() {
                Heard::Closed => return true,
                Heard::Nothing | Heard::Failed(_) => return false,
                Heard::Left | Heard::GaveUp => {}
            }
        }
    }

    /// Wakes the peer if it sleeps for room, after it was given some.
    pub(super) fn relieve(&self) {
        fence(Ordering::SeqCst);
        if self.room.must_ring(&self.lane.as_ref()[0]) {
            self.tell(RING);
        }
    }

    pub(super) fn pool_bytes(&self) -> usize {
        self.pool.len()
    }
}

/// A body in the pool of the peer, returned when it is dropped.
pub(super) struct Lent {
    link: Arc<SharedLink>,
    range: Range<usize>,
    slot: usize,
}

impl Lent {
    /// `range` lies in the pool, and `slot` is one.
    pub(super) fn new(link: &Arc<SharedLink>, range: Range<usize>, slot: usize) -> Self {
        Self { link: Arc::clone(link), range, slot }
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the peer keeps the body until the slot is given back, which is after the last use of this.
        unsafe { self.link.pool.bytes(self.range.clone()) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let (word, bit) = evb_core::bits::place(self.slot);
        returned(&self.link.credit)[word].fetch_xor(bit, Ordering::Release);
        self.link.relieve();
    }
}
