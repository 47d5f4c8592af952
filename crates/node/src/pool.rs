//! Payload buffers of one readout unit, used again and again.

use bytes::{Bytes, BytesMut};

/// A buffer above this many typical fragments is not kept: one rare large fragment in each of many buffers would make
/// them all large.
const MOST_FRAGMENTS: usize = 4;
/// Size up to which any buffer is kept.
const SMALL: usize = 4096;
/// Fragments over which the typical size is averaged.
const AVERAGED: isize = 64;

/// Buffers of events that are over, the most recent last: it is the one still in the cache.
#[derive(Default)]
pub(crate) struct Pool {
    spare: Vec<BytesMut>,
    /// Running mean of the fragment size in bytes.
    typical: usize,
}

impl Pool {
    /// A buffer with any content.
    pub(crate) fn take(&mut self) -> BytesMut {
        self.spare.pop().unwrap_or_else(new_buffer)
    }

    /// Makes a payload of a buffer that was filled.
    pub(crate) fn share(&mut self, buffer: BytesMut) -> Bytes {
        let difference = buffer.len() as isize - self.typical as isize;
        self.typical = self.typical.saturating_add_signed(difference / AVERAGED + difference.signum());
        buffer.freeze()
    }

    /// Takes back a payload that nobody needs any more. One that somebody still holds goes when they let go of it.
    pub(crate) fn give(&mut self, payload: Bytes) {
        if let Ok(buffer) = payload.try_into_mut()
            && buffer.capacity() <= SMALL + MOST_FRAGMENTS * self.typical
        {
            self.spare.push(buffer);
        }
    }
}

/// An empty buffer of the kind that is shared without an allocation, and comes back as it was from
/// [`Bytes::try_into_mut`]. A split makes it so.
fn new_buffer() -> BytesMut {
    let mut buffer = BytesMut::with_capacity(2);
    drop(buffer.split_off(1));
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(pool: &mut Pool, size: usize) -> *const u8 {
        let mut buffer = pool.take();
        buffer.resize(size, 0);
        let payload = pool.share(buffer);
        let copy = payload.clone();
        let place = copy.as_ptr();
        drop(copy);
        pool.give(payload);
        place
    }

    #[test]
    fn buffers_come_back_unless_they_are_unusually_large() {
        let mut pool = Pool::default();
        (0..1000).for_each(|_| _ = cycle(&mut pool, 20_000));
        let usual = cycle(&mut pool, 20_000);
        assert_eq!(cycle(&mut pool, 20_000), usual, "the same memory is used again");
        cycle(&mut pool, 1_000_000);
        assert!(pool.spare.is_empty(), "a buffer of 50 typical fragments is not kept");
    }

    #[test]
    fn a_payload_that_is_still_held_is_not_taken_back() {
        let mut pool = Pool::default();
        let buffer = pool.take();
        let payload = pool.share(buffer);
        let held = payload.clone();
        pool.give(payload);
        assert!(pool.spare.is_empty());
        drop(held);
    }
}
