//! The transport over libfabric. Small messages share frames of up to 48 KiB. A longer message goes by itself, in place, into
//! a room that the receiver has offered before: memory for one message.
//!
//! An endpoint has no thread. Messages move within [`receive`](Transport::receive), [`flush`](Transport::flush) and
//! [`wait`](Transport::wait), and so do signs of life. A node must call one of them at least every half
//! [`peer_timeout`](OfiOptions::peer_timeout), or its peers take it for dead.

use crate::{
    OfiError, OfiOptions,
    frame::Record,
    links::{Links, LongReceives},
    outbox::Outbox,
};
use evb_core::NodeId;
use evb_transport::{ChunkPool, Connect, ConnectError, JoinError, Message, Received, SendError, Transport, Waker};
use std::time::{Duration, Instant};

/// Most messages from one peer before the next has its turn.
const TURN: usize = 64;
/// Bytes that wait for a peer before they are sent without a flush.
const WRITE_AHEAD_BYTES: usize = 256 << 10;
/// Longest time that a drop takes to send flushed messages and the goodbye.
const DROP_PATIENCE: Duration = Duration::from_secs(1);

/// The endpoint of one node for the transport.
pub struct Ofi {
    links: Links,
    outboxes: Vec<Outbox>,
    /// Offsets of the next records in the expected frames, by peer.
    offsets: Vec<usize>,
    /// Memory of bodies that arrived in frames.
    chunks: ChunkPool,
    /// Peers with something in their outbox.
    unsent: Vec<u16>,
}

impl Ofi {
    /// Opens an endpoint of node `local`.
    ///
    /// # Errors
    /// [`OfiError`] if there is no library or no such provider, or if the provider opens no endpoint.
    ///
    /// # Panics
    /// If `local` is not below `options.endpoint.nodes`.
    pub fn open(local: NodeId, options: OfiOptions) -> Result<Self, OfiError> {
        let nodes = usize::from(options.endpoint.nodes);
        Ok(Self {
            links: Links::open(local, options, LongReceives::Rooms, true)?,
            outboxes: (0..nodes).map(|_| Outbox::default()).collect(),
            offsets: vec![0; nodes],
            chunks: ChunkPool::default(),
            unsent: Vec::new(),
        })
    }

    /// The provider's full name, such as `tcp;ofi_rxm`.
    #[must_use]
    pub fn provider(&self) -> String {
        self.links.provider()
    }

    /// Number of messages that were dropped: of unknown senders, without the key, with a wrong token, or out of place.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.links.rejected
    }

    /// Joins these peers, all of which must name this node, too, within
    /// [`connect_timeout`](evb_transport::EndpointOptions::connect_timeout). Nodes may call this in any order; a peer may send before this
    /// returns.
    ///
    /// # Errors
    /// [`ConnectError`] names the peer that is missing or refuses this node.
    pub fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), ConnectError> {
        self.links.join(peers)
    }

    /// Sends the rest and says goodbye within `timeout`. Returns true if all messages have left this node. Dropping an
    /// endpoint sends flushed messages, and gives up after a second.
    pub fn close(mut self, timeout: Duration) -> bool {
        let start = Instant::now();
        let mut flushed = self.flush();
        while !flushed && start.elapsed() < timeout {
            self.wait(timeout.saturating_sub(start.elapsed()).min(Duration::from_millis(10)));
            flushed = self.flush();
        }
        self.links.leave(timeout.saturating_sub(start.elapsed())) && flushed
    }

    /// Sends the queues to all peers. Returns true if nothing waits any more.
    fn send_all(&mut self) -> bool {
        let (outboxes, links) = (&mut self.outboxes, &mut self.links);
        self.unsent.retain(|&index| !outboxes[usize::from(index)].send(links, usize::from(index)));
        self.unsent.is_empty()
    }

    /// Appends at most `limit` messages of one peer; returns true if it may have more.
    fn receive_from(&mut self, from: usize, limit: usize, sink: &mut Vec<Received>) -> bool {
        for _ in 0..limit {
            match self.next(from) {
                Some(Ok(message)) => sink.push(Received::Message { from: NodeId(from as u16), message }),
                // After a message that is missing, no other may be given.
                Some(Err(wrong)) => {
                    self.links.give_up(from, wrong.into());
                    self.links.discard(from);
                }
                None => return self.end(from, sink),
            }
        }
        true
    }

    /// The next message of a peer; an error if the peer breaks the protocol.
    fn next(&mut self, from: usize) -> Option<Result<Message, &'static str>> {
        let arrival = *self.links.peer(from)?.ahead(0)?;
        if self.links.is_long(arrival.operation) {
            return self.links.take_long(from).map(Ok);
        }
        let frame = &self.links.memory(arrival.operation)[self.offsets[from]..arrival.bytes];
        let Some((Record { head, body }, length)) = Record::decode(frame) else {
            return Some(Err("it sent something that is not a message"));
        };
        let (body, more) = (self.chunks.copy(body), length < frame.len());
        self.offsets[from] = if more { self.offsets[from] + length } else { 0 };
        if !more {
            self.links.consume(from);
        }
        Some(Ok(Message { head, body }))
    }

    /// Reports the end of a peer that is over.
    fn end(&mut self, from: usize, sink: &mut Vec<Received>) -> bool {
        let Some(peer) = self.links.peer(from) else { return false };
        if peer.is_over() {
            let reason = peer.reason();
            self.links.forget(from);
            self.outboxes[from].clear(&mut self.links);
            self.offsets[from] = 0;
            sink.push(Received::Lost { peer: NodeId(from as u16), reason });
        } else {
            peer.active = false;
        }
        false
    }
}

impl Transport for Ofi {
    fn local(&self) -> NodeId {
        self.links.local
    }

    fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        let (index, length, limit) = (to.index(), message.body.len(), self.links.options.endpoint.max_body);
        if length > limit {
            return Err(SendError::TooLarge { length, limit });
        }
        if !self.links.peer(index).is_some_and(|peer| peer.takes_messages()) {
            return Err(SendError::Lost);
        }
        let was_empty = self.outboxes[index].is_empty();
        if let Err(message) = self.outboxes[index].push(&mut self.links, index, message) {
            self.outboxes[index].send(&mut self.links, index);
            // What has left may not have been counted yet.
            self.links.poll();
            self.outboxes[index].push(&mut self.links, index, message).map_err(SendError::Full)?;
        }
        if was_empty {
            self.unsent.push(index as u16);
        }
        if self.links.peer(index).is_some_and(|peer| peer.out_bytes >= WRITE_AHEAD_BYTES && peer.has_credit()) {
            self.outboxes[index].send(&mut self.links, index);
        }
        Ok(())
    }

    fn flush(&mut self) -> bool {
        if self.send_all() && self.links.outstanding() == 0 {
            // A poll that finds nothing costs calls of the system, and `receive` makes one, too.
            self.links.tick(Instant::now());
            return true;
        }
        self.links.poll();
        self.send_all() && self.links.outstanding() == 0
    }

    fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize {
        self.links.poll();
        // What the user does between two calls may take long: how many there were says nothing of the time.
        self.links.tick(Instant::now());
        let before = sink.len();
        for _ in 0..self.links.active.len() {
            let left = limit - (sink.len() - before);
            if left == 0 {
                break;
            }
            let Some(from) = self.links.active.pop_front() else { break };
            if self.receive_from(usize::from(from), TURN.min(left), sink) {
                self.links.active.push_back(from);
            }
        }
        self.links.settle();
        sink.len() - before
    }

    fn wait(&mut self, timeout: Duration) {
        let (outboxes, unsent) = (&mut self.outboxes, &mut self.unsent);
        self.links.moved = false;
        self.links.wait(timeout, |links| {
            unsent.retain(|&index| !outboxes[usize::from(index)].send(links, usize::from(index)));
            links.moved || !links.active.is_empty()
        });
    }

    fn waker(&self) -> Waker {
        self.links.parker.waker()
    }
}

impl Connect for Ofi {
    fn address(&self) -> String {
        self.links.address()
    }

    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        Ofi::connect(self, peers).map_err(JoinError::new)
    }
}

impl Drop for Ofi {
    fn drop(&mut self) {
        self.send_all();
        self.links.leave(DROP_PATIENCE);
    }
}
