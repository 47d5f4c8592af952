//! The transport between processes and machines: one TCP connection per pair of nodes.
//!
//! [`Tcp::bind`] opens the listening socket, [`Tcp::connect`] joins the peers. Small messages are coalesced. Bodies of
//! a KiB or more are written in place, and received bodies are slices of the chunk that they were read into.
//! `docs/reference/tcp-wire.md` describes the bytes on the wire.
//!
//! An endpoint has no thread. Signs of life are sent, and silent peers are found, within
//! [`receive`](Transport::receive), [`flush`](Transport::flush) and [`wait`](Transport::wait), when it is time for
//! them, however busy the node is. A node must call one of them at least every half
//! [`peer_timeout`](evb_transport::EndpointOptions::peer_timeout), or its peers take it for dead. A node that was away itself, however
//! long, does not blame others for it: bytes that arrived meanwhile count, and its absence is one check of many. A peer
//! that is given up sees its connection close.

mod connect;
mod factory;
mod frame;
#[cfg(feature = "fuzz")]
mod fuzz;
mod handshake;
pub mod multicast;
mod options;
mod outbox;
mod peer;
mod reader;

pub use frame::{CONTROL_BYTES, FRAME_HEADER_BYTES, FRAME_MAX_BODY, FrameError, FrameHeader, FrameParser};
#[cfg(feature = "fuzz")]
pub use fuzz::fuzz_frames;
pub use options::TcpOptions;

use evb_core::{NodeId, bits::BitSet};
use evb_transport::{ChunkPool, Message, Received, SendError, Transport, Waker, finish_in_background};
use mio::{Events, Interest, Poll, net::TcpListener};
use peer::{Peer, ReceiveTurn};
use std::{
    io,
    net::SocketAddr,
    os::fd::{AsFd as _, BorrowedFd},
    sync::Arc,
    time::{Duration, Instant},
};

/// Most messages from one peer before the next has its turn.
const TURN: usize = 64;
/// Number of checks in the longest silence. A peer is given up after one more check without a sign of life.
const LOOKS: u32 = 8;
/// Calls of `receive` between two checks of the system's events while there is something to read, unless it is time for
/// one before.
const CALLS_PER_POLL: u32 = 16;
/// Reads of the only peer without a check before each: a read that finds nothing costs no more than a check, and one that finds
/// something saves it. With several peers the others would wait for it.
const GUESSES: u32 = 6;
/// Bytes that wait for a peer before they are written without a flush.
const WRITE_AHEAD_BYTES: usize = 256 << 10;

const LISTENER: mio::Token = mio::Token(usize::MAX - 1);
const WAKER: mio::Token = mio::Token(usize::MAX - 2);
/// Token of connections that do not belong to a peer yet.
const NEWCOMER: mio::Token = mio::Token(usize::MAX - 3);
/// Token of a socket that somebody else reads.
const WATCHED: mio::Token = mio::Token(usize::MAX - 4);

/// An endpoint cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The system refuses the address or further files.
    #[error("cannot listen on {address}: {source}")]
    Address {
        /// The requested address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// The system has no such congestion control, or does not let this user choose it.
    #[error("cannot use the congestion control `{name}`: {source}")]
    CongestionControl {
        /// The requested congestion control.
        name: String,
        /// The reason.
        source: io::Error,
    },
}

/// The endpoint of one node.
#[derive(Debug)]
pub struct Tcp {
    local: NodeId,
    options: TcpOptions,
    poll: Poll,
    events: Events,
    /// Open until all peers are there. Later connections are refused by the system, which costs this node nothing.
    listener: Option<TcpListener>,
    address: SocketAddr,
    waker: Arc<mio::Waker>,
    peers: Vec<Option<Box<Peer>>>,
    pool: ChunkPool,
    /// Peers that may have something to receive.
    active: BitSet,
    /// Peers with something in their outbox.
    unsent: BitSet,
    turn: usize,
    /// Calls of `receive` since the last check of the system's events.
    calls: u32,
    last_tick: Instant,
    rejected: u64,
    woken: bool,
}

impl Tcp {
    /// Opens the listening socket of node `local`.
    ///
    /// # Errors
    /// [`BindError`] if the system refuses the address, further files, or the congestion control.
    ///
    /// # Panics
    /// If `local` is not below `options.endpoint.nodes`, or `options.endpoint.max_body` is above [`FRAME_MAX_BODY`].
    pub fn bind(local: NodeId, options: TcpOptions) -> Result<Self, BindError> {
        assert!(local.0 < options.endpoint.nodes, "{local} is not one of {} nodes", options.endpoint.nodes);
        assert!(options.endpoint.max_body <= FRAME_MAX_BODY, "frames have at most {FRAME_MAX_BODY} bytes");
        let address = options.listen;
        let endpoint = Self::open(local, options).map_err(|source| BindError::Address { address, source })?;
        let TcpOptions { congestion_control, .. } = &endpoint.options;
        let chosen =
            endpoint.listener.iter().try_for_each(|listener| endpoint.options.set_congestion_control(listener));
        chosen.map_err(|source| {
            let name = congestion_control.clone().unwrap_or_default();
            BindError::CongestionControl { name, source }
        })?;
        Ok(endpoint)
    }

    fn open(local: NodeId, options: TcpOptions) -> io::Result<Self> {
        let (poll, nodes) = (Poll::new()?, usize::from(options.endpoint.nodes));
        let mut listener = TcpListener::bind(options.listen)?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Self {
            local,
            address: listener.local_addr()?,
            waker: Arc::new(mio::Waker::new(poll.registry(), WAKER)?),
            poll,
            events: Events::with_capacity(nodes.max(128)),
            listener: Some(listener),
            peers: (0..nodes).map(|_| None).collect(),
            pool: ChunkPool::default(),
            active: BitSet::new(nodes),
            unsent: BitSet::new(nodes),
            turn: 0,
            calls: 0,
            last_tick: Instant::now(),
            rejected: 0,
            woken: false,
            options,
        })
    }

    /// The address on which this node listens.
    #[must_use]
    pub fn listen_addr(&self) -> SocketAddr {
        self.address
    }

    /// Number of connections that were refused: wrong tokens, garbage, silent strangers, unexpected nodes.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// Sends the rest, says goodbye and waits until all peers have closed, too, within `timeout`. Returns true if all
    /// was sent and all peers have closed. If not, and when an endpoint is dropped, that goes on in the background as long as
    /// the process runs.
    pub fn close(mut self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let moment = Some(Duration::from_millis(10));
        self.say_goodbye();
        while !self.flush() && Instant::now() < deadline {
            self.poll_events(moment);
            self.discard();
        }
        if self.unsent.is_empty() {
            self.present().for_each(Peer::leave);
        }
        while !self.discard() && Instant::now() < deadline {
            self.poll_events(moment);
        }
        self.unsent.is_empty() && self.discard()
    }

    /// Ends waits when something new arrives at this socket, whose owner reads all of it.
    pub(crate) fn watch(&self, socket: &mut mio::net::UdpSocket) -> io::Result<()> {
        self.poll.registry().register(socket, WATCHED, Interest::READABLE)
    }

    fn present(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.peers.iter_mut().flatten().map(|peer| &mut **peer)
    }

    fn say_goodbye(&mut self) {
        for (index, peer) in self.peers.iter_mut().enumerate() {
            if let Some(peer) = peer {
                peer.say_goodbye();
                self.unsent.insert(index);
            }
        }
    }

    /// Discards data from the peers. Returns true if none sends more.
    fn discard(&mut self) -> bool {
        let talking = self.present().map(Peer::discard).filter(|ended| !ended).count();
        talking == 0
    }

    fn write(&mut self, index: usize) {
        let Some(peer) = &mut self.peers[index] else { return self.unsent.remove(index) };
        if peer.write() {
            self.unsent.remove(index);
        }
        if !peer.takes_messages() {
            self.active.insert(index);
        }
    }

    /// Takes the system's events, waiting for at most `timeout`, and checks the clock.
    fn poll_events(&mut self, timeout: Option<Duration>) {
        self.calls = 0;
        // A signal ends this early, and so does a stop of the process. What came meanwhile is seen before silence is judged.
        if self.poll.poll(&mut self.events, timeout).is_err()
            && self.poll.poll(&mut self.events, Some(Duration::ZERO)).is_err()
        {
            return;
        }
        self.take_events();
        self.tick(Instant::now());
    }

    /// Handles the system's events.
    fn take_events(&mut self) {
        for event in &self.events {
            match event.token() {
                WAKER | WATCHED => self.woken = true,
                mio::Token(index) => {
                    if let Some(Some(peer)) = self.peers.get_mut(index)
                        && peer.on_event(event)
                    {
                        self.active.insert(index);
                    }
                }
            }
        }
    }

    fn tick_interval(&self) -> Duration {
        self.options.endpoint.peer_timeout / LOOKS
    }

    /// Returns true if it is time for signs of life, however few the calls since the last ones.
    fn is_due(&self) -> bool {
        self.last_tick.elapsed() >= self.tick_interval()
    }

    /// Sends signs of life and checks those of the peers, if it is time. The events were taken just before.
    fn tick(&mut self, now: Instant) {
        let interval = self.tick_interval();
        let since = now.saturating_duration_since(self.last_tick);
        if since < interval {
            return;
        }
        self.last_tick = now;
        for index in 0..self.peers.len() {
            let Some(peer) = &mut self.peers[index] else { continue };
            if peer.tick(now, since >= 2 * interval) {
                self.active.insert(index);
            }
            if peer.has_waiting() {
                self.unsent.insert(index);
            }
        }
    }

    /// Takes the only peer for one that has something to receive. Returns false if there are several, or if it is time for a check.
    fn guess(&mut self) -> bool {
        let [one, other] = &mut self.peers[..] else { return false };
        let ((Some(peer), None) | (None, Some(peer))) = (one, other) else { return false };
        if self.calls > GUESSES || !self.active.is_empty() {
            return false;
        }
        peer.guess_readable();
        self.active.insert(1 - self.local.index());
        true
    }

    /// Returns true if something may be received or written.
    fn is_ready(&self) -> bool {
        let writable = |index: usize| self.peers[index].as_ref().is_none_or(|peer| peer.writable);
        !self.active.is_empty() || self.unsent.iter().any(writable)
    }

    fn drop_peer(&mut self, index: usize) {
        self.active.remove(index);
        self.unsent.remove(index);
        if let Some(mut peer) = self.peers[index].take() {
            peer.deregister(self.poll.registry());
        }
    }
}

impl Transport for Tcp {
    fn local(&self) -> NodeId {
        self.local
    }

    fn send(&mut self, to: NodeId, message: Message) -> Result<(), SendError> {
        let (index, length, limit) = (to.index(), message.body.len(), self.options.endpoint.max_body);
        if length > limit {
            return Err(SendError::TooLarge { length, limit });
        }
        let Some(Some(peer)) = self.peers.get_mut(index) else { return Err(SendError::Lost) };
        if !peer.outbox.has_room(length, self.options.send_queue_bytes) {
            peer.write();
        }
        if !peer.takes_messages() {
            self.active.insert(index);
            return Err(SendError::Lost);
        }
        if !peer.outbox.has_room(length, self.options.send_queue_bytes) {
            return Err(SendError::Full(message));
        }
        peer.outbox.push(message);
        self.unsent.insert(index);
        if peer.writable && peer.outbox.bytes() >= WRITE_AHEAD_BYTES {
            self.write(index);
        }
        Ok(())
    }

    fn flush(&mut self) -> bool {
        let mut next = self.unsent.next_from(0);
        while let Some(index) = next {
            self.write(index);
            next = self.unsent.next_from(index + 1).filter(|&after| after > index);
        }
        if !self.unsent.is_empty() || self.is_due() {
            self.poll_events(Some(Duration::ZERO));
        }
        self.unsent.is_empty()
    }

    fn receive(&mut self, limit: usize, sink: &mut Vec<Received>) -> usize {
        self.calls += 1;
        let is_due = self.is_due();
        if (self.active.is_empty() || self.calls >= CALLS_PER_POLL || is_due) && (is_due || !self.guess()) {
            self.poll_events(Some(Duration::ZERO));
        }
        let before = sink.len();
        while let Some(index) = self.active.next_from(self.turn) {
            let left = limit - (sink.len() - before);
            if left == 0 {
                break;
            }
            let Some(peer) = &mut self.peers[index] else {
                self.active.remove(index);
                continue;
            };
            match peer.receive(left.min(TURN), &mut self.pool, sink) {
                ReceiveTurn::Over => {}
                ReceiveTurn::Dry => self.active.remove(index),
                ReceiveTurn::Lost => self.drop_peer(index),
            }
            self.turn = index + 1;
        }
        sink.len() - before
    }

    fn wait(&mut self, timeout: Duration) {
        let (start, interval) = (Instant::now(), self.tick_interval());
        if self.is_due() {
            self.poll_events(Some(Duration::ZERO));
        }
        while !self.is_ready() && !self.woken {
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                break;
            }
            self.poll_events(Some(left.min(interval)));
        }
        self.woken = false;
    }

    fn waker(&self) -> Waker {
        let waker = Arc::clone(&self.waker);
        // Waking fails only when the endpoint is gone, and then no thread waits.
        Arc::new(move || drop(waker.wake()))
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.poll.registry().as_fd())
    }
}

impl Drop for Tcp {
    /// Keeps the connections until the peers have closed them, in the background. The system answers what a peer sends over a
    /// closed one with a reset, which destroys all that is on its way to the peer.
    fn drop(&mut self) {
        let mut peers: Vec<_> = self.peers.iter_mut().filter_map(Option::take).collect();
        peers.iter_mut().for_each(|peer| peer.say_goodbye());
        let (start, patience) = (Instant::now(), self.options.endpoint.peer_timeout);
        let mut are_gone = move || {
            peers.retain_mut(|peer| !peer.is_left(start, patience));
            peers.is_empty()
        };
        if !are_gone() {
            finish_in_background(are_gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_transport::{
        EndpointOptions, Token,
        conformance::{PATIENCE, joined},
    };

    /// Sends a message, waits until the system has it for node 0, and returns what one call of node 0 receives.
    fn one_call(nodes: &mut [Tcp], from: usize) -> usize {
        let message = Message { head: [0; evb_transport::HEAD_BYTES], body: bytes::Bytes::new() };
        nodes[from].send(NodeId(0), message).expect("it is connected");
        assert!(nodes[from].flush(), "a short message is sent at once");
        let (peer, start) = (nodes[0].peers[from].as_mut().expect("it is connected"), Instant::now());
        while !matches!(peer.has_bytes(), Ok(true)) {
            assert!(start.elapsed() < PATIENCE, "the message does not arrive");
            std::thread::yield_now();
        }
        nodes[0].receive(8, &mut Vec::new())
    }

    #[test]
    fn one_call_receives_from_any_of_several_peers() {
        let options = TcpOptions::new(EndpointOptions::new(3, Token::new([7; Token::BYTES])));
        let mut nodes =
            joined((0..3).map(|node| Tcp::bind(NodeId(node), options.clone()).expect("a socket")).collect());
        let received = [1, 1, 1, 2, 2, 1].map(|from| one_call(&mut nodes, from));
        assert_eq!(received, [1; 6]);
    }
}
