//! The message layer over libfabric: bytes leave by one call of the provider and arrive in one posted buffer.
//!
//! Messages of a frame (48 KiB, or the inject size of the provider) are injected if that surely sends them, or sent from
//! a slot. Longer ones use large buffers, of which a node has [`LARGE_BUFFERS`]. The tag has sender and number.

use crate::{
    OfiError, OfiOptions,
    ffi::Posted,
    links::{Links, LongReceives},
};
use evb_core::NodeId;
use evb_transport::{Connect, JoinError, MessageLayer, Refused, Take};
use std::time::Duration;

/// Long messages that a node can send and receive at a time.
const LARGE_BUFFERS: usize = 4;
/// Most messages from one peer before the next has its turn.
const TURN: usize = 64;
/// Providers whose injected messages are at the receiver when the call returns. With others an injected message may
/// stay in this node, and no completion tells when it has left.
const INJECTS_AT_ONCE: &[&str] = &["shm"];
/// Longest time that a drop takes to send the rest.
const DROP_PATIENCE: Duration = Duration::from_secs(1);

/// The endpoint of one node for the message layer.
pub struct OfiLayer {
    links: Links,
    inject_bytes: usize,
    lost: Vec<NodeId>,
}

impl OfiLayer {
    /// Opens an endpoint of node `local`.
    ///
    /// # Errors
    /// [`OfiError`] if there is no library or no such provider, or if the provider opens no endpoint.
    ///
    /// # Panics
    /// If `local` is not below `options.endpoint.nodes`.
    pub fn open(local: NodeId, options: OfiOptions) -> Result<Self, OfiError> {
        let large = LongReceives::Buffers { count: LARGE_BUFFERS, bytes: options.max_bytes };
        // A queue with a file to sleep on costs a call of the system for each message.
        let links = Links::open(local, options, large, false)?;
        let at_once = INJECTS_AT_ONCE.contains(&links.provider().as_str());
        let inject_bytes = if at_once { links.inject_bytes().min(links.frame_bytes()) } else { 0 };
        Ok(Self { links, inject_bytes, lost: Vec::new() })
    }

    /// Number of messages that were dropped: of unknown senders, without the key, with a wrong token, or out of place.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.links.rejected
    }

    fn send_from_slot(&mut self, to: usize, bytes: &[u8]) -> Posted {
        let large = bytes.len() > self.links.frame_bytes();
        let Some(slot) = self.links.slot(large, true) else { return Posted::Again };
        self.links.memory_mut(slot)[..bytes.len()].copy_from_slice(bytes);
        let result = self.links.send(to, slot, bytes.len(), large);
        if result != Posted::Yes {
            self.links.give_back(slot, large);
        }
        result
    }

    /// Checks that a peer takes a message now.
    #[inline]
    fn room(&mut self, to: usize) -> Result<(), Refused> {
        match self.links.peer(to) {
            Some(peer) if !peer.takes_messages() => Err(Refused::Lost),
            Some(peer) if !peer.has_credit() => Err(Refused::Full),
            Some(_) => Ok(()),
            None => Err(Refused::Lost),
        }
    }

    /// Delivers at most `limit` messages of one peer; returns their number.
    #[inline]
    fn give(&mut self, from: usize, limit: usize, take: &mut Take<'_>) -> usize {
        let mut given = 0;
        while given < limit {
            let Some(arrival) = self.links.peer(from).and_then(|peer| peer.ahead(0).copied()) else { break };
            take(NodeId(from as u16), &self.links.memory(arrival.operation)[..arrival.bytes]);
            self.links.consume(from);
            given += 1;
        }
        given
    }

    /// Returns true if this peer has more messages. A peer that is over is forgotten.
    #[inline]
    fn has_more(&mut self, from: usize) -> bool {
        let Some(peer) = self.links.peer(from) else { return false };
        if peer.ahead(0).is_some() {
            return true;
        }
        peer.active = false;
        if peer.is_over() {
            self.links.forget(from);
            self.lost.push(NodeId(from as u16));
        }
        false
    }
}

impl MessageLayer for OfiLayer {
    fn local(&self) -> NodeId {
        self.links.local
    }

    fn max_bytes(&self) -> usize {
        self.links.options.max_bytes.max(self.links.frame_bytes())
    }

    #[inline]
    fn send(&mut self, to: NodeId, bytes: &[u8]) -> Result<(), Refused> {
        let index = to.index();
        self.room(index)?;
        if bytes.len() > self.inject_bytes && bytes.len() > self.max_bytes() {
            return Err(Refused::TooLarge { limit: self.max_bytes() });
        }
        let result = if bytes.len() <= self.inject_bytes {
            self.links.inject(index, bytes)
        } else {
            self.send_from_slot(index, bytes)
        };
        match result {
            Posted::Yes => Ok(()),
            Posted::Again => Err(Refused::Full),
            Posted::Failed(_) => Err(Refused::Lost),
        }
    }

    fn flush(&mut self) -> bool {
        self.links.poll();
        self.links.outstanding() == 0
    }

    #[inline]
    fn receive(&mut self, limit: usize, take: &mut Take<'_>) -> usize {
        if self.links.active.is_empty() {
            self.links.poll();
        }
        let mut given = 0;
        for _ in 0..self.links.active.len() {
            if given == limit {
                break;
            }
            let Some(from) = self.links.active.pop_front() else { break };
            given += self.give(usize::from(from), TURN.min(limit - given), take);
            if self.has_more(usize::from(from)) {
                self.links.active.push_back(from);
            }
        }
        self.links.settle();
        given
    }

    fn lost(&mut self) -> Option<NodeId> {
        self.lost.pop()
    }

    fn wait(&mut self, timeout: Duration) {
        self.links.moved = false;
        self.links.wait(timeout, |links| links.moved || !links.active.is_empty());
    }
}

impl Connect for OfiLayer {
    fn address(&self) -> String {
        self.links.address()
    }

    fn connect(&mut self, peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        self.links.join(peers).map_err(JoinError::new)
    }
}

impl Drop for OfiLayer {
    fn drop(&mut self) {
        self.links.leave(DROP_PATIENCE);
    }
}
