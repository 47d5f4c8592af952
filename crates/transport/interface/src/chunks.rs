//! Chunks of memory; received bodies are slices of them. Long bodies have rooms of their own.

use crate::ReceiveBuffers;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Bytes of one chunk: a few fit into a second-level cache.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;
/// Length below which bodies are copied, so that a small message that is kept does not keep a chunk.
pub(crate) const COPY_BELOW: usize = 512;
/// Length above which a body has a room of its own.
pub(crate) const ROOM_ABOVE: usize = CHUNK_BYTES / 4;
/// Most full chunks that are remembered for reuse.
const MOST_RETIRED: usize = 64;

/// The chunks that all connections of one node read into, one after the other. A chunk is reused when no body in it is
/// kept any more. So there is no allocation and no page fault in the steady state, and memory grows only with what
/// consumers keep.
#[derive(Debug, Default)]
pub struct ChunkPool {
    pub(crate) current: BytesMut,
    pub(crate) retired: VecDeque<BytesMut>,
    rooms: ReceiveBuffers<Vec<u8>>,
}

impl ChunkPool {
    /// A copy of a received body. A small one has memory of its own, and one that is large for a chunk has a room.
    #[inline]
    pub fn copy(&mut self, body: &[u8]) -> Bytes {
        if body.len() < COPY_BELOW {
            return Bytes::copy_from_slice(body);
        }
        if body.len() > ROOM_ABOVE {
            let mut room = self.room(body.len());
            room[..body.len()].copy_from_slice(body);
            return self.lend(room, body.len());
        }
        let chunk = self.with_room(body.len());
        chunk[..body.len()].copy_from_slice(body);
        chunk.split_to(body.len()).freeze()
    }

    /// Memory for a body of `bytes` bytes that is large for a chunk: at least as long, with any content.
    pub fn room(&mut self, bytes: usize) -> Vec<u8> {
        self.rooms.take(bytes, drop).unwrap_or_else(|| vec![0; bytes])
    }

    /// The body in the first `bytes` bytes of a [`room`](Self::room), which is used again when the body is dropped.
    pub fn lend(&self, room: Vec<u8>, bytes: usize) -> Bytes {
        self.rooms.lend(room, 0..bytes)
    }

    /// The current chunk, with room for at least `bytes` (at most a chunk).
    pub(crate) fn with_room(&mut self, bytes: usize) -> &mut BytesMut {
        debug_assert!(bytes <= CHUNK_BYTES, "tails are shorter than bodies with rooms");
        if self.current.len() < bytes {
            let next = self.reclaim().unwrap_or_else(|| BytesMut::zeroed(CHUNK_BYTES));
            self.retired.push_back(std::mem::replace(&mut self.current, next));
            if self.retired.len() > MOST_RETIRED {
                self.retired.pop_front();
            }
        }
        &mut self.current
    }

    fn reclaim(&mut self) -> Option<BytesMut> {
        for _ in 0..self.retired.len() {
            let mut chunk = self.retired.pop_front()?;
            chunk.clear();
            if chunk.try_reclaim(CHUNK_BYTES) {
                chunk.resize(CHUNK_BYTES, 0);
                return Some(chunk);
            }
            self.retired.push_back(chunk);
        }
        None
    }
}
