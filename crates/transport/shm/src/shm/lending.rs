//! Bodies that peers read in place: lent and returned.
//!
//! Each body has a slot, whose number is in the record. The receiver flips the slot's bit in its [credit
//! page](super::link) when it drops the body. The sender compares the bits with those that it saw last.

use crate::sync::{AtomicU64, Ordering};
use bytes::Bytes;

/// Bodies that one peer may hold at a time.
pub(super) const SLOTS: usize = 512;
/// Words of a bit for each slot: one cache line.
pub(super) const SLOT_WORDS: usize = SLOTS / 64;

/// The bodies in this node's pool that one peer holds.
#[derive(Debug)]
pub(super) struct Lending {
    bodies: Box<[Option<Bytes>]>,
    free: Vec<u16>,
    seen: [u64; SLOT_WORDS],
}

impl Lending {
    pub(super) fn new() -> Self {
        let free = (0..SLOTS as u16).rev().collect();
        Self { bodies: (0..SLOTS).map(|_| None).collect(), free, seen: [0; SLOT_WORDS] }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == SLOTS
    }

    /// The slot of the next body, if one is free.
    pub(super) fn next_slot(&self) -> Option<u16> {
        self.free.last().copied()
    }

    /// Keeps a body in the next slot until it comes back.
    pub(super) fn lend(&mut self, body: Bytes) {
        if let Some(slot) = self.free.pop() {
            self.bodies[usize::from(slot)] = Some(body);
        }
    }

    /// Drops returned bodies; returns true if there were any. A bit that was flipped without a body is ignored.
    #[inline]
    pub(super) fn collect(&mut self, returned: &[AtomicU64]) -> bool {
        let before = self.free.len();
        for (index, word) in returned.iter().enumerate() {
            let now = word.load(Ordering::Acquire);
            for slot in evb_core::bits::members(index, now ^ self.seen[index]) {
                if self.bodies[slot].take().is_some() {
                    self.free.push(slot as u16);
                }
            }
            self.seen[index] = now;
        }
        self.free.len() > before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_back_in_any_order() {
        let returned: Vec<_> = (0..SLOT_WORDS).map(|_| AtomicU64::new(0)).collect();
        let mut lending = Lending::new();
        for _ in 0..SLOTS {
            assert!(lending.next_slot().is_some());
            lending.lend(Bytes::from_static(b"x"));
        }
        assert_eq!(lending.next_slot(), None);
        assert!(!lending.collect(&returned));
        for slot in [511, 3, 64] {
            returned[slot / 64].fetch_xor(1 << (slot % 64), Ordering::Relaxed);
        }
        assert!(lending.collect(&returned) && lending.free.len() == 3);
        returned[0].fetch_xor(1 << 3, Ordering::Relaxed);
        assert!(!lending.collect(&returned), "it is not lent, so it cannot come back");
        returned.iter().for_each(|word| _ = word.fetch_xor(u64::MAX, Ordering::Relaxed));
        assert!(lending.collect(&returned) && lending.is_empty());
    }
}
