//! Signs of life: a process that is stopped keeps its sockets, so its end does not show there. Each endpoint counts up a word
//! that its peers can read, and takes for gone whose count has stood still for too long.

use super::{Shm, bell::PULSE, map::Words};
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// What is known of the pulse of a peer.
#[derive(Debug)]
pub(super) struct Pulse {
    count: u64,
    /// When it was seen to change.
    heard: Instant,
}

impl Pulse {
    pub(super) fn new() -> Self {
        Self { count: 0, heard: Instant::now() }
    }

    /// Looks at a peer's page; whether it has been silent for `timeout`.
    fn is_silent(&mut self, page: &Words, now: Instant, timeout: Duration) -> bool {
        let count = page.as_ref()[PULSE].load(Ordering::Relaxed);
        if count != self.count {
            (self.count, self.heard) = (count, now);
        }
        now.saturating_duration_since(self.heard) > timeout
    }

    /// This node was away and could hear nobody: the peer is not to blame for what was before.
    fn excuse(&mut self, since: Instant) {
        self.heard = self.heard.max(since);
    }
}

impl Shm {
    pub(super) fn tick_interval(&self) -> Duration {
        self.options.peer_timeout / 4
    }

    /// Gives a sign of life and looks for those of the peers, once in a while.
    pub(super) fn tick(&mut self) {
        let (now, interval, timeout) = (Instant::now(), self.tick_interval(), self.options.peer_timeout);
        let since = now.saturating_duration_since(self.last_tick);
        if since < interval {
            return;
        }
        self.last_tick = now;
        self.bell.as_ref()[PULSE].fetch_add(1, Ordering::Relaxed);
        for peer in self.peers.iter_mut().flatten() {
            if since > 2 * interval {
                peer.pulse.excuse(now.checked_sub(timeout / 2).unwrap_or(now));
            }
            if peer.pulse.is_silent(&peer.bell, now, timeout) {
                peer.give_up(format!("nothing was heard of it for {timeout:?}"));
            }
        }
    }
}
