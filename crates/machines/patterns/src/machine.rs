//! One node of the traffic: a sender or a receiver.

use crate::{
    Pattern, TrafficCommand, TrafficConfig, TrafficEvent, TrafficMessage,
    answer::Answering,
    exchange::Exchange,
    farm::{Farm, Request},
    gather::Gathering,
    pinger::Pinger,
    role::{Outbox, Receiver, TrafficRole},
    sender::Sender,
    spread::Spread,
};
use alloc::boxed::Box;
use core::convert::Infallible;
use evb_core::{Machine, NodeId, NodeRange, Span, Time, Transmit};

/// One node of the traffic.
pub struct Traffic {
    role: Box<dyn TrafficRole>,
    out: Outbox,
}

impl Traffic {
    /// The node with this id, which is one of the senders or receivers. `own` is the index of the receiver on the same
    /// host, if there is one.
    ///
    /// The numbers in `config` must fit each other as [`TrafficConfig`] demands.
    pub fn new(config: &TrafficConfig, node: NodeId, own: Option<u16>) -> Self {
        let is_sender = config.senders.contains(node);
        let role: Box<dyn TrafficRole> = match config.pattern {
            _ if !is_sender && !config.receivers.contains(node) => Box::new(Receiver::new(None)),
            Pattern::Gather { .. } => Box::new(Gathering::new(config, node)),
            Pattern::TwoWay => Box::new(Exchange::new(node, partner(config, node), is_sender)),
            Pattern::AllToAll => Box::new(Exchange::new(node, everybody(config), true)),
            Pattern::PingPong if is_sender => Box::new(Pinger::new(partner(config, node), config.window)),
            Pattern::Outfarming if is_sender => Box::new(Spread::new(config.receivers, false)),
            Pattern::Broadcast if is_sender => Box::new(Spread::new(config.receivers, true)),
            Pattern::PullFarm { work } if !is_sender => Box::new(Farm::new(config.senders, work, Request::Each)),
            Pattern::PushFarm { work } if !is_sender => Box::new(Farm::new(config.senders, work, Request::Next)),
            Pattern::Funnel if !is_sender => Box::new(Farm::new(config.senders, Span::ZERO, Request::Next)),
            Pattern::PingPong | Pattern::PullFarm { .. } => Box::new(Answering),
            _ if is_sender => Box::new(Sender::new(config, node, own)),
            _ => Box::new(Receiver::new((config.pattern == Pattern::Stream).then_some(config.senders))),
        };
        Self { role, out: Outbox::default() }
    }

    /// Returns true if a node that was started has done all the messages or cycles that [`TrafficCommand::Start`]
    /// allows, or those that it had begun when it was stopped. A node that only answers is always done.
    pub fn is_done(&self) -> bool {
        self.out.transmits.is_empty() && self.role.is_done()
    }
}

/// The receiver with the same index as a sender, or the reverse.
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
