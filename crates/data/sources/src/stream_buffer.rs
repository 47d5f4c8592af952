//! The bytes of a stream that wait to be cut into frames.
//!
//! Frames are cut from large blocks without a copy. A block whose frames are all gone is used again: a new one would cost more than
//! all else that is done for its frames, because the system clears each page of new memory.

use bytes::{Buf as _, Bytes, BytesMut};
use std::{collections::VecDeque, mem, ops::Deref};

/// Bytes of a block, if no frame is longer.
const BLOCK: usize = 512 << 10;
/// Most blocks that wait to be used again.
const MOST_USED: usize = 64;

/// Bytes that were pushed and are not cut off yet.
#[derive(Debug, Default)]
pub(crate) struct StreamBuffer {
    bytes: BytesMut,
    /// Blocks whose frames may still be there.
    used: VecDeque<BytesMut>,
}

impl StreamBuffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.bytes.capacity() - self.bytes.len() < bytes.len() {
            self.begin_block(self.bytes.len() + bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Goes on in a block with room for this many bytes. What is not cut off yet moves there.
    fn begin_block(&mut self, needed: usize) {
        let capacity = needed.max(BLOCK);
        let free = self.used.iter_mut().position(|block| block.try_reclaim(capacity));
        let mut next = free.and_then(|at| self.used.remove(at)).unwrap_or_else(|| BytesMut::with_capacity(capacity));
        next.extend_from_slice(&self.bytes);
        let mut before = mem::replace(&mut self.bytes, next);
        before.clear();
        if self.used.len() == MOST_USED {
            self.used.pop_front();
        }
        self.used.extend((before.capacity() > 0).then_some(before));
    }

    /// Cuts off the first bytes.
    ///
    /// # Panics
    /// If there are fewer.
    pub(crate) fn cut(&mut self, length: usize) -> Bytes {
        self.bytes.split_to(length).freeze()
    }

    /// Drops the first bytes.
    ///
    /// # Panics
    /// If there are fewer.
    pub(crate) fn advance(&mut self, length: usize) {
        self.bytes.advance(length);
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }
}

impl Deref for StreamBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of 300 kB: each begins a block, and the second block that nobody holds is found behind one that is held.
    #[test]
    fn a_block_is_used_again_when_its_frames_are_gone() {
        let frame = vec![7; 300_000];
        let mut buffer = StreamBuffer::default();
        let next = |buffer: &mut StreamBuffer| {
            buffer.push(&frame);
            buffer.cut(frame.len())
        };
        let held = next(&mut buffer);
        let places: Vec<_> = (0..4).map(|_| next(&mut buffer).as_ptr() as usize).collect();
        assert_eq!((places[0], places[1]), (places[2], places[3]), "two blocks take turns");
        assert!(!places.contains(&(held.as_ptr() as usize)));
        assert_eq!((held.len(), &held[..], buffer.len()), (frame.len(), &frame[..], 0));
    }

    #[test]
    fn an_unfinished_frame_moves_to_the_next_block() {
        let mut buffer = StreamBuffer::default();
        buffer.push(&vec![1; BLOCK - 10]);
        let first = buffer.cut(BLOCK - 20);
        buffer.push(&[2; 30]);
        assert!(first.iter().all(|byte| *byte == 1));
        assert_eq!(&buffer.cut(40)[..], [[1; 10].as_slice(), &[2; 30]].concat());
    }
}
