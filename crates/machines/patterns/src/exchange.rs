//! Nodes that all send to each other: two-way and all-to-all.
//!
//! Each node waits for all others in every cycle, so no node is more than one cycle ahead.

use crate::{
    TrafficCommand, TrafficMessage,
    cycles::Cycles,
    each::OneFromEach,
    role::{Outbox, TrafficRole},
};
use evb_core::{NodeId, NodeRange, Time};

/// One node of an exchange.
pub(crate) struct Exchange {
    node: NodeId,
    /// The nodes that it exchanges data with, perhaps itself among them.
    others: NodeRange,
    data: OneFromEach,
    /// Own messages of this cycle that have not left the host.
    unsent: usize,
    cycles: Cycles,
    /// True if the node reports its cycles.
    tells: bool,
}

impl Exchange {
    /// A node that exchanges data with `others`, but not with itself.
    pub(crate) fn new(node: NodeId, others: NodeRange, tells: bool) -> Self {
        Self { node, others, data: OneFromEach::new(others), unsent: 0, cycles: Cycles::new(), tells }
    }

    fn begin(&mut self, now: Time, out: &mut Outbox) {
        let Some(number) = self.cycles.begin() else { return };
        // What it has itself it need not send.
        self.data.add(self.node);
        for other in self.others.iter().filter(|&other| other != self.node) {
            out.send(other.into(), TrafficMessage::Data { number, born: now });
            self.unsent += 1;
        }
    }

    fn go_on(&mut self, now: Time, out: &mut Outbox) {
        if self.cycles.is_open() && self.unsent == 0 && self.data.take() {
            self.cycles.end(now, self.tells.then_some(&mut *out));
            self.begin(now, out);
        }
    }
}

impl TrafficRole for Exchange {
    fn handle_command(&mut self, now: Time, command: TrafficCommand, out: &mut Outbox) {
        if self.cycles.handle_command(now, command) {
            self.begin(now, out);
        }
        if command == TrafficCommand::Sent {
            self.unsent = self.unsent.saturating_sub(1);
            self.go_on(now, out);
        }
    }

    fn handle_message(&mut self, now: Time, from: NodeId, message: TrafficMessage, out: &mut Outbox) {
        if matches!(message, TrafficMessage::Data { .. }) {
            self.data.add(from);
            self.go_on(now, out);
        }
    }

    fn is_done(&self) -> bool {
        self.cycles.are_done()
    }
}
