//! Triggers of a driver: they are announced to readout units at once, unless builders leave events waiting.

use evb_core::{EventId, Machine, NodeId, Time, Transmit};
use evb_protocol::*;

const BUILDER: NodeId = NodeId(2);
const SLOTS: u32 = 2;

fn manager() -> ManagerMachine<()> {
    let mut manager = ManagerMachine::new(Config {
        trigger: Trigger::Driven,
        builder_slots: SLOTS,
        first_under_way: None,
        buffer_events: 1000,
        ..Config::new(1, 1)
    });
    manager.handle_command(Time::ZERO, ManagerCommand::Start);
    manager.handle_message(Time::ZERO, BUILDER, Message::Request { slots: SLOTS });
    manager
}

/// The announcements to the readout unit after this many single triggers: the last triggered event of each message.
fn announced(manager: &mut ManagerMachine<()>, triggers: u64) -> Vec<u64> {
    let announced = (0..triggers).flat_map(|_| {
        manager.handle_command(Time::ZERO, ManagerCommand::Trigger { count: 1, at: Time::ZERO });
        drain(manager)
    });
    announced.collect()
}

fn drain(manager: &mut ManagerMachine<()>) -> Vec<u64> {
    let sent = std::iter::from_fn(|| manager.poll_transmit());
    let events = sent.filter_map(|Transmit { message, .. }| match message {
        Message::Readout { through } => Some(through.0),
        _ => None,
    });
    events.collect()
}

#[test]
fn a_message_for_each_trigger_would_only_take_the_time_of_busy_units() {
    let mut manager = manager();
    assert_eq!(announced(&mut manager, 2), [1, 2], "assigned at once");
    assert_eq!(announced(&mut manager, 62), [], "they wait for the builder");
    assert_eq!(announced(&mut manager, 70), [66, 130], "and are worth reading ahead");
    let completions = [Completion { event: EventId(1), ending: Ending::Complete }];
    manager.handle_message(Time::ZERO, BUILDER, Message::Done(completions.into()));
    assert_eq!(drain(&mut manager), [134], "with a message that goes anyway");
}

#[test]
fn the_latency_of_an_event_counts_from_its_trigger_also_if_the_driver_is_late() {
    let mut manager = manager();
    let [came, seen, ended] = [3, 10, 12].map(Time);
    manager.handle_command(seen, ManagerCommand::Trigger { count: 1, at: came });
    drain(&mut manager);
    let completions = [Completion { event: EventId(1), ending: Ending::Complete }];
    manager.handle_message(ended, BUILDER, Message::Done(completions.into()));
    let Some(ManagerEvent::Completed { latency, .. }) = manager.poll_event() else { panic!("it has not ended") };
    assert_eq!(latency, ended.since(came));
}

/// A run ends by its number of events, also if front ends go on.
#[test]
fn a_number_of_events_ends_a_run_of_live_data() {
    let config = Config { trigger: Trigger::Data, events: Some(2), first_under_way: None, ..Config::new(1, 1) };
    let mut manager = ManagerMachine::<()>::new(config);
    manager.handle_command(Time::ZERO, ManagerCommand::Start);
    manager.handle_message(Time::ZERO, BUILDER, Message::Request { slots: 9 });
    let (through, claim, last) = (EventId(5), EventId(5), false);
    manager.handle_message(Time::ZERO, NodeId(1), Message::Available { through, claim, last });
    drain(&mut manager);
    let completion = |event| Completion { event: EventId(event), ending: Ending::Complete };
    manager.handle_message(Time::ZERO, BUILDER, Message::Done([1, 2].map(completion).into()));
    drain(&mut manager);
    assert_eq!(manager.counts().triggered, 2);
    assert!(std::iter::from_fn(|| manager.poll_event()).any(|event| event == ManagerEvent::Drained));
}
