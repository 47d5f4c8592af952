//! The node's side of its transport: incoming and outgoing messages.

use crate::control_lane::ControlLane;
use crate::outbox::{Outbox, report_links};
use bytes::Bytes;
use evb_core::{NodeId, NodeRange, Transmit};
use evb_protocol::{
    Message,
    wire::{self, Body},
};
use evb_record::Broadcast;
use evb_transport::{Broadcasts, Message as Envelope, Received, Transport};
use evb_unit::{DeadLink, TURN_MESSAGES};

/// An input from the link to its node.
pub(crate) enum Arrived {
    Message(NodeId, Message<Bytes>),
    Lost(NodeId, String),
    /// An invalid message. It is counted and dropped.
    Garbage,
}

pub(crate) struct NodeLink<T> {
    pub(crate) outbox: Outbox<T>,
    /// The transport of control messages, if they have a separate one.
    control: Option<ControlLane>,
    inbox: Vec<Received>,
    sent: u64,
    /// Broadcasts of the current run, and their receivers.
    counts: [u64; 2],
    /// State of the transport's broadcasts when the run began.
    before: Broadcasts,
    /// Mark of the messages of the current run: those of an earlier run may still arrive.
    run: wire::RunMark,
}

impl<T: Transport> NodeLink<T> {
    pub(crate) fn new(transport: T, nodes: u16) -> Self {
        Self {
            before: transport.broadcasts(),
            outbox: Outbox::new(transport, nodes),
            control: None,
            inbox: Vec::with_capacity(TURN_MESSAGES),
            sent: 0,
            counts: [0; 2],
            run: wire::RunMark::default(),
        }
    }

    /// Sends control messages on a separate transport.
    pub(crate) fn with_control(mut self, lane: Option<ControlLane>) -> Self {
        self.control = lane;
        self.before = self.transport_broadcasts();
        self
    }

    /// Sends and accepts messages of the next run only. All connected nodes do this once for each run.
    pub(crate) fn begin_run(&mut self) {
        self.run = self.run.next();
        self.outbox.clear();
        self.count_anew();
    }

    /// Counts broadcasts anew: those of the next run.
    pub(crate) fn count_anew(&mut self) {
        (self.counts, self.before) = ([0; 2], self.transport_broadcasts());
    }

    /// The broadcasts of the current run.
    pub(crate) fn broadcasts(&self) -> Broadcast {
        let ([messages, receivers], before) = (self.counts, &self.before);
        let now = self.transport_broadcasts();
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

    /// The links that died although the peers live.
    pub(crate) fn dead_links(&self) -> Vec<DeadLink> {
        let of_control = self.control.as_ref().map(ControlLane::dead_links).unwrap_or_default();
        report_links(self.outbox.transport.dead_links()).chain(of_control).collect()
    }

    /// Gives all messages that have arrived to `handle`, and returns their number.
    pub(crate) fn receive(&mut self, mut handle: impl FnMut(Arrived)) -> usize {
        let mut count = self.outbox.transport.receive(TURN_MESSAGES, &mut self.inbox);
        if let Some(lane) = &mut self.control {
            count = lane.receive(TURN_MESSAGES, &mut self.inbox);
        }
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
        !self.outbox.is_waiting()
    }

    fn broadcast(&mut self, to: NodeRange, envelope: Envelope) {
        let all = u64::from(to.count);
        self.sent += all;
        self.counts = [self.counts[0] + 1, self.counts[1] + all];
        match &mut self.control {
            Some(lane) if to.iter().all(|node| lane.carries(node)) => lane.post(to, envelope),
            Some(_) => to.iter().for_each(|node| self.post(node, envelope.clone())),
            None => self.outbox.broadcast(to, envelope),
        }
    }

    /// State of the broadcasts of the transport that carries them.
    fn transport_broadcasts(&self) -> Broadcasts {
        match &self.control {
            Some(lane) => lane.broadcasts(),
            None => self.outbox.transport.broadcasts(),
        }
    }

    fn post(&mut self, to: NodeId, envelope: Envelope) {
        self.sent += 1;
        match &mut self.control {
            Some(lane) if lane.carries(to) => lane.post(to.into(), envelope),
            _ => self.outbox.post(to, envelope),
        }
    }

    /// Sends waiting and queued messages. Returns the number of messages sent since the last call.
    pub(crate) fn flush(&mut self) -> u64 {
        self.outbox.flush();
        if let Some(lane) = &mut self.control {
            lane.flush();
        }
        std::mem::take(&mut self.sent)
    }
}
