//! Reuse of message bodies. A body that a sender allocates and a receiver frees costs both a lock of the allocator, and
//! new pages each time that it returns memory to the system.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Most bytes of bodies that are kept: a few messages of the longest benchmarks. Further bodies are allocated.
const MOST_BYTES: usize = 16 << 20;

/// Bodies that receivers may still read, the oldest first. With a single receiver they are dropped in this order.
#[derive(Debug, Default)]
pub(crate) struct Bodies {
    kept: VecDeque<Bytes>,
    /// Sum of their lengths.
    bytes: usize,
}

impl Bodies {
    /// A body with these bytes, in the memory of the oldest one if no reader is left.
    pub(crate) fn copy(&mut self, bytes: &[u8]) -> Bytes {
        let mut buffer = self.take().unwrap_or_else(reusable_buffer);
        buffer.clear();
        buffer.extend_from_slice(bytes);
        let body = buffer.freeze();
        if self.bytes + body.len() <= MOST_BYTES {
            self.bytes += body.len();
            self.kept.push_back(body.clone());
        }
        body
    }

    /// Takes back the last body, which was not sent, for the next use.
    pub(crate) fn take_back(&mut self, body: Bytes) {
        if self.kept.back().is_some_and(|last| last.as_ptr() == body.as_ptr()) {
            self.kept.rotate_right(1);
        }
    }

    fn take(&mut self) -> Option<BytesMut> {
        let oldest = self.kept.pop_front()?;
        let length = oldest.len();
        match oldest.try_into_mut() {
            Ok(buffer) => {
                self.bytes -= length;
                Some(buffer)
            }
            Err(held) => {
                self.kept.push_front(held);
                None
            }
        }
    }
}

/// An empty buffer of the kind that is shared without an allocation and returned unchanged by [`Bytes::try_into_mut`].
/// A split makes it so.
#[must_use]
pub fn reusable_buffer() -> BytesMut {
    let mut buffer = BytesMut::with_capacity(2);
    drop(buffer.split_off(1));
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_when_no_reader_is_left() {
        let mut bodies = Bodies::default();
        let body = bodies.copy(&[1; 1000]);
        let place = body.as_ptr();
        let other = bodies.copy(&[2; 1000]);
        assert_ne!(other.as_ptr(), place, "the first one is still read");
        drop((body, other));
        let again = bodies.copy(&[3; 900]);
        assert_eq!((again.as_ptr(), &again[..]), (place, &[3; 900][..]));
    }

    #[test]
    fn a_body_that_was_not_sent_is_the_next_one() {
        let mut bodies = Bodies::default();
        let held: Vec<_> = (0..10).map(|n| bodies.copy(&[n; 100])).collect();
        let refused = bodies.copy(&[10; 100]);
        let place = refused.as_ptr();
        bodies.take_back(refused);
        assert_eq!(bodies.copy(&[11; 100]).as_ptr(), place);
        assert!((0..).zip(&held).all(|(n, body)| body[..] == [n; 100]), "what is held is not written");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let mut bodies = Bodies::default();
        let held: Vec<_> = (0..20).map(|_| bodies.copy(&[0; 1_000_000])).collect();
        assert_eq!((bodies.kept.len(), bodies.bytes), (16, 16_000_000));
        drop(held);
        (0..100).for_each(|_| drop(bodies.copy(&[0; 10])));
        assert_eq!(bodies.bytes, bodies.kept.iter().map(Bytes::len).sum());
    }
}
