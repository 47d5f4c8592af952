//! The transport between the processes of one machine: VELO's mailboxes in shared memory.
//!
//! A mailbox is made of one [lane](lane) for each sender, a ring that only this sender can write and only the
//! receiver reads. So there is no lock, no sender can hurt another, and one that is killed at any instruction leaves at
//! most an unpublished record in its own lane. A message is stores to one's own mapping and nothing else: there is no
//! system call on the way, but for one byte on a socket when the other side sleeps.
//!
//! Small bodies travel in the lane. Large ones lie in the sender's pool, and the receiver's [`Bytes`](bytes::Bytes) are
//! the same memory, until the last of them is dropped; [`Transport::buffers`] lends that memory, so that a body can be
//! written where it is sent from. When the pool is full, large bodies go through the lane in pieces, so what receivers
//! keep never stops an event builder.
//!
//! Nothing has a name but the abstract socket on which peers meet, so nothing is left behind by a crash, and the next
//! run meets nothing old. [`connect`](Shm::connect) has who may join. Its [`Bytes`](bytes::Bytes) keep the connection of
//! an endpoint that is dropped, until they are dropped too, so that the peer does not use their memory again.
//!
//! An endpoint is used as a [`Transport`] or as a [`MessageLayer`](crate::MessageLayer), and so are its peers.

mod bell;
mod connect;
mod greeting;
mod lane;
mod layer;
mod lending;
mod link;
mod map;
mod options;
mod peer;
mod pool;
mod record;
#[cfg(test)]
mod tests;

pub use connect::ConnectError;
pub use options::ShmOptions;

use crate::{Buffer, Buffers, Message, Received, SendError, Transport, Waker, bits::BitSet, chunks::ChunkPool};
use connect::{BELL_WORDS, RING_BYTES};
use evb_core::NodeId;
use lending::Lending;
use map::{Region, Words, close_to_writers, create};
use mio::{Events, Interest, Poll, unix::SourceFd};
use peer::{Peer, Turn};
use pool::Pool;
use std::{
    io::{self, Read},
    os::{
        fd::{AsRawFd, OwnedFd},
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    sync::{
        Arc,
        atomic::{Ordering, fence},
    },
    time::{Duration, Instant},
};

/// Most messages that one lane gives before the next has its turn.
const TURN: usize = 64;
/// Calls of `receive` between two looks at the sockets: they tell of the death of a peer, and messages do not need them.
const CALLS_PER_POLL: u32 = 1 << 12;
/// Looks at a lane in vain until it is cold.
const COLD_AFTER: u8 = 32;
/// A cold lane is passed so often while others have messages.
const COLD_TURNS: u8 = 16;
/// Most strangers that are turned away in one go.
const STRANGERS_AT_ONCE: usize = 16;
/// Time between two tries to send what waits while an endpoint closes.
const CLOSE_AGAIN: Duration = Duration::from_millis(1);
const PAGE_BYTES: usize = 4096;

const LISTENER: mio::Token = mio::Token(usize::MAX - 1);
const WAKER: mio::Token = mio::Token(usize::MAX - 2);
/// Connections that are not a peer's yet.
const NEWCOMER: mio::Token = mio::Token(usize::MAX - 3);

/// The system does not give what an endpoint needs.
#[derive(Debug, thiserror::Error)]
#[error("cannot open an endpoint in shared memory: {0}")]
pub struct BindError(#[from] io::Error);

/// One node's endpoint.
#[derive(Debug)]
pub struct Shm {
    local: NodeId,
    options: ShmOptions,
    poll: Poll,
    events: Events,
    listener: UnixListener,
    name: String,
    waker: Arc<mio::Waker>,
    /// The word on which this endpoint sleeps.
    bell: Words,
    bell_file: OwnedFd,
    pool: Arc<Pool>,
    pool_file: OwnedFd,
    pool_bytes: usize,
    peers: Vec<Option<Box<Peer>>>,
    lanes: Vec<LaneTurn>,
    turn: usize,
    calls: u32,
    /// Peers that were sent something since the last flush.
    unflushed: BitSet,
    /// Peers for which there was no room at the last try, or that have a message in pieces.
    blocked: BitSet,
    /// Peers that may have bodies of this node.
    lending: BitSet,
    /// Peers that have left and still have bodies.
    leaving: Vec<(Arc<link::Link>, Words, Lending)>,
    /// Peers whose loss the message layer has not told yet.
    gone: Vec<NodeId>,
    chunks: ChunkPool,
    scratch: Box<[u8]>,
    rejected: u64,
    woken: bool,
}

impl Shm {
    /// Opens the endpoint of node `local`; peers find it by its [`address`](crate::Connect::address).
    ///
    /// # Errors
    /// [`BindError`] if the system gives no more memory or files.
    ///
    /// # Panics
    /// If `local` is not below `options.nodes`, or `options.ring_bytes` is not what it may be.
    pub fn bind(local: NodeId, options: ShmOptions) -> Result<Self, BindError> {
        assert!(local.0 < options.nodes, "{local} is not one of {} nodes", options.nodes);
        let ring = options.ring_bytes;
        assert!(ring.is_power_of_two() && RING_BYTES.contains(&ring), "a ring of {ring} bytes");
        Ok(Self::open(local, options)?)
    }

    fn open(local: NodeId, options: ShmOptions) -> io::Result<Self> {
        let (poll, nodes) = (Poll::new()?, usize::from(options.nodes));
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!("evb-{:016x}", u64::from_ne_bytes(random));
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        listener.set_nonblocking(true)?;
        poll.registry().register(&mut SourceFd(&listener.as_raw_fd()), LISTENER, Interest::READABLE)?;
        let bell_file = create("evb bell", BELL_WORDS * 8)?;
        let bell = Words::map(&bell_file, BELL_WORDS, true)?;
        close_to_writers(&bell_file)?;
        let pool_bytes = options.pool_bytes.max(1).next_multiple_of(PAGE_BYTES);
        let pool_file = create("evb pool", pool_bytes)?;
        let pool = Pool::new(Region::map(&pool_file, pool_bytes, true)?);
        close_to_writers(&pool_file)?;
        let none = BitSet::new(nodes);
        Ok(Self {
            local,
            waker: Arc::new(mio::Waker::new(poll.registry(), WAKER)?),
            poll,
            events: Events::with_capacity(nodes.max(128)),
            listener,
            name,
            bell,
            bell_file,
            pool,
            pool_file,
            pool_bytes,
            peers: (0..nodes).map(|_| None).collect(),
            lanes: Vec::with_capacity(nodes),
            turn: 0,
            calls: 0,
            unflushed: none.clone(),
            blocked: none.clone(),
            lending: none,
            leaving: Vec::new(),
            gone: Vec::new(),
            chunks: ChunkPool::default(),
            scratch: vec![0; options.ring_bytes].into(),
            rejected: 0,
            woken: false,
            options,
        })
    }

    /// How many processes were refused: of other users, with wrong tokens, silent, or not expected.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Sends what waits, at most for `timeout`; true if all has gone. What is in the lanes and the pool, peers get without
    /// this process. An endpoint that is dropped instead does not wait for room.
    pub fn close(mut self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while !self.flush_all() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            // What peers send ends a wait, and nobody takes it any more: so it is short.
            self.poll_events(Some(left.min(CLOSE_AGAIN)));
        }
        true
    }

    fn add_peer(&mut self, node: NodeId, peer: Peer) {
        self.peers[node.index()] = Some(Box::new(peer));
        self.lanes.push(LaneTurn { node: node.0, misses: 0 });
    }

    #[cold]
    fn drop_peer(&mut self, index: usize) {
        self.lanes.retain(|lane| usize::from(lane.node) != index);
        for set in [&mut self.unflushed, &mut self.blocked, &mut self.lending] {
            set.remove(index);
        }
        if let Some(peer) = self.peers[index].take() {
            let _ = self.poll.registry().deregister(&mut SourceFd(&peer.link.socket.as_raw_fd()));
            self.leaving.extend(peer.keep_lending());
        }
    }

    /// Takes back what peers have given back, also those that left; whether there was something.
    fn collect(&mut self) -> bool {
        let mut found = false;
        for index in 0..self.peers.len() {
            if !self.lending.contains(index) {
                continue;
            }
            let Some(peer) = &mut self.peers[index] else { continue };
            found |= peer.collect();
            if peer.lending.is_empty() {
                self.lending.remove(index);
            }
        }
        found
    }

    #[cold]
    fn collect_from_leaving(&mut self) {
        self.leaving.retain_mut(|(link, room, lending)| {
            lending.collect(link::returned(room));
            let closed = matches!((&link.socket).read(&mut [0; 64]), Ok(0));
            !closed && !lending.is_empty()
        });
    }

    /// Visits lanes in turn: the hot ones and some of the cold; when none of them had anything, all.
    #[inline]
    fn sweep(&mut self, limit: usize, mut visit: impl FnMut(&mut Visit<'_>, usize) -> (usize, Turn)) -> usize {
        self.calls += 1;
        if self.calls >= CALLS_PER_POLL {
            self.poll_events(Some(Duration::ZERO));
        }
        let (mut count, mut lost) = (0, Vec::new());
        let (lanes, first) = (self.lanes.len(), self.turn);
        for everywhere in [false, true] {
            for place in (first..lanes).chain(0..first) {
                let lane = &mut self.lanes[place];
                if !everywhere && lane.rests() {
                    continue;
                }
                let index = usize::from(lane.node);
                let Some(peer) = &mut self.peers[index] else { continue };
                if !lane.note(peer.is_ready()) {
                    continue;
                }
                let mut visited = Visit { peer, chunks: &mut self.chunks, scratch: &mut self.scratch };
                let (taken, turn) = visit(&mut visited, (limit - count).min(TURN));
                count += taken;
                if turn == Turn::Lost {
                    lost.push(index);
                }
                if count >= limit {
                    self.turn = place + 1;
                    break;
                }
            }
            if count > 0 || !lost.is_empty() {
                break;
            }
        }
        lost.into_iter().for_each(|index| self.drop_peer(index));
        if self.turn >= self.lanes.len() {
            self.turn = 0;
        }
        count
    }

    /// Takes the system's events, waiting for at most `timeout`.
    #[cold]
    fn poll_events(&mut self, timeout: Option<Duration>) {
        self.calls = 0;
        // Nothing but a signal can end this early, and then there is nothing to see.
        if self.poll.poll(&mut self.events, timeout).is_err() {
            return;
        }
        if self.take_events() {
            self.turn_away();
        }
        self.collect_from_leaving();
    }

    /// Notes what the system's events say. True when somebody knocks.
    fn take_events(&mut self) -> bool {
        let mut strangers = false;
        for event in &self.events {
            match event.token() {
                LISTENER => strangers = true,
                WAKER => self.woken = true,
                mio::Token(index) => {
                    if let Some(Some(peer)) = self.peers.get_mut(index) {
                        peer.hear();
                    }
                }
            }
        }
        strangers
    }

    /// All peers are there: whoever knocks now is a stranger, or comes too early and will try again.
    fn turn_away(&mut self) {
        for _ in 0..STRANGERS_AT_ONCE {
            match self.listener.accept() {
                Ok(_) => self.rejected += 1,
                Err(_) => return,
            }
        }
        // More may wait: this brings the event again. If it fails, they wait until one more knocks.
        let listener = self.listener.as_raw_fd();
        let _ = self.poll.registry().reregister(&mut SourceFd(&listener), LISTENER, Interest::READABLE);
    }

    /// Moves pieces on and rings where somebody sleeps. True when nothing is left.
    #[inline]
    fn flush_all(&mut self) -> bool {
        if !self.blocked.is_empty() {
            self.advance();
        }
        if !self.unflushed.is_empty() {
            fence(Ordering::SeqCst);
            let mut next = self.unflushed.next_from(0);
            while let Some(index) = next {
                self.unflushed.remove(index);
                if let Some(peer) = &self.peers[index] {
                    peer.ring();
                }
                next = self.unflushed.next_from(index);
            }
        }
        if !self.lending.is_empty() {
            self.collect();
        }
        self.blocked.is_empty() || !self.peers.iter().flatten().any(|peer| peer.has_outbox())
    }

    #[cold]
    fn advance(&mut self) {
        for index in 0..self.peers.len() {
            if let Some(Some(peer)) = self.peers.get_mut(index).filter(|_| self.blocked.contains(index))
                && peer.has_outbox()
            {
                self.unflushed.insert(index);
                if peer.advance() {
                    self.blocked.remove(index);
                }
            }
        }
    }

    fn starving(&mut self) -> impl Iterator<Item = &mut Box<Peer>> {
        let wanted = self.peers.iter_mut().enumerate().filter(|(index, _)| self.blocked.contains(*index));
        wanted.filter_map(|(_, peer)| peer.as_mut())
    }

    /// Whether there is something to receive, or room where there was none.
    fn is_ready(&mut self) -> bool {
        let roomy = self.starving().any(|peer| peer.has_room());
        roomy || self.woken || self.peers.iter().flatten().any(|peer| peer.is_ready())
    }

    /// Room that was waited for ends one wait, not every further one.
    fn unblock(&mut self) {
        for index in 0..self.peers.len() {
            if let Some(Some(peer)) = self.peers.get_mut(index).filter(|_| self.blocked.contains(index))
                && !peer.has_outbox()
                && peer.has_room()
            {
                self.blocked.remove(index);
            }
        }
    }

    fn sleep(&mut self, timeout: Duration) {
        if !self.is_ready() {
            self.starving().for_each(|peer| peer.starve());
            bell::fall_asleep(&self.bell.as_ref()[0]);
            if !self.is_ready() {
                self.poll_events(Some(timeout));
            }
            bell::wake_up(&self.bell.as_ref()[0]);
            self.starving().for_each(|peer| peer.unstarve());
        }
        self.unblock();
        self.woken = false;
    }
}

/// A peer that is there, and how often its lane was passed in vain.
#[derive(Debug)]
struct LaneTurn {
    node: u16,
    misses: u8,
}

impl LaneTurn {
    /// Whether the lane is cold, and its time has not come.
    #[inline]
    fn rests(&mut self) -> bool {
        let rests = (COLD_AFTER..COLD_AFTER + COLD_TURNS).contains(&self.misses);
        self.misses += u8::from(rests);
        rests
    }

    /// Notes what a look at the lane found.
    #[inline]
    fn note(&mut self, ready: bool) -> bool {
        self.misses = if ready { 0 } else { (self.misses + 1).min(COLD_AFTER) };
        ready
    }
}

/// A lane that has its turn.
struct Visit<'a> {
    peer: &'a mut Peer,
    chunks: &'a mut ChunkPool,
    scratch: &'a mut [u8],
}

impl Transport for Shm {
    fn local(&self) -> NodeId {
        self.local
    }

    #[inline]
    fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        let (index, length, limit) = (to.index(), message.body.len(), self.options.max_body);
        if length > limit {
            return Err(SendError::TooLarge { length, limit });
        }
        let Some(Some(peer)) = self.peers.get_mut(index) else { return Err(SendError::Lost) };
        if !peer.takes_messages() {
            return Err(SendError::Lost);
        }
        self.unflushed.insert(index);
        let result = peer.send(message, &self.pool);
        if length > self.options.inline_bytes || result.is_err() {
            self.lending.insert(index);
            if result.is_err() || peer.has_outbox() {
                self.blocked.insert(index);
            }
        } else {
            self.blocked.remove(index);
        }
        result.map_err(SendError::Full)
    }

    fn flush(&mut self) -> bool {
        self.flush_all()
    }

    fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize {
        if limit == 0 {
            return 0;
        }
        self.sweep(limit, |visit, limit| {
            let before = sink.len();
            let turn = visit.peer.receive(limit, visit.chunks, sink);
            (sink.len() - before, turn)
        })
    }

    fn wait(&mut self, timeout: Duration) {
        self.sleep(timeout);
    }

    fn waker(&self) -> Waker {
        let waker = Arc::clone(&self.waker);
        // Waking fails only when the endpoint is gone, and then nobody waits.
        Arc::new(move || drop(waker.wake()))
    }

    fn buffers(&self) -> Option<Buffers> {
        let pool = Arc::clone(&self.pool);
        Some(Buffers::new(move |capacity| pool.take(capacity).map(Buffer::new)))
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        self.flush_all();
        for peer in self.peers.iter().flatten() {
            peer.link.tell(link::GOODBYE);
        }
    }
}
