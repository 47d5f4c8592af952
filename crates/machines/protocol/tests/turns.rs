//! In push, builders follow each other in turn in the lists of assignments, and whose turn it is is waited for.

use evb_core::{EventId, Machine, NodeId, Span, Time, Transmit};
use evb_protocol::*;

const BUILDERS: [NodeId; 2] = [NodeId(2), NodeId(3)];
const TIMEOUT: Span = Span::from_micros(50);

fn manager() -> ManagerMachine<()> {
    let mut manager = ManagerMachine::new(Config {
        group_timeout: TIMEOUT,
        builder_slots: 4,
        first_under_way: None,
        buffer_events: 64,
        ..Config::new(1, 2)
    });
    manager.handle_command(Time::ZERO, ManagerCommand::Start);
    manager
}

/// The assignments that the readout units get, event by event.
fn assigned(manager: &mut ManagerMachine<()>) -> Vec<(u64, NodeId)> {
    let sent = std::iter::from_fn(|| manager.poll_transmit());
    let lists = sent.filter_map(|Transmit { message, .. }| match message {
        Message::Assign(list) => Some(list.to_vec()),
        _ => None,
    });
    lists.flatten().map(|Assigned { event: EventId(event), builder }| (event, builder)).collect()
}

#[test]
fn the_first_to_ask_waits_for_the_others() {
    let mut manager = manager();
    manager.handle_message(Time::ZERO, BUILDERS[1], Message::Request { slots: 4 });
    assert_eq!(assigned(&mut manager), []);
    manager.handle_message(Time::ZERO, BUILDERS[0], Message::Request { slots: 2 });
    let [first, second] = BUILDERS;
    assert_eq!(assigned(&mut manager), [(1, first), (2, second), (3, first), (4, second)]);
}

#[test]
fn a_builder_that_does_not_ask_is_left_out_in_the_end() {
    let mut manager = manager();
    manager.handle_message(Time::ZERO, BUILDERS[1], Message::Request { slots: 2 });
    assert_eq!(assigned(&mut manager), []);
    let (deadline, _) = manager.poll_timeout().expect("it waits no longer than for a group");
    assert_eq!(deadline, Time::ZERO + TIMEOUT);
    manager.handle_timeout(deadline);
    assert_eq!(assigned(&mut manager), [(1, BUILDERS[1]), (2, BUILDERS[1])]);
    assert_eq!(manager.poll_timeout(), None);
}

#[test]
fn a_dead_builder_is_not_waited_for() {
    let mut manager = manager();
    manager.handle_command(Time::ZERO, ManagerCommand::Lost(BUILDERS[0]));
    manager.handle_message(Time::ZERO, BUILDERS[1], Message::Request { slots: 1 });
    assert_eq!(assigned(&mut manager), [(1, BUILDERS[1])]);
}

#[test]
fn events_of_the_last_builder_are_not_reassigned() {
    let mut manager = manager();
    let lose = |manager: &mut ManagerMachine<()>, builder| {
        manager.handle_command(Time::ZERO, ManagerCommand::Lost(builder));
        std::iter::from_fn(|| manager.poll_event()).collect::<Vec<_>>()
    };
    BUILDERS.iter().for_each(|&builder| manager.handle_message(Time::ZERO, builder, Message::Request { slots: 2 }));
    assert_eq!(assigned(&mut manager).len(), 4);
    let reassigned = [1, 3].map(|event| ManagerEvent::Reassigned(EventId(event)));
    assert_eq!(lose(&mut manager, BUILDERS[0]), reassigned);
    assert_eq!(lose(&mut manager, BUILDERS[1]), [ManagerEvent::NoBuilders]);
    assert_eq!(manager.counts().reassigned, 2);
}
