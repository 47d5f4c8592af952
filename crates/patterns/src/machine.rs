//! One node of the traffic: a sender or a receiver.

use crate::{Pattern, TrafficConfig, gather::Gathering, sender::Sender};
use alloc::collections::VecDeque;
use core::convert::Infallible;
use evb_core::{Machine, NodeId, NodeRange, Time, Transmit};

/// Messages that a node takes on beyond those that have left its host, and events that a processor gathers at once:
/// more are refused, so that an overload does not take memory without bound.
pub(crate) const MOST_WAITING: usize = 1 << 16;

/// What the nodes say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficMessage {
    /// Receiver to sender ([`Pattern::Stream`]): begin.
    Start,
    /// Processor to buffer ([`Pattern::Gather`]): send your data of this event.
    Ask {
        /// The event, from 1.
        event: u64,
        /// When the event came.
        born: Time,
    },
    /// Data; its length is the driver's business.
    Data {
        /// The sender's count of messages, or the number of the event that it belongs to; from 1.
        number: u64,
        /// When it was offered.
        born: Time,
    },
}

/// What the driver tells a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficCommand {
    /// Begin. A saturating sender sends by itself, at most `messages`; another one sends what it is offered.
    Start {
        /// Whether the sender sends as fast as messages leave its host.
        saturating: bool,
        /// Messages after which it stops.
        messages: Option<u64>,
    },
    /// A message to send has come. [`Pattern::Gather`]: event `number` has come; all nodes are told before any of their
    /// messages arrives.
    Offer {
        /// The number of the event, from 1; no meaning but for [`Pattern::Gather`].
        number: u64,
    },
    /// A data message has left the host.
    Sent,
    /// Send nothing new; data that others have asked for are still sent.
    Stop,
}

/// What a node tells the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficEvent {
    /// A processor has all its data of an event.
    Gathered {
        /// The event.
        number: u64,
        /// When it came.
        born: Time,
    },
    /// An offered message, or this node's part in an event, was refused: 65,536 wait already.
    Refused,
}

/// One node of the traffic.
pub struct Traffic {
    role: Role,
    /// Whom a receiver of [`Pattern::Stream`] still has to tell that it is ready.
    starts: Option<NodeRange>,
    events: VecDeque<TrafficEvent>,
}

enum Role {
    Sender(Sender),
    Receiver,
    Gathering(Gathering),
}

impl Traffic {
    /// The node with this id, which is one of the senders or receivers. `own` is the index of the receiver on the same
    /// host, if there is one.
    ///
    /// The numbers in `config` must fit each other, as [`TrafficConfig`] says.
    pub fn new(config: &TrafficConfig, node: NodeId, own: Option<u16>) -> Self {
        let role = match config.pattern {
            Pattern::Gather { .. } => Role::Gathering(Gathering::new(config, node)),
            _ if config.senders.contains(node) => Role::Sender(Sender::new(config, node, own)),
            _ => Role::Receiver,
        };
        let tells_to_start = config.pattern == Pattern::Stream && config.receivers.contains(node);
        Self { role, starts: tells_to_start.then_some(config.senders), events: VecDeque::new() }
    }
}

impl Machine for Traffic {
    type Message = TrafficMessage;
    type Command = TrafficCommand;
    type Event = TrafficEvent;
    type Timer = Infallible;

    fn handle_message(&mut self, now: Time, from: NodeId, message: TrafficMessage) {
        match (&mut self.role, message) {
            (Role::Sender(sender), TrafficMessage::Start) => sender.handle_start(now),
            (Role::Gathering(gathering), message) => gathering.handle_message(from, message, &mut self.events),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn handle_command(&mut self, now: Time, command: TrafficCommand) {
        match &mut self.role {
            Role::Sender(sender) => sender.handle_command(now, command, &mut self.events),
            Role::Gathering(gathering) => gathering.handle_command(now, command, &mut self.events),
            Role::Receiver => {}
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit<TrafficMessage>> {
        if let Some(to) = self.starts.take() {
            return Some(Transmit { to, message: TrafficMessage::Start });
        }
        match &mut self.role {
            Role::Sender(sender) => sender.poll_transmit(),
            Role::Gathering(gathering) => gathering.poll_transmit(),
            Role::Receiver => None,
        }
    }

    fn poll_event(&mut self) -> Option<TrafficEvent> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Time, Infallible)> {
        None
    }
}
