//! The accounts of rooms: memory for one long message each, which a receiver offers to a sender ahead of its messages.
//!
//! A sender asks for a room when its next message fits into none that it holds. The receiver answers with an offer. When the
//! reader has taken the message of a room, the receiver offers another one, without being asked, of a length that recent
//! messages needed. So each room that was granted once comes back, and a stream of messages never waits.
//!
//! An announcement, a permit and the provider's own question for the body were five small messages for a long one, each
//! with a system call on both sides. With memory that is offered ahead one message remains, and an offer for two of
//! them. The price is trust: a node with the token must not write twice into a room.
//!
//! A sender has four rooms. With two, events of 2 x 2 units over `tcp` were built at 0.9 of that rate, with eight at
//! 0.8, likely because more was under way than the caches hold.

use crate::control::{RoomOffer, RoomRequest};

/// Most rooms of one sender at a receiver.
pub(crate) const ROOMS: usize = 4;
/// Bytes of the rooms of one sender, unless it has a single one.
pub(crate) const ROOMS_BYTES: usize = 8 << 20;
/// Rooms have whole pages.
const PAGE: usize = 4096;
/// Part of its length by which the longest of the recent messages counts less with each message.
const FORGETTING: usize = 128;

/// The question of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Asking {
    /// None is open.
    #[default]
    No,
    /// It is not answered yet.
    Open,
    /// It was refused, and no room has come back since.
    Refused,
}

/// The sender's account: the rooms that it may use, in bytes with heads.
#[derive(Debug, Default)]
pub(crate) struct Held {
    rooms: Vec<RoomOffer>,
    /// Rooms that were granted: those held, those in use, and the one asked for.
    granted: usize,
    asking: Asking,
}

impl Held {
    /// Takes the smallest room that a message of this length fits into.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<RoomOffer> {
        let fitting = self.rooms.iter().enumerate().filter(|(_, room)| room.bytes >= bytes as u64);
        let (index, _) = fitting.rev().min_by_key(|(_, room)| room.bytes)?;
        Some(self.rooms.remove(index))
    }

    /// Puts a room back that was not used.
    pub(crate) fn put_back(&mut self, room: RoomOffer) {
        self.rooms.push(room);
    }

    /// The question for a room of this length, if it is to be asked now. Call this when [`take`](Self::take) finds no room.
    pub(crate) fn ask(&mut self, bytes: usize) -> Option<RoomRequest> {
        let is_full = self.granted >= (ROOMS_BYTES / bytes.max(1)).clamp(1, ROOMS);
        let back = match self.asking {
            Asking::Open => return None,
            // A room that is too short is exchanged. Only this ends a row of refusals: the receiver grants the first room.
            Asking::Refused if self.granted > 0 && self.rooms.is_empty() => return None,
            Asking::Refused => self.shortest(),
            Asking::No if is_full && self.rooms.is_empty() => return None,
            Asking::No if is_full => self.shortest(),
            Asking::No => None,
        };
        self.granted += usize::from(back.is_none());
        self.asking = Asking::Open;
        Some(RoomRequest { bytes: bytes as u64, back })
    }

    fn shortest(&mut self) -> Option<u32> {
        let index = (0..self.rooms.len()).min_by_key(|&index| self.rooms[index].bytes)?;
        Some(self.rooms.swap_remove(index).room)
    }

    /// Takes note of an offer. Returns false if the receiver breaks the protocol.
    pub(crate) fn hear(&mut self, offer: RoomOffer) -> bool {
        let is_expected = self.granted > self.rooms.len() && (!offer.answers || self.asking == Asking::Open);
        if !is_expected {
            return false;
        }
        if offer.bytes > 0 {
            self.rooms.push(offer);
            let stays_open = self.asking == Asking::Open && !offer.answers;
            self.asking = if stays_open { Asking::Open } else { Asking::No };
        } else {
            self.granted -= 1;
            if offer.answers {
                self.asking = Asking::Refused;
            }
        }
        true
    }
}

/// The receiver's account of one sender: the rooms that were offered and whose messages are not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) rooms: usize,
    bytes: usize,
    /// Length of the longest message; it fades.
    usual: usize,
    /// True if a question is not answered yet.
    pub(crate) owes_answer: bool,
}

impl Given {
    /// The length of another room for messages like one of this length, at most `longest`, or `None` if there are enough.
    pub(crate) fn grant(&mut self, message: usize, longest: usize) -> Option<usize> {
        self.usual = message.max(self.usual - self.usual / FORGETTING);
        let roomy = (self.usual + self.usual / 8).next_multiple_of(PAGE);
        let bytes = roomy.min(longest).max(message);
        if self.rooms > 0 && (self.rooms == ROOMS || self.bytes + bytes > ROOMS_BYTES) {
            return None;
        }
        Some(bytes)
    }

    /// Takes note that a room of this length is the sender's, which may be longer than granted.
    pub(crate) fn give(&mut self, bytes: usize) {
        (self.rooms, self.bytes) = (self.rooms + 1, self.bytes + bytes);
    }

    /// Takes note that a room of this length is not the sender's any more.
    pub(crate) fn end(&mut self, bytes: usize) {
        (self.rooms, self.bytes) = (self.rooms.saturating_sub(1), self.bytes.saturating_sub(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, VecDeque};

    const LONGEST: usize = 64 << 20;

    /// A sender and a receiver with everything on the way between them. Each step moves one thing, chosen by `next`.
    #[derive(Default)]
    struct Pair {
        held: Held,
        given: Given,
        asks: VecDeque<RoomRequest>,
        offers: VecDeque<RoomOffer>,
        written: VecDeque<(u32, usize)>,
        /// Lengths of the rooms that are the sender's.
        rooms: BTreeMap<u32, usize>,
        offered: u32,
        questions: usize,
        most: (usize, usize),
    }

    impl Pair {
        fn send(&mut self, bytes: usize) -> bool {
            match self.held.take(bytes) {
                Some(room) => self.written.push_back((room.room, bytes)),
                None => {
                    let ask = self.held.ask(bytes);
                    self.questions += usize::from(ask.is_some());
                    self.asks.extend(ask);
                    return false;
                }
            }
            true
        }

        fn offer(&mut self, bytes: usize, answers: bool) {
            let granted = self.given.grant(bytes, LONGEST);
            granted.into_iter().for_each(|bytes| {
                self.given.give(bytes);
                self.offered += 1;
                self.rooms.insert(self.offered, bytes);
            });
            let (room, bytes) = (self.offered, granted.unwrap_or(0) as u64);
            self.offers.push_back(RoomOffer { room, bytes, address: 0, key: 0, answers });
            self.most = (self.most.0.max(self.rooms.len()), self.most.1.max(self.rooms.values().sum()));
        }

        fn end(&mut self, room: u32) {
            let bytes = self.rooms.remove(&room).expect("it is the sender's");
            self.given.end(bytes);
        }

        fn answer(&mut self) -> bool {
            let Some(ask) = self.asks.pop_front() else { return false };
            ask.back.into_iter().for_each(|room| self.end(room));
            self.offer(ask.bytes as usize, true);
            true
        }

        fn hear(&mut self) -> bool {
            let offer = self.offers.pop_front();
            offer.map(|offer| assert!(self.held.hear(offer), "{:?}", self.held)).is_some()
        }

        fn read(&mut self) -> Option<usize> {
            let (room, bytes) = self.written.pop_front()?;
            assert!(bytes <= self.rooms[&room]);
            self.end(room);
            self.offer(bytes, false);
            Some(bytes)
        }
    }

    fn run(lengths: &[usize], mut next: impl FnMut() -> u32) -> Pair {
        let (mut pair, mut sent, mut read, mut idle) = (Pair::default(), 0, Vec::new(), 0);
        while read.len() < lengths.len() {
            let moved = match next() % 4 {
                0 => pair.answer(),
                1 => pair.hear(),
                2 => pair.read().map(|bytes| read.push(bytes)).is_some(),
                _ => sent < lengths.len() && pair.send(lengths[sent]).then(|| sent += 1).is_some(),
            };
            idle = if moved { 0 } else { idle + 1 };
            assert!(idle < 1000, "nothing moves: {:?}, {:?}", pair.held, pair.given);
        }
        assert_eq!(read, lengths);
        pair
    }

    /// A generator of Knuth, for tests.
    fn numbers(mut seed: u64) -> impl FnMut() -> u32 {
        move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as u32
        }
    }

    #[test]
    fn every_message_finds_a_room_whatever_its_length_and_bytes_are_bounded() {
        for seed in 0..300 {
            let mut next = numbers(seed);
            let lengths: Vec<_> = (0..200).map(|_| 1 + (next() as usize % (1 << (next() % 27)))).collect();
            let pair = run(&lengths, next);
            let longest = lengths.iter().max().unwrap();
            let most = ROOMS_BYTES.max(longest + longest / 8 + PAGE);
            assert!(pair.most.0 <= ROOMS && pair.most.1 <= most, "seed {seed}: {:?} of {most}", pair.most);
        }
    }

    #[test]
    fn a_stream_of_equal_messages_asks_at_first_only() {
        let pair = run(&[128 << 10; 500], numbers(1));
        assert!(pair.questions <= ROOMS, "{} questions", pair.questions);
        let (pair, even) = (run(&[3 << 20; 500], numbers(2)), ROOMS_BYTES / (3 << 20));
        assert!(pair.questions <= even && pair.most.0 == even, "{} questions", pair.questions);
    }

    #[test]
    fn messages_of_similar_lengths_ask_rarely() {
        let mut next = numbers(3);
        let lengths: Vec<_> = (0..2000).map(|_| (100 << 10) + next() as usize % (60 << 10)).collect();
        let pair = run(&lengths, next);
        assert!(pair.questions <= 5 * ROOMS, "{} questions", pair.questions);
    }

    #[test]
    fn unexpected_offers_break_the_protocol() {
        let (mut held, offer) = (Held::default(), RoomOffer { room: 1, bytes: 10, address: 0, key: 0, answers: true });
        assert!(!held.hear(offer));
        assert_eq!(held.ask(5), Some(RoomRequest { bytes: 5, back: None }));
        assert_eq!(held.ask(5), None, "one question at a time");
        assert!(held.hear(offer) && !held.hear(offer));
        assert_eq!((held.take(11), held.take(10)), (None, Some(offer)));
        assert!(!held.hear(offer), "nothing was asked");
        assert!(held.hear(RoomOffer { answers: false, ..offer }), "another one for the one that was used");
    }
}
