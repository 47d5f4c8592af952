//! Signs of life. A stopped process keeps its sockets, so they do not reveal it. A thread of each endpoint increments a
//! word that its peers can read, as long as the endpoint lives. So the work of a node, a slow disk or a long turn, does
//! not matter: a pulse shows that the process runs.
//!
//! A node's own pulse is the clock as well. A peer is silent if none of its signs has changed during [`BEATS`] beats of
//! this node. A node that was stopped itself has not beaten meanwhile, and blames no peer for that time.

use super::{Shm, bell::PULSE, map::Words, peer::Peer};
use std::{
    io,
    sync::{
        atomic::Ordering,
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

/// Beats within the longest silence.
const BEATS: u64 = 8;
/// Shortest time between two beats: a shorter one says nothing about a process that shares its processor.
const LEAST_INTERVAL: Duration = Duration::from_millis(1);
/// Stack of the pulse thread, in bytes. It makes few calls.
const STACK_BYTES: usize = 64 << 10;

/// The pulse of this endpoint. Its thread ends when this is dropped.
#[derive(Debug)]
pub(super) struct Heartbeat {
    page: Words,
    interval: Duration,
    /// The thread, and the channel that ends it.
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Heartbeat {
    /// Starts to count on a page that peers can read.
    pub(super) fn start(page: Words, peer_timeout: Duration) -> io::Result<Self> {
        let interval = (peer_timeout / BEATS as u32).max(LEAST_INTERVAL);
        let ((end, ended), word) = (channel(), page.clone());
        let beat = move || {
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                word.as_ref()[PULSE].fetch_add(1, Ordering::Relaxed);
            }
        };
        let thread = thread::Builder::new().name("evb pulse".into()).stack_size(STACK_BYTES).spawn(beat)?;
        Ok(Self { page, interval, running: Some((end, thread)) })
    }

    /// Number of beats so far.
    #[inline]
    pub(super) fn beats(&self) -> u64 {
        self.page.as_ref()[PULSE].load(Ordering::Relaxed)
    }

    /// Time between two beats.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// Ends the thread, as the end of the process would.
    pub(super) fn stop(&mut self) {
        if let Some((end, thread)) = self.running.take() {
            drop(end);
            // It cannot panic, and if it did, its end is all that is wanted.
            let _ = thread.join();
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The state of a peer's pulse: its signs when they last changed, and the beat of this node at that time.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    last: Option<(u64, u64)>,
}

impl Pulse {
    /// Takes the signs of a peer at a beat of this node; returns true if they have stood still for too long. The
    /// longest silence lies within more than [`BEATS`] beats.
    pub(super) fn is_silent(&mut self, signs: u64, beats: u64) -> bool {
        match self.last {
            Some((last, since)) if last == signs => beats - since > BEATS,
            _ => {
                self.last = Some((signs, beats));
                false
            }
        }
    }
}

impl Peer {
    /// Returns true if the peer has given no sign of life for too long. Unread messages of the peer are a sign of life:
    /// they show that this node is behind.
    fn is_silent(&mut self, beats: u64) -> bool {
        if self.incoming.has_next() {
            self.pulse = Pulse::default();
        }
        let signs = self.signs();
        self.pulse.is_silent(signs, beats)
    }
}

impl Shm {
    /// Returns true if this node has beaten since its last check of the peers' pulses.
    #[inline]
    pub(super) fn has_beaten(&self) -> bool {
        self.heartbeat.beats() != self.seen_beats
    }

    /// Checks for silent peers, once for each beat.
    pub(super) fn look_for_silent(&mut self) {
        let beats = self.heartbeat.beats();
        if beats == self.seen_beats {
            return;
        }
        self.seen_beats = beats;
        for peer in self.peers.iter_mut().flatten() {
            if peer.is_silent(beats) {
                peer.give_up(format!("nothing was heard of it for {:?}", self.options.endpoint.peer_timeout));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_silent_after_the_beats_of_the_observer() {
        let mut pulse = Pulse::default();
        assert!(!pulse.is_silent(7, 100), "the first look");
        assert!(!pulse.is_silent(7, 100 + BEATS) && pulse.is_silent(7, 101 + BEATS));
        assert!(!pulse.is_silent(8, 200), "it was slow, and lives");
        assert!(!pulse.is_silent(8, 200 + BEATS) && pulse.is_silent(8, 1000));
    }
}
