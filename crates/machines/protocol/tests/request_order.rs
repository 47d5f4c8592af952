//! Under pull, each builder requests fragments from the readout units in its own order, and limits its open requests.

use evb_core::{EventId, Machine, NodeId, SourceId, Span, Time};
use evb_protocol::*;
use std::num::NonZeroU32;

const UNITS: u16 = 4;

/// One builder, and what it has sent to readout units.
struct Bench {
    builder: BuilderMachine<()>,
    now: Time,
}

impl Bench {
    fn new(index: u16, window: Option<u32>, change: impl Fn(&mut Config)) -> Self {
        let request_window = window.and_then(NonZeroU32::new);
        let mut config =
            Config { protocol: Protocol::Pull, builder_slots: 8, request_window, ..Config::new(UNITS, UNITS) };
        change(&mut config);
        let mut builder = BuilderMachine::new(config, index);
        builder.handle_command(Time::ZERO, BuilderCommand::Start);
        Self { builder, now: Time::ZERO }
    }

    fn grant(&mut self, events: core::ops::RangeInclusive<u64>) {
        let events: Vec<_> = events.map(EventId).collect();
        self.builder.handle_message(self.now, Config::EVENT_MANAGER, Message::Grant(events.into()));
    }

    fn fragment(&self, unit: u16, event: u64, status: FragmentStatus) -> Fragment<()> {
        let (event, source) = (EventId(event), SourceId(unit));
        Fragment { event, source, length: 0, checksum: 0, mark: None, counter: None, status, payload: () }
    }

    /// A fragment arrives. Events that are complete are stored.
    fn send(&mut self, unit: u16, event: u64, status: FragmentStatus) {
        let fragment = self.fragment(unit, event, status);
        self.builder.handle_message(self.now, NodeId(1 + unit), Message::Fragment(fragment));
        while let Some(event) = self.builder.poll_event() {
            let BuilderEvent::Built(built) = event else { panic!("{event:?}") };
            self.builder.handle_command(self.now, BuilderCommand::Stored(built));
        }
    }

    fn pass(&mut self, span: Span) {
        self.now = self.now + span;
        self.builder.handle_timeout(self.now);
    }

    /// The requests since the last call, each with the units that it goes to and the events.
    fn requests(&mut self) -> Vec<(Vec<u16>, Vec<u64>)> {
        let mut requests = Vec::new();
        while let Some(transmit) = self.builder.poll_transmit() {
            if let Message::Pull(events) = transmit.message {
                let units = transmit.to.iter().map(|node| node.0 - 1).collect();
                requests.push((units, events.iter().map(|event| event.0).collect()));
            }
        }
        requests
    }

    /// The units and events of the requests since the last call, if each goes to one unit for one event.
    fn single(&mut self) -> Vec<(u16, u64)> {
        let single = |(units, events): (Vec<u16>, Vec<u64>)| {
            assert_eq!((units.len(), events.len()), (1, 1));
            (units[0], events[0])
        };
        self.requests().into_iter().map(single).collect()
    }
}

fn one_event_at_a_time(config: &mut Config) {
    config.request_group = NonZeroU32::new(1);
}

#[test]
fn each_builder_begins_with_its_own_unit_and_goes_round() {
    let units = |builder, change: fn(&mut Config)| {
        let mut bench = Bench::new(builder, None, change);
        bench.grant(1..=2);
        bench.requests()
    };
    let both = vec![1, 2];
    let rotated = |order: [u16; 4]| order.map(|unit| (vec![unit], both.clone())).to_vec();
    assert_eq!(units(0, |_| {}), rotated([0, 1, 2, 3]));
    assert_eq!(units(3, |_| {}), rotated([3, 0, 1, 2]));
    assert_eq!(units(6, |_| {}), rotated([2, 3, 0, 1]));
    let same = |config: &mut Config| config.request_order = RequestOrder::Same;
    assert_eq!(units(3, same), [(vec![0, 1, 2, 3], both.clone())]);
}

#[test]
fn the_phases_of_an_event_have_the_same_order() {
    let first = |first| move |config: &mut Config| config.protocol = Protocol::Phased { first, rest: true };
    let mut bench = Bench::new(1, None, first(FirstPhase::Units(2)));
    bench.grant(1..=1);
    assert_eq!(bench.single(), [(1, 1), (0, 1)]);
    [0, 1].into_iter().for_each(|unit| {
        let fragment = bench.fragment(unit, 1, FragmentStatus::Good);
        bench.builder.handle_message(bench.now, NodeId(1 + unit), Message::Fragment(fragment));
    });
    bench.builder.handle_command(bench.now, BuilderCommand::Decided { event: EventId(1), accepted: true });
    assert_eq!(bench.single(), [(3, 1), (2, 1)]);
    let mut bench = Bench::new(1, None, first(FirstPhase::Region { least: 3, most: 3, seed: 1 }));
    bench.grant(1..=1);
    let region: Vec<_> = bench.single().into_iter().map(|(unit, _)| unit).collect();
    assert!(region[0] < region[1] && region[2] < region[0], "{region:?}");
}

#[test]
fn requests_wait_for_answers_and_keep_the_order_of_the_events() {
    let mut bench = Bench::new(1, Some(3), one_event_at_a_time);
    bench.grant(1..=2);
    assert_eq!(bench.single(), [(1, 1), (2, 1), (3, 1)]);
    bench.send(3, 1, FragmentStatus::Good);
    assert_eq!(bench.single(), [(0, 1)]);
    // The unit has none: that is an answer, too.
    bench.send(1, 1, FragmentStatus::Missing);
    assert_eq!(bench.single(), [(1, 2)]);
    // A second copy frees no second place.
    bench.send(1, 1, FragmentStatus::Good);
    assert_eq!(bench.single(), []);
    bench.send(0, 1, FragmentStatus::Good);
    bench.send(2, 1, FragmentStatus::Corrupted);
    assert_eq!(bench.single(), [(2, 2), (3, 2)]);
}

#[test]
fn a_request_for_a_group_holds_one_place_until_its_last_fragment() {
    let mut bench = Bench::new(0, Some(1), |config| config.request_group = NonZeroU32::new(2));
    bench.grant(1..=4);
    assert_eq!(bench.requests(), [(vec![0], vec![1, 2])]);
    bench.send(0, 1, FragmentStatus::Good);
    assert_eq!(bench.requests(), []);
    bench.send(0, 2, FragmentStatus::Good);
    assert_eq!(bench.requests(), [(vec![1], vec![1, 2])]);
}

#[test]
fn a_damaged_copy_frees_its_place() {
    let mut bench = Bench::new(0, Some(1), one_event_at_a_time);
    bench.grant(1..=1);
    assert_eq!(bench.single(), [(0, 1)]);
    let (from, fragment) = (NodeId(1), bench.fragment(0, 1, FragmentStatus::Good));
    bench.builder.handle_command(bench.now, BuilderCommand::Damaged { from, fragment });
    assert_eq!(bench.single(), [(1, 1)]);
}

#[test]
fn a_dead_unit_holds_no_place_and_is_not_asked() {
    let mut bench = Bench::new(0, Some(1), one_event_at_a_time);
    bench.grant(1..=2);
    assert_eq!(bench.single(), [(0, 1)]);
    for unit in [0, 1] {
        let death = Message::Unit { node: NodeId(1 + unit), alive: false };
        bench.builder.handle_message(bench.now, Config::EVENT_MANAGER, death);
    }
    assert_eq!(bench.single(), [(2, 1)]);
    bench.send(2, 1, FragmentStatus::Good);
    bench.send(3, 1, FragmentStatus::Good);
    assert_eq!(bench.single(), [(2, 2)]);
}

#[test]
fn an_overdue_request_leaves_its_place_to_the_next() {
    let mut bench = Bench::new(0, Some(1), one_event_at_a_time);
    let patience = Config::new(1, 1).patience;
    bench.grant(1..=1);
    assert_eq!(bench.single(), [(0, 1)]);
    bench.pass(Span(patience.0 - 1));
    assert_eq!((bench.single(), bench.builder.counts().asked), (vec![], 0));
    bench.pass(Span(1));
    // The silent unit alone is asked again: the others were not asked at all.
    assert_eq!((bench.single(), bench.builder.counts().asked), (vec![(1, 1)], 1));
    // The patience of the second request counts from itself.
    bench.pass(Span(patience.0 - 1));
    assert_eq!(bench.single(), []);
    bench.pass(Span(1));
    assert_eq!(bench.single(), [(2, 1)]);
}

#[test]
fn an_event_that_ends_takes_its_requests_along() {
    let limit = Span::from_millis(10);
    let mut bench = Bench::new(0, Some(1), |config| {
        one_event_at_a_time(config);
        config.deadline = Some(limit);
    });
    bench.grant(1..=1);
    assert_eq!(bench.single(), [(0, 1)]);
    bench.pass(Span(limit.0 / 2));
    bench.send(0, 1, FragmentStatus::Good);
    bench.grant(2..=2);
    assert_eq!(bench.single(), [(1, 1)]);
    bench.pass(Span(limit.0 / 2));
    assert_eq!(bench.single(), [(0, 2)]);
}
