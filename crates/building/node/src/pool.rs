//! Payload buffers of one readout unit. Those lent by the transport are sent without a copy; its own are used again and
//! again.

use bytes::{Bytes, BytesMut};
use evb_sources::Room;
use evb_transport::{Buffer, Buffers, reusable_buffer};
use evb_unit::bundle::Space;

/// Limit above which a buffer is not kept, in typical fragments: one rare large fragment in each of many buffers would
/// make them all large.
const MOST_FRAGMENTS: usize = 4;
/// Size up to which any buffer is kept, in bytes.
const SMALL: usize = 4096;
/// Number of fragments over which the typical size is averaged.
const AVERAGED: isize = 64;

/// Buffers of finished events. The most recent one is last: it is still in the cache.
#[derive(Default)]
pub(crate) struct Pool {
    lent: Option<Buffers>,
    spare: Vec<BytesMut>,
    /// Running mean of the fragment size in bytes.
    typical: usize,
}

/// A payload that is being written, with its length.
pub(crate) struct Draft<'a> {
    pool: &'a mut Pool,
    written: Option<(Extent, usize)>,
}

/// Memory for a payload, which may grow as it is written.
pub(crate) enum Extent {
    /// A buffer of this node.
    Own(BytesMut),
    /// A buffer of the transport for this many bytes. A payload that outgrows it moves to a buffer of the node.
    Lent(Buffer, usize),
}

impl Space for Extent {
    #[inline]
    fn bytes(&mut self, length: usize) -> &mut [u8] {
        if let Self::Lent(buffer, capacity) = self
            && *capacity < length
        {
            let mut own = BytesMut::zeroed(2 * length);
            own[..*capacity].copy_from_slice(&buffer.as_ref()[..*capacity]);
            *self = Self::Own(own);
        }
        match self {
            Self::Own(buffer) => buffer.bytes(length),
            Self::Lent(buffer, _) => buffer.as_mut(),
        }
    }

    fn freeze(self, length: usize) -> Bytes {
        match self {
            Self::Own(buffer) => Space::freeze(buffer, length),
            Self::Lent(buffer, _) => buffer.freeze(length),
        }
    }
}

impl Room for Draft<'_> {
    fn room(&mut self, length: usize) -> &mut [u8] {
        let (extent, _) = self.written.insert((self.pool.extent(length), length));
        &mut extent.bytes(length)[..length]
    }
}

impl Draft<'_> {
    /// Turns the draft into a payload.
    pub(crate) fn finish(self) -> Bytes {
        self.written.map_or_else(Bytes::new, |(extent, length)| extent.freeze(length))
    }
}

impl Pool {
    /// A pool that takes buffers of the transport as long as there are any.
    pub(crate) fn new(lent: Option<Buffers>) -> Self {
        Self { lent, ..Self::default() }
    }

    /// A payload whose length is not known yet.
    pub(crate) const fn draft(&mut self) -> Draft<'_> {
        Draft { pool: self, written: None }
    }

    /// Memory for a payload of this many bytes, which may grow.
    pub(crate) fn extent(&mut self, bytes: usize) -> Extent {
        match self.lent.as_ref().and_then(|lent| lent.take(bytes)) {
            Some(buffer) => Extent::Lent(buffer, bytes),
            None => Extent::Own(self.take()),
        }
    }

    /// A buffer with any content.
    fn take(&mut self) -> BytesMut {
        self.spare.pop().unwrap_or_else(reusable_buffer)
    }

    /// Takes back a payload that is no longer needed. A payload still held elsewhere is freed later.
    pub(crate) fn give(&mut self, payload: Bytes) {
        let difference = payload.len() as isize - self.typical as isize;
        self.typical = self.typical.saturating_add_signed(difference / AVERAGED + difference.signum());
        if let Ok(buffer) = payload.try_into_mut()
            && buffer.capacity() <= SMALL + MOST_FRAGMENTS * self.typical
        {
            self.spare.push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(pool: &mut Pool, size: usize) -> *const u8 {
        let mut draft = pool.draft();
        assert_eq!(draft.room(size).len(), size);
        let payload = draft.finish();
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
        let payload = buffer.freeze();
        let held = payload.clone();
        pool.give(payload);
        assert!(pool.spare.is_empty());
        drop(held);
    }
}
