//! Assembly of messages from the records of a peer's lane.

use super::{
    lending::SLOTS,
    link::{Lent, read_until},
    peer::{MOST_INLINE, PLACE_BYTES, Peer, ReceiveTurn, TOTAL_BYTES},
    record::{Record, RecordKind},
};
use bytes::{Bytes, BytesMut};
use evb_core::NodeId;
use evb_transport::{ChunkPool, HEAD_BYTES, Message, Received};

/// Records in one turn from which a lane is in a burst.
const BURST: usize = 4;

impl Peer {
    /// Appends at most `limit` messages, and the news of the peer's end after its last one.
    pub(super) fn receive(&mut self, limit: usize, chunks: &mut ChunkPool, sink: &mut Vec<Received>) -> ReceiveTurn {
        let end = sink.len() + limit;
        while sink.len() < end {
            match self.next_message(chunks) {
                Ok(Some(message)) => sink.push(Received::Message { from: self.node, message }),
                Ok(None) => return ReceiveTurn::Over,
                Err(reason) => {
                    sink.push(Received::Lost { peer: self.node, reason });
                    return ReceiveTurn::Lost;
                }
            }
        }
        ReceiveTurn::Over
    }

    /// Calls `take` with at most `limit` unchanged records; returns their number, and whether the peer is gone.
    #[inline]
    pub(super) fn receive_bytes(
        &mut self,
        limit: usize,
        scratch: &mut [u8],
        mut take: impl FnMut(NodeId, &[u8]),
    ) -> (usize, ReceiveTurn) {
        let mut far = true;
        for count in 0..limit {
            match self.next_record() {
                Ok(Some(record)) if record.kind == RecordKind::Whole => {
                    let bytes = &mut scratch[..record.length];
                    self.incoming.read(record, 0, bytes);
                    self.release(record);
                    far = far && (count < BURST || self.incoming.look_ahead());
                    take(self.node, bytes);
                }
                Ok(None) => return (count, ReceiveTurn::Over),
                Ok(Some(_)) | Err(_) => return (count, ReceiveTurn::Lost),
            }
        }
        (limit, ReceiveTurn::Over)
    }

    fn next_message(&mut self, chunks: &mut ChunkPool) -> Result<Option<Message>, String> {
        while let Some(record) = self.next_record()? {
            let message = match (record.kind, &self.inbox) {
                (RecordKind::Whole, None) => self.take_whole(record, chunks).map(Some),
                (RecordKind::Lent, None) => self.take_lent(record).map(Some),
                (RecordKind::Begin, None) => self.begin(record).map(|()| None),
                (RecordKind::Piece, Some(_)) => self.take_piece(record),
                _ => None,
            };
            let message = message.ok_or_else(|| broken(&format!("a record {record:?} out of place")))?;
            self.release(record);
            if message.is_some() {
                return Ok(message);
            }
        }
        Ok(None)
    }

    /// The next record; an error if the lane is broken, or empty after the end of the peer.
    #[inline]
    fn next_record(&mut self) -> Result<Option<Record>, String> {
        match self.incoming.next() {
            Ok(None) if self.ended.is_some() => Err(self.end()),
            Ok(Some(_)) if self.ended.as_ref().is_some_and(|(_, last)| self.incoming.position() >= *last) => {
                Err(self.end())
            }
            Ok(record) => Ok(record),
            Err(word) => Err(broken(&format!("a header {:#x}", word.0))),
        }
    }

    #[cold]
    fn end(&mut self) -> String {
        let within = if self.inbox.is_some() { " within a message" } else { "" };
        self.ended.take().map(|(reason, _)| format!("{reason}{within}")).unwrap_or_default()
    }

    #[inline]
    fn release(&mut self, record: Record) {
        if self.incoming.advance(record, read_until(&self.link.credit)) {
            self.link.relieve();
        }
    }

    fn read_head(&self, record: Record, more: usize) -> Option<[u8; HEAD_BYTES]> {
        let mut head = [0; HEAD_BYTES];
        (record.length >= HEAD_BYTES + more).then(|| self.incoming.read(record, 0, &mut head))?;
        Some(head)
    }

    fn read_word(&self, record: Record, index: usize) -> usize {
        let mut bytes = [0; 8];
        self.incoming.read(record, HEAD_BYTES + 8 * index, &mut bytes);
        u64::from_ne_bytes(bytes) as usize
    }

    #[inline]
    fn take_whole(&self, record: Record, chunks: &mut ChunkPool) -> Option<Message> {
        let head = self.read_head(record, 0)?;
        let length = record.length - HEAD_BYTES;
        if length > MOST_INLINE.min(self.cut.max_body) {
            return None;
        }
        let body = match length {
            0 => Bytes::new(),
            1..ChunkPool::COPY_BELOW => {
                let mut bytes = [0; ChunkPool::COPY_BELOW];
                self.incoming.read(record, HEAD_BYTES, &mut bytes[..length]);
                Bytes::copy_from_slice(&bytes[..length])
            }
            _ => {
                let chunk = chunks.chunk(length);
                self.incoming.read(record, HEAD_BYTES, &mut chunk[..length]);
                chunk.split_to(length).freeze()
            }
        };
        Some(Message { head, body })
    }

    fn take_lent(&self, record: Record) -> Option<Message> {
        let head = self.read_head(record, PLACE_BYTES)?;
        let [offset, length, slot] = [0, 1, 2].map(|index| self.read_word(record, index));
        let end = offset.checked_add(length)?;
        let good = length <= self.cut.max_body && end <= self.link.pool_bytes() && slot < SLOTS;
        good.then(|| Message { head, body: Bytes::from_owner(Lent::new(&self.link, offset..end, slot)) })
    }

    fn begin(&mut self, record: Record) -> Option<()> {
        let head = self.read_head(record, TOTAL_BYTES)?;
        let total = self.read_word(record, 0);
        let good = record.length == HEAD_BYTES + TOTAL_BYTES && (1..=self.cut.max_body).contains(&total);
        good.then(|| self.inbox = Some((head, BytesMut::with_capacity(total), total)))
    }

    /// Takes a piece of a message; returns the message if this was its last piece.
    fn take_piece(&mut self, record: Record) -> Option<Option<Message>> {
        let (head, body, total) = self.inbox.as_mut()?;
        let filled = body.len();
        if filled + record.length > *total {
            return None;
        }
        body.resize(filled + record.length, 0);
        self.incoming.read(record, 0, &mut body[filled..]);
        if body.len() < *total {
            return Some(None);
        }
        let message = Message { head: *head, body: std::mem::take(body).freeze() };
        self.inbox = None;
        Some(Some(message))
    }
}

#[cold]
fn broken(what: &str) -> String {
    format!("its lane is broken: {what}")
}
