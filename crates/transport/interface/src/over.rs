//! The message layer over any transport, for transports without their own.

use crate::{
    Connect, HEAD_BYTES, JoinError, Message, MessageLayer, Received, Refused, SendError, Take, Transport,
    bodies::Bodies,
};
use bytes::Bytes;
use evb_core::NodeId;
use std::{collections::VecDeque, time::Duration};

/// Longest message that travels in the head alone: its last byte has the length.
const LONGEST_IN_HEAD: usize = HEAD_BYTES - 1;
/// Value in place of the length when all bytes are in the body.
const IN_BODY: u8 = u8::MAX;

/// A [`MessageLayer`] that makes a [`Message`] of the bytes. A short one goes into the head. A longer one is copied
/// once, into memory that is reused when the receiver is done with it.
#[derive(Debug)]
pub struct OverTransport<T> {
    transport: T,
    max_bytes: usize,
    bodies: Bodies,
    inbox: Vec<Received>,
    gone: VecDeque<NodeId>,
}

impl<T: Transport> OverTransport<T> {
    /// The layer over a connected endpoint that takes bodies of `max_bytes`.
    pub fn new(transport: T, max_bytes: usize) -> Self {
        Self { transport, max_bytes, bodies: Bodies::default(), inbox: Vec::new(), gone: VecDeque::new() }
    }
}

impl<T: Transport> MessageLayer for OverTransport<T> {
    fn local(&self) -> NodeId {
        self.transport.local()
    }

    fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    fn send(&mut self, to: NodeId, bytes: &[u8]) -> Result<(), Refused> {
        let mut head = [0; HEAD_BYTES];
        let body = if bytes.len() <= LONGEST_IN_HEAD {
            head[..bytes.len()].copy_from_slice(bytes);
            head[LONGEST_IN_HEAD] = bytes.len() as u8;
            Bytes::new()
        } else {
            head[LONGEST_IN_HEAD] = IN_BODY;
            self.bodies.copy(bytes)
        };
        self.transport.send(to, Message { head, body }).map_err(|error| match error {
            SendError::Full(message) => {
                self.bodies.take_back(message.body);
                Refused::Full
            }
            SendError::Lost => Refused::Lost,
            SendError::TooLarge { limit, .. } => Refused::TooLarge { limit },
        })
    }

    fn flush(&mut self) -> bool {
        self.transport.flush()
    }

    fn receive(&mut self, limit: usize, take: &mut Take<'_>) -> usize {
        self.transport.receive(limit, &mut self.inbox);
        let mut count = 0;
        for received in self.inbox.drain(..) {
            match received {
                Received::Message { from, message: Message { head, body } } => {
                    count += 1;
                    match head[LONGEST_IN_HEAD] {
                        IN_BODY => take(from, &body),
                        length => take(from, &head[..usize::from(length).min(LONGEST_IN_HEAD)]),
                    }
                }
                Received::Lost { peer, .. } => self.gone.push_back(peer),
            }
        }
        count
    }

    fn lost(&mut self) -> Option<NodeId> {
        self.gone.pop_front()
    }

    fn wait(&mut self, timeout: Duration) {
        self.transport.wait(timeout);
    }
}

impl<T: Connect> Connect for OverTransport<T> {
    fn address(&self) -> String {
        self.transport.address()
    }

    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        self.transport.connect(peers)
    }
}
