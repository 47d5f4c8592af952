//! The outgoing queue to one peer of a transport: full frames, the frame that is being filled, and bodies that follow
//! their frames.

use crate::{
    ffi::{Operation, Posted},
    frame::{Body, RECORD_BYTES, Record},
    links::Links,
};
use bytes::Bytes;
use evb_transport::Message;
use std::collections::VecDeque;

/// A frame that waits, its filled length, and the body that it announces.
struct Frame {
    slot: Operation,
    bytes: usize,
    body: Option<Bytes>,
}

/// The queue to one peer.
#[derive(Default)]
pub(crate) struct Outbox {
    queue: VecDeque<Frame>,
    /// Bodies whose frames have gone, by number. Each is sent when the peer has a buffer for it.
    announced: Vec<(u64, Bytes)>,
    /// True if the last frame of the queue may take more.
    open: bool,
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.announced.is_empty()
    }

    /// Queues a message, or returns it if it needs another frame and there are too many bytes already.
    pub(crate) fn push(&mut self, links: &mut Links, to: usize, message: Message) -> Result<(), Message> {
        let room = links.frame_bytes() - RECORD_BYTES;
        let Message { head, body } = message;
        if body.len() > room {
            let follows = Record { head, body: Body::Follows(body.len()) };
            return match self.new_frame(links, to, body.len()) {
                Some(slot) => {
                    let bytes = follows.encode(links.memory_mut(slot));
                    self.queue.push_back(Frame { slot, bytes, body: Some(body) });
                    self.open = false;
                    Ok(())
                }
                None => Err(Message { head, body }),
            };
        }
        let record = Record { head, body: Body::Here(&body) };
        if let Some(Frame { slot, bytes, .. }) = self.queue.back_mut().filter(|_| self.open)
            && *bytes + RECORD_BYTES + body.len() <= links.frame_bytes()
        {
            *bytes += record.encode(&mut links.memory_mut(*slot)[*bytes..]);
            return Ok(());
        }
        let Some(slot) = self.new_frame(links, to, 0) else { return Err(Message { head, body }) };
        let bytes = record.encode(links.memory_mut(slot));
        self.queue.push_back(Frame { slot, bytes, body: None });
        self.open = true;
        Ok(())
    }

    /// A slot for a frame with its cost, if there is room for it. One frame always fits.
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

    /// Sends the queue as far as the peer takes it, or drops it if the peer is gone. Returns true if nothing waits any
    /// more.
    pub(crate) fn send(&mut self, links: &mut Links, to: usize) -> bool {
        if !links.peer(to).is_some_and(|peer| peer.takes_messages()) {
            self.clear(links);
        }
        self.send_permitted(links, to);
        while let Some(Frame { slot, bytes, body }) = self.queue.front_mut() {
            let Some(peer) = links.peer(to).filter(|peer| peer.has_credit()) else { return false };
            let number = peer.sent;
            if links.send(to, *slot, *bytes, false) != Posted::Yes {
                return false;
            }
            self.announced.extend(body.take().map(|body| (number, body)));
            self.queue.pop_front();
        }
        self.open = false;
        self.announced.is_empty()
    }

    /// Sends the bodies that the peer has buffers for.
    fn send_permitted(&mut self, links: &mut Links, to: usize) {
        while let Some(number) = links.peer(to).and_then(|peer| peer.permitted.pop_front()) {
            let Some(index) = self.announced.iter().position(|(announced, _)| *announced == number) else { continue };
            match links.send_body(to, number, &self.announced[index].1) {
                Posted::Yes => drop(self.announced.swap_remove(index)),
                Posted::Again => return links.peer(to).into_iter().for_each(|peer| peer.permitted.push_front(number)),
                Posted::Failed(_) => return,
            }
        }
    }

    /// Drops the queue: the peer is gone.
    pub(crate) fn clear(&mut self, links: &mut Links) {
        self.queue.drain(..).for_each(|frame| links.give_back(frame.slot, false));
        self.announced.clear();
        self.open = false;
    }
}
