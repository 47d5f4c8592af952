//! Machines without a network.

#![allow(dead_code, reason = "each test file uses its part")]

use evb_core::{Machine, NodeId, NodeRange, Time};
use evb_patterns::{Pattern, Traffic, TrafficCommand, TrafficConfig, TrafficMessage};

/// Nodes 1 to `senders` send, the next `receivers` receive; two messages under way.
pub(crate) fn config(pattern: Pattern, senders: u16, receivers: u16) -> TrafficConfig {
    TrafficConfig {
        senders: NodeRange { first: NodeId(1), count: senders },
        receivers: NodeRange { first: NodeId(1 + senders), count: receivers },
        pattern,
        window: 2,
        seed: 7,
    }
}

pub(crate) fn receiver(config: &TrafficConfig, index: u16) -> NodeId {
    NodeId(config.receivers.first.0 + index)
}

/// The machine of a sender; `own` is the receiver on its host.
pub(crate) fn sender(config: &TrafficConfig, index: u16, own: Option<u16>) -> Traffic {
    Traffic::new(config, NodeId(config.senders.first.0 + index), own)
}

pub(crate) fn saturate(messages: Option<u64>) -> TrafficCommand {
    TrafficCommand::Start { saturating: true, messages }
}

/// The next message, and the index of the receiver that it is for.
pub(crate) fn send(config: &TrafficConfig, machine: &mut Traffic) -> Option<(u16, TrafficMessage)> {
    let transmit = machine.poll_transmit()?;
    assert_eq!(transmit.to.count, 1);
    Some((transmit.to.first.0 - config.receivers.first.0, transmit.message))
}

/// The receivers of the first messages of a saturating sender, each of which leaves the host at once.
pub(crate) fn destinations(config: &TrafficConfig, index: u16, own: Option<u16>, messages: usize) -> Vec<u16> {
    let mut machine = sender(config, index, own);
    machine.handle_command(Time(0), saturate(Some(messages as u64)));
    let next = || {
        let (to, _) = send(config, &mut machine)?;
        machine.handle_command(Time(0), TrafficCommand::Sent);
        Some(to)
    };
    std::iter::from_fn(next).collect()
}
