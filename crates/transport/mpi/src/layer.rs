//! The message layer: a small message is its own frame; a frame announces a large one.

use crate::{
    MpiOptions,
    broadcast::{Inbound, Outbound},
    ffi::Receiving,
    kind::FrameKind,
    link::{Arrived, RankLink, number},
    session::broadcast_comm,
    waiting::Bell,
};
use bytes::Bytes;
use evb_core::{NodeId, NodeRange};
use evb_transport::{Connect, JoinError, MessageLayer, Refused, Take};
use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

/// The endpoint of one node, for bytes.
///
/// Broadcasts are those of MPI if no two nodes are on one rank. They do not keep their order with the other messages of
/// a pair, and each must have exactly the announced length.
pub struct Layer {
    link: RankLink,
    max_bytes: usize,
    /// An empty frame.
    frame: Vec<u8>,
    /// The large message that is being received, and its sender.
    large: Option<(usize, Receiving)>,
    /// Buffer for the next large message.
    room: Vec<u8>,
    outbound: Vec<Outbound>,
    inbound: Vec<Inbound>,
    lost: VecDeque<NodeId>,
    starved: bool,
    bell: Arc<Bell>,
}

impl Layer {
    pub(crate) fn new(link: RankLink, options: &MpiOptions) -> Self {
        Self {
            frame: link.empty_frame(),
            link,
            max_bytes: options.max_body,
            large: None,
            room: Vec::new(),
            outbound: Vec::new(),
            inbound: Vec::new(),
            lost: VecDeque::new(),
            starved: false,
            bell: Arc::default(),
        }
    }

    fn has_room(&self, to: usize, length: usize) -> bool {
        self.link.has_credit(to) && (length <= self.link.frame_bytes() || self.link.has_body_credit(to))
    }

    #[cold]
    fn refuse(&mut self) -> Refused {
        (self.starved, self.link.moved) = (true, false);
        Refused::Full
    }

    fn send_large(&mut self, to: usize, bytes: &[u8]) {
        self.frame.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.link.send(to, FrameKind::Large, &mut self.frame);
        self.link.send_body(to, Bytes::copy_from_slice(bytes));
    }

    /// Delivers the next message, if there is one.
    #[inline]
    fn receive_one(&mut self, take: &mut Take<'_>) -> bool {
        loop {
            if self.large.is_some() {
                return self.receive_large(take);
            }
            let Some(Arrived { from, kind }) = self.link.peek() else { return false };
            if kind == FrameKind::Data {
                take(NodeId(from as u16), self.link.payload());
                self.link.release();
                self.link.took(from, 1, 0);
                return true;
            }
            self.open(from, kind);
        }
    }

    /// Takes a frame without a message.
    fn open(&mut self, from: usize, kind: FrameKind) {
        let number = number(self.link.payload());
        match kind {
            FrameKind::Large => {
                let mut room = std::mem::take(&mut self.room);
                room.resize(number as usize, 0);
                self.large = Some((from, self.link.receive_body(from, room)));
            }
            FrameKind::Broadcast => {
                self.outbound.iter_mut().for_each(|outbound| outbound.was_taken(from, number.into()));
                self.link.moved = true;
            }
            FrameKind::Goodbye => {
                self.lost.push_back(NodeId(from as u16));
                self.outbound.iter_mut().for_each(|outbound| outbound.was_taken(from, u64::MAX));
            }
            FrameKind::Credit | FrameKind::Data => {}
        }
        self.link.release();
    }

    fn receive_large(&mut self, take: &mut Take<'_>) -> bool {
        let Some((from, mut body)) = self.large.take() else { return false };
        if !body.poll() {
            self.large = Some((from, body));
            return false;
        }
        take(NodeId(from as u16), body.bytes());
        self.link.took(from, 1, body.bytes().len());
        self.room = body.into_room().unwrap_or_default().0;
        true
    }

    fn receive_broadcast(&mut self, take: &mut Take<'_>) -> bool {
        let mut inbound = self.inbound.iter_mut();
        let Some(inbound) = inbound.find_map(|inbound| inbound.poll().then_some(inbound)) else { return false };
        let from = inbound.from;
        take(NodeId(from as u16), inbound.bytes());
        inbound.release();
        self.link.took_broadcasts(from, 1);
        true
    }

    /// Returns true if a message is there, or sends make progress.
    fn is_ready(&mut self) -> bool {
        let unsent = !self.flush_all();
        let there = match &mut self.large {
            Some((_, body)) => body.poll(),
            None => self.link.peek().is_some(),
        };
        there || self.inbound.iter_mut().any(Inbound::poll) || ((self.starved || unsent) && self.link.moved)
    }

    fn flush_all(&mut self) -> bool {
        let sent = !self.link.is_sending() || self.link.progress();
        self.outbound.iter_mut().fold(sent, |sent, outbound| outbound.progress() && sent)
    }
}

impl MessageLayer for Layer {
    fn local(&self) -> NodeId {
        self.link.local
    }

    fn max_bytes(&self) -> usize {
        self.max_bytes
    }

    #[inline]
    fn send(&mut self, to: NodeId, bytes: &[u8]) -> Result<(), Refused> {
        let (to, limit) = (to.index(), self.max_bytes);
        if bytes.len() > limit {
            return Err(Refused::TooLarge { limit });
        }
        if !self.link.is_here(to) {
            return Err(Refused::Lost);
        }
        if !self.has_room(to, bytes.len()) {
            // Credit may have come; what else has come must stay until it is received.
            let _ = self.link.peek();
            if !self.has_room(to, bytes.len()) {
                return Err(self.refuse());
            }
        }
        if bytes.len() > self.link.frame_bytes() {
            self.send_large(to, bytes);
            return Ok(());
        }
        self.frame.extend_from_slice(bytes);
        self.link.send(to, FrameKind::Data, &mut self.frame);
        Ok(())
    }

    fn has_broadcast(&self) -> bool {
        self.link.places().are_single()
    }

    /// The nodes of the broadcast call this together: it blocks until all have called it.
    fn expect_broadcasts(&mut self, from: NodeId, to: NodeRange, length: usize) {
        let (local, to): (_, Vec<_>) = (self.link.local.index(), to.iter().map(NodeId::index).collect());
        if !self.has_broadcast() || (from.index() != local && !to.contains(&local)) {
            return;
        }
        let comm = broadcast_comm(self.link.shim(), self.link.places(), from.index(), &to);
        if from.index() == local {
            self.outbound.push(Outbound::new(self.link.shim(), comm, to, length));
        } else {
            self.inbound.push(Inbound::new(self.link.shim(), comm, from.index(), length));
        }
    }

    /// Broadcasts that the receivers do not [expect](MessageLayer::expect_broadcasts), or not with this length, are
    /// refused as lost.
    fn broadcast(&mut self, to: NodeRange, bytes: &[u8]) -> Result<(), Refused> {
        let wanted = |outbound: &&mut Outbound| {
            outbound.length == bytes.len() && outbound.to.iter().copied().eq(to.iter().map(NodeId::index))
        };
        let Some(outbound) = self.outbound.iter_mut().find(wanted) else { return Err(Refused::Lost) };
        if !outbound.send(bytes) {
            return Err(self.refuse());
        }
        Ok(())
    }

    fn flush(&mut self) -> bool {
        self.link.moved = false;
        self.flush_all()
    }

    fn receive(&mut self, limit: usize, take: &mut Take<'_>) -> usize {
        let mut count = 0;
        while count < limit && (self.receive_one(take) || (!self.inbound.is_empty() && self.receive_broadcast(take))) {
            count += 1;
        }
        count
    }

    fn lost(&mut self) -> Option<NodeId> {
        self.lost.pop_front()
    }

    fn wait(&mut self, timeout: Duration) {
        let bell = Arc::clone(&self.bell);
        bell.wait(timeout, || self.is_ready());
        self.starved = false;
    }
}

impl fmt::Debug for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layer").field("local", &self.link.local).finish_non_exhaustive()
    }
}

impl Drop for Layer {
    fn drop(&mut self) {
        if let Some((_, body)) = self.large.take() {
            body.cancel();
        }
    }
}

/// Ranks are connected from the start: there is nothing to exchange and nothing to join.
impl Connect for Layer {
    fn address(&self) -> String {
        "mpi".into()
    }

    fn connect(&mut self, _peers: &[(NodeId, String)]) -> Result<(), JoinError> {
        Ok(())
    }
}
