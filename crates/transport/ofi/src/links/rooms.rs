//! Long messages: their rooms on both sides, and their way into them.

use super::{BufferRole, Links};
use crate::{
    control::{NOTES, RoomNote, RoomOffer, RoomRequest},
    ffi::{Operation, Posted, RoomAddress},
    frame::{LONG_BYTES, Long},
    peer::Arrival,
    tags::{Tag, TagKind},
};
use bytes::Bytes;
use evb_core::NodeId;
use evb_transport::Message;

impl Links {
    /// Sends a long message as the next one to a peer that has a credit, in place. If the peer has offered no room for it,
    /// asks for one; the result is `Again` then.
    pub(crate) fn send_long(&mut self, to: usize, message: &Message) -> Posted {
        let bytes = LONG_BYTES + message.body.len();
        let Some(peer) = self.peers[to].as_deref_mut() else { return Posted::Failed(0) };
        let Some(offer) = peer.held.take(bytes) else {
            let ask = peer.held.ask(bytes);
            if let Some(ask) = ask {
                self.tell(to, RoomNote::RoomRequest(ask));
                self.send_notes();
            }
            return Posted::Again;
        };
        let result = self.put(to, offer, message);
        if result != Posted::Yes {
            self.peer(to).into_iter().for_each(|peer| peer.held.put_back(offer));
        }
        self.note(to, result)
    }

    /// Fills an offered room: by a write in place, or if the provider has none by a tagged copy.
    fn put(&mut self, to: usize, offer: RoomOffer, message: &Message) -> Posted {
        let Some(peer) = self.peer(to) else { return Posted::Failed(0) };
        let (address, their_key, sent) = (peer.address, peer.their_key, peer.sent);
        let (low, bytes) = (self.tags.low(their_key.wrapping_add(sent)), message.body.len());
        let Some((operation, first)) = self.long_operations(&message.body) else { return Posted::Again };
        let head = Long { low, length: bytes as u64, head: message.head };
        head.encode(self.endpoint.memory_mut(first.unwrap_or(operation)));
        let RoomOffer { room, address: start, key, .. } = offer;
        let result = if let Some(first) = first {
            let place = RoomAddress { address: start, key, room };
            self.endpoint.write([(first, LONG_BYTES), (operation, bytes)], address, place)
        } else {
            let low = their_key.wrapping_add(room.into());
            let tag = Tag { kind: TagKind::Data, large: true, from: self.local, low };
            self.endpoint.send(operation, LONG_BYTES + bytes, address, self.tags.encode(tag))
        };
        if result == Posted::Yes {
            self.set_role(operation, BufferRole::Long { to: to as u16, bytes });
            if let Some(peer) = self.peer(to) {
                (peer.sent, peer.outstanding, peer.spoke) = (sent + 1, peer.outstanding + 1, true);
            }
        } else {
            self.end_long(operation, first);
        }
        result
    }

    /// Operations to write a body with: its own and one for what precedes it. Without writes, one for a copy of both, with
    /// the body in its place.
    fn long_operations(&mut self, body: &Bytes) -> Option<(Operation, Option<Operation>)> {
        if !self.terms.writes {
            let room = self.endpoint.room(LONG_BYTES + body.len()).ok()?;
            self.endpoint.memory_mut(room)[LONG_BYTES..LONG_BYTES + body.len()].copy_from_slice(body);
            return Some((room, None));
        }
        let first = self.slot(false, true)?;
        match self.endpoint.share(body.clone()) {
            Ok(operation) => Some((operation, Some(first))),
            Err(_) => {
                self.give_back(first, false);
                None
            }
        }
    }

    /// Frees the operations of a long message that has left, or that was not sent.
    pub(super) fn end_long(&mut self, operation: Operation, first: Option<Operation>) {
        self.set_role(operation, BufferRole::Free);
        match first {
            Some(first) => {
                self.give_back(first, false);
                self.endpoint.take(operation);
            }
            None => self.endpoint.keep(operation),
        }
    }

    /// Takes the body of a long message that is the expected one of its peer, and offers a room in its place.
    pub(crate) fn take_long(&mut self, from: usize) -> Option<Message> {
        let Arrival { operation, bytes } = self.peers[from].as_deref_mut()?.pop()?;
        let long = Long::decode(self.endpoint.memory(operation))?;
        self.set_role(operation, BufferRole::Free);
        let room = self.endpoint.bytes(operation);
        let body = self.endpoint.lend(operation, LONG_BYTES..bytes);
        let peer = self.peers[from].as_deref_mut()?;
        peer.given.end(room);
        let owes = peer.status_owed;
        self.offer(from, bytes, false);
        if owes {
            self.owe(from);
        }
        Some(Message { head: long.head, body })
    }

    /// Returns true if an arrived message is a long one.
    pub(crate) fn is_long(&self, operation: Operation) -> bool {
        matches!(self.roles[operation.index()], BufferRole::Room { .. })
    }

    /// Handles a room that a peer has filled. `reported` is the length, if the provider reports it.
    pub(super) fn room_filled(&mut self, operation: Operation, from: u16, reported: Option<usize>) {
        let long = Long::decode(self.endpoint.memory(operation));
        let (room, tags, index) = (self.endpoint.bytes(operation), self.tags, usize::from(from));
        let length = long.and_then(|long| usize::try_from(long.length).ok()?.checked_add(LONG_BYTES));
        let length = length.filter(|&bytes| bytes <= room && reported.is_none_or(|reported| reported == bytes));
        let in_place = match (long, length, self.peer(index)) {
            (Some(long), Some(bytes), Some(peer)) => {
                let ahead = tags.low(long.low.wrapping_sub(peer.key).wrapping_sub(peer.expected));
                peer.put(ahead, Arrival { operation, bytes })
            }
            _ => false,
        };
        self.moved = true;
        match self.peer(index) {
            Some(peer) if in_place => {
                peer.accepted = true;
                peer.hear();
                self.activate(index);
            }
            _ => {
                self.rejected += 1;
                self.end_room(operation);
                self.give_up(index, "it sent a long message that is none, or out of place".into());
            }
        }
    }

    /// Takes back a room that is not busy, and is not its peer's any more.
    pub(super) fn end_room(&mut self, operation: Operation) {
        let bytes = self.endpoint.bytes(operation);
        if let BufferRole::Room { from } = self.roles[operation.index()]
            && let Some(peer) = self.peer(usize::from(from))
        {
            peer.given.end(bytes);
        }
        self.set_role(operation, BufferRole::Free);
        self.endpoint.keep(operation);
    }

    /// Offers a peer a room for messages like one of this length, or refuses it.
    fn offer(&mut self, to: usize, message: usize, answers: bool) {
        let longest = LONG_BYTES + self.options.endpoint.max_body;
        let Some(peer) = self.peer(to).filter(|peer| peer.is_there()) else { return };
        let granted = peer.given.grant(message, longest);
        let refusal = RoomOffer { room: 0, bytes: 0, address: 0, key: 0, answers };
        let offer = match granted.map(|bytes| (bytes, self.endpoint.room(bytes))) {
            None => refusal,
            Some((bytes, Err(_))) => {
                return self.give_up(to, format!("there is no memory of {bytes} bytes for its messages"));
            }
            Some((_, Ok(operation))) => {
                let room = self.endpoint.bytes(operation);
                self.peer(to).into_iter().for_each(|peer| peer.given.give(room));
                self.set_role(operation, BufferRole::Room { from: to as u16 });
                RoomOffer { room: operation.index() as u32, bytes: room as u64, ..refusal }
            }
        };
        self.tell(to, RoomNote::RoomOffer(offer));
    }

    pub(super) fn hear_notes(&mut self, operation: Operation, bytes: usize, from: NodeId, low: u64) {
        let notes = RoomNote::decode_all(&self.endpoint.memory(operation)[..bytes]);
        let (tags, index) = (self.tags, from.index());
        let Some(peer) = self.peer(index).filter(|peer| tags.low(peer.key) == low) else { return self.rejected += 1 };
        peer.hear();
        self.moved = true;
        let holds = notes.is_some_and(|notes| {
            notes.into_iter().all(|note| match note {
                RoomNote::RoomOffer(offer) => self.peer(index).is_some_and(|peer| peer.held.hear(offer)),
                RoomNote::RoomRequest(ask) => self.hear_ask(index, ask),
            })
        });
        if !holds {
            self.give_up(index, "it offers or wants rooms out of turn".into());
        }
    }

    /// Answers a question for a room. Returns false if the peer had no right to ask.
    fn hear_ask(&mut self, from: usize, ask: RoomRequest) -> bool {
        let longest = LONG_BYTES + self.options.endpoint.max_body;
        let Some(bytes) = usize::try_from(ask.bytes).ok().filter(|bytes| (1..=longest).contains(bytes)) else {
            return false;
        };
        let Some(peer) = self.peer(from) else { return false };
        if std::mem::replace(&mut peer.given.owes_answer, true) {
            return false;
        }
        if let Some(back) = ask.back {
            let Some(operation) = self.offered(from, back) else { return false };
            self.withdraw(operation);
        }
        self.offer(from, bytes, true);
        true
    }

    /// The room of this number, if this peer may write into it.
    fn offered(&self, to: usize, room: u32) -> Option<Operation> {
        let operation = self.endpoint.operation(room)?;
        let is_theirs = self.roles.get(operation.index()) == Some(&BufferRole::Room { from: to as u16 });
        (is_theirs && self.endpoint.is_busy(operation)).then_some(operation)
    }

    /// Takes back a room that the peer has given back.
    fn withdraw(&mut self, operation: Operation) {
        if self.terms.writes {
            self.endpoint.release(operation);
            self.end_room(operation);
        } else {
            self.abandon(operation);
        }
    }

    /// Ends an offered room whose peer is gone or has given it back. A provider returns a receive. It does not return memory
    /// that a peer may write to: that is kept until the endpoint is closed, because what the peer still writes must not
    /// change anything else.
    fn abandon(&mut self, operation: Operation) {
        let bytes = self.endpoint.bytes(operation);
        if let BufferRole::Room { from } = self.roles[operation.index()]
            && let Some(peer) = self.peer(usize::from(from))
        {
            peer.given.end(bytes);
        }
        self.set_role(operation, BufferRole::Orphan);
        if !self.terms.writes {
            self.endpoint.cancel(operation);
        }
    }

    /// Abandons all rooms of a peer that is gone.
    pub(super) fn abandon_rooms(&mut self, index: usize) {
        for number in 0..self.roles.len() {
            if self.roles[number] == (BufferRole::Room { from: index as u16 })
                && let Some(operation) = self.endpoint.operation(number as u32)
            {
                if self.endpoint.is_busy(operation) {
                    self.abandon(operation);
                } else {
                    self.end_room(operation);
                }
            }
        }
    }

    /// Queues something about rooms for a peer. Offers in place of used rooms wait for each other, up to half of the rooms.
    /// So there is one message for two of them, and the peer always has another room, or fills those that are to be read.
    fn tell(&mut self, to: usize, note: RoomNote) {
        let Some(peer) = self.peer(to) else { return };
        peer.notes.push(note);
        let may_wait =
            |note: &RoomNote| matches!(note, RoomNote::RoomOffer(offer) if !offer.answers && offer.bytes > 0);
        if !peer.notes.iter().all(may_wait) || 2 * peer.notes.len() >= peer.given.rooms {
            self.noting.push_back(to as u16);
        }
    }

    /// Sends outstanding messages about rooms. A room is opened before its offer leaves, so that nothing arrives too early:
    /// with libfabric 1.17, `shm` confuses unexpected messages with others.
    pub(super) fn send_notes(&mut self) {
        for _ in 0..self.noting.len() {
            let Some(to) = self.noting.pop_front() else { return };
            let index = usize::from(to);
            let Some(peer) = self.peer(index).filter(|peer| peer.is_there() && !peer.notes.is_empty()) else {
                continue;
            };
            let count = peer.notes.len().min(NOTES);
            let (low, mut notes) = (peer.their_key, peer.notes.drain(..count).collect::<Vec<_>>());
            let tag = Tag { kind: TagKind::Room, large: false, from: self.local, low };
            let sent = notes.iter_mut().all(|note| self.open_room(index, note))
                && self.send_control(index, tag, |room| RoomNote::encode_all(&notes, room)) != Posted::Again;
            let Some(peer) = self.peer(index) else { continue };
            if sent {
                let answers = notes.iter().any(|note| matches!(note, RoomNote::RoomOffer(offer) if offer.answers));
                peer.given.owes_answer &= !answers;
            } else {
                peer.notes.splice(..0, notes);
            }
            if !peer.notes.is_empty() {
                self.noting.push_back(to);
            }
        }
    }

    /// Makes the room of an offer ready. Returns false if the provider has no room for its receive.
    fn open_room(&mut self, to: usize, note: &mut RoomNote) -> bool {
        let RoomNote::RoomOffer(offer) = note else { return true };
        let Some(operation) = self.endpoint.operation(offer.room).filter(|_| offer.bytes > 0) else { return true };
        if self.endpoint.is_busy(operation) {
            return true;
        }
        if self.terms.writes {
            (offer.address, offer.key) = self.endpoint.open_to_writes(operation);
            return true;
        }
        let Some(key) = self.peer(to).map(|peer| peer.key) else { return true };
        let low = key.wrapping_add(offer.room.into());
        let tag = Tag { kind: TagKind::Data, large: true, from: NodeId(to as u16), low };
        let result = self.endpoint.receive(operation, self.tags.encode(tag), 0);
        self.note(to, result) == Posted::Yes
    }
}
