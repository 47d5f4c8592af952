//! What the nodes of a traffic say to each other and to their driver.

use evb_core::{Span, Time};

/// Messages that a node takes on beyond those that have left its host, and events that a processor gathers at once:
/// more are refused, so that an overload does not take memory without bound.
pub(crate) const MOST_WAITING: usize = 1 << 16;

/// What the nodes say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficMessage {
    /// Receiver to sender ([`Pattern::Stream`](crate::Pattern::Stream)): begin.
    Start,
    /// Receiver to sender ([`Pattern::Funnel`](crate::Pattern::Funnel), [`Pattern::PushFarm`](crate::Pattern::PushFarm)):
    /// a cycle is done, so that the next can be sent.
    Next,
    /// Receiver to sender ([`Pattern::Gather`](crate::Pattern::Gather), [`Pattern::PullFarm`](crate::Pattern::PullFarm)):
    /// send your data of this event.
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
    /// Begin. A saturating sender sends by itself, at most `messages`; another one sends what it is offered. What goes in
    /// cycles goes by itself, at most `messages` cycles of each node that begins them.
    Start {
        /// Whether the sender sends as fast as messages leave its host.
        saturating: bool,
        /// Messages after which it stops.
        messages: Option<u64>,
    },
    /// A message to send has come. [`Pattern::Gather`](crate::Pattern::Gather): event `number` has come; all nodes are told before any of their
    /// messages arrives.
    Offer {
        /// The number of the event, from 1; no meaning but for [`Pattern::Gather`](crate::Pattern::Gather).
        number: u64,
    },
    /// A data message has left the host; of one to several nodes, each copy.
    Sent,
    /// The [computing](TrafficEvent::Compute) is over.
    Computed,
    /// Send nothing new; data that others have asked for are still sent.
    Stop,
}

/// What a node tells the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficEvent {
    /// A processor has all its data of an event, or a cycle is over.
    Ended {
        /// The event, or the node's count of cycles from 1.
        number: u64,
        /// When the event came, or the cycle began.
        born: Time,
    },
    /// Keep the processor of this node busy for so long, after all that was to be sent before, then say
    /// [`TrafficCommand::Computed`]. Nothing more of this kind comes before.
    Compute {
        /// How long.
        span: Span,
    },
    /// An offered message, or this node's part in an event, was refused: 65,536 wait already.
    Refused,
}
