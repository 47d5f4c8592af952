//! The outgoing queue to one peer of a transport: full frames, the frame that is being filled, and long messages.

use crate::{
    ffi::{Operation, Posted},
    frame::{RECORD_BYTES, Record},
    links::Links,
};
use evb_transport::Message;
use std::collections::VecDeque;

/// Something that waits.
enum Item {
    /// A frame, and its filled length.
    Frame { slot: Operation, bytes: usize },
    /// A message that is too long for a frame.
    Long(Message),
}

/// The queue to one peer.
#[derive(Default)]
pub(crate) struct Outbox {
    queue: VecDeque<Item>,
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Queues a message, or returns it if it needs another frame and there are too many bytes already.
    pub(crate) fn push(&mut self, links: &mut Links, to: usize, message: Message) -> Result<(), Message> {
        let (frame, body) = (links.frame_bytes(), message.body.len());
        if RECORD_BYTES + body > frame {
            if !reserve(links, to, body) {
                return Err(message);
            }
            self.queue.push_back(Item::Long(message));
            return Ok(());
        }
        let record = Record { head: message.head, body: &message.body };
        if let Some(Item::Frame { slot, bytes }) = self.queue.back_mut()
            && *bytes + RECORD_BYTES + body <= frame
        {
            *bytes += record.encode(&mut links.memory_mut(*slot)[*bytes..]);
            return Ok(());
        }
        let Some(slot) = links.slot(false, true) else { return Err(message) };
        if !reserve(links, to, frame) {
            links.give_back(slot, false);
            return Err(message);
        }
        let bytes = record.encode(links.memory_mut(slot));
        self.queue.push_back(Item::Frame { slot, bytes });
        Ok(())
    }

    /// Sends the queue as far as the peer takes it, or drops it if the peer is gone. Returns true if nothing waits any
    /// more.
    pub(crate) fn send(&mut self, links: &mut Links, to: usize) -> bool {
        if !links.peer(to).is_some_and(|peer| peer.takes_messages()) {
            self.clear(links);
        }
        while let Some(item) = self.queue.front() {
            if !links.peer(to).is_some_and(|peer| peer.has_credit()) {
                return false;
            }
            let result = match item {
                Item::Frame { slot, bytes } => links.send(to, *slot, *bytes, false),
                Item::Long(message) => links.send_long(to, message),
            };
            if result != Posted::Yes {
                return false;
            }
            self.queue.pop_front();
        }
        true
    }

    /// Drops the queue: the peer is gone.
    pub(crate) fn clear(&mut self, links: &mut Links) {
        for item in self.queue.drain(..) {
            if let Item::Frame { slot, .. } = item {
                links.give_back(slot, false);
            }
        }
    }
}

/// Counts bytes that wait for a peer, if there is room for them. One frame or long message always fits.
fn reserve(links: &mut Links, to: usize, bytes: usize) -> bool {
    let limit = links.options.send_queue_bytes;
    let Some(peer) = links.peer(to) else { return false };
    let fits = peer.out_bytes == 0 || peer.out_bytes + bytes <= limit;
    peer.out_bytes += if fits { bytes } else { 0 };
    fits
}
