//! The role of a node in its pattern.

use crate::{TrafficCommand, TrafficEvent, TrafficMessage};
use alloc::collections::VecDeque;
use evb_core::{NodeId, NodeRange, Time, Transmit};

/// The role of a node in a pattern. Its output goes into [`Outbox`].
pub(crate) trait TrafficRole: Send {
    fn handle_command(&mut self, now: Time, command: TrafficCommand, out: &mut Outbox);

    fn handle_message(&mut self, now: Time, from: NodeId, message: TrafficMessage, out: &mut Outbox);

    /// The next message that is made on demand.
    fn poll_transmit(&mut self) -> Option<Transmit<TrafficMessage>> {
        None
    }

    /// Returns true if a node that was started begins nothing more by itself, and what it has begun is over. A node
    /// that only answers is always done.
    fn is_done(&self) -> bool {
        true
    }
}

/// The output of a node: messages to send and events to report.
#[derive(Default)]
pub(crate) struct Outbox {
    pub(crate) transmits: VecDeque<Transmit<TrafficMessage>>,
    pub(crate) events: VecDeque<TrafficEvent>,
}

impl Outbox {
    pub(crate) fn send(&mut self, to: NodeRange, message: TrafficMessage) {
        self.transmits.push_back(Transmit { to, message });
    }

    pub(crate) fn tell(&mut self, event: TrafficEvent) {
        self.events.push_back(event);
    }
}

/// A node that only receives.
pub(crate) struct Receiver {
    /// Nodes that wait for the message that the receiver is ready.
    starts: Option<NodeRange>,
}

impl Receiver {
    /// A receiver that sends the nodes in `starts`, if any, a message when it is ready.
    pub(crate) fn new(starts: Option<NodeRange>) -> Self {
        Self { starts }
    }
}

impl TrafficRole for Receiver {
    fn handle_command(&mut self, _now: Time, _command: TrafficCommand, _out: &mut Outbox) {}

    fn handle_message(&mut self, _now: Time, _from: NodeId, _message: TrafficMessage, _out: &mut Outbox) {}

    fn poll_transmit(&mut self) -> Option<Transmit<TrafficMessage>> {
        self.starts.take().map(|to| Transmit { to, message: TrafficMessage::Start })
    }
}
