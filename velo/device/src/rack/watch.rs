//! How a card finds out that the program of its rack stalls, though its process lives.

use std::time::{Duration, Instant};

/// Longest time for which the program may stall.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest time that counts between two looks: the process of the card may itself have been stopped.
const MOST_COUNTED: Duration = Duration::from_secs(1);

/// The last beat of the program, and how long it has stood.
#[derive(Debug)]
pub(crate) struct Watch {
    beat: u64,
    looked: Instant,
    stood: Duration,
}

impl Watch {
    pub(crate) fn new(beat: u64, now: Instant) -> Self {
        Self { beat, looked: now, stood: Duration::ZERO }
    }

    /// Takes note of the beat at a time. Returns true if it has been the same for too long.
    pub(crate) fn is_silent(&mut self, beat: u64, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.looked).min(MOST_COUNTED);
        self.stood = if beat == self.beat { self.stood + since } else { Duration::ZERO };
        (self.beat, self.looked) = (beat, now);
        self.stood > PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beat_that_stands_is_found_and_a_pause_of_the_watcher_is_none() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut watch = Watch::new(1, start);
        assert!(!watch.is_silent(1, after(100)), "the watcher was stopped");
        assert!((101..130).all(|second| !watch.is_silent(1, after(second))));
        assert!(watch.is_silent(1, after(131)));
        assert!(!watch.is_silent(2, after(132)), "it continues");
        assert!((133..163).all(|second| !watch.is_silent(2, after(second))));
        assert!(watch.is_silent(2, after(163)));
    }
}
