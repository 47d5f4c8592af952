//! Chunks of memory; received bodies are slices of them. Long bodies have their own buffers.

use crate::ReceiveBuffers;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Most full chunks that are remembered for reuse.
const MOST_RETIRED: usize = 64;

/// The chunks that all connections of one node read into, one after the other. A chunk is reused when no body in it is
/// kept any more. So there is no allocation and no page fault in the steady state, and memory grows only with what
/// consumers keep.
#[derive(Debug, Default)]
pub struct ChunkPool {
    current: BytesMut,
    retired: VecDeque<BytesMut>,
    buffers: ReceiveBuffers<Vec<u8>>,
}

impl ChunkPool {
    /// Bytes of one chunk: a few fit into a second-level cache.
    pub const CHUNK_BYTES: usize = 256 << 10;
    /// Length below which bodies are copied, so that a small message that is kept does not keep a chunk.
    pub const COPY_BELOW: usize = 512;
    /// Length above which a body has its own buffer.
    pub const LONGEST_IN_CHUNK: usize = Self::CHUNK_BYTES / 4;

    /// A copy of a received body. A small one has its own memory, and a long one its own buffer.
    #[inline]
    pub fn copy(&mut self, body: &[u8]) -> Bytes {
        if body.len() < Self::COPY_BELOW {
            return Bytes::copy_from_slice(body);
        }
        if body.len() > Self::LONGEST_IN_CHUNK {
            let mut buffer = self.buffer(body.len());
            buffer[..body.len()].copy_from_slice(body);
            return self.lend(buffer, body.len());
        }
        let chunk = self.chunk(body.len());
        chunk[..body.len()].copy_from_slice(body);
        chunk.split_to(body.len()).freeze()
    }

    /// A buffer for a body of `bytes` bytes that is too long for a chunk: at least as long, with any content.
    pub fn buffer(&mut self, bytes: usize) -> Vec<u8> {
        self.buffers.take(bytes, drop).unwrap_or_else(|| vec![0; bytes])
    }

    /// The body in the first `bytes` bytes of a [`buffer`](Self::buffer), which is used again when the body is dropped.
    pub fn lend(&self, buffer: Vec<u8>, bytes: usize) -> Bytes {
        self.buffers.lend(buffer, 0..bytes)
    }

    /// The current chunk, with room for at least `bytes` (at most a chunk).
    pub fn chunk(&mut self, bytes: usize) -> &mut BytesMut {
        debug_assert!(bytes <= Self::CHUNK_BYTES, "tails are shorter than bodies with their own buffers");
        if self.current.len() < bytes {
            let next = self.reclaim().unwrap_or_else(|| BytesMut::zeroed(Self::CHUNK_BYTES));
            self.retired.push_back(std::mem::replace(&mut self.current, next));
            if self.retired.len() > MOST_RETIRED {
                self.retired.pop_front();
            }
        }
        &mut self.current
    }

    /// Number of full chunks that are remembered for reuse.
    #[must_use]
    pub fn retired(&self) -> usize {
        self.retired.len()
    }

    fn reclaim(&mut self) -> Option<BytesMut> {
        for _ in 0..self.retired.len() {
            let mut chunk = self.retired.pop_front()?;
            chunk.clear();
            if chunk.try_reclaim(Self::CHUNK_BYTES) {
                chunk.resize(Self::CHUNK_BYTES, 0);
                return Some(chunk);
            }
            self.retired.push_back(chunk);
        }
        None
    }
}
