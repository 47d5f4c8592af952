//! What waits for one peer of a transport: full frames, the frame that is being filled, and bodies that follow theirs.

use crate::{
    ffi::{Operation, Posted},
    frame::{Body, RECORD_BYTES, Record},
    links::Links,
};
use bytes::Bytes;
use evb_transport::Message;
use std::collections::VecDeque;

/// One message of libfabric that waits.
enum Outgoing {
    /// A frame, filled that far, and the body that it announces.
    Frame { slot: Operation, bytes: usize, body: Option<Bytes> },
    /// A body whose frame has gone as this number.
    Body { number: u64, body: Bytes },
}

/// The queue to one peer.
#[derive(Default)]
pub(crate) struct Outbox {
    queue: VecDeque<Outgoing>,
    /// The last frame of the queue may take more.
    open: bool,
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Queues a message, unless that needs another frame and there are too many bytes already: then it comes back.
    pub(crate) fn push(&mut self, links: &mut Links, to: usize, message: Message) -> Result<(), Message> {
        let room = links.frame_bytes() - RECORD_BYTES;
        let Message { head, body } = message;
        if body.len() > room {
            let follows = Record { head, body: Body::Follows(body.len()) };
            return match self.new_frame(links, to, body.len()) {
                Some(slot) => {
                    let bytes = follows.encode(links.memory_mut(slot));
                    self.queue.push_back(Outgoing::Frame { slot, bytes, body: Some(body) });
                    self.open = false;
                    Ok(())
                }
                None => Err(Message { head, body }),
            };
        }
        let record = Record { head, body: Body::Here(&body) };
        if let Some(Outgoing::Frame { slot, bytes, .. }) = self.queue.back_mut().filter(|_| self.open)
            && *bytes + RECORD_BYTES + body.len() <= links.frame_bytes()
        {
            *bytes += record.encode(&mut links.memory_mut(*slot)[*bytes..]);
            return Ok(());
        }
        let Some(slot) = self.new_frame(links, to, 0) else { return Err(Message { head, body }) };
        let bytes = record.encode(links.memory_mut(slot));
        self.queue.push_back(Outgoing::Frame { slot, bytes, body: None });
        self.open = true;
        Ok(())
    }

    /// A slot for a frame and the count of what it costs, if there is room for that. One frame always fits.
    fn new_frame(&mut self, links: &mut Links, to: usize, body: usize) -> Option<Operation> {
        let (cost, limit) = (links.frame_bytes() + body, links.options.send_queue_bytes);
        let waiting = links.peer(to)?.out_bytes;
        if waiting > 0 && waiting + cost > limit {
            return None;
        }
        let slot = links.slot(false, true)?;
        links.peer(to)?.out_bytes += cost;
        Some(slot)
    }

    /// Sends what waits, as far as the peer takes it. True when nothing waits any more.
    pub(crate) fn send(&mut self, links: &mut Links, to: usize) -> bool {
        while let Some(first) = self.queue.front_mut() {
            match first {
                Outgoing::Frame { slot, bytes, body } => {
                    let Some(peer) = links.peer(to).filter(|peer| peer.has_credit()) else { return false };
                    let number = peer.sent;
                    if links.send(to, *slot, *bytes, false) != Posted::Yes {
                        return false;
                    }
                    match body.take() {
                        Some(body) => *first = Outgoing::Body { number, body },
                        None => drop(self.queue.pop_front()),
                    }
                }
                Outgoing::Body { number, body } => {
                    if links.send_body(to, *number, body) != Posted::Yes {
                        return false;
                    }
                    self.queue.pop_front();
                }
            }
        }
        self.open = false;
        true
    }

    /// Throws away what waits: the peer is gone.
    pub(crate) fn clear(&mut self, links: &mut Links) {
        for waiting in self.queue.drain(..) {
            if let Outgoing::Frame { slot, .. } = waiting {
                links.give_back(slot, false);
            }
        }
        self.open = false;
    }
}
