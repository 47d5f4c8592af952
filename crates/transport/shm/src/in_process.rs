//! The transport between nodes of one process: messages are moved by value, and their bodies by reference.
//!
//! Endpoints with the same [`Doorbell`] belong to one worker, the thread that uses them all. A worker has one bounded ring to
//! each node, which its endpoints share. A ring for each pair of nodes would need no lock, but a message would then mostly
//! meet a ring that was used long ago, and that has left the caches: 64 x 64 units have 16,000 pairs, and two workers only
//! 258 rings.
//!
//! A flush sets one bit per worker in the receiver's inbox. So an idle poll is one load, however many peers there are.

mod factory;
#[cfg(test)]
mod tests;

use evb_core::{
    NodeId,
    bits::{BitSet, members, place, words_for},
};
use evb_transport::{
    BroadcastWay, Broadcasts, DEFAULT_MAX_BODY, Message, Received, SendError, Transport, Waker, doorbell::Doorbell,
};
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use std::{
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering, fence},
    },
    time::Duration,
};

/// Most messages from one worker before the next has its turn.
const TURN: usize = 64;

/// Connects `nodes` nodes (ids from 0 on), each with its own doorbell. Every ordered pair has a queue of `capacity`
/// messages.
///
/// # Panics
/// If `capacity` is 0 or `nodes` is above the range of node ids.
///
/// # Example
/// Bytes from one node to another, over the layer that any transport gives:
///
/// ```
/// use evb_core::NodeId;
/// use evb_transport::{MessageLayer, OverTransport};
/// use evb_transport_shm::in_process;
/// use std::time::Duration;
///
/// let mut nodes: Vec<_> = in_process::connect(2, 16).into_iter().map(|node| OverTransport::new(node, 1024)).collect();
/// nodes[0].send(NodeId(1), b"hello")?;
/// nodes[0].flush();
///
/// let mut seen = Vec::new();
/// while nodes[1].receive(1, &mut |from, bytes| seen.push((from, bytes.to_vec()))) == 0 {
///     nodes[1].wait(Duration::from_millis(1));
/// }
/// assert_eq!(seen, [(NodeId(0), b"hello".to_vec())]);
/// # Ok::<(), evb_transport::Refused>(())
/// ```
#[must_use]
pub fn connect(nodes: usize, capacity: usize) -> Vec<InProcess> {
    let doorbells: Vec<_> = (0..nodes).map(|_| Arc::new(Doorbell::new())).collect();
    connect_workers(capacity, &doorbells)
}

/// Connects as many nodes as there are doorbells: node `i` rings for and sleeps on `doorbells[i]`. Endpoints with the
/// same doorbell belong to one worker, which has one queue of `capacity` messages to each node. They must be used by one
/// thread, which waits with `doorbell.wait(timeout, || endpoints.iter().any(InProcess::is_ready))`.
///
/// # Panics
/// If `capacity` is 0 or there are more doorbells than node ids.
#[must_use]
pub fn connect_workers(capacity: usize, doorbells: &[Arc<Doorbell>]) -> Vec<InProcess> {
    assert!(capacity > 0, "a queue must hold at least one message");
    assert!(u16::try_from(doorbells.len()).is_ok(), "{} nodes are above the range of node ids", doorbells.len());
    let workers = Workers::of(doorbells);
    let inboxes: Arc<[_]> = doorbells.iter().map(|_| Inbox::new(doorbells.len(), workers.bells.len())).collect();
    let mut incoming: Vec<_> = doorbells.iter().map(|_| Vec::with_capacity(workers.bells.len())).collect();
    let mut to_all = || -> Arc<[_]> {
        let to_one = |consumers: &mut Vec<_>| {
            let (producer, consumer) = RingBuffer::new(capacity);
            consumers.push(consumer);
            Mutex::new(producer)
        };
        incoming.iter_mut().map(to_one).collect()
    };
    let outgoing: Vec<_> = workers.bells.iter().map(|_| to_all()).collect();
    let endpoint = |(local, incoming): (usize, Vec<_>)| {
        let (nodes, workers) = (BitSet::new(doorbells.len()), workers.clone());
        let worker = workers.of_node[local];
        InProcess {
            local,
            worker,
            outgoing: outgoing[worker].clone(),
            incoming,
            inboxes: inboxes.clone(),
            ready: BitSet::new(workers.bells.len()),
            served: BitSet::new(workers.bells.len()),
            unannounced: nodes.clone(),
            blocked: nodes.clone(),
            gone: nodes,
            gone_count: 0,
            turn: 0,
            workers,
        }
    };
    incoming.into_iter().enumerate().map(endpoint).collect()
}

/// The workers, and the nodes that they host.
#[derive(Clone, Debug)]
struct Workers {
    of_node: Arc<[usize]>,
    bells: Arc<[Arc<Doorbell>]>,
}

impl Workers {
    /// The workers of nodes with these doorbells.
    fn of(doorbells: &[Arc<Doorbell>]) -> Self {
        let mut bells: Vec<Arc<Doorbell>> = Vec::new();
        let mut worker = |bell: &Arc<Doorbell>| {
            let known = bells.iter().position(|other| Arc::ptr_eq(other, bell));
            known.unwrap_or_else(|| {
                bells.push(bell.clone());
                bells.len() - 1
            })
        };
        Self { of_node: doorbells.iter().map(&mut worker).collect(), bells: bells.into() }
    }
}

/// A message in a ring, with its sender.
#[derive(Debug)]
struct Queued {
    from: NodeId,
    message: Message,
}

impl Queued {
    fn received(self) -> Received {
        Received::Message { from: self.from, message: self.message }
    }
}

/// The endpoint of one node.
#[derive(Debug)]
pub struct InProcess {
    local: usize,
    worker: usize,
    workers: Workers,
    /// By node.
    inboxes: Arc<[Inbox]>,
    /// The rings from the worker of this node to each node.
    outgoing: Arc<[Mutex<Producer<Queued>>]>,
    /// The rings from each worker to this node.
    incoming: Vec<Consumer<Queued>>,
    /// Workers whose ring may hold something, or which host a node that has left.
    ready: BitSet,
    /// Workers whose ring was read in this call of `receive`.
    served: BitSet,
    /// Receivers that were sent something since the last flush.
    unannounced: BitSet,
    /// Receivers whose ring was full at the last try.
    blocked: BitSet,
    /// Nodes that have left, and whose end was reported; and their number.
    gone: BitSet,
    gone_count: usize,
    turn: usize,
}

impl InProcess {
    /// The doorbell of the worker that hosts this endpoint.
    #[must_use]
    pub fn doorbell(&self) -> &Arc<Doorbell> {
        &self.workers.bells[self.worker]
    }

    /// Returns true if `receive` may return something, or a queue that was full has room.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
            || self.inboxes[self.local].has_fresh()
            || self.blocked.iter().any(|to| self.has_room(to))
    }

    /// The ring from this worker to a node. Its lock is never contended: one thread uses all endpoints of a worker.
    fn ring_to(&self, node: usize) -> MutexGuard<'_, Producer<Queued>> {
        self.outgoing[node].lock().expect("no code panics under this lock")
    }

    fn has_room(&self, to: usize) -> bool {
        let ring = self.ring_to(to);
        ring.slots() > 0 || ring.is_abandoned()
    }

    /// Rings for another worker. A running thread is not asleep, so endpoints of the same worker need no ring.
    fn ring(&self, worker: usize) {
        if worker != self.worker {
            self.workers.bells[worker].ring();
        }
    }

    fn announce(&self, to: usize) {
        self.inboxes[to].announce(self.worker);
        self.ring(self.workers.of_node[to]);
    }

    /// Handles a full ring: asks the receiver to ring when there is room, and tries once more, since the room may have
    /// been made just before.
    #[cold]
    fn ask_for_room(&mut self, to: usize, letter: Queued) -> Result<(), SendError> {
        if self.unannounced.contains(to) {
            self.unannounced.remove(to);
            self.announce(to);
        }
        if !(self.blocked.contains(to) && self.inboxes[to].is_starved(self.worker)) {
            self.inboxes[to].starve(self.worker);
            self.blocked.insert(to);
        }
        let pushed = self.ring_to(to).push(letter);
        match pushed {
            Err(PushError::Full(letter)) => Err(SendError::Full(letter.message)),
            Ok(()) => {
                self.blocked.remove(to);
                self.unannounced.insert(to);
                Ok(())
            }
        }
    }

    /// Takes at most `limit` messages of the nodes of one worker, and the news of their ends.
    fn take(&mut self, worker: usize, limit: usize, sink: &mut Vec<Received>) {
        // First this and then the number of messages: what came before the end must not be missed.
        let some_left = self.inboxes[self.local].left_count() > self.gone_count;
        let ring = &mut self.incoming[worker];
        let there = ring.slots();
        let count = there.min(limit);
        if let Ok(chunk) = ring.read_chunk(count) {
            sink.extend(chunk.into_iter().map(Queued::received));
        }
        if count < there || (some_left && !self.report_left(worker, limit - count, sink)) {
            return;
        }
        self.ready.remove(worker);
    }

    /// Reports the nodes of a worker that have left, at most `limit`; true if that were all.
    #[cold]
    fn report_left(&mut self, worker: usize, limit: usize, sink: &mut Vec<Received>) -> bool {
        let inbox = &self.inboxes[self.local];
        let is_of_worker = |&node: &usize| self.workers.of_node[node] == worker && !self.gone.contains(node);
        let left: Vec<_> = inbox.left().filter(is_of_worker).collect();
        for &node in left.iter().take(limit) {
            self.gone.insert(node);
            self.gone_count += 1;
            sink.push(Received::Lost { peer: NodeId(node as u16), reason: "the peer left".into() });
        }
        left.len() <= limit
    }

    /// Rings for workers that had no room in a ring that was just read.
    fn relieve_served(&mut self) {
        fence(Ordering::SeqCst);
        for word in 0..words_for(self.incoming.len()) {
            let served = self.served.take_word(word);
            for worker in members(word, self.inboxes[self.local].take_starved(word, served)) {
                self.ring(worker);
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
        if to == self.local || to >= self.outgoing.len() {
            return Err(SendError::Lost);
        }
        let mut ring = self.ring_to(to);
        if ring.is_abandoned() {
            return Err(SendError::Lost);
        }
        let pushed = ring.push(Queued { from: NodeId(self.local as u16), message });
        drop(ring);
        match pushed {
            Ok(()) => {
                self.unannounced.insert(to);
                self.blocked.remove(to);
                Ok(())
            }
            Err(PushError::Full(letter)) => self.ask_for_room(to, letter),
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
        while let Some(worker) = self.ready.next_from(self.turn) {
            let room = limit - (sink.len() - before);
            if room == 0 {
                break;
            }
            self.take(worker, room.min(TURN), sink);
            self.served.insert(worker);
            self.turn = worker + 1;
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
        // The rings must be abandoned before the peers are made to look.
        self.incoming.clear();
        for peer in (0..self.inboxes.len()).filter(|&peer| peer != self.local) {
            self.inboxes[peer].leave(self.local);
            self.announce(peer);
        }
    }
}

/// The news for one receiver, by worker and by node.
#[derive(Debug)]
struct Inbox {
    words: Box<[InboxWord]>,
    /// A bit for each node that has left, after its last message, and the number of bits.
    left: Box<[AtomicU64]>,
    left_count: AtomicUsize,
}

/// The bits of 64 workers, on their own cache lines (two, because of the adjacent-line prefetcher).
#[derive(Debug, Default)]
#[repr(align(128))]
struct InboxWord {
    /// Set by a worker after it has put messages into its ring, or one of its nodes has left.
    fresh: AtomicU64,
    /// Set by a worker that found its ring full, cleared by the receiver after it has made room.
    starved: AtomicU64,
}

impl Inbox {
    fn new(nodes: usize, workers: usize) -> Self {
        Self {
            words: (0..words_for(workers)).map(|_| InboxWord::default()).collect(),
            left: (0..words_for(nodes)).map(|_| AtomicU64::new(0)).collect(),
            left_count: AtomicUsize::new(0),
        }
    }

    /// Sets the bit of a worker. It pairs with [`collect`](Inbox::collect): a reader of the bit sees the ring's
    /// contents.
    fn announce(&self, worker: usize) {
        let (word, bit) = place(worker);
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

    fn is_starved(&self, worker: usize) -> bool {
        let (word, bit) = place(worker);
        self.words[word].starved.load(Ordering::Relaxed) & bit != 0
    }

    /// Sets the bit of a worker without room. The fence pairs with the one in `relieve_served`: either the worker's
    /// next look at the ring sees the room, or the receiver sees this bit. The argument is that of the doorbell.
    fn starve(&self, worker: usize) {
        let (word, bit) = place(worker);
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

    /// Takes note that a node has left. It pairs with [`left_count`](Inbox::left_count): who sees the number sees the bit,
    /// and the last messages of the node.
    fn leave(&self, node: usize) {
        let (word, bit) = place(node);
        self.left[word].fetch_or(bit, Ordering::Relaxed);
        self.left_count.fetch_add(1, Ordering::Release);
    }

    /// Number of nodes that have left.
    fn left_count(&self) -> usize {
        self.left_count.load(Ordering::Acquire)
    }

    /// The nodes that have left.
    fn left(&self) -> impl Iterator<Item = usize> {
        self.left.iter().enumerate().flat_map(|(word, bits)| members(word, bits.load(Ordering::Relaxed)))
    }
}
