//! In pull, a builder gathers free slots and requests several events at once.

use evb_core::{EventId, Machine, NodeId, SourceId, Time};
use evb_protocol::*;
use std::num::NonZeroU32;

const READOUT: NodeId = NodeId(1);

fn builder(group: Option<u32>) -> BuilderMachine<()> {
    let request_group = group.and_then(NonZeroU32::new);
    let config = Config { protocol: Protocol::Pull, builder_slots: 8, request_group, ..Config::new(1, 1) };
    let mut builder = BuilderMachine::new(config, 0);
    builder.handle_command(Time::ZERO, BuilderCommand::Start);
    builder
}

fn grant(builder: &mut BuilderMachine<()>, events: core::ops::RangeInclusive<u64>) {
    let events: Vec<_> = events.map(EventId).collect();
    builder.handle_message(Time::ZERO, Config::EVENT_MANAGER, Message::Grant(events.into()));
}

/// The fragment of an event arrives, and the event is stored.
fn complete(builder: &mut BuilderMachine<()>, event: u64) {
    let fragment = Fragment {
        event: EventId(event),
        source: SourceId(0),
        length: 0,
        checksum: 0,
        mark: None,
        counter: None,
        status: FragmentStatus::Good,
        payload: (),
    };
    builder.handle_message(Time::ZERO, READOUT, Message::Fragment(fragment));
    while let Some(event) = builder.poll_event() {
        let BuilderEvent::Built(built) = event else { panic!("{event:?}") };
        builder.handle_command(Time::ZERO, BuilderCommand::Stored(built));
    }
}

/// Slots that the builder reports, and the sizes of its requests to the readout unit.
fn sent(builder: &mut BuilderMachine<()>) -> (Vec<u32>, Vec<usize>) {
    let (mut slots, mut pulls) = (Vec::new(), Vec::new());
    while let Some(transmit) = builder.poll_transmit() {
        match transmit.message {
            Message::Request { slots: free } => slots.push(free),
            Message::Pull(events) => pulls.push(events.len()),
            _ => {}
        }
    }
    (slots, pulls)
}

#[test]
fn fragments_are_requested_in_groups() {
    let mut builder = builder(Some(4));
    assert_eq!(sent(&mut builder), (vec![8], vec![]));
    grant(&mut builder, 1..=6);
    assert_eq!(sent(&mut builder), (vec![], vec![4, 2]));
}

#[test]
fn free_slots_are_reported_when_they_fill_a_group() {
    let mut builder = builder(Some(4));
    sent(&mut builder);
    grant(&mut builder, 1..=8);
    sent(&mut builder);
    for event in 1..=3 {
        complete(&mut builder, event);
        assert_eq!(sent(&mut builder).0, [], "after event {event}");
    }
    complete(&mut builder, 4);
    assert_eq!(sent(&mut builder).0, [4]);
}

#[test]
fn a_builder_without_an_open_event_reports_an_incomplete_group() {
    let mut builder = builder(Some(4));
    sent(&mut builder);
    grant(&mut builder, 1..=2);
    sent(&mut builder);
    complete(&mut builder, 1);
    assert_eq!(sent(&mut builder).0, []);
    complete(&mut builder, 2);
    assert_eq!(sent(&mut builder).0, [2]);
}

#[test]
fn without_groups_all_free_slots_are_reported_at_once() {
    let mut builder = builder(None);
    sent(&mut builder);
    grant(&mut builder, 1..=8);
    assert_eq!(sent(&mut builder), (vec![], vec![8]));
    complete(&mut builder, 1);
    assert_eq!(sent(&mut builder).0, [1]);
}
