//! The node's side of its transport: incoming and outgoing messages, and those that wait for a slow peer.

use bytes::Bytes;
use evb_core::{NodeId, Transmit};
use evb_protocol::{
    Message,
    wire::{self, Body},
};
use evb_transport::{Message as Envelope, Received, SendError, Transport};
use std::collections::VecDeque;

/// Largest number of messages taken from the transport at once.
pub(crate) const BATCH: usize = 256;

/// An input from the link to its node.
pub(crate) enum Arrived {
    Message(NodeId, Message<Bytes>),
    Lost(NodeId, String),
    /// An invalid message. It is counted and dropped.
    Garbage,
}

pub(crate) struct Link<T> {
    pub(crate) transport: T,
    inbox: Vec<Received>,
    /// Messages that a full queue gave back, by destination: a slow peer holds up nobody else. The credits of the
    /// protocol bound their number.
    waiting: Vec<VecDeque<Envelope>>,
    waiting_count: usize,
    sent: u64,
    /// Mark of the messages of the current run: those of an earlier run may still arrive.
    run: wire::RunMark,
}

impl<T: Transport> Link<T> {
    pub(crate) fn new(transport: T, nodes: u16) -> Self {
        let waiting = (0..nodes).map(|_| VecDeque::new()).collect();
        Self {
            transport,
            inbox: Vec::with_capacity(BATCH),
            waiting,
            waiting_count: 0,
            sent: 0,
            run: wire::RunMark::default(),
        }
    }

    /// Sends and accepts messages of the next run only. All connected nodes do this once for each run.
    pub(crate) fn begin_run(&mut self) {
        self.run = self.run.next();
        self.waiting.iter_mut().for_each(VecDeque::clear);
        self.waiting_count = 0;
    }

    /// Gives all messages that have arrived to `handle`, and returns their number.
    pub(crate) fn receive(&mut self, mut handle: impl FnMut(Arrived)) -> usize {
        let count = self.transport.receive(BATCH, &mut self.inbox);
        for received in self.inbox.drain(..) {
            handle(match received {
                Received::Message { from, mut message } => match self.run.take_from(&mut message.head) {
                    true => match wire::decode(&message.head, message.body) {
                        Ok(message) => Arrived::Message(from, message),
                        Err(_) => Arrived::Garbage,
                    },
                    false => Arrived::Garbage,
                },
                Received::Lost { peer, reason } => Arrived::Lost(peer, reason),
            });
        }
        count
    }

    /// Sends a message; returns false if messages wait for the transport now.
    pub(crate) fn send(&mut self, transmit: Transmit<Message<Bytes>>) -> bool {
        wire::encode(transmit.message, |mut head, body| {
            self.run.put_into(&mut head);
            let body = match body {
                Body::Empty => Bytes::new(),
                Body::Payload(payload) => payload,
                Body::List(entries) => entries.into(),
            };
            let mut nodes = transmit.to.iter();
            let last = nodes.next_back();
            for to in nodes {
                self.post(to, Envelope { head, body: body.clone() });
            }
            if let Some(to) = last {
                self.post(to, Envelope { head, body });
            }
        });
        self.waiting_count == 0
    }

    fn post(&mut self, to: NodeId, envelope: Envelope) {
        self.sent += 1;
        if !self.waiting[to.index()].is_empty() {
            self.waiting_count += 1;
            return self.waiting[to.index()].push_back(envelope);
        }
        if let Err(SendError::Full(envelope)) = self.transport.send(to, envelope) {
            self.waiting_count += 1;
            self.waiting[to.index()].push_back(envelope);
        }
    }

    /// Sends waiting and queued messages. Returns the number of messages sent since the last call.
    pub(crate) fn flush(&mut self) -> u64 {
        if self.waiting_count > 0 {
            self.retry();
        }
        self.transport.flush();
        std::mem::take(&mut self.sent)
    }

    fn retry(&mut self) {
        for (to, queue) in self.waiting.iter_mut().enumerate() {
            while let Some(envelope) = queue.pop_front() {
                match self.transport.send(NodeId(to as u16), envelope) {
                    Err(SendError::Full(envelope)) => {
                        queue.push_front(envelope);
                        break;
                    }
                    _ => self.waiting_count -= 1,
                }
            }
        }
    }
}
