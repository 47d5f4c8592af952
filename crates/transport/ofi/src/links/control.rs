//! Identity and progress of peers, and the clock.

use super::{BufferRole, Links};
use crate::{
    control::{Hello, Status},
    ffi::{Operation, Posted},
    peer::Peer,
    tags::{Tag, TagKind},
};
use evb_core::NodeId;
use evb_transport::Refusal;
use std::time::{Duration, Instant};

/// Number of checks in the longest silence. A peer is given up after one more check without a sign of life.
const LOOKS: u32 = 8;
/// Number of checks for a peer that has said goodbye.
const LOOKS_AFTER_GOODBYE: u32 = 2;

impl Links {
    pub(super) fn hear_status(&mut self, operation: Operation, bytes: usize, from: NodeId, low: u64) {
        let status = Status::decode(&self.endpoint.memory(operation)[..bytes]);
        let (tags, credits) = (self.tags, u64::from(self.terms.credits));
        let (Some(status), Some(peer)) = (status, self.peer(from.index())) else { return self.rejected += 1 };
        if tags.low(peer.key) != low || status.consumed > peer.sent {
            return self.rejected += 1;
        }
        peer.hear();
        peer.accepted = true;
        // A later one may overtake an earlier one.
        peer.allowed = peer.allowed.max(status.consumed + credits);
        if status.leaving {
            peer.left_after = Some(status.sent);
        }
        self.moved = true;
        if status.leaving {
            self.activate(from.index());
        }
    }

    pub(super) fn hear_hello(&mut self, operation: Operation, bytes: usize, from: NodeId) {
        let bytes = &self.endpoint.memory(operation)[..bytes];
        match Hello::decode(bytes, &self.options.endpoint.token) {
            Ok(Hello { refusal: Some(refusal), .. }) => match self.peer(from.index()) {
                Some(peer) if !peer.accepted => peer.refused = Some(refusal),
                _ => self.rejected += 1,
            },
            Ok(hello) => match self.judge(&hello, from) {
                Ok(()) if self.peers[from.index()].is_some() => self.meet(from.index(), &hello),
                Ok(()) => self.early[from.index()] = Some(hello),
                Err(refusal) => self.refuse(from, refusal),
            },
            Err(Some(refusal)) => self.refuse(from, refusal),
            Err(None) => self.rejected += 1,
        }
    }

    fn judge(&self, hello: &Hello, from: NodeId) -> Result<(), Refusal> {
        if hello.to != self.local || hello.terms.nodes != self.terms.nodes || from.index() >= self.peers.len() {
            return Err(Refusal::Node);
        }
        let peer = self.peers[from.index()].as_ref().filter(|peer| peer.known);
        if peer.is_some_and(|peer| !peer.acquaintance.is_of_proven(hello)) {
            return Err(Refusal::Node);
        }
        if hello.terms == self.terms { Ok(()) } else { Err(Refusal::Limits) }
    }

    /// Hears a hello by the token. If it proves the peer, accepts it and tells it so.
    pub(super) fn meet(&mut self, index: usize, hello: &Hello) {
        if let Some(peer) = self.peer(index)
            && peer.acquaintance.hear(hello)
        {
            (peer.known, peer.their_key) = (true, hello.key);
            peer.hear();
            self.owe(index);
        }
    }

    /// Counts a stranger, and answers if it claims to be a peer that is still missing: only then there is an address
    /// for it. An answer that the provider has no room for is not repeated; the other side then waits in vain.
    fn refuse(&mut self, from: NodeId, refusal: Refusal) {
        self.rejected += 1;
        if self.peer(from.index()).is_some_and(|peer| !peer.known) {
            let _ = self.send_hello(from.index(), Some(refusal));
        }
    }

    /// Sends the identity of this node, or a refusal.
    pub(super) fn send_hello(&mut self, to: usize, refusal: Option<Refusal>) -> Posted {
        let Some((key, met)) = self.peer(to).map(|peer| (peer.key, peer.acquaintance)) else { return Posted::Again };
        let (nonce, echo) = (met.nonce, met.echo());
        let hello = Hello { to: NodeId(to as u16), terms: self.terms, key, nonce, echo, refusal };
        let token = self.options.endpoint.token;
        let tag = Tag { kind: TagKind::Hello, large: false, from: self.local, low: 0 };
        let posted = self.send_control(to, tag, |room| hello.encode(&token, room));
        if posted == Posted::Yes
            && refusal.is_none()
            && let Some(peer) = self.peer(to)
        {
            peer.acquaintance.answer();
        }
        posted
    }

    /// The peers that wait for a hello which echoes their number.
    pub(super) fn unanswered(&self) -> Vec<usize> {
        let owes = |peer: &Option<Box<Peer>>| peer.as_ref().is_some_and(|peer| peer.acquaintance.owes());
        (0..self.peers.len()).filter(|&index| owes(&self.peers[index])).collect()
    }

    pub(super) fn send_control(&mut self, to: usize, tag: Tag, write: impl FnOnce(&mut [u8]) -> usize) -> Posted {
        let Some(address) = self.peer(to).map(|peer| peer.address) else { return Posted::Yes };
        let Some(operation) = self.controls.pop() else { return Posted::Again };
        let bytes = write(self.endpoint.memory_mut(operation));
        let result = self.endpoint.send(operation, bytes, address, self.tags.encode(tag));
        if result == Posted::Yes {
            self.set_role(operation, BufferRole::Control { to: to as u16 });
            self.peer(to).into_iter().for_each(|peer| peer.outstanding += 1);
        } else {
            self.controls.push(operation);
        }
        self.note(to, result)
    }

    /// Marks a peer that should hear the progress of this node.
    #[inline]
    pub(super) fn owe(&mut self, index: usize) {
        let queued = self.owing.contains(&(index as u16));
        if !queued {
            self.owing.push_back(index as u16);
        }
    }

    pub(super) fn pay_statuses(&mut self) {
        for _ in 0..self.owing.len() {
            let Some(index) = self.owing.pop_front() else { return };
            let index = usize::from(index);
            if self.peer(index).is_some_and(|peer| peer.is_there()) && self.send_status(index, false) == Posted::Again {
                self.owe(index);
            }
        }
    }

    /// Sends the progress of this node, or a goodbye.
    pub(super) fn send_status(&mut self, to: usize, leaving: bool) -> Posted {
        // The peer may use all receives that it hears of.
        self.post_receives();
        let local = self.local;
        let Some(peer) = self.peer(to).filter(|peer| peer.known) else { return Posted::Yes };
        let status = Status { consumed: peer.expected, sent: peer.sent, leaving };
        let tag = Tag { kind: TagKind::Status, large: false, from: local, low: peer.their_key };
        let result = self.send_control(to, tag, |room| status.encode(room));
        if result == Posted::Yes
            && let Some(peer) = self.peer(to)
        {
            (peer.reported, peer.status_owed, peer.spoke) = (status.consumed, false, true);
        }
        result
    }

    pub(super) fn tick_interval(&self) -> Duration {
        self.options.endpoint.peer_timeout / LOOKS
    }

    /// Checks the clock: sends signs of life, and gives up peers that were silent for too long. Unread data from a peer
    /// count as heard: they are read before. Checks count instead of time, so a node that was away itself blames no peer
    /// for that.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.polls = 0;
        let interval = self.tick_interval();
        let since = now.saturating_duration_since(self.last_tick);
        if since < interval {
            return;
        }
        self.last_tick = now;
        for index in 0..self.peers.len() {
            let Some(peer) = self.peer(index).filter(|peer| peer.known) else { continue };
            let quiet = !std::mem::take(&mut peer.spoke) || since >= 2 * interval;
            // What a peer sent before its goodbye is there by now, or never comes.
            let most = if peer.left_after.is_some() { LOOKS_AFTER_GOODBYE } else { LOOKS };
            if let Some(silence) = peer.silence(now, most) {
                self.give_up(index, format!("it was silent for {:.1} s", silence.as_secs_f64()));
            } else if quiet {
                self.owe(index);
            }
        }
    }

    /// Waits for at most `patience` until all sends have left, and says goodbye to all peers. Returns true if all have
    /// left. Waits for as long for the end of what a peer is writing, where an endpoint cannot be closed meanwhile.
    pub(crate) fn leave(&mut self, patience: Duration) -> bool {
        let mut waiting: Vec<_> = (0..self.peers.len()).filter(|_| !self.left).collect();
        self.left = true;
        let sent = self.until(patience, |links| links.outstanding() == 0);
        let goodbye = self.until(patience, |links| {
            waiting.retain(|&index| {
                links.peer(index).is_some_and(|peer| peer.takes_messages())
                    && links.send_status(index, true) == Posted::Again
            });
            waiting.is_empty() && (!sent || links.outstanding() == 0)
        });
        self.until(patience, |links| !links.endpoint.must_stay_open());
        sent && goodbye
    }

    /// Polls until `done` holds, for at most `patience`; returns true if it holds.
    fn until(&mut self, patience: Duration, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let (start, mut idle) = (Instant::now(), 0);
        loop {
            // What has come may say that others are gone.
            self.poll();
            if done(self) {
                return true;
            }
            let left = patience.saturating_sub(start.elapsed());
            if left.is_zero() {
                return false;
            }
            self.nap(idle, left);
            idle += 1;
        }
    }
}
