//! The three machines and run control together in virtual time. Random delays, harm and deaths are checked against a
//! model that gives the ending of each triggered event. Schedules of faults and commands are checked against the
//! promises of an event builder.

mod driver;
mod faults;
mod network;
mod outcome;
mod planted;
mod promises;
mod scenario;
mod schedule;

use driver::Driver;
use evb_core::{ByteCount, EventId, NodeId, Span, Stream, Time};
use evb_protocol::*;
use outcome::{History, Outcome};
use scenario::{FRAGMENT, Harm, Scenario, TRIGGERS};
use schedule::{Draw, Fault as Trouble, random};
use std::collections::BTreeSet;

fn base_config() -> Config {
    Config {
        events: Some(200),
        group_timeout: Span::from_micros(50),
        builder_slots: 8,
        first_under_way: None,
        patience: Span::from_micros(400),
        buffer_events: 64,
        buffer_bytes: ByteCount(1 << 20),
        ..Config::new(4, 3)
    }
}

/// Time at which a stop ends a run with driven triggers, after all of them have come: they may all be turned away, and
/// then the wanted number is never reached.
fn end_of_triggers(config: &Config, period: Span, delay: Span) -> Option<Span> {
    config.trigger.is_driven().then_some(Span(TRIGGERS * period.0 + 2 * delay.0))
}

fn scenario(seed: u64, config: Config) -> Scenario {
    let (trigger_period, delay) = (Span::from_micros(5), Span::from_micros(20));
    Scenario {
        stop_at: end_of_triggers(&config, trigger_period, delay),
        seed,
        config,
        harm_one_in: 0,
        filter: Filter { seed, accept: [0.2, 0.5, 0.0, 1.0][(seed % 4) as usize] },
        runs: vec![vec![]],
        faults: vec![],
        delay,
        trigger_period,
        bug: None,
    }
}

/// A node that dies within the first 400 microseconds.
fn death(random: &mut Stream, node: NodeId) -> (Time, Trouble) {
    (Draw(random).time(Span::from_micros(400)), Trouble::Crash { node, back_after: None })
}

/// Number of random histories that each test tries; `EVB_HISTORIES` sets another one.
fn histories() -> u64 {
    std::env::var("EVB_HISTORIES").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

/// Runs one history, and names it when it fails.
fn play(scenario: &Scenario) -> History {
    let history = std::panic::catch_unwind(|| Driver::new(scenario.clone()).run());
    history.unwrap_or_else(|_| panic!("seed {} fails: {scenario:#?}", scenario.seed))
}

/// Runs one history of one run.
fn run(scenario: &Scenario) -> Outcome {
    let [outcome] = <[_; 1]>::try_from(play(scenario).runs).expect("one run");
    outcome
}

/// Runs one history of one run, in which all promises must hold.
fn keep(scenario: &Scenario) -> Outcome {
    let mut history = play(scenario);
    if let Some(why) = promises::broken(scenario, &history) {
        panic!("seed {}: {why}: {scenario:#?} {history:#?}", scenario.seed);
    }
    history.runs.pop().expect("one run")
}

fn check_all_built(scenario: &Scenario, outcome: &Outcome) {
    let (counts, wanted) = (&outcome.manager, scenario.config.events.unwrap_or(u64::MAX));
    assert!(counts.triggered == wanted || scenario.config.trigger.is_driven(), "{scenario:#?} {outcome:#?}");
    assert!(counts.built + counts.rejected == counts.triggered && counts.triggered > 0, "{scenario:#?} {outcome:#?}");
    for (event, ends) in &outcome.ended {
        assert_eq!(ends[0].0, expected(scenario, *event).0, "event {event}: {scenario:#?}");
        assert_eq!(outcome.stored.contains_key(event), ends[0].0 == Ending::Complete, "event {event}: {scenario:#?}");
    }
}

#[test]
fn without_faults_every_event_is_built_once() {
    for seed in 0..histories() {
        let config = Draw(&mut random(seed, 2)).config(base_config());
        let scenario = scenario(seed, config);
        let outcome = keep(&scenario);
        check_all_built(&scenario, &outcome);
        assert_eq!(outcome.faults, FaultCounts::default(), "{scenario:#?}");
        let moved = |event| expected(&scenario, EventId(event)).1.len() as u64;
        assert_eq!(outcome.fragments, (1..=outcome.manager.triggered).map(moved).sum::<u64>(), "{scenario:#?}");
    }
}

/// The model, without deaths: how an event must end, and which sources are asked for it.
fn expected(scenario: &Scenario, event: EventId) -> (Ending, BTreeSet<u16>) {
    let is_whole = |sources: &BTreeSet<u16>| !sources.iter().any(|&source| scenario.spoils(event, source));
    let first = scenario.first_phase(event);
    if scenario.has_rest() && !scenario.filter.accepts(event, is_whole(&first)) {
        return (Ending::Rejected, first);
    }
    let asked = scenario.asked(event);
    (if is_whole(&asked) { Ending::Complete } else { Ending::Incomplete }, asked)
}

/// Fragments that are lost, late or renumbered on their way cost time and no event. A fragment that is bad at its
/// source spoils its own event and no other.
#[test]
fn damaged_fragments_spoil_only_their_own_event() {
    for seed in 0..histories() {
        let mut random = random(seed, 3);
        let mut draw = Draw(&mut random);
        let harm_one_in = draw.pick(&[3, 20, 100]);
        let scenario = Scenario { harm_one_in, ..scenario(seed, draw.config(base_config())) };
        let outcome = keep(&scenario);
        for event in (1..=outcome.manager.triggered).map(EventId) {
            let (ending, asked) = expected(&scenario, event);
            assert_eq!(outcome.ended[&event][0].0, ending, "event {event}: {scenario:#?}");
            if ending == Ending::Rejected {
                assert!(!outcome.stored.contains_key(&event), "event {event} is rejected and stored: {scenario:#?}");
                continue;
            }
            let expected: Vec<_> = asked.into_iter().filter(|&source| !scenario.spoils(event, source)).collect();
            let [stored] = &outcome.stored[&event][..] else { panic!("event {event} stored twice: {scenario:#?}") };
            assert!(stored.good.iter().eq(&expected), "event {event}: {stored:?} for {expected:?}: {scenario:#?}");
        }
        check_fault_kinds(&scenario, &outcome);
    }
}

fn check_fault_kinds(scenario: &Scenario, outcome: &Outcome) {
    let mut expected = FaultCounts::default();
    for event in (1..=outcome.manager.triggered).map(EventId) {
        for source in crate::expected(scenario, event).1 {
            match scenario.harm(event, source) {
                Some(Harm::Destroyed) => expected.count(Fault::Missing),
                Some(Harm::Corrupt) => expected.count(Fault::Corrupted),
                Some(Harm::Duplicate) => expected.count(Fault::Duplicate),
                Some(Harm::Stray) => expected.count(Fault::Unexpected),
                None | Some(Harm::Lose | Harm::Late) => {}
            }
        }
    }
    // Strays take the place of fragments that overtake their grants, which are asked for again. And a fragment that was
    // asked for may come twice.
    let seen = outcome.faults;
    assert!(seen.get(Fault::Unexpected) >= expected.get(Fault::Unexpected), "{scenario:#?} {outcome:#?}");
    for fault in [Fault::Missing, Fault::Corrupted, Fault::Late, Fault::Cut] {
        assert_eq!(seen.get(fault), expected.get(fault), "{fault}: {scenario:#?} {outcome:#?}");
    }
    assert!(seen.get(Fault::Duplicate) <= expected.get(Fault::Duplicate), "{scenario:#?} {outcome:#?}");
}

/// One of several builders that dies.
fn death_of_a_builder(draw: &mut Stream, config: &mut Config) -> (Time, Trouble) {
    config.builder_units = config.builder_units.max(2);
    config.group = config.group.max(u32::from(config.builder_units));
    let victim = Draw(draw).node(config.builder_nodes());
    death(draw, victim)
}

#[test]
fn a_dead_builder_costs_no_event() {
    for seed in 0..histories() {
        let mut random = random(seed, 4);
        let mut config = Draw(&mut random).config(base_config());
        config.assignment = rebuilt(config.assignment);
        let faults = vec![death_of_a_builder(&mut random, &mut config)];
        let scenario = Scenario { faults, ..scenario(seed, config) };
        check_all_built(&scenario, &keep(&scenario));
    }
}

/// An assignment by which the events of a dead builder go to another one.
fn rebuilt(assignment: Assignment) -> Assignment {
    if assignment == Assignment::ByNumber { Assignment::RoundRobin } else { assignment }
}

/// Where its number decides about the builder of an event, exactly the events of a dead builder are not built.
#[test]
fn a_dead_builder_costs_the_events_of_its_numbers_alone() {
    let mut lost = 0;
    for seed in 0..histories() {
        let mut random = random(seed, 12);
        let mut config = Draw(&mut random).config(base_config());
        config.assignment = Assignment::ByNumber;
        let faults = vec![death_of_a_builder(&mut random, &mut config)];
        let Trouble::Crash { node: victim, .. } = faults[0].1 else { unreachable!("a death") };
        let scenario = Scenario { faults, ..scenario(seed, config) };
        let outcome = keep(&scenario);
        for (event, ends) in &outcome.ended {
            let ((ending, builder, _), owner) = (ends[0], scenario.owner(*event));
            assert_eq!(builder, owner, "event {event}: {scenario:#?}");
            let as_expected = ending == expected(&scenario, *event).0;
            assert!(as_expected || owner == victim, "event {event}: {scenario:#?}");
            lost += u64::from(!as_expected);
        }
    }
    assert!(lost > 0, "no event was lost: the test shows nothing");
}

#[test]
fn a_dead_readout_unit_is_missing_and_nothing_else_is() {
    for seed in 0..histories() {
        let mut random = random(seed, 5);
        let mut config = Draw(&mut random).config(base_config());
        config.readout_units = config.readout_units.max(2);
        let victim = Draw(&mut random).node(config.readout_nodes());
        let scenario = Scenario { faults: vec![death(&mut random, victim)], ..scenario(seed, config) };
        let outcome = keep(&scenario);
        for (event, stored) in &outcome.stored {
            let mut living = scenario.asked(*event).into_iter().filter(|&source| source != victim.0 - 1);
            let whole = living.all(|source| stored.iter().all(|stored| stored.good.contains(&source)));
            assert!(whole, "event {event} lacks a source that lives: {scenario:#?}");
        }
    }
}

/// A data link that is cut for good, while run control still hears the node.
fn isolation(random: &mut Stream, node: NodeId) -> (Time, Trouble) {
    (Draw(random).time(Span::from_micros(400)), Trouble::Isolation { node, span: Span::from_secs(1) })
}

/// The node whose data link is cut accuses all its peers, and no other node is given up.
#[test]
fn only_a_node_whose_data_link_is_cut_is_given_up() {
    for seed in 0..histories() {
        let mut random = random(seed, 13);
        let mut config = Draw(&mut random).config(base_config());
        config.assignment = rebuilt(config.assignment);
        config.readout_units = config.readout_units.max(2);
        config.builder_units = config.builder_units.max(2);
        config.group = config.group.max(u32::from(config.builder_units));
        let victim = Draw(&mut random).node(evb_core::NodeRange { first: NodeId(0), count: config.nodes() });
        let is_builder = config.builder_nodes().contains(victim);
        let scenario = Scenario { faults: vec![isolation(&mut random, victim)], ..scenario(seed, config) };
        let outcome = keep(&scenario);
        // The run may have ended before.
        assert!(outcome.excluded == [victim] || outcome.excluded.is_empty(), "{scenario:#?} {:?}", outcome.excluded);
        if victim == Config::EVENT_MANAGER {
            continue;
        }
        for (event, ends) in &outcome.ended {
            let is_hurt = !is_builder && scenario.asked(*event).contains(&(victim.0 - 1));
            assert!(is_hurt || ends[0].0 == expected(&scenario, *event).0, "event {event}: {scenario:#?}");
        }
        for (event, stored) in outcome.stored.iter().filter(|_| !is_builder) {
            let mut living = scenario.asked(*event).into_iter().filter(|&source| source != victim.0 - 1);
            let whole = living.all(|source| stored.iter().all(|stored| stored.good.contains(&source)));
            assert!(whole, "event {event} lacks a source whose link is not cut: {scenario:#?}");
        }
    }
}

#[test]
fn a_dead_event_manager_orphans_all_others_and_they_come_to_rest() {
    for seed in 0..histories() {
        let mut random = random(seed, 6);
        let config = Draw(&mut random).config(base_config());
        let faults = vec![death(&mut random, Config::EVENT_MANAGER)];
        let others = usize::from(config.nodes()) - 1;
        let scenario = Scenario { faults, ..scenario(seed, config) };
        let outcome = run(&scenario);
        assert_eq!(outcome.orphaned.len(), others, "{scenario:#?}");
    }
}

#[test]
fn many_deaths_and_harm_never_build_a_wrong_event() {
    for seed in 0..histories() {
        let mut random = random(seed, 7);
        let config = Draw(&mut random).config(base_config());
        let any = evb_core::NodeRange { first: NodeId(0), count: config.nodes() };
        let mut die = || {
            let victim = Draw(&mut random).node(any);
            death(&mut random, victim)
        };
        let faults = (0..3).map(|_| die()).collect();
        let scenario = Scenario { faults, harm_one_in: 10, ..scenario(seed, config) };
        let outcome = run(&scenario);
        assert!(outcome.ended.values().all(|ends| ends.len() == 1), "an event ended twice: {scenario:#?}");
    }
}

/// Fragments wait while a readout unit has no room for them. This never stops the event builder, in whatever order
/// events are requested.
#[test]
fn a_small_buffer_holds_its_bytes_and_costs_no_event() {
    for seed in 0..2 * histories() {
        let mut random = random(seed, 8);
        let mut config = Draw(&mut random).config(base_config());
        config.assignment = rebuilt(config.assignment);
        let faults = if seed % 2 == 0 { vec![] } else { vec![death_of_a_builder(&mut random, &mut config)] };
        let buffer_bytes = ByteCount(Draw(&mut random).pick(&[100, 250, 1000]));
        let max_fragment = ByteCount(Draw(&mut random).pick(&[u64::from(FRAGMENT), buffer_bytes.0]));
        let config = Config { buffer_bytes, max_fragment, ..config };
        let scenario = Scenario { faults, ..scenario(seed, config) };
        check_all_built(&scenario, &keep(&scenario));
    }
}

/// A time limit ends events that lack something, counts what it cut, and nothing else.
#[test]
fn a_deadline_cuts_late_fragments_and_counts_them() {
    let (mut cut, mut kept) = (0, 0);
    for seed in 0..histories() {
        let mut random = random(seed, 11);
        let deadline = Some(Draw(&mut random).pick(&[Span::from_micros(300), Span::from_millis(50)]));
        let config = Config { deadline, ..Draw(&mut random).config(base_config()) };
        let scenario = Scenario { harm_one_in: 20, ..scenario(seed, config) };
        let outcome = run(&scenario);
        assert!(outcome.drained && outcome.building.is_empty(), "{scenario:#?} {outcome:#?}");
        let counts = &outcome.manager;
        assert_eq!(counts.triggered, counts.built + counts.incomplete + counts.rejected, "{scenario:#?}");
        if deadline > Some(Span::from_millis(1)) {
            assert_eq!(outcome.faults.get(Fault::Cut), 0, "{scenario:#?} {outcome:#?}");
            kept += counts.built;
        } else {
            cut += outcome.faults.get(Fault::Cut);
        }
    }
    assert!(cut > 0 && kept > 0, "{cut} cut, {kept} kept");
}

#[test]
fn a_full_event_builder_inhibits_the_trigger_and_counts_it() {
    let config =
        Config { trigger: Trigger::Driven, events: None, builder_slots: 1, buffer_events: 10, ..base_config() };
    let scenario = scenario(1, config);
    let outcome = keep(&scenario);
    assert!(outcome.manager.inhibited > 0 && outcome.manager.inhibitions > 1);
    assert_eq!(outcome.manager.triggered + outcome.manager.inhibited, TRIGGERS);
}

#[test]
fn deferred_triggers_wait_for_a_full_event_builder_and_none_is_turned_away() {
    let config = Config {
        trigger: Trigger::Deferred,
        events: Some(TRIGGERS),
        builder_slots: 1,
        buffer_events: 10,
        ..base_config()
    };
    let outcome = keep(&Scenario { stop_at: None, ..scenario(1, config) });
    assert!(outcome.manager.inhibited == 0 && outcome.manager.inhibitions > 1);
    assert_eq!(outcome.manager.triggered, TRIGGERS);
}

#[test]
fn a_stopped_run_drains() {
    let phased = |first| Protocol::Phased { first, rest: true };
    let region = FirstPhase::Region { least: 1, most: 3, seed: 1 };
    let variants = [(1, Protocol::Push), (2, Protocol::Pull), (4, phased(FirstPhase::Units(1))), (8, phased(region))];
    for (seed, protocol) in variants {
        let config = Config { events: None, protocol, ..base_config() };
        let scenario = Scenario { stop_at: Some(Span::from_micros(700)), ..scenario(seed, config) };
        let outcome = keep(&scenario);
        assert!(outcome.manager.built > 10, "{outcome:#?}");
        assert_eq!(outcome.manager.rejected > 10, matches!(protocol, Protocol::Phased { .. }), "{outcome:#?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let config = base_config();
    let scenario = Scenario { harm_one_in: 5, ..scenario(9, config) };
    let (first, second) = (run(&scenario), run(&scenario));
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
    let other = run(&Scenario { seed: 10, ..scenario });
    assert_ne!(format!("{first:?}"), format!("{other:?}"));
}
