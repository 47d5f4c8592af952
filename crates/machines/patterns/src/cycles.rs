//! The cycles of a node: their numbers, their times and their limit.

use crate::{TrafficCommand, TrafficEvent, role::Outbox};
use evb_core::Time;

/// The cycles that a node begins and ends.
pub(crate) struct Cycles {
    running: bool,
    begun: u64,
    ended: u64,
    limit: u64,
    /// Start of the oldest open cycle.
    born: Time,
}

impl Cycles {
    pub(crate) fn new() -> Self {
        Self { running: false, begun: 0, ended: 0, limit: 0, born: Time::ZERO }
    }

    /// Takes commands to start and to stop; returns true when cycles begin.
    pub(crate) fn handle_command(&mut self, now: Time, command: TrafficCommand) -> bool {
        match command {
            TrafficCommand::Start { messages, .. } => {
                self.running = true;
                self.limit = messages.unwrap_or(u64::MAX);
                self.born = now;
                true
            }
            TrafficCommand::Stop => {
                self.running = false;
                false
            }
            TrafficCommand::Offer { .. }
            | TrafficCommand::Refuse { .. }
            | TrafficCommand::Sent
            | TrafficCommand::Computed => false,
        }
    }

    /// Begins a cycle and returns its number, from 1; `None` if no more shall begin.
    pub(crate) fn begin(&mut self) -> Option<u64> {
        if !self.running || self.begun >= self.limit {
            return None;
        }
        self.begun += 1;
        Some(self.begun)
    }

    /// Returns true if a cycle has begun and not ended.
    pub(crate) fn is_open(&self) -> bool {
        self.begun > self.ended
    }

    /// Returns true if all cycles that may begin have ended, or the node was stopped. A cycle that is open then ends
    /// only if the other nodes have begun it, too.
    pub(crate) fn are_done(&self) -> bool {
        !self.running || self.ended >= self.limit
    }

    /// Ends the oldest open cycle; the time of the next one begins to count.
    pub(crate) fn end(&mut self, now: Time, out: Option<&mut Outbox>) {
        self.ended += 1;
        if let Some(out) = out {
            out.tell(TrafficEvent::Ended { number: self.ended, born: self.born });
        }
        self.born = now;
    }
}
