//! The node's side of its transport: incoming and outgoing messages, and those that wait for a slow peer.

use bytes::Bytes;
use evb_core::{NodeId, NodeRange, Transmit};
use evb_protocol::{
    Message,
    wire::{self, Body},
};
use evb_record::Broadcast;
use evb_transport::{Broadcasts, Message as Envelope, Received, SendError, Transport};
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
    /// Receivers of the current broadcast that have no waiting messages.
    receivers: Vec<NodeId>,
    /// Broadcasts of the current run, and their receivers.
    counts: [u64; 2],
    /// State of the transport's broadcasts when the run began.
    before: Broadcasts,
    /// Mark of the messages of the current run: those of an earlier run may still arrive.
    run: wire::RunMark,
}

impl<T: Transport> Link<T> {
    pub(crate) fn new(transport: T, nodes: u16) -> Self {
        let waiting = (0..nodes).map(|_| VecDeque::new()).collect();
        Self {
            before: transport.broadcasts(),
            transport,
            inbox: Vec::with_capacity(BATCH),
            waiting,
            waiting_count: 0,
            sent: 0,
            receivers: Vec::with_capacity(nodes.into()),
            counts: [0; 2],
            run: wire::RunMark::default(),
        }
    }

    /// Sends and accepts messages of the next run only. All connected nodes do this once for each run.
    pub(crate) fn begin_run(&mut self) {
        self.run = self.run.next();
        self.waiting.iter_mut().for_each(VecDeque::clear);
        self.waiting_count = 0;
        (self.counts, self.before) = ([0; 2], self.transport.broadcasts());
    }

    /// The broadcasts of the current run.
    pub(crate) fn broadcasts(&self) -> Broadcast {
        let ([messages, receivers], before) = (self.counts, &self.before);
        let now = self.transport.broadcasts();
        let repeated = now.repeated - before.repeated;
        let copies = match now.is_shared() {
            true => 0,
            false => receivers + repeated - (now.saved - before.saved),
        };
        Broadcast {
            how: now.way.name().into(),
            messages,
            receivers,
            copies,
            repeated,
            asked: now.was_asked,
            fell_back: now.fell_back,
        }
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
            let envelope = Envelope { head, body };
            match transmit.to {
                NodeRange { first, count: 1 } => self.post(first, envelope),
                all => self.broadcast(all, envelope),
            }
        });
        self.waiting_count == 0
    }

    fn broadcast(&mut self, to: NodeRange, envelope: Envelope) {
        let all = u64::from(to.count);
        self.sent += all;
        self.counts = [self.counts[0] + 1, self.counts[1] + all];
        self.receivers.clear();
        for node in to.iter() {
            match self.waiting[node.index()].is_empty() {
                true => self.receivers.push(node),
                false => {
                    self.waiting_count += 1;
                    self.waiting[node.index()].push_back(envelope.clone());
                }
            }
        }
        let (waiting, count) = (&mut self.waiting, &mut self.waiting_count);
        self.transport.broadcast(&self.receivers, envelope, &mut |to, error| {
            if let SendError::Full(envelope) = error {
                *count += 1;
                waiting[to.index()].push_back(envelope);
            }
        });
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
