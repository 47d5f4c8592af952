//! The sender of a ping-pong.

use crate::{
    TrafficCommand, TrafficMessage,
    cycles::Cycles,
    role::{Out, Role},
};
use evb_core::{NodeId, NodeRange, Time};

/// Sends, waits until the data are back, and sends again.
pub(crate) struct Pinger {
    partner: NodeRange,
    cycles: Cycles,
}

impl Pinger {
    pub(crate) fn new(partner: NodeRange) -> Self {
        Self { partner, cycles: Cycles::new() }
    }

    fn begin(&mut self, now: Time, out: &mut Out) {
        if let Some(number) = self.cycles.begin() {
            out.send(self.partner, TrafficMessage::Data { number, born: now });
        }
    }
}

impl Role for Pinger {
    fn handle_command(&mut self, now: Time, command: TrafficCommand, out: &mut Out) {
        if self.cycles.handle_command(now, command) {
            self.begin(now, out);
        }
    }

    fn handle_message(&mut self, now: Time, _from: NodeId, message: TrafficMessage, out: &mut Out) {
        if matches!(message, TrafficMessage::Data { .. }) && self.cycles.is_open() {
            self.cycles.end(now, Some(&mut *out));
            self.begin(now, out);
        }
    }
}
