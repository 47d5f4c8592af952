//! Broadcasts over MPI.
//!
//! The receivers take part in [`AHEAD`] broadcasts at any time, and report to the sender how many they have taken, so
//! that the sender is never further ahead. MPI cannot take a broadcast back: a sender that leaves ends the broadcasts
//! that its receivers wait for.

use crate::ffi::{Comm, Receiving, Sending, Shim};
use std::collections::VecDeque;

/// Broadcasts that are under way at a time.
const AHEAD: usize = 8;
/// The first byte of a broadcast with a message; the other constant marks one without.
const MESSAGE: u8 = 1;
const END: u8 = 0;

/// Broadcasts that this node sends.
pub(crate) struct Outbound {
    shim: &'static Shim,
    comm: Comm,
    pub(crate) to: Vec<usize>,
    pub(crate) length: usize,
    sent: u64,
    /// Number of broadcasts that each receiver has taken.
    taken: Vec<u64>,
    sending: VecDeque<Sending>,
}

impl Outbound {
    pub(crate) fn new(shim: &'static Shim, comm: Comm, to: Vec<usize>, length: usize) -> Self {
        let taken = vec![0; to.len()];
        Self { shim, comm, to, length, sent: 0, taken, sending: VecDeque::new() }
    }

    /// Sends to all receivers; returns false if one of them is too far behind.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.progress();
        let slowest = self.taken.iter().copied().min().unwrap_or(self.sent);
        if self.sent >= slowest + AHEAD as u64 || self.sending.len() >= AHEAD {
            return false;
        }
        self.sent += 1;
        self.start(MESSAGE, bytes);
        true
    }

    fn start(&mut self, first: u8, bytes: &[u8]) {
        let mut all = Vec::with_capacity(1 + self.length);
        all.push(first);
        all.extend_from_slice(bytes);
        all.resize(1 + self.length, 0);
        self.sending.push_back(Sending::broadcast(self.shim, self.comm, all));
    }

    /// Adds broadcasts that a receiver has taken. A receiver that has left takes all.
    pub(crate) fn was_taken(&mut self, by: usize, count: u64) {
        if let Some(index) = self.to.iter().position(|&node| node == by) {
            self.taken[index] = self.taken[index].saturating_add(count);
        }
    }

    /// Advances the broadcasts. Returns true if nothing is left.
    pub(crate) fn progress(&mut self) -> bool {
        while self.sending.front_mut().is_some_and(Sending::poll) {
            self.sending.pop_front();
        }
        self.sending.is_empty()
    }
}

impl Drop for Outbound {
    fn drop(&mut self) {
        for _ in 0..AHEAD {
            self.start(END, &[]);
        }
        self.sending.drain(..).for_each(Sending::linger);
    }
}

/// Broadcasts that this node receives.
pub(crate) struct Inbound {
    pub(crate) from: usize,
    posted: VecDeque<Receiving>,
    ended: bool,
}

impl Inbound {
    pub(crate) fn new(shim: &'static Shim, comm: Comm, from: usize, length: usize) -> Self {
        let post = |_| Receiving::broadcast(shim, comm, vec![0; 1 + length]);
        Self { from, posted: (0..AHEAD).map(post).collect(), ended: false }
    }

    /// Returns true if a broadcast has arrived.
    pub(crate) fn poll(&mut self) -> bool {
        while !self.ended && self.posted.front_mut().is_some_and(Receiving::poll) {
            match self.posted[0].bytes().first() {
                Some(&MESSAGE) => return true,
                _ => self.ended = true,
            }
        }
        false
    }

    /// The bytes of the broadcast that has arrived.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.posted.front().map_or(&[], |posted| &posted.bytes()[1..])
    }

    /// Frees the broadcast that has arrived, and waits for one more.
    pub(crate) fn release(&mut self) {
        if let Some(mut posted) = self.posted.pop_front() {
            posted.again();
            self.posted.push_back(posted);
        }
    }
}
