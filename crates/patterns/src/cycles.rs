//! The cycles of a node: which one it is in, since when, and whether another one follows.

use crate::{TrafficCommand, TrafficEvent, role::Out};
use evb_core::Time;

/// The cycles that a node begins and ends.
pub(crate) struct Cycles {
    running: bool,
    begun: u64,
    ended: u64,
    limit: u64,
    /// When the one that ends next began.
    born: Time,
}

impl Cycles {
    pub(crate) fn new() -> Self {
        Self { running: false, begun: 0, ended: 0, limit: 0, born: Time::ZERO }
    }

    /// Takes in when to begin and to stop; true when cycles begin.
    pub(crate) fn handle_command(&mut self, now: Time, command: TrafficCommand) -> bool {
        match command {
            TrafficCommand::Start { messages, .. } => {
                (self.running, self.limit, self.born) = (true, messages.unwrap_or(u64::MAX), now);
                true
            }
            TrafficCommand::Stop => {
                self.running = false;
                false
            }
            TrafficCommand::Offer { .. } | TrafficCommand::Sent | TrafficCommand::Computed => false,
        }
    }

    /// The number of the next cycle, from 1; none when no more shall begin.
    pub(crate) fn begin(&mut self) -> Option<u64> {
        if !self.running || self.begun >= self.limit {
            return None;
        }
        self.begun += 1;
        Some(self.begun)
    }

    /// Whether one has begun that has not ended.
    pub(crate) fn is_open(&self) -> bool {
        self.begun > self.ended
    }

    /// The oldest open cycle is over, and the next one begins to count.
    pub(crate) fn end(&mut self, now: Time, out: Option<&mut Out>) {
        self.ended += 1;
        if let Some(out) = out {
            out.tell(TrafficEvent::Ended { number: self.ended, born: self.born });
        }
        self.born = now;
    }
}
