//! Messages between the nodes of a traffic, their commands and their events.

use evb_core::{Span, Time};

/// Most messages of a node that wait beside those that have left its host, and most events that a processor gathers at
/// once. More are refused, so that an overload has bounded memory.
pub(crate) const MOST_WAITING: usize = 1 << 16;

/// A message between the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficMessage {
    /// Receiver to sender ([`Pattern::Stream`](crate::Pattern::Stream)): start sending.
    Start,
    /// Receiver to sender ([`Pattern::Funnel`](crate::Pattern::Funnel),
    /// [`Pattern::PushFarm`](crate::Pattern::PushFarm)): a cycle is done, and the next may be sent.
    Next,
    /// Receiver to sender ([`Pattern::Gather`](crate::Pattern::Gather),
    /// [`Pattern::PullFarm`](crate::Pattern::PullFarm)): send the data of this event.
    Ask {
        /// The event, from 1.
        event: u64,
        /// Arrival time of the event.
        born: Time,
    },
    /// Data; the driver knows their length.
    Data {
        /// The sender's count of messages, or the number of the event; from 1.
        number: u64,
        /// Time at which the message was offered.
        born: Time,
    },
}

/// A command from the driver to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficCommand {
    /// Start. A saturating sender sends by itself, at most `messages`; another sender sends what it is offered.
    /// Patterns with cycles run by themselves, at most `messages` cycles of each node that begins them.
    Start {
        /// True if the sender sends as fast as messages leave its host.
        saturating: bool,
        /// Messages after which it stops.
        messages: Option<u64>,
    },
    /// A message to send has arrived. In [`Pattern::Gather`](crate::Pattern::Gather): event `number` has arrived; all
    /// events are announced to all nodes in order. Data may come to a processor before their event is announced to it.
    Offer {
        /// The number of the event, from 1; used by [`Pattern::Gather`](crate::Pattern::Gather) only.
        number: u64,
    },
    /// Messages to send have arrived while the node was behind, and are refused. In gathering they are events, which this
    /// node takes no part in.
    Refuse {
        /// Their number.
        count: u64,
    },
    /// A data message has left the host; for a broadcast, one of its copies.
    Sent,
    /// The [computing](TrafficEvent::Compute) is over.
    Computed,
    /// Start nothing new; requested data are still sent.
    Stop,
}

/// An event from a node for the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficEvent {
    /// A processor has all its data of an event, or a cycle is over.
    Ended {
        /// The event, or the node's count of cycles from 1.
        number: u64,
        /// Arrival time of the event, or start of the cycle.
        born: Time,
    },
    /// A request to keep the processor of this node busy for this time, after all earlier messages are sent, and then
    /// to send [`TrafficCommand::Computed`]. No second request comes before the answer.
    Compute {
        /// The length of the computing.
        span: Span,
    },
    /// An offered message, or this node's part in an event, was refused: 65,536 are waiting.
    Refused,
}
