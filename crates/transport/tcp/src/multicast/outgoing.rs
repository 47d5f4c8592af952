//! The messages to one receiver, and the broadcasts that it may have missed.

use super::wire::BroadcastPosition;
use evb_transport::{HEAD_BYTES, Message};
use std::collections::VecDeque;

/// Most broadcasts that one receiver has not confirmed, and most bytes of them; one always fits. Further ones go as
/// copies, which the connection holds back when the receiver is slow.
const MOST_KEPT: usize = 256;
const MOST_KEPT_BYTES: usize = 256 << 10;
/// Most bytes over the connection behind a broadcast that is not confirmed. The receiver must keep them if it has missed
/// that one.
const MOST_BEHIND: u64 = 1 << 20;
/// Weight of a question for lost broadcasts against one that arrived, and the sum at which a receiver is one that
/// broadcasts do not reach: it asked 16 times with fewer than four arrivals between.
const WEIGHT_OF_LOSS: u32 = 4;
const UNREACHED: u32 = 64;

/// A broadcast that is not confirmed.
#[derive(Debug)]
struct RecentBroadcast {
    number: u64,
    message: Message,
    /// Bytes that the connection had taken before.
    sent_before: u64,
    /// The receiver has asked for it, and it was not sent again yet.
    wanted: bool,
    was_missed: bool,
}

/// The messages to one receiver.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Number of the next message.
    next: u64,
    /// Number that the receiver takes the connection's next message for.
    connection: u64,
    /// Bytes that the connection has taken.
    sent: u64,
    last_broadcast: Option<u64>,
    kept: VecDeque<RecentBroadcast>,
    kept_bytes: usize,
    wanted: usize,
    /// Broadcasts below this number were there at the last tick.
    at_tick: u64,
    /// Broadcasts below this number have a mark behind them.
    marked: u64,
    losses: u32,
}

impl Outgoing {
    /// Returns true if a message over the connection would be one too many behind an unconfirmed broadcast.
    #[inline]
    pub(super) fn is_held_up(&self) -> bool {
        self.kept.front().is_some_and(|first| self.sent - first.sent_before >= MOST_BEHIND)
    }

    /// The mark that must go before the next message over the connection, if one must.
    #[inline]
    pub(super) fn mark(&self) -> Option<u64> {
        (self.connection != self.next).then_some(self.next)
    }

    /// Notes that a mark was sent.
    pub(super) fn note_mark(&mut self) {
        (self.connection, self.marked) = (self.next, self.next);
    }

    /// Notes that the connection has taken a message with a body of this length.
    #[inline]
    pub(super) fn note_sent(&mut self, body: usize) {
        self.next += 1;
        self.connection += 1;
        self.sent += (HEAD_BYTES + body) as u64;
    }

    /// Returns true if a broadcast with a body of this length can be kept.
    pub(super) fn has_room(&self, body: usize) -> bool {
        self.kept.is_empty() || (self.kept.len() < MOST_KEPT && self.kept_bytes + body <= MOST_KEPT_BYTES)
    }

    /// The place of the next message, if it is a broadcast.
    pub(super) fn place(&self) -> BroadcastPosition {
        let behind = self.last_broadcast.and_then(|last| u32::try_from(self.next - last).ok());
        BroadcastPosition { number: self.next as u32, behind: behind.unwrap_or(0) }
    }

    /// Keeps a broadcast that was sent.
    pub(super) fn keep(&mut self, message: Message) {
        self.kept_bytes += message.body.len();
        self.last_broadcast = Some(self.next);
        let (number, sent_before) = (self.next, self.sent);
        self.kept.push_back(RecentBroadcast { number, message, sent_before, wanted: false, was_missed: false });
        self.next += 1;
    }

    /// Takes the receiver's word that it has everything below this number; returns true if nothing is kept any more.
    pub(super) fn confirm(&mut self, number: u64) -> bool {
        while self.kept.front().is_some_and(|first| first.number < number)
            && let Some(first) = self.kept.pop_front()
        {
            self.kept_bytes -= first.message.body.len();
            self.wanted -= usize::from(first.wanted);
            if !first.was_missed {
                self.losses = self.losses.saturating_sub(1);
            }
        }
        self.kept.is_empty()
    }

    /// Takes the receiver's question for broadcasts; returns true if it is one that broadcasts do not reach.
    pub(super) fn miss(&mut self, from: u64, to: u64) -> bool {
        for kept in self.kept.iter_mut().filter(|kept| (from..to).contains(&kept.number) && !kept.was_missed) {
            (kept.wanted, kept.was_missed) = (true, true);
            self.wanted += 1;
        }
        self.losses += WEIGHT_OF_LOSS;
        self.losses >= UNREACHED
    }

    /// Wants all that is kept to be sent again, since there is no later chance.
    pub(super) fn want_all(&mut self) {
        self.kept.iter_mut().for_each(|kept| kept.wanted = true);
        self.wanted = self.kept.len();
    }

    /// The first broadcast to send again.
    pub(super) fn wanted(&self) -> Option<(u64, &Message)> {
        if self.wanted == 0 {
            return None;
        }
        self.kept.iter().find(|kept| kept.wanted).map(|kept| (kept.number, &kept.message))
    }

    /// Notes that the first wanted broadcast was sent again.
    pub(super) fn note_again(&mut self) {
        if let Some(kept) = self.kept.iter_mut().find(|kept| kept.wanted) {
            kept.wanted = false;
            self.wanted -= 1;
        }
    }

    /// The mark that is due: a broadcast is unconfirmed since the last tick, and no mark is behind the last one.
    pub(super) fn due_mark(&self) -> Option<u64> {
        let is_old = self.kept.front().is_some_and(|first| first.number < self.at_tick);
        (is_old && self.last_broadcast.is_some_and(|last| last >= self.marked)).then_some(self.next)
    }

    /// Ends a tick.
    pub(super) fn tick(&mut self) {
        self.at_tick = self.next;
    }

    /// Forgets everything, since the receiver is gone.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
