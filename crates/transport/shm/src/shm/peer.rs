//! One peer: the lane to it, the lane from it, and the state of its end.

use super::{
    bell::{self, PULSE, Ringer},
    lane::{Consumer, Producer},
    leaving::Borrower,
    lending::Lending,
    link::{GIVEN_UP, Heard, RING, SharedLink, read_until, returned},
    map::Words,
    pool::Pool,
    pulse::Pulse,
    record::RecordKind,
};
use bytes::{Bytes, BytesMut};
use evb_core::NodeId;
use evb_transport::{ChunkPool, HEAD_BYTES, Message};
use std::sync::{Arc, atomic::Ordering};

/// Bytes behind the head of a lent message: offset, length and slot of its body.
pub(super) const PLACE_BYTES: usize = 24;
/// Bytes behind the head of a message in pieces: the length of its body.
pub(super) const TOTAL_BYTES: usize = 8;

/// Longest body in one record: a chunk holds several.
pub(super) const MOST_INLINE: usize = ChunkPool::LONGEST_IN_CHUNK;

/// The parts of a joined peer.
pub(super) struct PeerParts {
    pub(super) node: NodeId,
    pub(super) link: SharedLink,
    pub(super) outgoing: Producer<Words>,
    pub(super) incoming: Consumer<Words>,
    /// The peer's credit page for this node's lane.
    pub(super) room: Words,
    /// The word on which the peer sleeps.
    pub(super) bell: Words,
}

/// Limits for cutting and keeping bodies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// Longest body sent and received.
    pub(super) max_body: usize,
    /// Longest body that goes through the lane as a whole.
    pub(super) inline: usize,
    /// Bytes of body in one piece, a multiple of 8.
    pub(super) piece: usize,
}

/// A joined peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) node: NodeId,
    pub(super) cut: Cut,
    pub(super) link: Arc<SharedLink>,
    outgoing: Producer<Words>,
    pub(super) incoming: Consumer<Words>,
    room: Words,
    /// The page with the word on which the peer sleeps, and its signs of life.
    pub(super) bell: Words,
    pub(super) pulse: Pulse,
    sleep: Ringer,
    pub(super) lending: Lending,
    /// A message that is sent in pieces, and the number of bytes of its body that were sent.
    outbox: Option<(Bytes, usize)>,
    /// A message that arrives in pieces: its head, its body so far, and the full length of the body.
    pub(super) inbox: Option<([u8; HEAD_BYTES], BytesMut, usize)>,
    /// The reason why nothing more comes after the content of the lane, and the end of that content.
    pub(super) ended: Option<(String, u64)>,
    /// True if the peer knows that it is gone, and true if its socket has closed, so that its bodies are not read.
    knows: bool,
    closed: bool,
}

/// The outcome of a lane's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceiveTurn {
    /// The turn is over and the peer goes on.
    Over,
    /// The peer is gone.
    Lost,
}

impl Peer {
    pub(super) fn new(parts: PeerParts, cut: Cut) -> Self {
        let PeerParts { node, link, outgoing, incoming, room, bell } = parts;
        Self {
            node,
            cut,
            link: Arc::new(link),
            outgoing,
            incoming,
            room,
            bell,
            pulse: Pulse::default(),
            sleep: Ringer::default(),
            lending: Lending::new(),
            outbox: None,
            inbox: None,
            ended: None,
            knows: false,
            closed: false,
        }
    }

    #[cfg(test)]
    pub(super) fn lane(&self) -> &Producer<Words> {
        &self.outgoing
    }

    pub(super) fn node(&self) -> NodeId {
        self.node
    }

    /// Publishes the sent messages to the peer.
    #[inline]
    pub(super) fn publish(&mut self) {
        self.outgoing.publish();
    }

    /// Returns true if a message in pieces is under way to the peer.
    pub(super) fn has_outbox(&self) -> bool {
        self.outbox.is_some()
    }

    /// Ends this node's part. Returns the bodies that the peer may still read, if there are any.
    pub(super) fn part(mut self) -> Option<Borrower> {
        self.collect();
        if !self.knows {
            self.link.tell(GIVEN_UP);
        }
        let reads = !self.closed && !self.lending.is_empty();
        reads.then_some(Borrower { link: self.link, room: self.room, lending: self.lending })
    }

    /// Signs of life: its pulse, and its read position. Both only grow.
    pub(super) fn signs(&self) -> u64 {
        let pulse = self.bell.as_ref()[PULSE].load(Ordering::Relaxed);
        pulse.wrapping_add(read_until(&self.room).load(Ordering::Relaxed))
    }

    /// Returns true if the peer may still read messages.
    #[inline]
    pub(super) fn takes_messages(&self) -> bool {
        self.ended.is_none()
    }

    /// Sends a message, or returns it if there is no room. It goes by reference if it is large, or is to be `lent`.
    #[inline]
    pub(super) fn send(&mut self, message: Message, pool: &Arc<Pool>, lent: bool) -> Result<(), Message> {
        if self.outbox.is_some() && !self.advance() {
            return Err(message);
        }
        let small = !lent && message.body.len() <= self.cut.inline;
        let room = read_until(&self.room);
        let sent = if small {
            self.outgoing.push(RecordKind::Whole, &message.head, &message.body, room)
        } else {
            self.send_large(&message, pool)
        };
        if sent { Ok(()) } else { Err(message) }
    }

    /// Sends bytes unchanged.
    #[inline]
    pub(super) fn send_bytes(&mut self, bytes: &[u8]) -> bool {
        self.outgoing.push(RecordKind::Whole, &[], bytes, read_until(&self.room))
    }

    /// Sends further pieces. Returns true if none is left.
    pub(super) fn advance(&mut self) -> bool {
        while let Some((body, done)) = &mut self.outbox {
            let piece = &body[*done..body.len().min(*done + self.cut.piece)];
            if !self.outgoing.push(RecordKind::Piece, &[], piece, read_until(&self.room)) {
                return false;
            }
            *done += piece.len();
            if *done == body.len() {
                self.outbox = None;
            }
        }
        true
    }

    /// Rings if the peer sleeps, after a sequentially consistent fence.
    #[inline]
    pub(super) fn ring(&self) {
        if self.sleep.must_ring(&self.bell.as_ref()[0]) {
            self.link.tell(RING);
        }
    }

    /// Begins to sleep for room.
    pub(super) fn starve(&self) {
        bell::fall_asleep(self.outgoing.bell());
    }

    /// Ends what [`starve`](Peer::starve) began.
    pub(super) fn unstarve(&self) {
        bell::wake_up(self.outgoing.bell());
    }

    /// Returns true if there is room for the largest record.
    pub(super) fn has_room(&mut self) -> bool {
        let largest = self.cut.piece.max(self.cut.inline) + HEAD_BYTES + TOTAL_BYTES;
        self.outgoing.has_room(largest, read_until(&self.room)) || self.ended.is_some()
    }

    /// Collects bodies that the peer has returned; returns true if there were any.
    #[inline]
    pub(super) fn collect(&mut self) -> bool {
        self.lending.collect(returned(&self.room))
    }

    /// Returns true if there is something to receive.
    #[inline]
    pub(super) fn is_ready(&self) -> bool {
        self.incoming.has_next() || self.ended.is_some()
    }

    /// Reads the socket after an event.
    pub(super) fn hear(&mut self) {
        let heard = self.link.hear();
        self.closed |= matches!(heard, Heard::Closed);
        self.knows |= matches!(heard, Heard::Closed | Heard::Left | Heard::GaveUp);
        match heard {
            Heard::Nothing => {}
            Heard::Left => self.give_up("it left".into()),
            Heard::GaveUp => self.give_up("it gave this node up".into()),
            Heard::Closed => self.give_up("its process ended".into()),
            Heard::Failed(error) => self.give_up(format!("its socket failed: {error}")),
        }
    }

    /// Gives the peer up: nothing more comes from it except the content of its lane.
    pub(super) fn give_up(&mut self, reason: String) {
        // It cannot have written more than a ring since this node's last credit.
        let last = self.incoming.position() + self.incoming.size();
        self.ended.get_or_insert((reason, last));
        self.outbox = None;
    }

    /// Sends a large body by reference if there is room in the pool, else in pieces through the lane. So bodies that
    /// peers keep in the pool never block a message.
    fn send_large(&mut self, message: &Message, pool: &Arc<Pool>) -> bool {
        let room = read_until(&self.room);
        if !self.outgoing.has_room(HEAD_BYTES + PLACE_BYTES, room) {
            return false;
        }
        if self.lending.next_slot().is_none() {
            self.lending.collect(returned(&self.room));
        }
        if let Some(slot) = self.lending.next_slot()
            && let Some((body, offset)) = pool.place(&message.body)
        {
            let place = [offset as u64, body.len() as u64, u64::from(slot)].map(u64::to_ne_bytes);
            let sent = self.outgoing.push(RecordKind::Lent, &message.head, place.as_flattened(), room);
            if sent {
                self.lending.lend(body);
            }
            return sent;
        }
        let total = (message.body.len() as u64).to_ne_bytes();
        let begun = self.outgoing.push(RecordKind::Begin, &message.head, &total, room);
        if begun {
            self.outbox = Some((message.body.clone(), 0));
            self.advance();
        }
        begun
    }
}
