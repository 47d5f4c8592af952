//! The state of one peer: progress of both sides, arrived messages, and liveness.

use crate::{
    control::{Acquaintance, RoomNote},
    ffi::Operation,
    rooms::{Given, Held},
};
use evb_transport::Refusal;
use std::time::{Duration, Instant};

/// A message that has arrived, in the memory of a receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) operation: Operation,
    pub(crate) bytes: usize,
}

/// One peer. Numbers count messages of one direction from 0.
pub(crate) struct Peer {
    /// Number of the peer in the address vector.
    pub(crate) address: u64,
    /// The key in the peer's tags, and the key in the tags to the peer.
    pub(crate) key: u64,
    pub(crate) their_key: u64,

    /// The number of the next message to the peer, and of the first one without room.
    pub(crate) sent: u64,
    pub(crate) allowed: u64,
    /// Operations under way to the peer.
    pub(crate) outstanding: usize,
    /// Bytes that wait or are under way, of a transport.
    pub(crate) out_bytes: usize,
    /// Rooms of the peer for long messages to it, and rooms for those from it.
    pub(crate) held: Held,
    pub(crate) given: Given,
    /// What the peer is to be notified about rooms.
    pub(crate) notes: Vec<RoomNote>,

    /// The number of the next message for the user, and the arrived messages from there on, by number modulo length.
    pub(crate) expected: u64,
    ring: Box<[Option<Arrival>]>,
    /// Consumed messages that were reported to the peer.
    pub(crate) reported: u64,
    /// True if the peer has used half of its credits since the last report.
    pub(crate) status_owed: bool,

    pub(crate) acquaintance: Acquaintance,
    /// True if the peer's hello was good; true if it has answered the own hello.
    pub(crate) known: bool,
    pub(crate) accepted: bool,
    pub(crate) refused: Option<Refusal>,
    /// The number of messages before the peer's goodbye.
    pub(crate) left_after: Option<u64>,
    /// The reason why nothing can be sent to the peer or comes from it any more.
    pub(crate) failure: Option<String>,
    /// True if the peer is in the queue of those that may have something for the user.
    pub(crate) active: bool,

    heard: bool,
    last_heard: Instant,
    /// Number of checks without a sign of life.
    silent: u32,
    pub(crate) spoke: bool,
}

impl Peer {
    pub(crate) fn new(address: u64, key: u64, acquaintance: Acquaintance, credits: u16, now: Instant) -> Self {
        Self {
            address,
            key,
            their_key: 0,
            acquaintance,
            sent: 0,
            allowed: u64::from(credits),
            outstanding: 0,
            out_bytes: 0,
            held: Held::default(),
            given: Given::default(),
            notes: Vec::new(),
            expected: 0,
            ring: vec![None; usize::from(credits).next_power_of_two()].into(),
            reported: 0,
            status_owed: false,
            known: false,
            accepted: false,
            refused: None,
            left_after: None,
            failure: None,
            active: false,
            heard: true,
            last_heard: now,
            silent: 0,
            spoke: true,
        }
    }

    /// Returns true if the peer has neither failed nor left.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        self.failure.is_none() && self.left_after.is_none()
    }

    /// Returns true if the peer was joined and is there.
    #[inline]
    pub(crate) fn takes_messages(&self) -> bool {
        self.known && self.accepted && self.is_there()
    }

    /// Returns true if the peer has room for one more message.
    #[inline]
    pub(crate) fn has_credit(&self) -> bool {
        self.sent < self.allowed
    }

    /// Stores a message at its place, `ahead` after the expected one. Returns false if it is out of place.
    #[inline]
    pub(crate) fn put(&mut self, ahead: u64, arrival: Arrival) -> bool {
        if ahead >= self.ring.len() as u64 {
            return false;
        }
        let slot = &mut self.ring[(self.expected + ahead) as usize & (self.ring.len() - 1)];
        if slot.is_some() {
            return false;
        }
        *slot = Some(arrival);
        true
    }

    /// The message that is `ahead` after the expected one.
    #[inline]
    pub(crate) fn ahead(&mut self, ahead: u64) -> Option<&mut Arrival> {
        if ahead >= self.ring.len() as u64 {
            return None;
        }
        self.ring[(self.expected + ahead) as usize & (self.ring.len() - 1)].as_mut()
    }

    /// Removes the expected message; the next one is expected then.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Arrival> {
        let slot = self.expected as usize & (self.ring.len() - 1);
        let arrival = self.ring[slot].take()?;
        self.expected += 1;
        self.status_owed |= self.expected - self.reported >= self.ring.len() as u64 / 2;
        Some(arrival)
    }

    /// Removes all arrived messages, in no order.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Arrival> {
        self.ring.iter_mut().filter_map(Option::take)
    }

    /// Takes note of a sign of life.
    #[inline]
    pub(crate) fn hear(&mut self) {
        self.heard = true;
    }

    /// Returns true if all messages of the peer were delivered, and it has left or failed.
    pub(crate) fn is_over(&mut self) -> bool {
        let nothing_more = self.failure.is_some() || self.left_after.is_some_and(|count| count <= self.expected);
        nothing_more && self.ahead(0).is_none()
    }

    /// The reason for the loss of the peer, as text.
    pub(crate) fn reason(&self) -> String {
        self.failure.clone().unwrap_or_else(|| "it left".into())
    }

    /// Checks for signs of life since the last check. Returns the length of the silence if there was none at more than
    /// `most` checks.
    pub(crate) fn silence(&mut self, now: Instant, most: u32) -> Option<Duration> {
        if std::mem::take(&mut self.heard) {
            (self.last_heard, self.silent) = (now, 0);
            return None;
        }
        self.silent += 1;
        (self.silent > most).then(|| now.saturating_duration_since(self.last_heard))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::Operation;

    fn arrival(index: u32) -> Arrival {
        Arrival { operation: Operation::test(index), bytes: 1 }
    }

    #[test]
    fn messages_are_given_in_order_and_what_is_out_of_place_is_not_taken() {
        let mut peer = Peer::new(0, 0, Acquaintance::new(0), 4, Instant::now());
        assert!(peer.put(1, arrival(11)) && peer.pop().is_none());
        assert!(!peer.put(1, arrival(99)) && !peer.put(4, arrival(99)));
        assert!(peer.put(0, arrival(10)));
        let order: Vec<_> = std::iter::from_fn(|| peer.pop()).map(|arrival| arrival.operation).collect();
        assert_eq!(order, [Operation::test(10), Operation::test(11)]);
        assert!(peer.status_owed && peer.expected == 2);
        assert!(peer.put(3, arrival(15)) && peer.ahead(3).is_some() && peer.ahead(4).is_none());
        assert_eq!(peer.drain().count(), 1);
    }

    #[test]
    fn a_peer_is_over_after_its_last_message() {
        let mut peer = Peer::new(0, 0, Acquaintance::new(0), 4, Instant::now());
        peer.left_after = Some(1);
        assert!(!peer.is_over());
        peer.put(0, arrival(0));
        assert!(!peer.is_over());
        peer.pop();
        assert!(peer.is_over());
    }

    #[test]
    fn silence_counts_looks_since_the_last_sign_of_life() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut peer = Peer::new(0, 0, Acquaintance::new(0), 4, start);
        assert_eq!(peer.silence(start, 1), None);
        assert_eq!(peer.silence(start + 9 * second, 1), None, "the observer was away");
        assert_eq!(peer.silence(start + 10 * second, 1), Some(10 * second));
        peer.hear();
        assert_eq!(peer.silence(start + 99 * second, 1), None);
        assert_eq!(peer.silence(start + 100 * second, 1), None);
    }
}
