//! The common part of transport and layer: frames between nodes, credits for them, and large bodies beside them.
//!
//! A frame is one MPI message, short enough that the MPI sends it eagerly, without asking the receiver, and long enough that
//! several fragments of an event builder share the cost of a message. A node has posted [`POSTED`] receives that take the
//! frames of all peers in the order of arrival. So one test finds out whether anything arrived, however many peers there
//! are. The tag of a frame has its kind and its sender's index on the rank: for MPI, too, a message of 8 bytes is 8 bytes.
//!
//! A body that is too large for a frame is a separate MPI message, sent in place. Its receive is posted when its
//! frame has arrived. Frames and bodies of a pair keep their order in MPI, hence bodies belong to their frames by
//! order.
//!
//! A peer may have [`WINDOW`] frames under way, and starts a body as long as fewer than [`BODY_WINDOW`] bytes of bodies
//! are under way. The receiver returns credits in the tags of its own frames, or in a separate frame when they are
//! many. So the memory that MPI needs for a slow receiver is bounded. MPI promises no fairness, and its internal
//! queues, which all senders share, are short: one sender could fill them again and again while others wait. Hence the
//! [`Shares`]: when several peers send, the receiver holds some credits of each back, so that all find room.

use crate::{
    Mpi,
    ffi::{Comm, Receiving, Route, Sending, Shim},
    kind::FrameKind,
    session::{Comms, Places},
    shares::Shares,
};
use bytes::Bytes;
use evb_core::NodeId;
use std::collections::VecDeque;

/// Bound on the longest frame, which `shim/evb_mpi.c` chooses for each MPI.
const MOST_FRAME_BYTES: usize = (16 << 10) + 64;
/// Frames under way from one node to another. MPICH has 64 cells for each process of a machine: with twice as many frames
/// it serves the senders of one node by turns of very different length.
pub(crate) const WINDOW: u32 = 64;
/// Bytes of bodies under way from one node to another, before the last of them.
pub(crate) const BODY_WINDOW: u64 = 4 << 20;
/// Most bytes of a node's own frame buffers.
pub(crate) const OWN_BYTES: usize = (POSTED + MOST_SPARE) * MOST_FRAME_BYTES;
/// Most bytes that wait for one peer, or are under way from it.
pub(crate) const BYTES_PER_PEER: usize = BODY_WINDOW as usize + WINDOW as usize * MOST_FRAME_BYTES;
/// Receives that are posted for frames.
const POSTED: usize = 64;
/// Frame buffers that are kept for reuse.
const MOST_SPARE: usize = 2 * WINDOW as usize;

/// A frame that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) from: usize,
    pub(crate) kind: FrameKind,
}

/// The frames of one node.
pub(crate) struct RankLink {
    shim: &'static Shim,
    bodies: Comm,
    pub(crate) local: NodeId,
    /// Index of the node on its rank.
    index: usize,
    places: Places,
    peers: Vec<Peer>,
    posted: Vec<Receiving>,
    /// The posted receive that ends next.
    head: usize,
    /// The frame of the receive that has ended, until it is released.
    arrived: Option<Arrived>,
    /// Number of receives before the head that are not posted again yet.
    unposted: usize,
    spare: Vec<Vec<u8>>,
    /// Number of sends that MPI has not ended yet, and number of bodies among them.
    sending: usize,
    sending_bodies: usize,
    shares: Shares,
    /// True if credits arrived or a send ended since the last check.
    pub(crate) moved: bool,
    /// The handle of MPI, the last field: MPI ends after everything else.
    _mpi: Mpi,
}

/// The state of one peer.
struct Peer {
    here: bool,
    /// Destination of the peer's frames; the tag is made for each.
    route: Route,
    /// Frames that may be sent.
    credits: u32,
    /// Bytes of bodies under way to the peer.
    body_bytes: u64,
    /// Frames taken from the peer and not reported yet.
    taken_frames: u32,
    taken_bytes: u64,
    /// The round of the shares in which something arrived from the peer.
    heard: u64,
    /// Sends that MPI has not ended yet, in order.
    frames: VecDeque<Sending>,
    bodies: VecDeque<Sending>,
}

impl RankLink {
    pub(crate) fn new(mpi: Mpi, shim: &'static Shim, comms: &Comms, local: NodeId, places: &Places) -> Self {
        assert!(shim.frame_bytes <= MOST_FRAME_BYTES, "the memory of a node is counted with the longest frame");
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
            posted: (0..POSTED).map(|_| Receiving::start(shim, route, vec![0; shim.frame_bytes])).collect(),
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

    /// Most bytes of a frame.
    #[inline]
    pub(crate) fn frame_bytes(&self) -> usize {
        self.shim.frame_bytes
    }

    /// A frame without messages.
    pub(crate) fn empty_frame(&self) -> Vec<u8> {
        Vec::with_capacity(self.frame_bytes())
    }

    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    /// Returns true if the peer exists and has not left.
    #[inline]
    pub(crate) fn is_here(&self, peer: usize) -> bool {
        self.peers.get(peer).is_some_and(|peer| peer.here)
    }

    /// Returns true if a frame may be sent.
    #[inline]
    pub(crate) fn has_credit(&self, peer: usize) -> bool {
        self.peers[peer].credits > 0
    }

    /// Returns true if a body may be sent.
    #[inline]
    pub(crate) fn has_body_credit(&self, peer: usize) -> bool {
        self.peers[peer].body_bytes < BODY_WINDOW
    }

    /// Sends the messages in `frame`, and leaves an empty frame there; there must be a credit.
    #[inline]
    pub(crate) fn send(&mut self, to: usize, kind: FrameKind, frame: &mut Vec<u8>) {
        self.peers[to].credits -= 1;
        self.post(to, kind, frame);
    }

    #[inline]
    fn post(&mut self, to: usize, kind: FrameKind, frame: &mut Vec<u8>) {
        let peer = &mut self.peers[to];
        let credits = self.shares.payable(peer.taken_frames);
        peer.taken_frames -= credits;
        let route = Route { tag: kind.tag(credits, self.index), ..peer.route };
        if let Some(sending) = Sending::buffer(self.shim, route, frame) {
            peer.frames.push_back(sending);
            self.sending += 1;
            *frame = self.spare.pop().unwrap_or_else(|| self.empty_frame());
        }
        frame.clear();
    }

    /// Sends a frame with a number only; it needs no credit.
    fn post_number(&mut self, to: usize, kind: FrameKind, number: u32) {
        let mut frame = self.spare.pop().unwrap_or_else(|| self.empty_frame());
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
        if buffer.capacity() == self.frame_bytes() && self.spare.len() < MOST_SPARE {
            self.spare.push(buffer);
        }
    }

    /// Starts to receive the next announced body of a peer.
    pub(crate) fn receive_body(&self, from: usize, room: Vec<u8>) -> Receiving {
        let tag = self.places.body_tag(from, self.local.index());
        Receiving::start(self.shim, Route { comm: self.bodies, rank: self.places.rank(from), tag }, room)
    }

    /// Reads arrived frames: takes their credits, and stops at the first frame with content for the user. That frame
    /// stays until it is [released](Link::release).
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

    /// The content of the arrived frame.
    #[inline]
    pub(crate) fn payload(&self) -> &[u8] {
        self.posted[self.head].bytes()
    }

    /// Releases the arrived frame. Its receive is posted at the next check, so that the answer to the frame goes first.
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

    /// Reads the tag of the arrived frame.
    #[inline]
    fn open(&mut self) {
        let status = self.posted[self.head].status;
        let (kind, credits, sender) = FrameKind::of_tag(status.tag);
        let from = self.places.node(status.rank, sender).filter(|&from| self.peers[from].here);
        // Ranks of one job are one program: what does not fit here is not a frame of ours, and is dropped.
        let (Some(kind), Some(from)) = (kind, from) else { return self.release() };
        let peer = &mut self.peers[from];
        if credits > 0 || kind == FrameKind::Credit {
            peer.credits += credits;
            self.moved = true;
        }
        if peer.heard != self.shares.round && kind != FrameKind::Credit {
            peer.heard = self.shares.round;
            self.shares.heard += 1;
        }
        match kind {
            FrameKind::Credit => {
                let bytes = number(self.payload());
                self.peers[from].body_bytes -= u64::from(bytes);
                self.release();
            }
            FrameKind::Goodbye => {
                self.forget(from);
                self.arrived = Some(Arrived { from, kind });
            }
            _ => self.arrived = Some(Arrived { from, kind }),
        }
    }

    /// Drops everything under way to a peer that has left.
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

    /// Adds frames, or a body of `bytes` bytes, that the user has taken. Returns the credits when there are enough.
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
        self.post_number(to, FrameKind::Credit, bytes);
    }

    /// Reports to a peer that `count` broadcasts were taken. Few are under way, and these frames need no credit.
    pub(crate) fn took_broadcasts(&mut self, from: usize, count: u32) {
        if self.is_here(from) {
            self.post_number(from, FrameKind::Broadcast, count);
        }
    }

    /// Advances the sends that MPI has not ended yet. Returns true if no body is left: MPI needs nothing from this node
    /// for frames, even if some MPIs end them only when the receiver has taken them.
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

    /// Returns true if MPI has not ended a send yet.
    #[inline]
    pub(crate) fn is_sending(&self) -> bool {
        self.sending > 0
    }
}

/// The number in a frame.
pub(crate) fn number(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |number| u32::from_le_bytes(*number))
}

impl Drop for RankLink {
    fn drop(&mut self) {
        for peer in 0..self.peers.len() {
            if self.peers[peer].here {
                self.post_number(peer, FrameKind::Goodbye, 0);
            }
            let Peer { frames, bodies, .. } = &mut self.peers[peer];
            frames.drain(..).chain(bodies.drain(..)).for_each(Sending::linger);
        }
        // They stay to the end for what the peers still send: MPI would keep it, and complain.
        self.posted.drain(..).for_each(Receiving::linger);
        self.shim.settle();
    }
}
