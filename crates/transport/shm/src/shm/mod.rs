//! The transport between the processes of one machine: VELO's mailboxes in shared memory.
//!
//! A mailbox has one lane for each sender, a ring that only this sender can write and only the receiver reads. So there
//! is no lock, and no sender can harm another. A sender that is killed at any instruction leaves at most an unpublished
//! record in its own lane. A message is stores to one's own mapping: there is no system call, except for one byte on a
//! socket when the other side sleeps.
//!
//! Small bodies travel in the lane. Large ones lie in the sender's pool, and the receiver's [`Bytes`](bytes::Bytes) are
//! the same memory until the last of them is dropped. [`Transport::buffers`] lends that memory, so that a body can be
//! written directly into it. When the pool is full, large bodies go through the lane in pieces, so bodies that
//! receivers keep never stop an event builder.
//!
//! Only the abstract socket on which peers meet has a name. So a crash leaves nothing behind, and the next run finds
//! nothing old. [`connect`](Shm::connect) says who may join. The [`Bytes`](bytes::Bytes) of a dropped endpoint keep its
//! connection until they are dropped, too, so that the peer does not reuse their memory.
//!
//! A thread of each endpoint gives signs of life, so a node is alive as long as its process runs, whatever it does. A
//! peer whose process stalls for [`peer_timeout`](evb_transport::EndpointOptions::peer_timeout) is given up, after all its messages
//! were read, and is notified on its socket: if it continues, it receives [`Received::Lost`]. Its bodies in this node's
//! pool are not reused before it has returned them or its socket has closed. So it never reads data that were written
//! for another peer.
//!
//! An endpoint is used as a [`Transport`] or as a [`MessageLayer`](evb_transport::MessageLayer), and so are its peers.

mod arrivals;
mod bell;
mod connect;
mod factory;
mod greeting;
mod lane;
mod layer;
mod leaving;
mod lending;
mod link;
mod map;
mod offer;
mod options;
mod peer;
mod pool;
mod pulse;
mod record;
#[cfg(test)]
mod tests;
mod turns;

pub use options::ShmOptions;

use evb_core::{NodeId, bits::BitSet};
use evb_transport::{
    BroadcastWay, Broadcasts, Buffer, Buffers, ChunkPool, Message, Received, Refusals, SendError, Transport, Waker,
    send_copies,
};
use leaving::Borrower;
use map::{Region, Words, close_to_writers, create};
use mio::{Events, Interest, Poll, unix::SourceFd};
use offer::{BELL_WORDS, RING_BYTES};
use peer::Peer;
use pool::Pool;
use pulse::Heartbeat;
use std::{
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
    sync::Arc,
    time::{Duration, Instant},
};
use turns::LaneTurn;

/// Time between two attempts to send the rest while an endpoint closes.
const CLOSE_AGAIN: Duration = Duration::from_millis(1);
const PAGE_BYTES: usize = 4096;
/// Number of receivers from which a broadcast has many, and length above which its body goes by reference then, in bytes.
/// At 8 receivers, 512 bytes cost the same by reference and in copies, at 2 receivers 1 KiB.
const MANY: usize = 4;
const LENT_TO_MANY: usize = 512;

const LISTENER: mio::Token = mio::Token(usize::MAX - 1);
const WAKER: mio::Token = mio::Token(usize::MAX - 2);
/// Token of connections that do not belong to a peer yet.
const NEWCOMER: mio::Token = mio::Token(usize::MAX - 3);

/// The system refuses memory or files that an endpoint needs.
#[derive(Debug, thiserror::Error)]
#[error("cannot open an endpoint in shared memory: {0}")]
pub struct BindError(#[from] io::Error);

/// The endpoint of one node.
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
    /// Peers that have unflushed messages.
    unflushed: BitSet,
    /// Peers without room at the last attempt, or with a message in pieces.
    blocked: BitSet,
    /// Peers that may have bodies of this node.
    lending: BitSet,
    /// Gone peers that may still read bodies of this node.
    leaving: Vec<Borrower>,
    /// Peers whose loss the message layer has not reported yet.
    gone: Vec<NodeId>,
    chunks: ChunkPool,
    scratch: Box<[u8]>,
    rejected: u64,
    /// Bodies of broadcasts that were not copied, because another receiver reads the same.
    saved: u64,
    woken: bool,
    heartbeat: Heartbeat,
    /// Beats at the last check of the peers' pulses.
    seen_beats: u64,
}

impl Shm {
    /// Opens the endpoint of node `local`; peers find it by its [`address`](evb_transport::Connect::address).
    ///
    /// # Errors
    /// [`BindError`] if the system refuses memory or files.
    ///
    /// # Panics
    /// If `local` is not below `options.endpoint.nodes`, or `options.ring_bytes` is out of range.
    pub fn bind(local: NodeId, options: ShmOptions) -> Result<Self, BindError> {
        assert!(local.0 < options.endpoint.nodes, "{local} is not one of {} nodes", options.endpoint.nodes);
        let ring = options.ring_bytes;
        assert!(ring.is_power_of_two() && RING_BYTES.contains(&ring), "a ring of {ring} bytes");
        Ok(Self::open(local, options)?)
    }

    fn open(local: NodeId, options: ShmOptions) -> io::Result<Self> {
        let (poll, nodes) = (Poll::new()?, usize::from(options.endpoint.nodes));
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
            saved: 0,
            woken: false,
            heartbeat: Heartbeat::start(bell.clone(), options.endpoint.peer_timeout)?,
            bell,
            seen_beats: 0,
            options,
        })
    }

    /// Number of processes that were refused: of other users, with wrong tokens, silent, or unexpected.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Sends the rest within `timeout`; returns true if all was sent. Peers get the data in lanes and pool without this
    /// process. Dropping an endpoint does not wait for room.
    pub fn close(mut self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while !self.flush_all() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            // What peers send ends a wait, but is not taken any more: so it is short.
            self.poll_events(Some(left.min(CLOSE_AGAIN)));
        }
        true
    }

    /// Sends a message; by reference if it is to be, or is not small.
    #[inline]
    fn post(&mut self, to: NodeId, message: Message, lends: bool) -> Result<(), SendError> {
        let (index, length, limit) = (to.index(), message.body.len(), self.options.endpoint.max_body);
        if length > limit {
            return Err(SendError::TooLarge { length, limit });
        }
        let Some(Some(peer)) = self.peers.get_mut(index) else { return Err(SendError::Lost) };
        if !peer.takes_messages() {
            return Err(SendError::Lost);
        }
        self.unflushed.insert(index);
        let result = peer.send(message, &self.pool, lends);
        if lends || length > self.options.inline_bytes || result.is_err() {
            self.lending.insert(index);
            if result.is_err() || peer.has_outbox() {
                self.blocked.insert(index);
            }
        } else {
            self.blocked.remove(index);
        }
        result.map_err(SendError::Full)
    }

    fn add_peer(&mut self, node: NodeId, peer: Peer) {
        self.peers[node.index()] = Some(Box::new(peer));
        self.lanes.push(LaneTurn { node: node.0, misses: 0 });
    }
}

impl Transport for Shm {
    fn local(&self) -> NodeId {
        self.local
    }

    #[inline]
    fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        self.post(to, message, false)
    }

    /// Writes a body that is not small into the pool once and lends it to all. Otherwise, and when the pool is full, it
    /// goes through each lane.
    fn broadcast(&mut self, to: &[NodeId], mut message: Message, refused: &mut Refusals<'_>) {
        let lends_above = if to.len() < MANY { self.options.inline_bytes } else { LENT_TO_MANY };
        let lent = (lends_above + 1..=self.options.endpoint.max_body).contains(&message.body.len()) && to.len() > 1;
        let Some((body, _)) = lent.then(|| self.pool.place(&message.body)).flatten() else {
            return send_copies(self, to, message, refused);
        };
        message.body = body;
        for &node in to {
            if let Err(error) = self.post(node, message.clone(), true) {
                refused(node, error);
            }
        }
        self.saved += to.len() as u64 - 1;
    }

    fn broadcasts(&self) -> Broadcasts {
        Broadcasts { saved: self.saved, ..Broadcasts::new(BroadcastWay::SharedMemory) }
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
        // Waking fails only when the endpoint is gone, and then no thread waits.
        Arc::new(move || drop(waker.wake()))
    }

    /// Small bodies are not lent: two copies through a lane cost less than lending and returning memory.
    fn buffers(&self) -> Option<Buffers> {
        let (pool, inline) = (Arc::clone(&self.pool), self.options.inline_bytes);
        Some(Buffers::new(move |capacity| if capacity > inline { pool.take(capacity).map(Buffer::new) } else { None }))
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        self.flush_all();
        for peer in self.peers.iter().flatten() {
            peer.link.tell(link::GOODBYE);
        }
        // Replies are not read any more, and handles of the pool may outlive this.
        self.pool.close();
    }
}
