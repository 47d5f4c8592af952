//! The one sender of outfarming and broadcast.

use crate::{
    TrafficCommand, TrafficMessage,
    cycles::Cycles,
    role::{Outbox, TrafficRole},
};
use evb_core::{NodeId, NodeRange, Time};

/// Sends to all receivers, and again when everything has left the host.
pub(crate) struct Spread {
    receivers: NodeRange,
    /// True if all receivers get the same message; if false, each gets its own.
    same: bool,
    /// Messages of this cycle that have not left the host.
    unsent: u16,
    cycles: Cycles,
}

impl Spread {
    /// A node that sends to `receivers`, all the `same` message or one each.
    pub(crate) fn new(receivers: NodeRange, same: bool) -> Self {
        Self { receivers, same, unsent: 0, cycles: Cycles::new() }
    }

    fn begin(&mut self, now: Time, out: &mut Outbox) {
        let Some(number) = self.cycles.begin() else { return };
        let message = TrafficMessage::Data { number, born: now };
        if self.same {
            out.send(self.receivers, message)
        } else {
            self.receivers.iter().for_each(|receiver| out.send(receiver.into(), message))
        }
        self.unsent = self.receivers.count;
    }
}

impl TrafficRole for Spread {
    fn handle_command(&mut self, now: Time, command: TrafficCommand, out: &mut Outbox) {
        if self.cycles.handle_command(now, command) {
            self.begin(now, out);
        }
        if command == TrafficCommand::Sent && self.cycles.is_open() {
            self.unsent = self.unsent.saturating_sub(1);
            if self.unsent == 0 {
                self.cycles.end(now, Some(&mut *out));
                self.begin(now, out);
            }
        }
    }

    fn handle_message(&mut self, _now: Time, _from: NodeId, _message: TrafficMessage, _out: &mut Outbox) {}

    fn is_done(&self) -> bool {
        self.cycles.are_done()
    }
}
