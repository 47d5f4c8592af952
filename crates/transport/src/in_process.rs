//! The transport between nodes of one process: one bounded ring per ordered pair, messages moved by value and bodies by
//! reference.
//!
//! A flush sets one bit per sender in the receiver's inbox. So an idle poll is one load, however many peers there are.
//! Endpoints of the same worker thread share its [`Doorbell`].

mod registered;

use crate::{
    BroadcastWay, Broadcasts, DEFAULT_MAX_BODY, Message, Received, SendError, Transport, Waker,
    bits::{BitSet, members, place, words_for},
    doorbell::Doorbell,
};
use evb_core::NodeId;
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering, fence},
    },
    time::Duration,
};

/// Most messages from one peer before the next has its turn.
const TURN: usize = 64;

/// Connects `nodes` nodes (ids from 0 on), each with a doorbell of its own. Every ordered pair has a queue of `capacity`
/// messages.
///
/// # Panics
/// If `capacity` is 0 or `nodes` is above the range of node ids.
#[must_use]
pub fn connect(nodes: usize, capacity: usize) -> Vec<InProcess> {
    let doorbells: Vec<_> = (0..nodes).map(|_| Arc::new(Doorbell::new())).collect();
    connect_workers(capacity, &doorbells)
}

/// Connects as many nodes as there are doorbells: node `i` rings for and sleeps on `doorbells[i]`. Endpoints with the
/// same doorbell must be used by one thread, which waits with `doorbell.wait(timeout, ||
/// endpoints.iter().any(InProcess::is_ready))`.
///
/// # Panics
/// If `capacity` is 0 or there are more doorbells than node ids.
#[must_use]
pub fn connect_workers(capacity: usize, doorbells: &[Arc<Doorbell>]) -> Vec<InProcess> {
    assert!(capacity > 0, "a queue must hold at least one message");
    assert!(u16::try_from(doorbells.len()).is_ok(), "{} nodes are above the range of node ids", doorbells.len());
    let inboxes: Vec<_> = doorbells.iter().map(|bell| Arc::new(Inbox::new(doorbells.len(), bell))).collect();
    let mut endpoints: Vec<_> = (0..inboxes.len()).map(|node| InProcess::new(node, &inboxes)).collect();
    for from in 0..endpoints.len() {
        for to in (0..endpoints.len()).filter(|&to| to != from) {
            let (producer, consumer) = RingBuffer::new(capacity);
            endpoints[from].outgoing[to] = Some(producer);
            endpoints[to].incoming[from] = Some(consumer);
        }
    }
    endpoints
}

/// The endpoint of one node.
#[derive(Debug)]
pub struct InProcess {
    local: usize,
    inboxes: Box<[Arc<Inbox>]>,
    outgoing: Vec<Option<Producer<Message>>>,
    incoming: Vec<Option<Consumer<Message>>>,
    /// Senders whose ring may hold something.
    ready: BitSet,
    /// Receivers that were sent something since the last flush.
    unannounced: BitSet,
    /// Receivers whose ring was full at the last try.
    blocked: BitSet,
    /// Senders whose ring was read in this call of `receive`.
    served: BitSet,
    turn: usize,
}

impl InProcess {
    /// The doorbell of the worker that hosts this endpoint.
    #[must_use]
    pub fn doorbell(&self) -> &Arc<Doorbell> {
        &self.inboxes[self.local].doorbell
    }

    /// Returns true if `receive` may return something, or a queue that was full has room.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
            || self.inboxes[self.local].has_fresh()
            || self.blocked.iter().any(|to| self.has_room(to))
    }

    fn new(local: usize, inboxes: &[Arc<Inbox>]) -> Self {
        let (nodes, none) = (inboxes.len(), BitSet::new(inboxes.len()));
        Self {
            local,
            inboxes: inboxes.into(),
            outgoing: (0..nodes).map(|_| None).collect(),
            incoming: (0..nodes).map(|_| None).collect(),
            ready: none.clone(),
            unannounced: none.clone(),
            blocked: none.clone(),
            served: none,
            turn: 0,
        }
    }

    fn has_room(&self, to: usize) -> bool {
        self.outgoing[to].as_ref().is_none_or(|ring| ring.slots() > 0 || ring.is_abandoned())
    }

    /// Rings for a peer on another worker. A running thread is not asleep, so endpoints of the same worker need no
    /// ring.
    fn ring(&self, peer: usize) {
        let (theirs, mine) = (&self.inboxes[peer].doorbell, self.doorbell());
        if !Arc::ptr_eq(theirs, mine) {
            theirs.ring();
        }
    }

    fn announce(&self, to: usize) {
        self.inboxes[to].announce(self.local);
        self.ring(to);
    }

    /// Handles a full ring: asks the receiver to ring when there is room, and tries once more, since the room may have
    /// been made just before.
    #[cold]
    fn ask_for_room(&mut self, to: usize, message: Message) -> Result<(), SendError> {
        if self.unannounced.contains(to) {
            self.unannounced.remove(to);
            self.announce(to);
        }
        if !(self.blocked.contains(to) && self.inboxes[to].is_starved(self.local)) {
            self.inboxes[to].starve(self.local);
            self.blocked.insert(to);
        }
        match self.outgoing[to].as_mut().map(|ring| ring.push(message)) {
            Some(Err(PushError::Full(message))) => Err(SendError::Full(message)),
            Some(Ok(())) => {
                self.blocked.remove(to);
                self.unannounced.insert(to);
                Ok(())
            }
            None => Err(SendError::Lost),
        }
    }

    /// Takes at most `limit` messages of one sender, and the news of its end.
    fn take(&mut self, from: usize, limit: usize, sink: &mut Vec<Received>) {
        let Some(ring) = &mut self.incoming[from] else { return self.ready.remove(from) };
        // First this and then the number of messages: what came before the end must not be missed.
        let gone = ring.is_abandoned();
        let there = ring.slots();
        let count = there.min(limit);
        let node = NodeId(from as u16);
        if let Ok(chunk) = ring.read_chunk(count) {
            sink.extend(chunk.into_iter().map(|message| Received::Message { from: node, message }));
        }
        if gone && count == there {
            if count == limit {
                return;
            }
            self.incoming[from] = None;
            sink.push(Received::Lost { peer: node, reason: "the peer left".into() });
        }
        if count == there {
            self.ready.remove(from);
        }
    }

    /// Rings for senders that had no room in a ring that was just read.
    fn relieve_served(&mut self) {
        fence(Ordering::SeqCst);
        for word in 0..words_for(self.inboxes.len()) {
            let served = self.served.take_word(word);
            for sender in members(word, self.inboxes[self.local].take_starved(word, served)) {
                self.ring(sender);
            }
        }
    }
}

impl Transport for InProcess {
    fn local(&self) -> NodeId {
        NodeId(self.local as u16)
    }

    #[inline]
    fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        let (to, length) = (to.index(), message.body.len());
        if length > DEFAULT_MAX_BODY {
            return Err(SendError::TooLarge { length, limit: DEFAULT_MAX_BODY });
        }
        let Some(Some(ring)) = self.outgoing.get_mut(to) else { return Err(SendError::Lost) };
        if ring.is_abandoned() {
            return Err(SendError::Lost);
        }
        match ring.push(message) {
            Ok(()) => {
                self.unannounced.insert(to);
                self.blocked.remove(to);
                Ok(())
            }
            Err(PushError::Full(message)) => self.ask_for_room(to, message),
        }
    }

    fn broadcasts(&self) -> Broadcasts {
        Broadcasts::new(BroadcastWay::ByReference)
    }

    fn flush(&mut self) -> bool {
        for word in 0..words_for(self.inboxes.len()) {
            for to in members(word, self.unannounced.take_word(word)) {
                self.announce(to);
            }
        }
        true
    }

    fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize {
        self.inboxes[self.local].collect(&mut self.ready);
        let before = sink.len();
        while let Some(from) = self.ready.next_from(self.turn) {
            let left = limit - (sink.len() - before);
            if left == 0 {
                break;
            }
            self.take(from, left.min(TURN), sink);
            self.served.insert(from);
            self.turn = from + 1;
        }
        let count = sink.len() - before;
        if count > 0 {
            self.relieve_served();
        }
        count
    }

    fn wait(&mut self, timeout: Duration) {
        self.doorbell().wait(timeout, || self.is_ready());
    }

    fn waker(&self) -> Waker {
        let doorbell = Arc::clone(self.doorbell());
        Arc::new(move || doorbell.call())
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        // The rings must be abandoned before the peers are told to look.
        self.incoming.clear();
        self.outgoing.clear();
        (0..self.inboxes.len()).filter(|&peer| peer != self.local).for_each(|peer| self.announce(peer));
    }
}

/// The bits that senders set for one receiver.
#[derive(Debug)]
struct Inbox {
    words: Box<[InboxWord]>,
    doorbell: Arc<Doorbell>,
}

/// The bits of 64 senders, on cache lines of their own (two, because of the adjacent-line prefetcher).
#[derive(Debug, Default)]
#[repr(align(128))]
struct InboxWord {
    /// Set by a sender after it has put messages into its ring, or abandoned the ring.
    fresh: AtomicU64,
    /// Set by a sender that found its ring full, cleared by the receiver after it has made room.
    starved: AtomicU64,
}

impl Inbox {
    fn new(nodes: usize, doorbell: &Arc<Doorbell>) -> Self {
        Self { words: (0..words_for(nodes)).map(|_| InboxWord::default()).collect(), doorbell: Arc::clone(doorbell) }
    }

    /// Sets the bit of a sender. It pairs with [`collect`](Inbox::collect): a reader of the bit sees the ring's
    /// contents.
    fn announce(&self, sender: usize) {
        let (word, bit) = place(sender);
        self.words[word].fresh.fetch_or(bit, Ordering::Release);
    }

    fn has_fresh(&self) -> bool {
        self.words.iter().any(|word| word.fresh.load(Ordering::Relaxed) != 0)
    }

    fn collect(&self, ready: &mut BitSet) {
        for (index, word) in self.words.iter().enumerate() {
            // The load alone leaves the cache line shared while nothing comes.
            if word.fresh.load(Ordering::Relaxed) != 0 {
                ready.insert_word(index, word.fresh.swap(0, Ordering::Acquire));
            }
        }
    }

    fn is_starved(&self, sender: usize) -> bool {
        let (word, bit) = place(sender);
        self.words[word].starved.load(Ordering::Relaxed) & bit != 0
    }

    /// Sets the bit of a sender without room. The fence pairs with the one in `relieve_served`: either the sender's
    /// next look at the ring sees the room, or the receiver sees this bit. The argument is that of the doorbell.
    fn starve(&self, sender: usize) {
        let (word, bit) = place(sender);
        self.words[word].starved.fetch_or(bit, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    fn take_starved(&self, word: usize, served: u64) -> u64 {
        let starved = &self.words[word].starved;
        if starved.load(Ordering::Relaxed) & served == 0 {
            return 0;
        }
        starved.fetch_and(!served, Ordering::Relaxed) & served
    }
}
