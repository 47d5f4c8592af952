//! Assembly of messages from the bytes of a connection: bodies are slices of the chunk that they were read into.

use super::frame::{FrameError, FrameHeader, FrameParser};
use bytes::{Buf, Bytes, BytesMut};
use evb_transport::{ChunkPool, HEAD_BYTES, Message};
use std::io;

/// Least room in a chunk for another read.
const LEAST_ROOM: usize = ChunkPool::CHUNK_BYTES / 4;

/// The messages of one connection.
#[derive(Debug)]
pub(super) struct FrameReader {
    parser: FrameParser,
    unparsed: BytesMut,
    body: Option<PendingBody>,
}

/// A message whose header was read.
#[derive(Debug)]
struct PendingBody {
    head: [u8; HEAD_BYTES],
    length: usize,
    /// The body's room, if it is large, and the number of bytes that have arrived.
    own: Option<(Vec<u8>, usize)>,
}

impl FrameReader {
    pub(super) fn new(max_body: usize) -> Self {
        Self { parser: FrameParser::new(max_body), unparsed: BytesMut::new(), body: None }
    }

    /// The next complete message.
    pub(super) fn next(&mut self, pool: &mut ChunkPool) -> Result<Option<Message>, FrameError> {
        while self.body.is_none() {
            let Some(header) = self.parser.parse(&self.unparsed)? else {
                self.let_go();
                return Ok(None);
            };
            self.unparsed.advance(header.bytes());
            if let FrameHeader::Message { head, body: length } = header {
                self.body = Some(PendingBody { head, length, own: None });
            }
        }
        let message = self.finish_body(pool);
        if message.is_none() {
            self.let_go();
        }
        Ok(message)
    }

    /// Returns true if the peer has sent a goodbye.
    pub(super) fn ended(&self) -> bool {
        self.parser.ended()
    }

    /// Returns true if the bytes so far end between two frames.
    pub(super) fn between_frames(&self) -> bool {
        self.unparsed.is_empty() && self.body.is_none()
    }

    /// Lets `read` put bytes into a slice. `read` returns their number, and whether it filled the slice. To be called
    /// when [`next`](FrameReader::next) returns nothing more.
    pub(super) fn fill(
        &mut self,
        pool: &mut ChunkPool,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<(usize, bool)> {
        if let Some(PendingBody { own: Some((room, filled)), length, .. }) = &mut self.body {
            let room = &mut room[*filled..*length];
            let (asked, count) = (room.len(), read(room)?);
            *filled += count;
            return Ok((count, count == asked));
        }
        let tail = self.unparsed.len();
        let chunk = pool.chunk(tail + LEAST_ROOM);
        chunk[..tail].copy_from_slice(&self.unparsed);
        let (asked, count) = (chunk.len() - tail, read(&mut chunk[tail..])?);
        if count > 0 {
            self.unparsed = chunk.split_to(tail + count);
        }
        Ok((count, count == asked))
    }

    fn finish_body(&mut self, pool: &mut ChunkPool) -> Option<Message> {
        let PendingBody { head, length, own } = self.body.as_mut()?;
        let (head, length) = (*head, *length);
        let body = match own {
            Some((room, filled)) if *filled == length => pool.lend(std::mem::take(room), length),
            Some(_) => return None,
            None if self.unparsed.len() >= length => self.cut(length),
            None => {
                if length > ChunkPool::LONGEST_IN_CHUNK {
                    let (mut room, filled) = (pool.buffer(length), self.unparsed.len());
                    room[..filled].copy_from_slice(&self.unparsed);
                    *own = Some((room, filled));
                    self.unparsed.clear();
                }
                return None;
            }
        };
        self.body = None;
        Some(Message { head, body })
    }

    /// Takes a body off the front.
    fn cut(&mut self, length: usize) -> Bytes {
        if length >= ChunkPool::COPY_BELOW {
            return self.unparsed.split_to(length).freeze();
        }
        let body = Bytes::copy_from_slice(&self.unparsed[..length]);
        self.unparsed.advance(length);
        body
    }

    /// Drops an empty rest, which must not keep a chunk.
    fn let_go(&mut self) {
        if self.unparsed.is_empty() {
            self.unparsed = BytesMut::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(bodies: &[usize]) -> Vec<u8> {
        let mut wire = Vec::new();
        for (sequence, &body) in bodies.iter().enumerate() {
            FrameHeader::Message { head: [sequence as u8; HEAD_BYTES], body }.encode(sequence as u32, &mut wire);
            wire.resize(wire.len() + body, sequence as u8);
        }
        wire
    }

    /// Feeds `wire` in pieces of at most `piece` bytes and returns the messages.
    fn feed(reader: &mut FrameReader, pool: &mut ChunkPool, mut wire: &[u8], piece: usize) -> Vec<Message> {
        let mut messages = Vec::new();
        while !wire.is_empty() {
            let read = |room: &mut [u8]| {
                let count = room.len().min(piece).min(wire.len());
                room[..count].copy_from_slice(&wire[..count]);
                wire = &wire[count..];
                Ok(count)
            };
            reader.fill(pool, read).unwrap();
            while let Some(message) = reader.next(pool).unwrap() {
                messages.push(message);
            }
        }
        messages
    }

    #[test]
    fn bodies_survive_every_kind_of_cut() {
        let bodies = [
            0,
            1,
            ChunkPool::COPY_BELOW - 1,
            ChunkPool::COPY_BELOW,
            ChunkPool::LONGEST_IN_CHUNK,
            ChunkPool::LONGEST_IN_CHUNK + 1,
            3 * ChunkPool::CHUNK_BYTES,
            0,
            5,
        ];
        let wire = wire(&bodies);
        for piece in [97, 4096, 65_537, usize::MAX] {
            let (mut reader, mut pool) = (FrameReader::new(1 << 20), ChunkPool::default());
            let messages = feed(&mut reader, &mut pool, &wire, piece);
            assert_eq!(
                messages.iter().map(|message| message.body.len()).collect::<Vec<_>>(),
                bodies,
                "pieces of {piece}"
            );
            for (sequence, message) in messages.iter().enumerate() {
                assert!(message.body.iter().chain(&message.head).all(|&byte| byte == sequence as u8));
            }
            assert!(reader.between_frames());
        }
    }

    #[test]
    fn chunks_are_used_again_unless_a_large_body_keeps_them() {
        let (mut reader, mut pool) = (FrameReader::new(1 << 20), ChunkPool::default());
        let wire = wire(&[2048; 200]);
        let mut kept = Vec::new();
        for round in 0..200 {
            reader.parser = FrameParser::new(1 << 20);
            let messages = feed(&mut reader, &mut pool, &wire, usize::MAX);
            if round < 3 {
                kept.extend(messages.into_iter().step_by(100));
            }
        }
        assert!(pool.retired() < 20, "{} chunks", pool.retired());
        assert!(kept.iter().all(|message| message.body.iter().all(|&byte| byte == message.head[0])));
    }

    #[test]
    fn a_small_body_keeps_no_chunk() {
        let (mut reader, mut pool) = (FrameReader::new(1 << 20), ChunkPool::default());
        let kept = feed(&mut reader, &mut pool, &wire(&[ChunkPool::COPY_BELOW - 1]), usize::MAX);
        let mut chunk = std::mem::take(pool.chunk(0));
        chunk.clear();
        assert!(chunk.try_reclaim(ChunkPool::CHUNK_BYTES), "{} bytes are kept in a copy", kept[0].body.len());
    }
}
