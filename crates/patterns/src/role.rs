//! What a node of the traffic does: one role of its pattern.

use crate::{TrafficCommand, TrafficEvent, TrafficMessage};
use alloc::collections::VecDeque;
use evb_core::{NodeId, NodeRange, Time, Transmit};

/// The part that a node has in a pattern. What it wants goes into [`Out`].
pub(crate) trait Role: Send {
    fn handle_command(&mut self, now: Time, command: TrafficCommand, out: &mut Out);

    fn handle_message(&mut self, now: Time, from: NodeId, message: TrafficMessage, out: &mut Out);

    /// What it sends only when it is asked for.
    fn poll_transmit(&mut self) -> Option<Transmit<TrafficMessage>> {
        None
    }
}

/// What a node wants to send and to tell.
#[derive(Default)]
pub(crate) struct Out {
    pub(crate) transmits: VecDeque<Transmit<TrafficMessage>>,
    pub(crate) events: VecDeque<TrafficEvent>,
}

impl Out {
    pub(crate) fn send(&mut self, to: NodeRange, message: TrafficMessage) {
        self.transmits.push_back(Transmit { to, message });
    }

    pub(crate) fn tell(&mut self, event: TrafficEvent) {
        self.events.push_back(event);
    }
}

/// A node that only receives.
pub(crate) struct Receiver {
    /// Whom it still has to tell that it is ready.
    starts: Option<NodeRange>,
}

impl Receiver {
    /// One that tells `starts`, if anyone, that it is ready.
    pub(crate) fn new(starts: Option<NodeRange>) -> Self {
        Self { starts }
    }
}

impl Role for Receiver {
    fn handle_command(&mut self, _now: Time, _command: TrafficCommand, _out: &mut Out) {}

    fn handle_message(&mut self, _now: Time, _from: NodeId, _message: TrafficMessage, _out: &mut Out) {}

    fn poll_transmit(&mut self) -> Option<Transmit<TrafficMessage>> {
        self.starts.take().map(|to| Transmit { to, message: TrafficMessage::Start })
    }
}
