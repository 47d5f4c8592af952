//! A readout unit reads no more than its bytes have room for, and in the order in which it is asked.

use evb_core::{ByteCount, EventId, Machine, NodeId, SourceId, Time};
use evb_protocol::*;

const FRAGMENT: u32 = 10;
const BUILDER: NodeId = NodeId(3);

/// The second of two readout units.
fn unit(buffer_bytes: u64) -> ReadoutMachine<()> {
    let config = Config {
        max_fragment: ByteCount(u64::from(FRAGMENT)),
        buffer_events: 64,
        buffer_bytes: ByteCount(buffer_bytes),
        ..Config::new(2, 1)
    };
    let mut unit = ReadoutMachine::new(config, SourceId(1), None);
    unit.handle_command(Time::ZERO, ReadoutCommand::Start { through: EventId(u64::MAX), last: true });
    let list: Vec<_> = (1..=6).map(|event| Assigned { event: EventId(event), builder: BUILDER }).collect();
    unit.handle_message(Time::ZERO, Config::EVENT_MANAGER, Message::Assign(list.into()));
    unit
}

/// The events that are to be read now.
fn asked(unit: &mut ReadoutMachine<()>) -> Vec<u64> {
    let events = std::iter::from_fn(|| unit.poll_event());
    events.filter_map(|event| if let ReadoutEvent::Read { event, .. } = event { Some(event.0) } else { None }).collect()
}

fn deliver(unit: &mut ReadoutMachine<()>, event: u64) {
    let (event, source) = (EventId(event), SourceId(1));
    let status = FragmentStatus::Good;
    let fragment =
        Fragment { event, source, length: FRAGMENT, checksum: 0, mark: None, counter: None, status, payload: () };
    unit.handle_command(Time::ZERO, ReadoutCommand::Fragment(fragment));
}

fn clear(unit: &mut ReadoutMachine<()>, event: u64) {
    unit.handle_message(Time::ZERO, Config::EVENT_MANAGER, Message::Clear([EventId(event)].into()));
}

#[test]
fn assigned_events_are_read_from_the_units_own_position() {
    assert_eq!(asked(&mut unit(60)), [2, 3, 4, 5, 6, 1]);
}

#[test]
fn the_oldest_event_is_read_in_any_case_and_others_when_there_is_room() {
    let mut unit = unit(20);
    assert_eq!(asked(&mut unit), [2, 3], "two have room");
    [2, 3].iter().for_each(|&event| deliver(&mut unit, event));
    assert_eq!(asked(&mut unit), [1], "the oldest needs none");
    deliver(&mut unit, 1);
    assert_eq!(asked(&mut unit), []);
    clear(&mut unit, 1);
    assert_eq!(asked(&mut unit), [], "the buffer is full still");
    clear(&mut unit, 2);
    assert_eq!(asked(&mut unit), [4]);
    // Cleared before it was read, and no room is kept for it.
    clear(&mut unit, 5);
    deliver(&mut unit, 4);
    clear(&mut unit, 3);
    assert_eq!(asked(&mut unit), [6]);
    assert_eq!(unit.counts().most_bytes, 30);
}
