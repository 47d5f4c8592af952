//! Progress: completions of the provider, and rests when there are none.

use super::{BufferRole, Links};
use crate::ffi::{BATCH, Completion};
use std::{
    hint,
    time::{Duration, Instant},
};

/// Most polls between two checks of the clock.
const POLLS_PER_TICK: u32 = 64;
/// Most batches of completions that one poll reads.
const BATCHES: usize = 4;
/// Number of polls without a pause of a node without a file to sleep on. Then it yields to other threads as often, and
/// then naps.
const SPINS: u32 = 200;
const YIELDS: u32 = 50;
/// Sleeps that end at once, without work after them, before a node does without its file for a while. That of the `net`
/// provider can always be read after the first completion.
const AT_ONCE: u32 = 8;
/// Shorter than any sleep that waits for something.
const NO_SLEEP: Duration = Duration::from_micros(5);

impl Links {
    /// Lets the provider work, and handles completions. Cheap if there are none.
    #[inline]
    pub(crate) fn poll(&mut self) {
        self.post_receives();
        for _ in 0..BATCHES {
            let count = self.endpoint.poll();
            for index in 0..count {
                let completion = self.endpoint.completion(index);
                self.complete(completion);
            }
            // A read that finds nothing costs calls of the system.
            if count < BATCH {
                break;
            }
        }
        if let Some(failure) = self.endpoint.failure() {
            self.failed(failure);
        }
        self.settle();
        self.polls += 1;
        if self.polls >= POLLS_PER_TICK {
            self.tick(Instant::now());
        }
    }

    /// Sends outstanding statuses and messages about rooms.
    #[inline]
    pub(crate) fn settle(&mut self) {
        if !(self.owing.is_empty() && self.noting.is_empty()) {
            self.pay_statuses();
            self.send_notes();
        }
    }

    #[inline]
    pub(super) fn complete(&mut self, Completion { operation, tag, bytes, .. }: Completion) {
        // A write into a room that was not offered.
        let Some(operation) = operation else { return self.rejected += 1 };
        match self.roles[operation.index()] {
            BufferRole::Receive { .. } => self.arrived(operation, tag, bytes),
            BufferRole::Slot { to, large } => {
                self.slots[usize::from(large)].push(operation);
                let frame = self.frame_bytes();
                self.is_out(to, frame);
            }
            BufferRole::Control { to } => {
                self.controls.push(operation);
                self.is_out(to, 0);
            }
            BufferRole::Long { to, bytes } => {
                let first = self.endpoint.take_joined(operation);
                self.end_long(operation, first);
                self.is_out(to, bytes);
            }
            BufferRole::Room { from } => self.room_filled(operation, from, (!self.terms.writes).then_some(bytes)),
            BufferRole::Orphan => {
                self.roles[operation.index()] = BufferRole::Free;
                self.endpoint.keep(operation);
            }
            BufferRole::Free => {}
        }
    }

    /// Takes note that something has left this node.
    #[inline]
    pub(super) fn is_out(&mut self, to: u16, bytes: usize) {
        self.moved = true;
        if let Some(peer) = self.peer(usize::from(to)) {
            peer.outstanding = peer.outstanding.saturating_sub(1);
            peer.out_bytes = peer.out_bytes.saturating_sub(bytes);
        }
    }

    #[cold]
    pub(super) fn failed(&mut self, failure: Completion) {
        let (Some(operation), Some(error)) = (failure.operation, failure.error) else { return };
        match self.roles[operation.index()] {
            // Something too long, from a stranger.
            BufferRole::Receive { .. } => {
                self.rejected += 1;
                self.recycle(operation);
                return;
            }
            BufferRole::Slot { to, .. } | BufferRole::Control { to } | BufferRole::Long { to, .. } => {
                self.fail(usize::from(to), error)
            }
            BufferRole::Room { from } => {
                self.fail(usize::from(from), error);
                return self.end_room(operation);
            }
            BufferRole::Orphan | BufferRole::Free => {}
        }
        self.complete(failure);
    }

    /// Number of operations under way to living peers.
    pub(crate) fn outstanding(&self) -> usize {
        self.peers.iter().flatten().filter(|peer| peer.is_there()).map(|peer| peer.outstanding).sum()
    }

    /// Rests until `work`, which is called before each rest, returns true, a waker is called or `timeout` is over.
    pub(crate) fn wait(&mut self, timeout: Duration, mut work: impl FnMut(&mut Self) -> bool) {
        let (start, mut at_once, mut naps) = (Instant::now(), 0, 0);
        loop {
            self.blocked = false;
            self.poll();
            if work(self) || self.parker.was_called() {
                return;
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return;
            }
            let longest = left.min(self.tick_interval());
            if self.endpoint.has_file() && at_once < AT_ONCE {
                at_once = if self.sleep(longest) < NO_SLEEP { at_once + 1 } else { 0 };
            } else {
                self.nap(naps, longest);
                naps += 1;
            }
        }
    }

    /// Rests without a file, after `idle` such rests without work.
    pub(super) fn nap(&mut self, idle: u32, longest: Duration) {
        match idle.checked_sub(SPINS) {
            None => hint::spin_loop(),
            Some(0..YIELDS) if self.yielder.try_yield(Instant::now()) => {}
            Some(more) => self.parker.nap(more.saturating_sub(YIELDS), longest),
        }
    }

    /// Rests on the queue's file; returns for how long.
    fn sleep(&mut self, longest: Duration) -> Duration {
        // What the provider had no room for may move without an event.
        let longest = if self.blocked || !self.owing.is_empty() || !self.noting.is_empty() {
            longest.min(Duration::from_millis(1))
        } else {
            longest
        };
        let start = Instant::now();
        let Some(file) = self.endpoint.may_sleep() else { return Duration::ZERO };
        self.parker.sleep(&[(file, false)], longest);
        let end = Instant::now();
        self.tick(end);
        end - start
    }
}
