//! The bytes of a stream that wait to be cut into frames.
//!
//! Frames are cut from large blocks without a copy. A block whose frames are all gone is used again: a new one would cost more than
//! all else that is done for its frames, because the system clears each page of new memory.

use bytes::{Buf as _, Bytes, BytesMut};
use std::{collections::VecDeque, mem, ops::Deref};

/// Bytes of a block, if no frame is longer.
const BLOCK: usize = 512 << 10;
/// Most bytes of blocks that wait to be used again.
const MOST_USED: usize = 32 << 20;

/// Bytes that were pushed and are not cut off yet.
#[derive(Debug, Default)]
pub(crate) struct StreamBuffer {
    bytes: BytesMut,
    /// Bytes of its block.
    size: usize,
    /// Blocks whose frames may still be there, with their bytes.
    used: VecDeque<(usize, BytesMut)>,
    used_bytes: usize,
}

impl StreamBuffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.bytes.capacity() - self.bytes.len() < bytes.len() {
            self.begin_block(self.bytes.len() + bytes.len());
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Goes on in a block with room for this many bytes. What is not cut off yet moves there: blocks double, so that a long
    /// frame does not move for each piece of it.
    fn begin_block(&mut self, needed: usize) {
        let size = needed.next_power_of_two().max(BLOCK);
        let free = self.used.iter_mut().position(|(_, block)| block.try_reclaim(size));
        let (size, mut next) = match free.and_then(|at| self.used.remove(at)) {
            Some((size, block)) => {
                self.used_bytes -= size;
                (size, block)
            }
            None => (size, BytesMut::with_capacity(size)),
        };
        next.extend_from_slice(&self.bytes);
        let (size, before) = (mem::replace(&mut self.size, size), mem::replace(&mut self.bytes, next));
        self.keep(size, before);
    }

    /// Keeps a block to be used again, in place of the oldest ones if there are too many.
    fn keep(&mut self, size: usize, mut block: BytesMut) {
        block.clear();
        if (1..=MOST_USED).contains(&size) {
            self.used_bytes += size;
            self.used.push_back((size, block));
        }
        while self.used_bytes > MOST_USED
            && let Some((size, _)) = self.used.pop_front()
        {
            self.used_bytes -= size;
        }
    }

    /// Most bytes that a buffer of frames of up to `most` bytes keeps: a block with an unfinished frame and the bytes of a read,
    /// one that it moves from, and those that wait.
    pub(crate) fn most_memory(most: usize, read: usize) -> u64 {
        let block = (most + read).next_power_of_two().max(BLOCK) as u64;
        block.saturating_mul(2).saturating_add(MOST_USED as u64)
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

    /// A frame of 24 MB in small pieces: blocks double, and no more of them wait than the limit.
    #[test]
    fn what_waits_to_be_used_again_has_a_limit() {
        let mut buffer = StreamBuffer::default();
        let (piece, mut blocks) = (vec![7; 50_000], Vec::new());
        for _ in 0..3 {
            for _ in 0..480 {
                buffer.push(&piece);
                blocks.push(buffer.as_ptr() as usize);
                assert!(buffer.used_bytes <= MOST_USED);
                assert_eq!(buffer.used_bytes, buffer.used.iter().map(|(size, _)| size).sum::<usize>());
            }
            assert!(buffer.cut(24_000_000).iter().all(|byte| *byte == 7));
        }
        blocks.dedup();
        assert!(blocks.len() < 30, "it moved {} times", blocks.len());
        assert!(buffer.size as u64 <= StreamBuffer::most_memory(24_000_000, 50_000));
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
