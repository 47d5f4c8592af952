//! The sender of a ping-pong.

use crate::{
    TrafficCommand, TrafficEvent, TrafficMessage,
    role::{Outbox, TrafficRole},
};
use alloc::collections::VecDeque;
use evb_core::{NodeId, NodeRange, Time};

/// Sends, waits until the data are back, and sends again. The depth of the pipeline is the number of messages under
/// way.
pub(crate) struct Pinger {
    partner: NodeRange,
    depth: u32,
    running: bool,
    begun: u64,
    ended: u64,
    limit: u64,
    /// Send times of the messages under way.
    born: VecDeque<Time>,
}

impl Pinger {
    pub(crate) fn new(partner: NodeRange, depth: u32) -> Self {
        Self { partner, depth, running: false, begun: 0, ended: 0, limit: 0, born: VecDeque::new() }
    }

    fn begin(&mut self, now: Time, out: &mut Outbox) {
        if self.running && self.begun < self.limit {
            self.begun += 1;
            self.born.push_back(now);
            out.send(self.partner, TrafficMessage::Data { number: self.begun, born: now });
        }
    }
}

impl TrafficRole for Pinger {
    fn handle_command(&mut self, now: Time, command: TrafficCommand, out: &mut Outbox) {
        match command {
            TrafficCommand::Start { messages, .. } => {
                self.running = true;
                self.limit = messages.unwrap_or(u64::MAX);
                (0..self.depth).for_each(|_| self.begin(now, out));
            }
            TrafficCommand::Stop => self.running = false,
            TrafficCommand::Offer { .. }
            | TrafficCommand::Refuse { .. }
            | TrafficCommand::Sent
            | TrafficCommand::Computed => {}
        }
    }

    fn handle_message(&mut self, now: Time, _from: NodeId, message: TrafficMessage, out: &mut Outbox) {
        if matches!(message, TrafficMessage::Data { .. })
            && let Some(born) = self.born.pop_front()
        {
            self.begin(now, out);
            self.ended += 1;
            out.tell(TrafficEvent::Ended { number: self.ended, born });
        }
    }

    fn is_done(&self) -> bool {
        self.born.is_empty() && (!self.running || self.begun >= self.limit)
    }
}
