//! What joins two endpoints: the shared memory of both, and the socket on which they ring and die.
//!
//! # Safety
//! [`Lent`] gives out bytes of the sender's pool. The sender keeps them as they are until this side has turned over the
//! bit of their slot, which happens when the last handle is dropped. A sender that does not keep to that can change what
//! is in a body, as it could before it sent it, and nothing else: bodies are only ever read as bytes, and their place was
//! checked when they came.

use super::{
    bell::Ringer,
    lane::CONTROL_WORDS,
    lending::SLOT_WORDS,
    map::{Region, Words},
};
use crate::sync::{AtomicU64, Ordering, fence};
use std::{io::Write, ops::Range, os::unix::net::UnixStream, sync::Arc};

/// The byte that ends a sleep.
pub(super) const RING: u8 = 1;
/// The byte that says that no message follows those in the lane.
pub(super) const GOODBYE: u8 = 2;

/// Words of a credit page: how far the receiver has read, and on other lines which slots it has given back.
pub(super) const CREDIT_WORDS: usize = 512;
const RETURNED_WORD: usize = 16;

/// How far the receiver of a credit page has read.
#[inline]
pub(super) fn read_until(credit: &Words) -> &AtomicU64 {
    &credit.as_ref()[0]
}

/// The bits of the slots that the receiver has given back.
#[inline]
pub(super) fn returned(credit: &Words) -> &[AtomicU64] {
    &credit.as_ref()[RETURNED_WORD..RETURNED_WORD + SLOT_WORDS]
}

/// This side's part in what a peer sends. Bodies keep it: the peer sees the socket close when the last of them is gone.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) socket: UnixStream,
    /// The peer's lane; only its bell is looked at here.
    lane: Words,
    /// The credit page for the peer, written by this side.
    pub(super) credit: Words,
    /// The peer's pool.
    pool: Arc<Region>,
    room: Ringer,
}

impl Link {
    pub(super) fn new(socket: UnixStream, lane: Words, credit: Words, pool: Arc<Region>) -> Self {
        debug_assert!(lane.as_ref().len() > CONTROL_WORDS);
        Self { socket, lane, credit, pool, room: Ringer::default() }
    }

    /// Sends one byte. A socket that takes none is full of them, or its end is seen elsewhere.
    pub(super) fn tell(&self, byte: u8) {
        let _ = (&self.socket).write(&[byte]);
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

/// A body in the pool of the peer, given back when it is dropped.
pub(super) struct Lent {
    link: Arc<Link>,
    range: Range<usize>,
    slot: usize,
}

impl Lent {
    /// `range` lies in the pool, and `slot` is one.
    pub(super) fn new(link: &Arc<Link>, range: Range<usize>, slot: usize) -> Self {
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
        let (word, bit) = crate::bits::place(self.slot);
        returned(&self.link.credit)[word].fetch_xor(bit, Ordering::Release);
        self.link.relieve();
    }
}
