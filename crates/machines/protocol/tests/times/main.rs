//! Boards whose counters say nothing are matched by their clocks: no event ever holds fragments of two triggers, and every
//! fragment is accounted for.

mod world;

use evb_core::{NodeId, Span, Stream, stream};
use evb_protocol::*;
use rand_xoshiro::rand_core::Rng;
use std::env;
use world::*;

fn drawn(count: usize, random: &mut Stream) -> Vec<Board> {
    (0..count).map(|_| Board::drawn(random)).collect()
}

fn random(seed: u64) -> Stream {
    stream(seed, NodeId(99), 4)
}

/// Part of the fragments of another source that belong to an event: the trigger source has lost its part.
const SHARE: f64 = 0.93;

#[test]
fn boards_with_different_clocks_are_matched() {
    let mut random = random(1);
    let (boards, triggers) = (drawn(4, &mut random), triggers(&mut random, 2000.0, 10 * SECOND));
    let result = World::new(&config(&boards, BY_TRIGGER, 4096), &boards, &triggers, 1).run(MS);
    result.check(&boards);
    for unit in 0..4 {
        result.check_account(unit);
        assert!(result.placed(unit) > SHARE, "{} {:?}", result.placed(unit), result.clocks[unit]);
        let ReadoutCounts { came, skipped, identity, .. } = result.readouts[unit];
        let (first, last) = identity.counters.expect("a counter");
        assert_eq!(came + skipped, last - first + 1, "its counter tells what it has lost");
        assert!(skipped > 0);
    }
    assert_eq!(result.placed(0), 1.0, "every hit of the trigger source is an event");
    // A turn has a message to the event manager and one from it for each unit, and a few fragments.
    assert!(result.messages < 4 * 2 * 10_100 + 1000, "{} messages", result.messages);
}

#[test]
fn a_narrow_clock_that_wraps_often_is_unwrapped_through_pauses() {
    let mut random = random(2);
    let mut boards = drawn(3, &mut random);
    // A clock of 24 bits wraps every 134 ms.
    boards.iter_mut().for_each(|board| board.bits = 24);
    let mut triggers = triggers(&mut random, 500.0, 6 * SECOND);
    triggers.iter_mut().for_each(|at| *at += *at / SECOND * SECOND);
    let result = World::new(&config(&boards, BY_TRIGGER, 4096), &boards, &triggers, 2).run(MS);
    result.check(&boards);
    for unit in 1..3 {
        result.check_account(unit);
        assert_eq!((result.clocks[unit].counts.found, result.clocks[unit].counts.lost), (1, 0));
        assert!(result.placed(unit) > SHARE, "{} {:?}", result.placed(unit), result.clocks[unit]);
    }
}

#[test]
fn a_board_that_dies_holds_up_nothing() {
    for unit in 1..3 {
        let mut random = random(3);
        let mut boards = drawn(3, &mut random);
        boards[unit].dies = Some(2 * SECOND);
        let triggers = triggers(&mut random, 1000.0, 5 * SECOND);
        let result = World::new(&config(&boards, BY_TRIGGER, 4096), &boards, &triggers, 3).run(MS);
        result.check(&boards);
        let other = 3 - unit;
        result.check_account(other);
        assert!(result.placed(other) > SHARE && result.placed(unit) > 0.3, "{}", result.placed(other));
    }
}

#[test]
fn without_the_trigger_source_there_are_no_events() {
    let mut random = random(4);
    let mut boards = drawn(3, &mut random);
    boards[0].dies = Some(2 * SECOND);
    let triggers = triggers(&mut random, 1000.0, 4 * SECOND);
    let result = World::new(&config(&boards, BY_TRIGGER, 4096), &boards, &triggers, 4).run(MS);
    result.check(&boards);
    (1..3).for_each(|unit| result.check_account(unit));
    assert!(result.apart[1][&Fault::OutOfWindow] > 1000);
}

#[test]
fn a_regular_pulser_is_set_apart() {
    let mut random = random(5);
    let boards = drawn(3, &mut random);
    let triggers: Vec<_> = (1..8000).map(|pulse| pulse * MS).collect();
    let result = World::new(&config(&boards, BY_TRIGGER, 4096), &boards, &triggers, 5).run(MS);
    result.check(&boards);
    for unit in 1..3 {
        assert_eq!(result.apart[unit][&Fault::OutOfStep], result.sent[unit]);
        assert_eq!(result.clocks[unit].synchrony, Synchrony::Regular);
    }
}

#[test]
fn sources_without_a_trigger_make_events_together() {
    let mut random = random(6);
    let boards = drawn(4, &mut random);
    let triggers = triggers(&mut random, 1000.0, 5 * SECOND);
    let rule = Rule::Several { sources: 2, window: Span(200_000) };
    let result = World::new(&config(&boards, rule, 4096), &boards, &triggers, 6).run(MS);
    result.check(&boards);
    for unit in 0..4 {
        result.check_account(unit);
        assert!(result.placed(unit) > SHARE, "{} {:?}", result.placed(unit), result.clocks[unit]);
    }
}

#[test]
fn disorder_within_the_sort_depth_does_no_harm() {
    let mut random = random(7);
    let mut boards = drawn(3, &mut random);
    boards.iter_mut().for_each(|board| board.spread = 30 * MS);
    let triggers = triggers(&mut random, 1000.0, 5 * SECOND);
    let result = World::new(&config(&boards, BY_TRIGGER, 4096), &boards, &triggers, 7).run(MS);
    result.check(&boards);
    for unit in 0..3 {
        result.check_account(unit);
        assert_eq!(result.apart[unit].get(&Fault::Late), None, "{:?}", result.clocks[unit]);
        let (lost, counts) = (triggers.len() as u64 - result.sent[unit], result.readouts[unit]);
        // What was lost before the first fragment and after the last is not seen.
        assert!(counts.skipped.abs_diff(lost) <= 5, "{} of {lost}", counts.skipped);
        assert!(result.placed(unit) > SHARE);
    }
}

#[test]
fn a_fragment_without_a_time_is_set_apart() {
    let mut random = random(8);
    let boards = drawn(1, &mut random);
    let mut unit = ReadoutMachine::new(
        config(&boards, BY_TRIGGER, 16),
        evb_core::SourceId(0),
        Some(evb_core::EventCounter::new(32)),
    );
    use evb_core::{Machine, Time};
    let ReadoutCommand::Arrived(arrival) = arrival(Time::ZERO, 0, 7) else { unreachable!("a fragment") };
    unit.handle_command(Time::ZERO, ReadoutCommand::Arrived(Arrival { clock: None, ..arrival }));
    let apart = unit.poll_event();
    assert!(matches!(apart, Some(ReadoutEvent::Apart { reason: Fault::OutOfStep, .. })), "{apart:?}");
}

#[test]
fn times_are_reported_once_the_run_has_begun() {
    use evb_core::{EventCounter, EventId, Machine, SourceId, Time};
    let boards = drawn(1, &mut random(10));
    let mut unit: ReadoutMachine<u64> =
        ReadoutMachine::new(config(&boards, BY_TRIGGER, 16), SourceId(0), Some(EventCounter::new(32)));
    let mut reported = |command| {
        unit.handle_command(Time::ZERO, command);
        std::iter::from_fn(|| unit.poll_transmit())
            .filter_map(|transmit| match transmit.message {
                Message::Times(times) => Some(times.ticks.len()),
                _ => None,
            })
            .collect::<Vec<_>>()
    };
    // The event manager may not be there yet.
    assert_eq!(reported(arrival(Time::ZERO, 1000, 7)), []);
    assert_eq!(reported(ReadoutCommand::Start { through: EventId(0), last: false }), [1]);
    assert_eq!(reported(arrival(Time::ZERO, 2000, 8)), [1]);
}

#[test]
fn an_answer_for_what_never_came_is_ignored() {
    use evb_core::{EventCounter, EventId, Machine, SourceId, Time};
    let boards = drawn(1, &mut random(9));
    let mut unit: ReadoutMachine<u64> =
        ReadoutMachine::new(config(&boards, BY_TRIGGER, 16), SourceId(0), Some(EventCounter::new(32)));
    for serial in [0, 1, 2, u64::MAX] {
        let outcome = Outcome::Event(EventId(serial));
        let message = Message::Matched { through: EventId(3), outcomes: [Settled { serial, outcome }].into() };
        unit.handle_message(Time::ZERO, NodeId(0), message);
    }
    assert_eq!(unit.counts().fragments, 0);
}

/// The cases of a test that draws them: `EVB_CASES` of them from `EVB_FIRST` on.
fn seeds(first: u64, cases: u64) -> std::ops::Range<u64> {
    let set = |name| env::var(name).ok().and_then(|value| value.parse().ok());
    let first = set("EVB_FIRST").unwrap_or(first);
    first..first + set("EVB_CASES").unwrap_or(cases)
}

/// Any boards, rule, size of a buffer and rate.
fn any_case(random: &mut Stream) -> (Vec<Board>, Rule, u32, f64) {
    let count = 2 + random.next_u64() as usize % 4;
    let mut boards = drawn(count, random);
    for board in &mut boards {
        let mut one_in = |n: u64| random.next_u64().is_multiple_of(n);
        board.spread = if one_in(3) { 5 * MS } else { 0 };
        board.dies = one_in(6).then_some(SECOND);
        board.delay *= if one_in(4) { 10 } else { 1 };
    }
    let several = Rule::Several { sources: 2, window: Span(200_000) };
    let rule = if random.next_u64().is_multiple_of(3) { several } else { BY_TRIGGER };
    let buffer = [32, 256, 4096][random.next_u64() as usize % 3];
    (boards, rule, buffer, [300.0, 3000.0][random.next_u64() as usize % 2])
}

#[test]
fn whatever_comes_nothing_is_placed_wrongly_and_all_is_accounted_for() {
    for seed in seeds(100, 40) {
        let mut random = random(seed);
        let (boards, rule, buffer, rate) = any_case(&mut random);
        let triggers = triggers(&mut random, rate, 3 * SECOND);
        let about = (rule, buffer, rate, &boards);
        let result = World::new(&config(&boards, rule, buffer), &boards, &triggers, seed).run(MS);
        result.check(&about);
        for unit in (0..boards.len()).filter(|unit| boards[*unit].dies.is_none()) {
            result.check_account(unit);
            // A smaller buffer may be full before the places of the clocks are known: it does not hold the slowest delivery.
            let is_whole = buffer == 4096 && boards.iter().all(|board| board.dies.is_none());
            assert!(!is_whole || result.placed(unit) > 0.9, "unit {unit}: {} of {about:#?}", result.placed(unit));
        }
    }
}

/// The same through delays and losses of messages, the death of a builder, and nodes that do nothing for a time.
#[test]
fn whatever_happens_on_the_way_nothing_is_placed_wrongly() {
    for seed in seeds(700, 30) {
        let mut random = random(seed);
        let (boards, rule, buffer, rate) = any_case(&mut random);
        let triggers = triggers(&mut random, rate, 2 * SECOND);
        let mut one_in = |n: u64| random.next_u64().is_multiple_of(n);
        let trouble = Trouble {
            delay: if one_in(2) { 20 * MS } else { 3 * MS },
            lose_one_in: if one_in(2) { 50 } else { 0 },
            builder_dies: one_in(3).then_some(SECOND),
            away: one_in(3).then_some((boards.len() - 1, SECOND / 2, SECOND)),
        };
        let about = (rule, buffer, rate, &boards, &trouble);
        let world = World::new(&config(&boards, rule, buffer), &boards, &triggers, seed).with(&trouble);
        let result = world.run(MS);
        result.check(&about);
        for unit in (0..boards.len()).filter(|unit| boards[*unit].dies.is_none()) {
            result.check_account(unit);
        }
    }
}
