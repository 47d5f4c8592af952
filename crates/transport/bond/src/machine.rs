//! The protocol of a bond as a machine: it gets messages of the links and the time, and gives messages for them. It has no
//! clock, and its links are whatever the driver makes of them.

use super::{BondOptions, pair::Pair};
use evb_core::{NodeId, Time};
use evb_transport::{DeadLink, Message, Received, SendError};
use std::collections::VecDeque;

/// Most messages from one peer before the next has its turn.
const TURN: usize = 64;
/// Most deaths of links that wait to be reported.
const MOST_NEWS: usize = 64;

/// The protocol of one node.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) local: NodeId,
    options: BondOptions,
    pairs: Vec<Option<Box<Pair>>>,
    /// Peers with something for the links, and with something for the user.
    busy: VecDeque<u16>,
    active: VecDeque<u16>,
    /// No timer ends before.
    timer: Time,
    /// A message that was refused may be taken now.
    pub(super) has_room: bool,
    pub(super) dead: Vec<DeadLink>,
}

impl Machine {
    pub(super) fn new(local: NodeId, options: BondOptions) -> Self {
        Self {
            local,
            options,
            pairs: Vec::new(),
            busy: VecDeque::new(),
            active: VecDeque::new(),
            timer: Time(u64::MAX),
            has_room: false,
            dead: Vec::new(),
        }
    }

    /// Adds a peer that all links have joined.
    pub(super) fn join(&mut self, now: Time, peer: NodeId) {
        if self.pairs.len() <= peer.index() {
            self.pairs.resize_with(peer.index() + 1, || None);
        }
        let pair = Pair::new(now, self.local, peer, self.options.links.len(), &self.options);
        self.pairs[peer.index()] = Some(Box::new(pair));
    }

    fn pair(&mut self, peer: NodeId) -> Option<&mut Pair> {
        self.pairs.get_mut(peer.index())?.as_deref_mut()
    }

    /// Queues a message.
    pub(super) fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        let pair = self.pair(to).ok_or(SendError::Lost)?;
        pair.send(message)?;
        if !std::mem::replace(&mut pair.is_busy, true) {
            self.busy.push_back(to.0);
        }
        Ok(())
    }

    /// Bytes for a peer that no link has.
    pub(super) fn waiting_bytes(&mut self, to: NodeId) -> usize {
        self.pair(to).map_or(0, |pair| pair.waiting_bytes())
    }

    /// Takes what a link gives.
    pub(super) fn hear(&mut self, now: Time, link: usize, received: Received) {
        let peer = match &received {
            Received::Message { from, .. } => *from,
            Received::Lost { peer, .. } => *peer,
        };
        let Some(pair) = self.pair(peer) else { return };
        let has_room = match received {
            Received::Message { message, .. } => pair.hear(now, link, message),
            Received::Lost { reason, .. } => {
                pair.lose(now, link, reason);
                true
            }
        };
        self.has_room |= has_room;
        self.note(peer.0);
    }

    /// Puts a peer into the lists that it belongs to.
    fn note(&mut self, index: u16) {
        let Some(pair) = self.pairs[usize::from(index)].as_deref_mut() else { return };
        if !pair.is_sent() && !std::mem::replace(&mut pair.is_busy, true) {
            self.busy.push_back(index);
        }
        if pair.is_readable() && !std::mem::replace(&mut pair.is_active, true) {
            self.active.push_back(index);
        }
        self.timer = pair.next_time().map_or(self.timer, |next| next.min(self.timer));
    }

    /// Handles timers that are over.
    pub(super) fn on_time(&mut self, now: Time) {
        if now < self.timer {
            return;
        }
        self.timer = Time(u64::MAX);
        for index in 0..self.pairs.len() {
            let Some(pair) = self.pairs[index].as_deref_mut() else { continue };
            pair.on_time(now);
            let (dead, links) = (&mut self.dead, &self.options.links);
            pair.news(now, |link, peer, reason| {
                if dead.len() < MOST_NEWS {
                    dead.push(DeadLink { link: links[link].clone(), peer, reason });
                }
            });
            self.note(index as u16);
        }
    }

    /// The time at which [`on_time`](Machine::on_time) has something to do, or before.
    pub(super) const fn next_time(&self) -> Time {
        self.timer
    }

    /// Gives links what they take now. `send` gives a message for a node to the member of a link.
    pub(super) fn pump(&mut self, now: Time, send: &mut impl FnMut(usize, NodeId, Message) -> Result<(), SendError>) {
        for _ in 0..self.busy.len() {
            let Some(index) = self.busy.pop_front() else { return };
            let Some(pair) = self.pairs[usize::from(index)].as_deref_mut() else { continue };
            pair.is_busy = false;
            pair.pump(now, send);
            self.note(index);
        }
    }

    /// True if something can be received.
    pub(super) fn is_readable(&self) -> bool {
        !self.active.is_empty()
    }

    /// True if the members have all messages.
    pub(super) fn is_sent(&self) -> bool {
        self.busy.is_empty()
    }

    /// True if all messages have come to their peers, or these are lost.
    pub(super) fn has_arrived(&self) -> bool {
        self.is_sent() && self.pairs.iter().flatten().all(|pair| pair.has_arrived())
    }

    /// Appends at most `limit` messages, in turn from all peers.
    pub(super) fn receive(&mut self, now: Time, limit: usize, sink: &mut Vec<Received>) {
        let before = sink.len();
        while let Some(&index) = self.active.front() {
            let left = limit - (sink.len() - before);
            if left == 0 {
                return;
            }
            self.active.pop_front();
            let Some(pair) = self.pairs[usize::from(index)].as_deref_mut() else { continue };
            pair.give(now, left.min(TURN), sink);
            pair.is_active = false;
            self.note(index);
        }
    }

    /// Tells all peers that this node leaves.
    pub(super) fn say_goodbye(&mut self) {
        for index in 0..self.pairs.len() {
            if let Some(pair) = self.pairs[index].as_deref_mut() {
                pair.say_goodbye();
                self.note(index as u16);
            }
        }
    }
}
