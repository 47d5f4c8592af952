//! The messages of one sender on their way to the user, in the order of their numbers.
//!
//! All messages of a pair are numbered, broadcast or not. The connection brings messages in order and names the number of
//! one only when it does not follow the last, so its messages without a number are known. A datagram names its number and
//! that of the broadcast before it, so a lost one is noticed with the next, or with the next mark.

use super::wire::BroadcastPosition;
use evb_transport::Message;
use std::collections::BTreeMap;

/// Broadcasts after which a receiver says without being asked what it has.
const CONFIRM_AFTER: u32 = 32;
/// Most messages that wait for an earlier one, from which datagrams are dropped; they come again over the connection.
const MOST_EARLY: usize = 4096;

/// The messages of one sender.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// Number of the next message for the user.
    next: u64,
    /// Number of the next message that the connection brings.
    connection: u64,
    /// Messages that wait for an earlier one, or for the user.
    early: BTreeMap<u64, Message>,
    /// Broadcasts below this number have been sent, as far as is known.
    sent: u64,
    /// Broadcasts below this number have arrived or were asked for.
    asked: u64,
    /// The last number that was confirmed, and the one up to which the sender wants to know.
    confirmed: u64,
    wanted: u64,
    /// Broadcasts since the last confirmation.
    since: u32,
}

impl Incoming {
    /// Takes a message of the connection, and returns it if it is the next for the user.
    #[inline]
    pub(super) fn arrive(&mut self, message: Message) -> Option<Message> {
        let number = self.connection;
        self.connection += 1;
        if number == self.next {
            self.next += 1;
            return Some(message);
        }
        self.early.insert(number, message);
        None
    }

    /// Takes a broadcast from a datagram.
    pub(super) fn hear(&mut self, place: BroadcastPosition, message: impl FnOnce() -> Message) {
        let ahead = place.number.wrapping_sub(self.next as u32) as i32;
        let Ok(ahead) = u64::try_from(ahead) else { return };
        let number = self.next + ahead;
        if place.behind > 0
            && let Some(before) = number.checked_sub(place.behind.into())
            && before >= self.next
            && !self.early.contains_key(&before)
        {
            self.sent = self.sent.max(before + 1);
        }
        if self.early.len() < MOST_EARLY {
            self.take(number, message);
        } else {
            self.sent = self.sent.max(number + 1);
        }
    }

    /// Takes a broadcast that comes again, over the connection.
    pub(super) fn hear_again(&mut self, number: u64, message: Message) {
        if number >= self.next {
            self.take(number, || message);
        }
    }

    fn take(&mut self, number: u64, message: impl FnOnce() -> Message) {
        self.early.entry(number).or_insert_with(|| {
            self.since += 1;
            message()
        });
    }

    /// Takes a mark: the connection's next message has this number, and the sender wants to know what has arrived.
    pub(super) fn mark(&mut self, number: u64) {
        self.connection = self.connection.max(number);
        self.sent = self.sent.max(number);
        self.wanted = self.wanted.max(number);
    }

    /// The next message for the user, if it is there.
    pub(super) fn next(&mut self) -> Option<Message> {
        let first = self.early.first_entry().filter(|first| *first.key() == self.next)?;
        self.next += 1;
        Some(first.remove())
    }

    /// Returns true if there is a message for the user.
    pub(super) fn is_ready(&self) -> bool {
        self.early.first_key_value().is_some_and(|(&number, _)| number == self.next)
    }

    /// The numbers in which broadcasts are missing that were not asked for yet.
    pub(super) fn missing(&self) -> Option<(u64, u64)> {
        let mut first = self.next.max(self.asked);
        if first >= self.sent {
            return None;
        }
        for (&there, _) in self.early.range(first..) {
            if there != first {
                break;
            }
            first += 1;
        }
        (first < self.sent).then_some((first, self.sent))
    }

    /// Notes that [`missing`](Incoming::missing) was asked for.
    pub(super) fn note_asked(&mut self) {
        self.asked = self.sent;
    }

    /// The number below which everything has arrived, if it is time to say so.
    pub(super) fn news(&self) -> Option<u64> {
        let due = self.since >= CONFIRM_AFTER || self.wanted > self.confirmed && self.next >= self.wanted;
        (due && self.next > self.confirmed).then_some(self.next)
    }

    /// Notes that [`news`](Incoming::news) was sent.
    pub(super) fn note_confirmed(&mut self) {
        (self.confirmed, self.since) = (self.next, 0);
    }
}
