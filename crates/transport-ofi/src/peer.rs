//! What a node knows of one peer: how far both are, what has arrived, and whether it lives.

use crate::{control::Refusal, ffi::Operation};
use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

/// A message that has arrived, in the memory of a receive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) operation: Operation,
    pub(crate) bytes: usize,
    /// What receives the body that this message announces.
    pub(crate) body: Option<Operation>,
}

/// One peer. Numbers count messages of one direction from 0 on.
pub(crate) struct Peer {
    /// Its number in the address vector.
    pub(crate) address: u64,
    /// What it must put into its tags, and what we must put into ours.
    pub(crate) key: u64,
    pub(crate) their_key: u64,

    /// The number of the next message to it, and of the first that it has no room for.
    pub(crate) sent: u64,
    pub(crate) allowed: u64,
    /// Operations on the way to it.
    pub(crate) outstanding: usize,
    /// Bytes that wait or are on the way, of a transport.
    pub(crate) out_bytes: usize,
    /// Messages to it whose bodies it has made room for.
    pub(crate) permitted: VecDeque<u64>,

    /// The number of the next message to give to the user, and what has arrived from there on, by number modulo length.
    pub(crate) expected: u64,
    ring: Box<[Option<Arrival>]>,
    /// Messages that the peer knows to be consumed.
    pub(crate) told: u64,
    /// It has used half of its credits since then.
    pub(crate) status_owed: bool,

    /// Its hello came and was good; it answered ours.
    pub(crate) known: bool,
    pub(crate) accepted: bool,
    pub(crate) refused: Option<Refusal>,
    /// It said goodbye after this many messages.
    pub(crate) left_after: Option<u64>,
    /// Why nothing can be sent to it or comes from it any more.
    pub(crate) failure: Option<String>,
    /// It is in the queue of those that may have something for the user.
    pub(crate) active: bool,

    heard: bool,
    last_heard: Instant,
    /// Looks since then, in vain.
    silent: u32,
    pub(crate) spoke: bool,
}

impl Peer {
    pub(crate) fn new(address: u64, key: u64, credits: u16, now: Instant) -> Self {
        Self {
            address,
            key,
            their_key: 0,
            sent: 0,
            allowed: u64::from(credits),
            outstanding: 0,
            out_bytes: 0,
            permitted: VecDeque::new(),
            expected: 0,
            ring: vec![None; usize::from(credits).next_power_of_two()].into(),
            told: 0,
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

    /// Whether it has neither failed nor left.
    #[inline]
    pub(crate) fn is_there(&self) -> bool {
        self.failure.is_none() && self.left_after.is_none()
    }

    /// Whether it was joined and is there.
    #[inline]
    pub(crate) fn takes_messages(&self) -> bool {
        self.known && self.accepted && self.is_there()
    }

    /// Whether it has room for one more message.
    #[inline]
    pub(crate) fn has_credit(&self) -> bool {
        self.sent < self.allowed
    }

    /// Puts a message in its place, which is that many after the expected one. False if it is out of place.
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

    /// The message that is so many after the expected one.
    #[inline]
    pub(crate) fn ahead(&mut self, ahead: u64) -> Option<&mut Arrival> {
        if ahead >= self.ring.len() as u64 {
            return None;
        }
        self.ring[(self.expected + ahead) as usize & (self.ring.len() - 1)].as_mut()
    }

    /// It has room for the body of the message that was sent so many messages ago. False if there is no such message.
    pub(crate) fn permit(&mut self, ago: u64) -> bool {
        let window = self.ring.len() as u64;
        let known = 1 <= ago && ago <= window.min(self.sent) && (self.permitted.len() as u64) < window;
        if known {
            self.permitted.push_back(self.sent - ago);
        }
        known
    }

    /// Takes the expected message out; the next is expected then.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Arrival> {
        let slot = self.expected as usize & (self.ring.len() - 1);
        let arrival = self.ring[slot].take()?;
        self.expected += 1;
        self.status_owed |= self.expected - self.told >= self.ring.len() as u64 / 2;
        Some(arrival)
    }

    /// All that has arrived, in no order; nothing is left.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Arrival> {
        self.ring.iter_mut().filter_map(Option::take)
    }

    /// It gave a sign of life.
    #[inline]
    pub(crate) fn hear(&mut self) {
        self.heard = true;
    }

    /// Whether all that it sent was given, and it has left or failed.
    pub(crate) fn is_over(&mut self) -> bool {
        let nothing_more = self.failure.is_some() || self.left_after.is_some_and(|count| count <= self.expected);
        nothing_more && self.ahead(0).is_none()
    }

    /// Why it is gone, for people.
    pub(crate) fn reason(&self) -> String {
        self.failure.clone().unwrap_or_else(|| "it left".into())
    }

    /// Looks whether it was heard since the last look. If it was silent at more than `most` looks, how long that was.
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
        Arrival { operation: Operation::test(index), bytes: 1, body: None }
    }

    #[test]
    fn messages_are_given_in_order_and_what_is_out_of_place_is_not_taken() {
        let mut peer = Peer::new(0, 0, 4, Instant::now());
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
        let mut peer = Peer::new(0, 0, 4, Instant::now());
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
        let mut peer = Peer::new(0, 0, 4, start);
        assert_eq!(peer.silence(start, 1), None);
        assert_eq!(peer.silence(start + 9 * second, 1), None, "the observer was away");
        assert_eq!(peer.silence(start + 10 * second, 1), Some(10 * second));
        peer.hear();
        assert_eq!(peer.silence(start + 99 * second, 1), None);
        assert_eq!(peer.silence(start + 100 * second, 1), None);
    }
}
