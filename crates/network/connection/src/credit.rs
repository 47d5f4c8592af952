//! Credit that receivers grant: what a sender may send, what a receiver has to grant, and the pace at which a host grants.
//! As in NDP (Handley et al., SIGCOMM 2017) and EQDS (Olteanu et al., NSDI 2022), on which receiver-credit congestion control
//! rests: a sender begins at once with a window, the receiver grants the rest as fast as its link takes it, and it grants again
//! what switches cut to headers, so that nothing but the header must get through.

use evb_core::{Span, Time};
use std::collections::VecDeque;

/// The credit of a sender.
#[derive(Debug)]
pub(crate) struct Credit {
    window: u64,
    /// Bytes that it may send without credit.
    free: u64,
    granted: u64,
    used: u64,
    /// Bytes that were trimmed: the receiver grants them again without being told.
    trimmed: u64,
    /// The most that the receiver was told of what the sender needs.
    told: u64,
    /// Nothing came for too long: a segment may go, and its answer has the credit that was lost.
    asks_again: bool,
}

impl Credit {
    pub(crate) fn new(window: u64) -> Self {
        Self { window, free: 0, granted: 0, used: 0, trimmed: 0, told: 0, asks_again: false }
    }

    /// All credit that a sender with `backlog` bytes to be sent needs, since the start, but that for trimmed segments.
    fn needed(&self, backlog: u64) -> u64 {
        (self.used + backlog).saturating_sub(self.free + self.trimmed)
    }

    /// A sender without backlog gets more to send: it begins without credit.
    pub(crate) fn begin(&mut self, under_way: u64) {
        self.free = self.window.saturating_sub(under_way);
    }

    /// True if a segment of `size` bytes may go. One may, too, that tells a receiver with nothing left to grant that more is
    /// needed.
    pub(crate) fn allows(&self, size: u64, backlog: u64, under_way: u64) -> bool {
        let left = self.granted.saturating_sub(self.used);
        let must_tell = self.asks_again || self.told <= self.granted && self.needed(backlog) > self.told;
        self.free > 0 || left >= size || must_tell && under_way + size <= self.window.max(size)
    }

    /// A segment goes, and `backlog` bytes are left. Returns the credit that it asks for, since the start.
    pub(crate) fn take(&mut self, size: u64, backlog: u64) -> u64 {
        let free = self.free.min(size);
        self.free -= free;
        self.asks_again = false;
        // A segment that only tells needs no credit.
        if free > 0 || self.granted.saturating_sub(self.used) >= size {
            self.used += size - free;
        }
        let needed = self.needed(backlog);
        self.told = self.told.max(needed);
        needed
    }

    pub(crate) fn grant(&mut self, granted: u64) {
        self.granted = self.granted.max(granted);
    }

    pub(crate) fn note_trimmed(&mut self, bytes: u64) {
        self.trimmed += bytes;
    }

    /// Nothing came for too long.
    pub(crate) fn ask_again(&mut self) {
        self.asks_again = true;
    }
}

/// What a receiver has to grant to one sender.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    needed: u64,
    trimmed: u64,
    granted: u64,
}

impl Grants {
    /// A segment, or its header, says what the sender needs.
    pub(crate) fn note(&mut self, needed: u64) {
        self.needed = self.needed.max(needed);
    }

    pub(crate) fn note_trimmed(&mut self, bytes: u64) {
        self.trimmed += bytes;
    }

    /// Bytes that the sender needs and has no credit for.
    pub(crate) fn missing(&self) -> u64 {
        (self.needed + self.trimmed).saturating_sub(self.granted)
    }

    /// Grants up to `most` bytes more.
    pub(crate) fn grant(&mut self, most: u64) {
        self.granted += self.missing().min(most);
    }

    /// All that was granted.
    pub(crate) fn granted(&self) -> u64 {
        self.granted
    }
}

/// The pace at which one port of a host grants credit to the connections that end there, each in its turn: as fast as the
/// link brings what it grants.
#[derive(Clone, Debug)]
pub struct CreditPacer<C> {
    waiting: VecDeque<C>,
    next_at: Time,
}

impl<C> Default for CreditPacer<C> {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), next_at: Time::ZERO }
    }
}

impl<C> CreditPacer<C> {
    /// A connection waits for its turn. It must not wait already.
    pub fn add(&mut self, connection: C) {
        self.waiting.push_back(connection);
    }

    /// The time of the next turn; `None` if no connection waits.
    pub fn deadline(&self) -> Option<Time> {
        self.waiting.front().map(|_| self.next_at)
    }

    /// The connection whose turn it is; `None` before its time.
    pub fn next(&mut self, now: Time) -> Option<C> {
        if now < self.next_at { None } else { self.waiting.pop_front() }
    }

    /// The next turn comes when the link has brought what was granted now.
    pub fn wait(&mut self, now: Time, time: Span) {
        self.next_at = Time(now.0 + time.0);
    }
}
