//! One node of the traffic: a sender or a receiver.

use crate::{
    Pattern, TrafficConfig,
    answer::Answering,
    exchange::Exchange,
    farm::{Farm, Request},
    gather::Gathering,
    pinger::Pinger,
    role::{Out, Receiver, Role},
    sender::Sender,
    spread::Spread,
};
use alloc::boxed::Box;
use core::convert::Infallible;
use evb_core::{Machine, NodeId, NodeRange, Span, Time, Transmit};

/// Messages that a node takes on beyond those that have left its host, and events that a processor gathers at once:
/// more are refused, so that an overload does not take memory without bound.
pub(crate) const MOST_WAITING: usize = 1 << 16;

/// What the nodes say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficMessage {
    /// Receiver to sender ([`Pattern::Stream`]): begin.
    Start,
    /// Receiver to sender ([`Pattern::Funnel`], [`Pattern::PushFarm`]): a cycle is done, so that the next can be sent.
    Next,
    /// Receiver to sender ([`Pattern::Gather`], [`Pattern::PullFarm`]): send your data of this event.
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
    /// A message to send has come. [`Pattern::Gather`]: event `number` has come; all nodes are told before any of their
    /// messages arrives.
    Offer {
        /// The number of the event, from 1; no meaning but for [`Pattern::Gather`].
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

/// One node of the traffic.
pub struct Traffic {
    role: Box<dyn Role>,
    out: Out,
}

impl Traffic {
    /// The node with this id, which is one of the senders or receivers. `own` is the index of the receiver on the same
    /// host, if there is one.
    ///
    /// The numbers in `config` must fit each other, as [`TrafficConfig`] says.
    pub fn new(config: &TrafficConfig, node: NodeId, own: Option<u16>) -> Self {
        let is_sender = config.senders.contains(node);
        let role: Box<dyn Role> = match config.pattern {
            _ if !is_sender && !config.receivers.contains(node) => Box::new(Receiver::new(None)),
            Pattern::Gather { .. } => Box::new(Gathering::new(config, node)),
            Pattern::TwoWay => Box::new(Exchange::new(node, partner(config, node), is_sender)),
            Pattern::AllToAll => Box::new(Exchange::new(node, everybody(config), true)),
            Pattern::PingPong if is_sender => Box::new(Pinger::new(partner(config, node))),
            Pattern::Outfarming if is_sender => Box::new(Spread::new(config.receivers, false)),
            Pattern::Broadcast if is_sender => Box::new(Spread::new(config.receivers, true)),
            Pattern::PullFarm { work } if !is_sender => Box::new(Farm::new(config.senders, work, Request::Each)),
            Pattern::PushFarm { work } if !is_sender => Box::new(Farm::new(config.senders, work, Request::Next)),
            Pattern::Funnel if !is_sender => Box::new(Farm::new(config.senders, Span::ZERO, Request::Next)),
            Pattern::PingPong | Pattern::PullFarm { .. } => Box::new(Answering),
            _ if is_sender => Box::new(Sender::new(config, node, own)),
            _ => Box::new(Receiver::new((config.pattern == Pattern::Stream).then_some(config.senders))),
        };
        Self { role, out: Out::default() }
    }
}

/// The receiver that has the same index as a sender, or the other way round.
fn partner(config: &TrafficConfig, node: NodeId) -> NodeRange {
    let (senders, receivers) = (config.senders, config.receivers);
    let (own, other) = if senders.contains(node) { (senders, receivers) } else { (receivers, senders) };
    NodeId(other.first.0 + (node.0 - own.first.0) % other.count).into()
}

/// All nodes: the receivers follow the senders.
fn everybody(config: &TrafficConfig) -> NodeRange {
    NodeRange { first: config.senders.first, count: config.senders.count + config.receivers.count }
}

impl Machine for Traffic {
    type Message = TrafficMessage;
    type Command = TrafficCommand;
    type Event = TrafficEvent;
    type Timer = Infallible;

    fn handle_message(&mut self, now: Time, from: NodeId, message: TrafficMessage) {
        self.role.handle_message(now, from, message, &mut self.out);
    }

    fn handle_timeout(&mut self, _now: Time) {}

    fn handle_command(&mut self, now: Time, command: TrafficCommand) {
        self.role.handle_command(now, command, &mut self.out);
    }

    fn poll_transmit(&mut self) -> Option<Transmit<TrafficMessage>> {
        self.out.transmits.pop_front().or_else(|| self.role.poll_transmit())
    }

    fn poll_event(&mut self) -> Option<TrafficEvent> {
        self.out.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Time, Infallible)> {
        None
    }
}
