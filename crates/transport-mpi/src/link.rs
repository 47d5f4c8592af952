//! What transport and layer share: frames between nodes, credits for them, and large bodies beside them.
//!
//! A frame is one MPI message of at most [`FRAME_BYTES`], small enough to be sent without a question to the receiver
//! (eagerly) by the common MPIs. A node has posted [`POSTED`] receives that take the frames of all peers in the order in
//! which they come; so one test finds out whether anything came, however many peers there are. What a frame is, and which
//! node of its rank it is from, stands in its tag: a message of 8 bytes is 8 bytes for MPI, too.
//!
//! A body that is too large for a frame goes as an MPI message of its own, from where it is, and is received by a receive
//! that is posted when its frame has come. Frames and bodies of a pair keep their order in MPI, hence bodies belong to
//! their frames by order.
//!
//! A peer may have [`WINDOW`] frames on the way, and starts a body as long as fewer than [`BODY_WINDOW`] bytes of bodies
//! are. What the receiver has taken comes back as credit, in the tags of its own frames, or in a frame of its own when it
//! is much: so what MPI must keep for a slow receiver is bounded. MPI promises no fairness, and the queues within it
//! that all senders share are short: a sender could fill them again and again while others stand outside. Hence the
//! [`Shares`]: when several peers send, the receiver keeps some of the credits of each back, so that all find room.

use crate::{
    Mpi,
    ffi::{Comm, Receiving, Route, Sending, Shim},
    kind::Kind,
    session::{Comms, Places},
    shares::Shares,
};
use bytes::Bytes;
use evb_core::NodeId;
use std::collections::VecDeque;

/// Longest frame. Open MPI sends up to 4096 bytes eagerly between processes of one machine, its own header included.
pub(crate) const FRAME_BYTES: usize = 4032;
/// Frames on the way from one node to another.
pub(crate) const WINDOW: u32 = 64;
/// Bytes of bodies on the way from one node to another, before the last of them.
pub(crate) const BODY_WINDOW: u64 = 4 << 20;
/// Most bytes that wait for one peer, or are on the way from it.
pub(crate) const BYTES_PER_PEER: usize = BODY_WINDOW as usize + (POSTED + MOST_SPARE) * FRAME_BYTES;
/// Receives that are posted for frames.
const POSTED: usize = 64;
/// Frame buffers that are kept for use again.
const MOST_SPARE: usize = 2 * WINDOW as usize;

/// A frame that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) from: usize,
    pub(crate) kind: Kind,
}

/// One node's frames.
pub(crate) struct Link {
    shim: &'static Shim,
    bodies: Comm,
    pub(crate) local: NodeId,
    /// Among the nodes of this rank.
    index: usize,
    places: Places,
    peers: Vec<Peer>,
    posted: Vec<Receiving>,
    /// The posted receive that is the next to be over.
    head: usize,
    /// It is over, and its frame was not released yet.
    arrived: Option<Arrived>,
    /// Receives before the head that are not posted again yet.
    unposted: usize,
    spare: Vec<Vec<u8>>,
    /// How many sends MPI has not ended yet, and how many of them are bodies.
    sending: usize,
    sending_bodies: usize,
    shares: Shares,
    /// Credits came, or something has left, since the last look.
    pub(crate) moved: bool,
    /// Last, so that MPI ends after all else.
    _mpi: Mpi,
}

/// The account with one peer.
struct Peer {
    here: bool,
    /// Where its frames go to; the tag is made for each.
    route: Route,
    /// Frames that may be sent.
    credits: u32,
    /// Bytes of bodies that are on the way to it.
    body_bytes: u64,
    /// What was taken from it, and not told it yet.
    taken_frames: u32,
    taken_bytes: u64,
    /// The round of the shares in which something came from it.
    heard: u64,
    /// What MPI has not ended yet, in order.
    frames: VecDeque<Sending>,
    bodies: VecDeque<Sending>,
}

impl Link {
    pub(crate) fn new(mpi: Mpi, shim: &'static Shim, comms: &Comms, local: NodeId, places: &Places) -> Self {
        let comm = comms.frames[places.index(local.index())];
        let route = Route { comm, rank: Route::ANY, tag: Route::ANY };
        let peer = |node| Peer {
            here: node != local.index(),
            route: Route { comm: comms.frames[places.index(node)], rank: places.rank(node), tag: 0 },
            credits: WINDOW,
            body_bytes: 0,
            taken_frames: 0,
            taken_bytes: 0,
            heard: 0,
            frames: VecDeque::new(),
            bodies: VecDeque::new(),
        };
        Self {
            shim,
            bodies: comms.bodies,
            local,
            index: places.index(local.index()),
            places: places.clone(),
            peers: (0..places.len()).map(peer).collect(),
            posted: (0..POSTED).map(|_| Receiving::start(shim, route, vec![0; FRAME_BYTES])).collect(),
            head: 0,
            arrived: None,
            unposted: 0,
            spare: Vec::new(),
            sending: 0,
            sending_bodies: 0,
            shares: Shares::new(),
            moved: false,
            _mpi: mpi,
        }
    }

    pub(crate) fn shim(&self) -> &'static Shim {
        self.shim
    }

    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// Whether there is such a peer, and it has not left.
    #[inline]
    pub(crate) fn is_here(&self, peer: usize) -> bool {
        self.peers.get(peer).is_some_and(|peer| peer.here)
    }

    /// Whether a frame may be sent.
    #[inline]
    pub(crate) fn has_credit(&self, peer: usize) -> bool {
        self.peers[peer].credits > 0
    }

    /// Whether a body may be sent.
    #[inline]
    pub(crate) fn has_body_credit(&self, peer: usize) -> bool {
        self.peers[peer].body_bytes < BODY_WINDOW
    }

    /// Sends the messages in `frame`, and leaves an empty frame there; there must be a credit.
    #[inline]
    pub(crate) fn send(&mut self, to: usize, kind: Kind, frame: &mut Vec<u8>) {
        self.peers[to].credits -= 1;
        self.post(to, kind, frame);
    }

    #[inline]
    fn post(&mut self, to: usize, kind: Kind, frame: &mut Vec<u8>) {
        let peer = &mut self.peers[to];
        let credits = self.shares.payable(peer.taken_frames);
        peer.taken_frames -= credits;
        let route = Route { tag: kind.tag(credits, self.index), ..peer.route };
        if let Some(sending) = Sending::buffer(self.shim, route, frame) {
            peer.frames.push_back(sending);
            self.sending += 1;
            *frame = self.spare.pop().unwrap_or_else(empty_frame);
        }
        frame.clear();
    }

    /// Sends a frame that holds nothing but a number; it needs no credit.
    fn post_number(&mut self, to: usize, kind: Kind, number: u32) {
        let mut frame = self.spare.pop().unwrap_or_else(empty_frame);
        frame.clear();
        frame.extend_from_slice(&number.to_le_bytes());
        self.post(to, kind, &mut frame);
        self.recycle(frame);
    }

    /// Sends a body that a frame announces; there must be credit for it.
    pub(crate) fn send_body(&mut self, to: usize, body: Bytes) {
        let tag = self.places.body_tag(self.local.index(), to);
        let route = Route { comm: self.bodies, rank: self.places.rank(to), tag };
        self.peers[to].body_bytes += body.len() as u64;
        if let Some(sending) = Sending::body(self.shim, route, body) {
            self.peers[to].bodies.push_back(sending);
            (self.sending, self.sending_bodies) = (self.sending + 1, self.sending_bodies + 1);
        }
    }

    fn recycle(&mut self, buffer: Vec<u8>) {
        if buffer.capacity() == FRAME_BYTES && self.spare.len() < MOST_SPARE {
            self.spare.push(buffer);
        }
    }

    /// Starts to receive the next announced body of a peer.
    pub(crate) fn receive_body(&self, from: usize, room: Vec<u8>) -> Receiving {
        let tag = self.places.body_tag(from, self.local.index());
        Receiving::start(self.shim, Route { comm: self.bodies, rank: self.places.rank(from), tag }, room)
    }

    /// Looks at the frames that have come: takes credits, and stops at the first frame that is the user's. It stays
    /// until it is [released](Link::release).
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<Arrived> {
        if self.unposted > 0 {
            self.post_again();
        }
        while self.arrived.is_none() {
            if self.unposted == POSTED {
                self.post_again();
            }
            if !self.posted[self.head].poll() {
                return None;
            }
            self.open();
        }
        self.arrived
    }

    /// What the frame that came holds.
    #[inline]
    pub(crate) fn payload(&self) -> &[u8] {
        self.posted[self.head].bytes()
    }

    /// Lets the frame that came go. Its receive is posted at the next look: the answer to the frame goes before.
    #[inline]
    pub(crate) fn release(&mut self) {
        self.arrived = None;
        self.unposted += 1;
        self.head += 1;
        if self.head == POSTED {
            self.head = 0;
            self.shares.next_round();
        }
    }

    fn post_again(&mut self) {
        let first = self.head + POSTED - std::mem::take(&mut self.unposted);
        for index in first..self.head + POSTED {
            self.posted[index % POSTED].again();
        }
    }

    /// Reads the tag of the frame that came.
    #[inline]
    fn open(&mut self) {
        let status = self.posted[self.head].status;
        let (kind, credits, sender) = Kind::of_tag(status.tag);
        let from = self.places.node(status.rank, sender).filter(|&from| self.peers[from].here);
        // Ranks of one job are one program: what does not fit here is no frame of ours, and is dropped.
        let (Some(kind), Some(from)) = (kind, from) else { return self.release() };
        let peer = &mut self.peers[from];
        if credits > 0 || kind == Kind::Credit {
            peer.credits += credits;
            self.moved = true;
        }
        if peer.heard != self.shares.round && kind != Kind::Credit {
            peer.heard = self.shares.round;
            self.shares.heard += 1;
        }
        match kind {
            Kind::Credit => {
                let bytes = number(self.payload());
                self.peers[from].body_bytes -= u64::from(bytes);
                self.release();
            }
            Kind::Goodbye => {
                self.forget(from);
                self.arrived = Some(Arrived { from, kind });
            }
            _ => self.arrived = Some(Arrived { from, kind }),
        }
    }

    /// The peer has left: nobody takes what is on the way to it.
    fn forget(&mut self, peer: usize) {
        self.moved = true;
        self.peers[peer].here = false;
        let Peer { frames, bodies, .. } = &mut self.peers[peer];
        self.sending -= frames.len() + bodies.len();
        self.sending_bodies -= bodies.len();
        for mut sending in frames.drain(..).chain(bodies.drain(..)) {
            if !sending.poll() {
                sending.abandon();
            }
        }
    }

    /// Notes that frames, or bodies of so many bytes, were taken by the user. Tells the peer when it is time for that.
    #[inline]
    pub(crate) fn took(&mut self, from: usize, frames: u32, bytes: usize) {
        let peer = &mut self.peers[from];
        peer.taken_frames += frames;
        peer.taken_bytes += bytes as u64;
        if (self.shares.is_due(peer.taken_frames) || peer.taken_bytes >= BODY_WINDOW / 2) && peer.here {
            self.send_credit(from);
        }
    }

    #[cold]
    fn send_credit(&mut self, to: usize) {
        // It is less than half a window and a body, and fits.
        let bytes = std::mem::take(&mut self.peers[to].taken_bytes) as u32;
        self.post_number(to, Kind::Credit, bytes);
    }

    /// Tells a peer that so many broadcasts were taken. There are few on the way, and these frames need no credit.
    pub(crate) fn took_broadcasts(&mut self, from: usize, count: u32) {
        if self.is_here(from) {
            self.post_number(from, Kind::Broadcast, count);
        }
    }

    /// Moves on what MPI has not ended yet. True when no body is left: frames are with MPI, which needs nothing from this
    /// node any more, even if some MPIs end them only when they have been taken.
    pub(crate) fn progress(&mut self) -> bool {
        for peer in 0..if self.is_sending() { self.peers.len() } else { 0 } {
            while self.peers[peer].frames.front_mut().is_some_and(Sending::poll) {
                (self.sending, self.moved) = (self.sending - 1, true);
                let buffer = self.peers[peer].frames.pop_front().and_then(Sending::into_buffer);
                buffer.into_iter().for_each(|buffer| self.recycle(buffer));
            }
            let bodies = &mut self.peers[peer].bodies;
            while bodies.front_mut().is_some_and(Sending::poll) {
                (self.sending, self.sending_bodies, self.moved) = (self.sending - 1, self.sending_bodies - 1, true);
                bodies.pop_front();
            }
        }
        self.sending_bodies == 0
    }

    /// Whether MPI has something that it has not ended yet.
    #[inline]
    pub(crate) fn is_sending(&self) -> bool {
        self.sending > 0
    }
}

/// A frame without messages.
pub(crate) fn empty_frame() -> Vec<u8> {
    Vec::with_capacity(FRAME_BYTES)
}

/// The number in a frame.
pub(crate) fn number(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |number| u32::from_le_bytes(*number))
}

impl Drop for Link {
    fn drop(&mut self) {
        for peer in 0..self.peers.len() {
            if self.peers[peer].here {
                self.post_number(peer, Kind::Goodbye, 0);
            }
            let Peer { frames, bodies, .. } = &mut self.peers[peer];
            frames.drain(..).chain(bodies.drain(..)).for_each(Sending::linger);
        }
        // They stay to the end for what the peers still send: MPI would keep it, and complain.
        self.posted.drain(..).for_each(Receiving::linger);
        self.shim.settle();
    }
}
