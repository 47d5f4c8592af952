//! The numbered messages between a node and its peers, which transport and layer stand on: each arrives once and in
//! order, never more than the receiver has buffers for, and only from peers that have shown the token.

mod control;
mod join;

use crate::{
    OfiError, OfiOptions,
    control::{CONTROL_BYTES, Hello, Terms},
    ffi::{BATCH, Completion, Endpoint, Memory, Operation, Posted},
    peer::{Arrival, Peer},
    tags::{Kind, Tag, Tags},
    wake::Rest,
};
use bytes::Bytes;
use evb_core::NodeId;
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

pub use join::ConnectError;

/// Longest message that is received into a buffer of any peer's.
const FRAME_BYTES: usize = 8 << 10;
/// A provider that injects that much takes small messages without the receiver's help up to there, and no further.
const LEAST_INJECT: usize = 1 << 10;
/// Bodies that are received from one peer at a time, at most.
pub(crate) const BODIES_AHEAD: usize = 4;
/// Buffers beyond the credits: for strangers and hellos, and of each peer for grants and for how far it is.
const SPARE_BUFFERS: usize = 32;
const SPARE_BUFFERS_PER_PEER: usize = BODIES_AHEAD + 4;
/// The part of the receives which the provider can have that are for small messages; the rest is for bodies.
const SMALL_RECEIVES: (usize, usize) = (3, 4);
/// Fewer credits than this are not worth a try: the peer hears of free buffers after half of them.
const LEAST_CREDITS: usize = 2;
/// Polls between two looks at the clock.
const POLLS_PER_TICK: u32 = 64;
/// Most batches of completions that one poll reads.
const BATCHES: usize = 4;
/// Slots are added by so many.
const MORE_SLOTS: usize = 16;

/// What an operation is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Receives from anybody.
    Receive { large: bool },
    /// Sends what was copied into it.
    Slot { to: u16, large: bool },
    /// Sends a control message.
    Control { to: u16 },
    /// Sends a body from where it is.
    Body { to: u16 },
    /// Receives an announced body; the length when it is there.
    Room { from: u16, done: Option<usize> },
    /// Receives a body that nobody waits for any more.
    Orphan,
    /// Nothing.
    Free,
}

/// How large messages are received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Large {
    /// Into so many buffers of that many bytes, for anybody.
    Buffers { count: usize, bytes: usize },
    /// As bodies that a small message announces.
    Announced,
}

/// A node's endpoint, its peers and its buffers.
pub(crate) struct Links {
    pub(crate) local: NodeId,
    pub(crate) options: OfiOptions,
    endpoint: Endpoint,
    tags: Tags,
    terms: Terms,
    pub(crate) peers: Vec<Option<Box<Peer>>>,
    roles: Vec<Role>,
    /// Receives that the provider does not have, by size.
    idle_receives: [Vec<Operation>; 2],
    /// Free slots to send from, small and large; how many slots there are at most, and are.
    slots: [Vec<Operation>; 2],
    controls: Vec<Operation>,
    /// Peers that may have something for the user.
    pub(crate) active: VecDeque<u16>,
    /// Peers that are owed a status.
    owing: VecDeque<u16>,
    /// Peers that are owed the grant of a message.
    grants: VecDeque<(u16, u64)>,
    /// Hellos of nodes that this node was not told of yet.
    early: Vec<Option<Hello>>,
    pub(crate) rest: Rest,
    /// Something came or went since the flag was cleared.
    pub(crate) moved: bool,
    /// The provider had no room for something.
    blocked: bool,
    polls: u32,
    last_tick: Instant,
    /// The goodbyes are out.
    left: bool,
    pub(crate) rejected: u64,
}

impl Links {
    pub(crate) fn open(local: NodeId, options: OfiOptions, large: Large, sleeps: bool) -> Result<Self, OfiError> {
        assert!(local.0 < options.nodes, "{local} is not one of {} nodes", options.nodes);
        let endpoint = Endpoint::open(&options.provider, options.source(), sleeps)?;
        let tags = Tags::new(endpoint.limits().tag_format).ok_or_else(|| OfiError::Option {
            reason: format!("the tags of {} have too few bits", endpoint.provider()),
        })?;
        let nodes = usize::from(options.nodes);
        let rest = Rest::new().map_err(|error| OfiError::Call { call: "socketpair", reason: error.to_string() })?;
        let mut new = Self {
            local,
            terms: terms(&options, &endpoint, large)?,
            endpoint,
            tags,
            peers: (0..nodes).map(|_| None).collect(),
            roles: Vec::new(),
            idle_receives: Default::default(),
            slots: Default::default(),
            controls: Vec::new(),
            active: VecDeque::new(),
            owing: VecDeque::new(),
            grants: VecDeque::new(),
            early: vec![None; nodes],
            rest,
            moved: false,
            blocked: false,
            polls: 0,
            last_tick: Instant::now(),
            left: false,
            rejected: 0,
            options,
        };
        new.add_buffers(large)?;
        Ok(new)
    }

    fn add_buffers(&mut self, large: Large) -> Result<(), OfiError> {
        let peers = self.peers.len() - 1;
        let receives = peers * (usize::from(self.terms.credits) + SPARE_BUFFERS_PER_PEER) + SPARE_BUFFERS;
        let small = self.frame_bytes().max(CONTROL_BYTES);
        self.idle_receives[0] = self.add(receives, small, Role::Receive { large: false })?;
        self.controls = self.add(2 * peers + 2, CONTROL_BYTES, Role::Free)?;
        if let Large::Buffers { count, bytes } = large {
            self.idle_receives[1] = self.add(count, bytes, Role::Receive { large: true })?;
            self.slots[1] = self.add(count, bytes, Role::Free)?;
        }
        self.post_receives();
        Ok(())
    }

    fn add(&mut self, count: usize, bytes: usize, role: Role) -> Result<Vec<Operation>, OfiError> {
        let operations = self.endpoint.add_slab(count, bytes)?;
        operations.iter().for_each(|&operation| self.set_role(operation, role));
        Ok(operations)
    }

    fn set_role(&mut self, operation: Operation, role: Role) {
        if self.roles.len() <= operation.index() {
            self.roles.resize(operation.index() + 1, Role::Free);
        }
        self.roles[operation.index()] = role;
    }

    /// Longest message that is sent from and received into a small buffer.
    #[inline]
    pub(crate) fn frame_bytes(&self) -> usize {
        self.terms.frame_bytes as usize
    }

    /// The provider's full name.
    pub(crate) fn provider(&self) -> String {
        self.endpoint.provider()
    }

    /// Longest message that is better injected than sent from a slot, in bytes.
    pub(crate) fn inject_bytes(&self) -> usize {
        self.endpoint.limits().inject_bytes
    }

    #[inline]
    pub(crate) fn peer(&mut self, index: usize) -> Option<&mut Peer> {
        self.peers.get_mut(index)?.as_deref_mut()
    }

    /// A slot to fill and send, and its memory. With `more`, slots are added when none is free.
    #[inline]
    pub(crate) fn slot(&mut self, large: bool, more: bool) -> Option<Operation> {
        if self.slots[usize::from(large)].is_empty() && more && !large {
            let (count, bytes) = (MORE_SLOTS, self.frame_bytes());
            self.slots[0] = self.add(count, bytes, Role::Free).ok()?;
        }
        self.slots[usize::from(large)].pop()
    }

    #[inline]
    pub(crate) fn memory_mut(&mut self, slot: Operation) -> &mut [u8] {
        self.endpoint.memory_mut(slot)
    }

    #[inline]
    pub(crate) fn memory(&self, operation: Operation) -> &[u8] {
        self.endpoint.memory(operation)
    }

    /// Gives a slot back that was not sent.
    pub(crate) fn give_back(&mut self, slot: Operation, large: bool) {
        self.slots[usize::from(large)].push(slot);
    }

    /// Sends a slot as the next message to a peer that has a credit; the number that the message got.
    #[inline]
    pub(crate) fn send(&mut self, to: usize, slot: Operation, bytes: usize, large: bool) -> Posted {
        let Some(peer) = self.peers[to].as_deref_mut() else { return Posted::Failed(0) };
        let tag = Tag { kind: Kind::Data, large, from: self.local, low: peer.their_key.wrapping_add(peer.sent) };
        let result = self.endpoint.send(slot, bytes, peer.address, self.tags.encode(tag));
        if result == Posted::Yes {
            peer.sent += 1;
            peer.outstanding += 1;
            peer.spoke = true;
            self.roles[slot.index()] = Role::Slot { to: to as u16, large };
        }
        self.note(to, result)
    }

    /// Sends a copy of at most [`inject_bytes`](Links::inject_bytes) as the next message.
    #[inline]
    pub(crate) fn inject(&mut self, to: usize, bytes: &[u8]) -> Posted {
        let Some(peer) = self.peers[to].as_deref_mut() else { return Posted::Failed(0) };
        let low = peer.their_key.wrapping_add(peer.sent);
        let tag = Tag { kind: Kind::Data, large: false, from: self.local, low };
        let result = self.endpoint.inject(bytes, peer.address, self.tags.encode(tag));
        if result == Posted::Yes {
            peer.sent += 1;
            peer.spoke = true;
        }
        self.note(to, result)
    }

    /// Sends the body that message `number` has announced, from where it is.
    pub(crate) fn send_body(&mut self, to: usize, number: u64, body: &Bytes) -> Posted {
        let Ok(operation) = self.endpoint.share(body.clone()) else { return Posted::Again };
        let Some(peer) = self.peers[to].as_deref_mut() else { return Posted::Failed(0) };
        let tag = Tag { kind: Kind::Data, large: true, from: self.local, low: peer.their_key.wrapping_add(number) };
        let result = self.endpoint.send(operation, body.len(), peer.address, self.tags.encode(tag));
        if result == Posted::Yes {
            peer.outstanding += 1;
            peer.spoke = true;
            self.set_role(operation, Role::Body { to: to as u16 });
        } else {
            self.endpoint.take(operation);
        }
        self.note(to, result)
    }

    /// Receives the body of message `number` into a buffer of its own, and lets the peer send it. The body never comes
    /// before the buffer is there: with libfabric 1.17, `shm` takes unexpected messages for others.
    pub(crate) fn receive_body(&mut self, from: usize, number: u64, bytes: usize) -> Option<Operation> {
        let key = self.peer(from)?.key;
        let operation = self.endpoint.own(vec![0; bytes]).ok()?;
        let sender = NodeId(from as u16);
        let tag = Tag { kind: Kind::Data, large: true, from: sender, low: key.wrapping_add(number) };
        match self.endpoint.receive(operation, self.tags.encode(tag), 0) {
            Posted::Yes => {
                self.set_role(operation, Role::Room { from: from as u16, done: None });
                self.grants.push_back((from as u16, number));
                self.send_grants();
                Some(operation)
            }
            other => {
                self.endpoint.take(operation);
                let _ = self.note(from, other);
                None
            }
        }
    }

    /// Whether a body is there, and of what length.
    pub(crate) fn body_length(&self, room: Operation) -> Option<usize> {
        match self.roles[room.index()] {
            Role::Room { done, .. } => done,
            _ => None,
        }
    }

    /// Takes a body that is there.
    pub(crate) fn take_body(&mut self, room: Operation) -> Bytes {
        self.roles[room.index()] = Role::Free;
        match self.endpoint.take(room) {
            Some(Memory::Own(body)) => body.into(),
            _ => Bytes::new(),
        }
    }

    /// Nobody waits for this body any more.
    fn orphan(&mut self, room: Operation) {
        if self.body_length(room).is_some() {
            self.take_body(room);
        } else {
            self.roles[room.index()] = Role::Orphan;
            self.endpoint.cancel(room);
        }
    }

    #[inline]
    fn note(&mut self, peer: usize, result: Posted) -> Posted {
        match result {
            Posted::Yes => {}
            Posted::Again => self.blocked = true,
            Posted::Failed(error) => self.fail(peer, error),
        }
        result
    }

    #[cold]
    fn fail(&mut self, peer: usize, error: i32) {
        let reason = format!("its connection failed: {}", self.endpoint.describe(error));
        self.give_up(peer, reason);
    }

    /// Nothing goes to this peer or comes from it any more.
    pub(crate) fn give_up(&mut self, index: usize, reason: String) {
        let Some(peer) = self.peer(index) else { return };
        if peer.failure.is_none() {
            peer.failure = Some(reason);
        }
        self.activate(index);
    }

    /// This peer may have something for the user.
    #[inline]
    pub(crate) fn activate(&mut self, index: usize) {
        if let Some(peer) = self.peers[index].as_deref_mut()
            && !peer.active
        {
            peer.active = true;
            self.active.push_back(index as u16);
        }
    }

    /// The next message of a peer was used: its buffer goes back to the provider.
    #[inline]
    pub(crate) fn consume(&mut self, from: usize) {
        let Some(peer) = self.peers[from].as_deref_mut() else { return };
        let Some(arrival) = peer.pop() else { return };
        let owes = peer.status_owed;
        self.recycle(arrival.operation);
        if owes {
            self.owe(from);
        }
    }

    /// Throws away what has arrived of a peer.
    pub(crate) fn discard(&mut self, index: usize) {
        let Some(peer) = self.peer(index) else { return };
        let arrivals: Vec<_> = peer.drain().collect();
        for arrival in arrivals {
            self.recycle(arrival.operation);
            arrival.body.into_iter().for_each(|room| self.orphan(room));
        }
    }

    /// Forgets a peer that is gone, with all that it had here.
    pub(crate) fn forget(&mut self, index: usize) {
        self.discard(index);
        self.peers[index] = None;
    }

    /// Lets the provider work, and takes what has come. Cheap when nothing has.
    #[inline]
    pub(crate) fn poll(&mut self) {
        for _ in 0..BATCHES {
            let count = self.endpoint.poll();
            for index in 0..count {
                let completion = self.endpoint.completion(index);
                self.complete(completion);
            }
            // A read that finds nothing costs calls of the system.
            if count < BATCH {
                break;
            }
        }
        if let Some(failure) = self.endpoint.failure() {
            self.failed(failure);
        }
        self.settle();
        self.polls += 1;
        if self.polls >= POLLS_PER_TICK {
            self.tick(Instant::now());
        }
    }

    /// Sends what peers are owed.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if !(self.owing.is_empty() && self.grants.is_empty()) {
            self.pay_statuses();
            self.send_grants();
        }
    }

    #[inline]
    fn complete(&mut self, Completion { operation, tag, bytes, .. }: Completion) {
        let Some(operation) = operation else { return };
        match self.roles[operation.index()] {
            Role::Receive { .. } => self.arrived(operation, tag, bytes),
            Role::Slot { to, large } => {
                self.slots[usize::from(large)].push(operation);
                let frame = self.frame_bytes();
                self.is_out(to, frame);
            }
            Role::Control { to } => {
                self.controls.push(operation);
                self.is_out(to, 0);
            }
            Role::Body { to } => {
                let length = self.endpoint.memory(operation).len();
                self.roles[operation.index()] = Role::Free;
                self.endpoint.take(operation);
                self.is_out(to, length);
            }
            Role::Room { from, .. } => {
                self.roles[operation.index()] = Role::Room { from, done: Some(bytes) };
                self.moved = true;
                if let Some(peer) = self.peer(usize::from(from)) {
                    peer.hear();
                }
                self.activate(usize::from(from));
            }
            Role::Orphan => {
                self.roles[operation.index()] = Role::Free;
                self.endpoint.take(operation);
            }
            Role::Free => {}
        }
    }

    /// Something has left this node.
    #[inline]
    fn is_out(&mut self, to: u16, bytes: usize) {
        self.moved = true;
        if let Some(peer) = self.peer(usize::from(to)) {
            peer.outstanding = peer.outstanding.saturating_sub(1);
            peer.out_bytes = peer.out_bytes.saturating_sub(bytes);
        }
    }

    #[cold]
    fn failed(&mut self, failure: Completion) {
        let (Some(operation), Some(error)) = (failure.operation, failure.error) else { return };
        match self.roles[operation.index()] {
            // Something too long, from a stranger.
            Role::Receive { .. } => {
                self.rejected += 1;
                self.recycle(operation);
                return;
            }
            Role::Slot { to, .. } | Role::Control { to } | Role::Body { to } => self.fail(usize::from(to), error),
            Role::Room { from, .. } => {
                self.fail(usize::from(from), error);
                self.roles[operation.index()] = Role::Room { from, done: None };
                return;
            }
            Role::Orphan | Role::Free => {}
        }
        self.complete(failure);
    }

    /// A message came, and it is known to be in the right place, or not.
    #[inline]
    fn arrived(&mut self, operation: Operation, tag: u64, bytes: usize) {
        let Tag { kind, from, low, .. } = self.tags.decode(tag);
        if kind == Kind::Data
            && let Some(peer) = self.peers.get_mut(from.index()).and_then(Option::as_deref_mut)
        {
            let ahead = self.tags.low(low.wrapping_sub(peer.key).wrapping_sub(peer.expected));
            if peer.put(ahead, Arrival { operation, bytes, body: None }) {
                peer.accepted = true;
                peer.hear();
                self.moved = true;
                return self.activate(from.index());
            }
        }
        match kind {
            Kind::Data => self.rejected += 1,
            Kind::Status => self.hear_status(operation, bytes, from, low),
            Kind::Grant => self.hear_grant(from, low),
            Kind::Hello => self.hear_hello(operation, bytes, from),
        }
        self.recycle(operation);
    }

    /// A receive is free again.
    #[inline]
    fn recycle(&mut self, operation: Operation) {
        if let Role::Receive { large } = self.roles[operation.index()] {
            self.idle_receives[usize::from(large)].push(operation);
            self.post_receives();
        }
    }

    /// Gives the provider all receives that are idle: no message may come before its buffer.
    #[inline]
    fn post_receives(&mut self) {
        for large in [false, true] {
            let size = usize::from(large);
            while let Some(&operation) = self.idle_receives[size].last() {
                let (tag, ignore) = self.tags.any(large);
                if self.endpoint.receive(operation, tag, ignore) != Posted::Yes {
                    break;
                }
                self.idle_receives[size].pop();
            }
        }
    }

    /// Operations on the way to peers that live.
    pub(crate) fn outstanding(&self) -> usize {
        self.peers.iter().flatten().filter(|peer| peer.is_there()).map(|peer| peer.outstanding).sum()
    }

    /// Rests until `work`, which is called before each rest, finds something, a waker is called or `timeout` is over.
    pub(crate) fn wait(&mut self, timeout: Duration, mut work: impl FnMut(&mut Self) -> bool) {
        let (start, mut idle) = (Instant::now(), 0);
        loop {
            self.blocked = false;
            self.poll();
            if work(self) || self.rest.was_called() {
                return;
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return;
            }
            self.pause(idle, left);
            idle += 1;
        }
    }

    fn pause(&mut self, idle: u32, left: Duration) {
        let left = left.min(self.tick_interval());
        if !self.endpoint.has_file() {
            return self.rest.nap(idle, left);
        }
        // What the provider had no room for may move without an event.
        let longest = if self.blocked || !self.owing.is_empty() || !self.grants.is_empty() { left.min(Duration::from_millis(1)) } else { left };
        if let Some(file) = self.endpoint.may_sleep() {
            self.rest.sleep(file, longest);
            self.tick(Instant::now());
        }
    }
}

/// What all nodes compute alike. There are as many credits as were asked for, or as there can be receives for: a provider
/// keeps a message for which there is none at the cost of a copy, and `shm` of libfabric 1.17 never finds it again.
fn terms(options: &OfiOptions, endpoint: &Endpoint, large: Large) -> Result<Terms, OfiError> {
    let receives = endpoint.limits().receives * SMALL_RECEIVES.0 / SMALL_RECEIVES.1;
    let for_each = receives.saturating_sub(SPARE_BUFFERS) / usize::from(options.nodes - 1).max(1);
    let credits = for_each.saturating_sub(SPARE_BUFFERS_PER_PEER).min(options.credits.into());
    if credits < LEAST_CREDITS {
        let (nodes, provider) = (options.nodes, endpoint.provider());
        let reason = format!("{credits} credits for {nodes} nodes over {provider} are less than {LEAST_CREDITS}");
        return Err(OfiError::Option { reason });
    }
    let inject = endpoint.limits().inject_bytes;
    let frame = if inject >= LEAST_INJECT { FRAME_BYTES.min(inject) } else { FRAME_BYTES };
    let max_bytes = match large {
        Large::Announced => options.max_body as u64,
        Large::Buffers { bytes, .. } => Terms::LAYER | bytes as u64,
    };
    let frame_bytes = frame.min(endpoint.limits().max_bytes) as u32;
    Ok(Terms { nodes: options.nodes, credits: credits as u16, frame_bytes, max_bytes })
}
