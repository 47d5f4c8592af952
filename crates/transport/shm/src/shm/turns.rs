//! The turns of an endpoint: it checks its lanes, reads its sockets, rings, and sleeps.

use super::{
    LISTENER, Shm, WAKER, bell,
    peer::{Peer, ReceiveTurn},
};
use evb_transport::ChunkPool;
use mio::{Interest, unix::SourceFd};
use std::{
    os::fd::AsRawFd,
    sync::atomic::{Ordering, fence},
    time::{Duration, Instant},
};

/// Most messages from one lane before the next has its turn.
const TURN: usize = 64;
/// Calls of `receive` between two checks of the sockets. Sockets report the death of a peer; messages do not need them.
/// A beat of this node's pulse causes a check as well, however long the calls take.
const CALLS_PER_POLL: u32 = 1 << 12;
/// Number of empty checks of a lane after which it is cold.
const COLD_AFTER: u8 = 32;
/// Number of turns that a cold lane is skipped while others have messages.
const COLD_TURNS: u8 = 16;
/// Most strangers that are refused in one turn.
const STRANGERS_AT_ONCE: usize = 16;

impl Shm {
    /// Visits the hot lanes and some of the cold ones in turn; if none had anything, all.
    #[inline]
    pub(super) fn sweep(
        &mut self,
        limit: usize,
        mut visit: impl FnMut(&mut TurnGuard<'_>, usize) -> (usize, ReceiveTurn),
    ) -> usize {
        self.calls += 1;
        if self.calls >= CALLS_PER_POLL || self.has_beaten() {
            self.poll_events(Some(Duration::ZERO));
        }
        let (mut count, mut lost) = (0, Vec::new());
        let (lanes, first) = (self.lanes.len(), self.turn);
        for everywhere in [false, true] {
            for place in (first..lanes).chain(0..first) {
                let lane = &mut self.lanes[place];
                if !everywhere && lane.rests() {
                    continue;
                }
                let index = usize::from(lane.node);
                let Some(peer) = &mut self.peers[index] else { continue };
                if !lane.note(peer.is_ready()) {
                    continue;
                }
                let mut visited = TurnGuard { peer, chunks: &mut self.chunks, scratch: &mut self.scratch };
                let (taken, turn) = visit(&mut visited, (limit - count).min(TURN));
                count += taken;
                if turn == ReceiveTurn::Lost {
                    lost.push(index);
                }
                if count >= limit {
                    self.turn = place + 1;
                    break;
                }
            }
            if count > 0 || !lost.is_empty() {
                break;
            }
        }
        lost.into_iter().for_each(|index| self.drop_peer(index));
        if self.turn >= self.lanes.len() {
            self.turn = 0;
        }
        count
    }

    /// Takes the system's events, waiting for at most `timeout`.
    #[cold]
    pub(super) fn poll_events(&mut self, timeout: Option<Duration>) {
        self.calls = 0;
        // A signal ends this early, and so does a stop of the process. Who has died meanwhile is seen before anybody's
        // silence is.
        if self.poll.poll(&mut self.events, timeout).is_err()
            && self.poll.poll(&mut self.events, Some(Duration::ZERO)).is_err()
        {
            return;
        }
        if self.take_events() {
            self.turn_away();
        }
        self.collect_from_leaving();
        self.look_for_silent();
    }

    /// Handles the system's events. Returns true if a new connection waits.
    pub(super) fn take_events(&mut self) -> bool {
        let mut strangers = false;
        for event in &self.events {
            match event.token() {
                LISTENER => strangers = true,
                WAKER => self.woken = true,
                mio::Token(index) => {
                    if let Some(Some(peer)) = self.peers.get_mut(index) {
                        peer.hear();
                    }
                }
            }
        }
        strangers
    }

    /// Refuses a new connection. All peers are there, so it is a stranger, or comes too early and will try again.
    fn turn_away(&mut self) {
        for _ in 0..STRANGERS_AT_ONCE {
            match self.listener.accept() {
                Ok(_) => self.rejected += 1,
                Err(_) => return,
            }
        }
        // More may wait: this brings the event again. If it fails, they wait until one more knocks.
        let listener = self.listener.as_raw_fd();
        let _ = self.poll.registry().reregister(&mut SourceFd(&listener), LISTENER, Interest::READABLE);
    }

    /// Sends further pieces and rings for sleepers. Returns true if nothing is left.
    #[inline]
    pub(super) fn flush_all(&mut self) -> bool {
        if !self.blocked.is_empty() {
            self.advance();
        }
        if !self.unflushed.is_empty() {
            for index in self.unflushed.iter() {
                if let Some(Some(peer)) = self.peers.get_mut(index) {
                    peer.publish();
                }
            }
            fence(Ordering::SeqCst);
            let mut next = self.unflushed.next_from(0);
            while let Some(index) = next {
                self.unflushed.remove(index);
                if let Some(peer) = &self.peers[index] {
                    peer.ring();
                }
                next = self.unflushed.next_from(index);
            }
        }
        if !self.lending.is_empty() {
            self.collect();
        }
        self.blocked.is_empty() || !self.peers.iter().flatten().any(|peer| peer.has_outbox())
    }

    #[cold]
    fn advance(&mut self) {
        for index in 0..self.peers.len() {
            if let Some(Some(peer)) = self.peers.get_mut(index).filter(|_| self.blocked.contains(index))
                && peer.has_outbox()
            {
                self.unflushed.insert(index);
                if peer.advance() {
                    self.blocked.remove(index);
                }
            }
        }
    }

    fn starving(&mut self) -> impl Iterator<Item = &mut Box<Peer>> {
        let wanted = self.peers.iter_mut().enumerate().filter(|(index, _)| self.blocked.contains(*index));
        wanted.filter_map(|(_, peer)| peer.as_mut())
    }

    /// Returns true if there is something to receive, or room where there was none.
    fn is_ready(&mut self) -> bool {
        let roomy = self.starving().any(|peer| peer.has_room());
        roomy || self.woken || self.peers.iter().flatten().any(|peer| peer.is_ready())
    }

    /// Clears the list of blocked peers with room, so that new room ends one wait only.
    fn unblock(&mut self) {
        for index in 0..self.peers.len() {
            if let Some(Some(peer)) = self.peers.get_mut(index).filter(|_| self.blocked.contains(index))
                && !peer.has_outbox()
                && peer.has_room()
            {
                self.blocked.remove(index);
            }
        }
    }

    pub(super) fn sleep(&mut self, timeout: Duration) {
        if !self.is_ready() {
            self.starving().for_each(|peer| peer.starve());
            bell::fall_asleep(&self.bell.as_ref()[0]);
            let (start, interval) = (Instant::now(), self.heartbeat.interval());
            while !self.is_ready() {
                let left = timeout.saturating_sub(start.elapsed());
                self.poll_events(Some(left.min(interval)));
                if left <= interval {
                    break;
                }
            }
            bell::wake_up(&self.bell.as_ref()[0]);
            self.starving().for_each(|peer| peer.unstarve());
        }
        self.unblock();
        self.woken = false;
    }
}

/// A connected peer, and the number of its empty turns.
#[derive(Debug)]
pub(super) struct LaneTurn {
    pub(super) node: u16,
    pub(super) misses: u8,
}

impl LaneTurn {
    /// Returns true if the lane is cold and its turn has not come.
    #[inline]
    fn rests(&mut self) -> bool {
        let rests = (COLD_AFTER..COLD_AFTER + COLD_TURNS).contains(&self.misses);
        self.misses += u8::from(rests);
        rests
    }

    /// Updates the state of the lane after a check.
    #[inline]
    fn note(&mut self, ready: bool) -> bool {
        self.misses = if ready { 0 } else { (self.misses + 1).min(COLD_AFTER) };
        ready
    }
}

/// A visit to a lane in its turn.
pub(super) struct TurnGuard<'a> {
    pub(super) peer: &'a mut Peer,
    pub(super) chunks: &'a mut ChunkPool,
    pub(super) scratch: &'a mut [u8],
}
