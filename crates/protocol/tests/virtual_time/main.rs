//! The three machines together in virtual time: random delays, harm and deaths, against a model that says how each
//! triggered event must end.

mod driver;

use driver::{Driver, FRAGMENT, Harm, Outcome, Scenario, TRIGGERS, harm};
use evb_core::{ByteCount, EventId, NodeId, Span, Stream, Time, stream};
use evb_protocol::*;
use rand_xoshiro::rand_core::Rng;
use std::ops::Range;

fn base_config() -> Config {
    Config {
        readout_units: 4,
        builder_units: 3,
        numbered: Vec::new(),
        tolerant: Vec::new(),
        protocol: Protocol::Push,
        assignment: Assignment::RoundRobin,
        shaping: Shaping::None,
        trigger: Trigger::FreeRunning,
        events: Some(200),
        group: 352,
        group_timeout: Span::from_micros(50),
        builder_slots: 8,
        fragment_timeout: Span::from_millis(10),
        max_fragment: ByteCount(1 << 20),
        buffer_events: 64,
        buffer_bytes: ByteCount(1 << 20),
        busy_percent: 90,
        free_percent: 70,
    }
}

fn scenario(seed: u64, config: Config) -> Scenario {
    let trigger_period = Span::from_micros(5);
    // Driven triggers may all be turned away, so that the wanted number is never reached: then a stop ends the run.
    let triggers = Time(TRIGGERS * trigger_period.0);
    Scenario {
        stop_at: (config.trigger == Trigger::Driven).then_some(triggers),
        seed,
        config,
        harm_one_in: 0,
        filter: Filter { seed, accept: [0.2, 0.5, 0.0, 1.0][(seed % 4) as usize] },
        deaths: vec![],
        delay: Span::from_micros(20),
        trigger_period,
    }
}

fn pick<T: Copy>(random: &mut Stream, choices: &[T]) -> T {
    choices[(random.next_u64() % choices.len() as u64) as usize]
}

fn random_config(random: &mut Stream) -> Config {
    let builder_units = pick(random, &[1, 2, 3, 5, 8]);
    let readout_units = pick(random, &[1, 2, 4, 7]);
    let phased = Protocol::Phased { first: 1 + (random.next_u64() % u64::from(readout_units - 1).max(1)) as u16 };
    let phased = if readout_units > 1 { phased } else { Protocol::Pull };
    let grouping = Shaping::Grouping { packet: ByteCount(450), timeout: Span::from_micros(30) };
    Config {
        readout_units,
        builder_units,
        protocol: pick(random, &[Protocol::Push, Protocol::Pull, phased]),
        assignment: pick(random, &[Assignment::RoundRobin, Assignment::LeastLoaded]),
        shaping: pick(random, &[Shaping::None, grouping]),
        trigger: pick(random, &[Trigger::FreeRunning, Trigger::Driven]),
        events: Some(pick(random, &[1, 7, 100, 151])),
        group: u32::from(builder_units) * pick(random, &[1, 2, 40]),
        builder_slots: pick(random, &[1, 2, 8, 32]),
        buffer_events: pick(random, &[4, 64, 512]),
        ..base_config()
    }
}

/// How many random histories each test tries; `EVB_HISTORIES` asks for more.
fn histories() -> u64 {
    std::env::var("EVB_HISTORIES").ok().and_then(|n| n.parse().ok()).unwrap_or(300)
}

/// Runs one history, and names it when it fails.
fn run(scenario: &Scenario) -> Outcome {
    let outcome = std::panic::catch_unwind(|| Driver::new(scenario.clone()).run());
    outcome.unwrap_or_else(|_| panic!("seed {} fails: {scenario:#?}", scenario.seed))
}

fn check_accounts(scenario: &Scenario, outcome: &Outcome) {
    let counts = &outcome.manager;
    assert_eq!(counts.triggered, counts.built + counts.incomplete + counts.rejected + counts.open(), "{scenario:#?}");
    assert!(outcome.ended.values().all(|ends| ends.len() == 1), "an event ended twice: {scenario:#?}");
    let ended = |ending| outcome.ended.values().filter(|ends| ends[0] == ending).count() as u64;
    assert_eq!(ended(Ending::Complete), counts.built, "{scenario:#?}");
    assert_eq!(ended(Ending::Incomplete), counts.incomplete, "{scenario:#?}");
    assert_eq!(ended(Ending::Rejected), counts.rejected, "{scenario:#?}");
    let phased = matches!(scenario.config.protocol, Protocol::Phased { .. });
    assert!(phased || counts.rejected == 0, "{scenario:#?}");
    let most = u64::from(scenario.config.builder_slots);
    // Beside its slots a builder may hold one stray event for each, and those of events that have ended just now.
    assert!(outcome.most_open <= 3 * most, "{} events in a builder of {most} slots: {scenario:#?}", outcome.most_open);
    for readout in &outcome.readouts {
        assert!(readout.most_events <= u64::from(scenario.config.buffer_events), "a buffer overflows: {scenario:#?}");
    }
}

fn check_all_built(scenario: &Scenario, outcome: &Outcome) {
    let (counts, wanted) = (&outcome.manager, scenario.config.events.unwrap_or(u64::MAX));
    assert!(counts.triggered == wanted || scenario.config.trigger == Trigger::Driven, "{scenario:#?} {outcome:#?}");
    assert!(counts.built + counts.rejected == counts.triggered && counts.triggered > 0, "{scenario:#?} {outcome:#?}");
    for (event, ends) in &outcome.ended {
        assert_eq!(ends[0], expected(scenario, *event).0, "event {event}: {scenario:#?}");
        assert_eq!(outcome.stored.contains_key(event), ends[0] == Ending::Complete, "event {event}: {scenario:#?}");
    }
}

#[test]
fn without_faults_every_event_is_built_once() {
    for seed in 0..histories() {
        let mut random = stream(seed, NodeId(0), 2);
        let scenario = scenario(seed, random_config(&mut random));
        let outcome = run(&scenario);
        check_accounts(&scenario, &outcome);
        assert!(outcome.drained && outcome.idle, "{scenario:#?} {outcome:#?}");
        check_all_built(&scenario, &outcome);
        assert_eq!(outcome.faults, FaultCounts::default(), "{scenario:#?}");
        let moved = |event| expected(&scenario, EventId(event)).1.len() as u64;
        assert_eq!(outcome.fragments, (1..=outcome.manager.triggered).map(moved).sum::<u64>(), "{scenario:#?}");
    }
}

/// Whether this source's fragment is not good in the event, or not there.
fn spoils(scenario: &Scenario, event: EventId, source: u16) -> bool {
    match harm(scenario, event, source) {
        None | Some(Harm::Duplicate) => false,
        Some(Harm::Lose | Harm::Corrupt | Harm::Late | Harm::Stray) => true,
    }
}

/// The model, without deaths: how an event must end, and which sources are asked for it.
fn expected(scenario: &Scenario, event: EventId) -> (Ending, Range<u16>) {
    let is_whole = |sources: &Range<u16>| !sources.clone().any(|source| spoils(scenario, event, source));
    let all = 0..scenario.config.readout_units;
    if let Protocol::Phased { first } = scenario.config.protocol
        && !scenario.filter.accepts(event, is_whole(&(0..first)))
    {
        return (Ending::Rejected, 0..first);
    }
    (if is_whole(&all) { Ending::Complete } else { Ending::Incomplete }, all)
}

#[test]
fn harmed_fragments_spoil_their_own_event_and_no_other() {
    for seed in 0..histories() {
        let mut random = stream(seed, NodeId(0), 3);
        let harm_one_in = pick(&mut random, &[3, 20, 100]);
        let scenario = Scenario { harm_one_in, ..scenario(seed, random_config(&mut random)) };
        let outcome = run(&scenario);
        check_accounts(&scenario, &outcome);
        assert!(outcome.drained && outcome.idle, "{scenario:#?} {outcome:#?}");
        for event in (1..=outcome.manager.triggered).map(EventId) {
            let (ending, asked) = expected(&scenario, event);
            assert_eq!(outcome.ended[&event], [ending], "event {event}: {scenario:#?}");
            if ending == Ending::Rejected {
                assert!(!outcome.stored.contains_key(&event), "event {event} is rejected and stored: {scenario:#?}");
                continue;
            }
            let expected: Vec<_> = asked.filter(|&source| !spoils(&scenario, event, source)).collect();
            let [(_, good)] = &outcome.stored[&event][..] else { panic!("event {event} stored twice: {scenario:#?}") };
            assert!(good.iter().eq(&expected), "event {event}: {good:?} for {expected:?}: {scenario:#?}");
        }
        check_fault_kinds(&scenario, &outcome);
    }
}

fn check_fault_kinds(scenario: &Scenario, outcome: &Outcome) {
    let mut expected = FaultCounts::default();
    for event in (1..=outcome.manager.triggered).map(EventId) {
        for source in crate::expected(scenario, event).1 {
            match harm(scenario, event, source) {
                None => {}
                Some(Harm::Lose) => expected.count(Fault::Missing),
                Some(Harm::Corrupt) => expected.count(Fault::Corrupted),
                Some(Harm::Duplicate) => expected.count(Fault::Duplicate),
                Some(Harm::Late) => {
                    [Fault::Missing, Fault::Late].map(|fault| expected.count(fault)).into_iter().collect()
                }
                Some(Harm::Stray) => {
                    [Fault::Missing, Fault::Unexpected].map(|f| expected.count(f)).into_iter().collect()
                }
            }
        }
    }
    let all = outcome.faults;
    assert_eq!(all.get(Fault::Missing), expected.get(Fault::Missing), "{scenario:#?}");
    assert_eq!(all.get(Fault::Corrupted), expected.get(Fault::Corrupted), "{scenario:#?}");
    let strays =
        |counts: &FaultCounts| counts.get(Fault::Late) + counts.get(Fault::Unexpected) + counts.get(Fault::Duplicate);
    assert_eq!(strays(&all), strays(&expected), "{scenario:#?} {all:?} for {expected:?}");
}

/// One of several builders, and when it dies.
fn death_of_a_builder(random: &mut Stream, config: &mut Config) -> (NodeId, Time) {
    config.builder_units = config.builder_units.max(2);
    config.group = config.group.max(u32::from(config.builder_units));
    let victims = config.builder_nodes();
    let victim = NodeId(victims.first.0 + (random.next_u64() % u64::from(victims.count)) as u16);
    (victim, Time(random.next_u64() % Span::from_micros(400).0))
}

#[test]
fn a_dead_builder_costs_no_event() {
    for seed in 0..histories() {
        let mut random = stream(seed, NodeId(0), 4);
        let mut config = random_config(&mut random);
        let deaths = vec![death_of_a_builder(&mut random, &mut config)];
        let scenario = Scenario { deaths, ..scenario(seed, config) };
        let outcome = run(&scenario);
        check_accounts(&scenario, &outcome);
        assert!(outcome.drained && outcome.idle, "{scenario:#?} {outcome:#?}");
        check_all_built(&scenario, &outcome);
    }
}

#[test]
fn a_dead_readout_unit_is_missing_and_nothing_else_is() {
    for seed in 0..histories() {
        let mut random = stream(seed, NodeId(0), 5);
        let mut config = random_config(&mut random);
        config.readout_units = config.readout_units.max(2);
        let victim = NodeId(1 + (random.next_u64() % u64::from(config.readout_units)) as u16);
        let deaths = vec![(victim, Time(random.next_u64() % Span::from_micros(400).0))];
        let scenario = Scenario { deaths, ..scenario(seed, config) };
        let outcome = run(&scenario);
        check_accounts(&scenario, &outcome);
        assert!(outcome.drained && outcome.idle, "{scenario:#?} {outcome:#?}");
        assert_eq!(outcome.manager.open(), 0, "{scenario:#?}");
        let dead = victim.0 - 1;
        for (event, builders) in &outcome.stored {
            let all = (0..scenario.config.readout_units).filter(|&source| source != dead);
            let whole = all.clone().all(|source| builders.iter().all(|(_, good)| good.contains(&source)));
            assert!(whole, "event {event} lacks a source that lives: {scenario:#?}");
        }
    }
}

#[test]
fn a_dead_event_manager_orphans_all_others_and_they_come_to_rest() {
    for seed in 0..histories() {
        let mut random = stream(seed, NodeId(0), 6);
        let config = random_config(&mut random);
        let at = Time(random.next_u64() % Span::from_micros(200).0);
        let others = usize::from(config.nodes()) - 1;
        let scenario = Scenario { deaths: vec![(Config::EVENT_MANAGER, at)], ..scenario(seed, config) };
        let outcome = run(&scenario);
        assert_eq!(outcome.orphaned.len(), others, "{scenario:#?}");
        assert!(outcome.idle, "{scenario:#?}");
        let bound = at + Span(scenario.config.fragment_timeout.0 * 3);
        let triggers = Time(TRIGGERS * scenario.trigger_period.0);
        assert!(outcome.end <= bound.max(triggers), "still busy at {:?}: {scenario:#?}", outcome.end);
    }
}

#[test]
fn many_deaths_and_harm_never_build_a_wrong_event() {
    for seed in 0..histories() {
        let mut random = stream(seed, NodeId(0), 7);
        let config = random_config(&mut random);
        let nodes = u64::from(config.nodes());
        let at = |random: &mut Stream| Time(random.next_u64() % Span::from_micros(400).0);
        let deaths = (0..3).map(|_| (NodeId((random.next_u64() % nodes) as u16), at(&mut random))).collect();
        let scenario = Scenario { deaths, harm_one_in: 10, ..scenario(seed, config) };
        let outcome = run(&scenario);
        assert!(outcome.ended.values().all(|ends| ends.len() == 1), "an event ended twice: {scenario:#?}");
    }
}

/// What a readout unit has no room for waits; it never stops the event builder, whatever order events are asked for in.
#[test]
fn a_small_buffer_holds_its_bytes_and_costs_no_event() {
    for seed in 0..2 * histories() {
        let mut random = stream(seed, NodeId(0), 8);
        let mut config = random_config(&mut random);
        let deaths = if seed % 2 == 0 { vec![] } else { vec![death_of_a_builder(&mut random, &mut config)] };
        let buffer_bytes = ByteCount(pick(&mut random, &[100, 250, 1000]));
        let max_fragment = ByteCount(pick(&mut random, &[u64::from(FRAGMENT), buffer_bytes.0]));
        // Events wait for room as long as it takes.
        let fragment_timeout = Span::from_secs(100);
        let config = Config { buffer_bytes, max_fragment, fragment_timeout, ..config };
        let scenario = Scenario { deaths, ..scenario(seed, config) };
        let outcome = run(&scenario);
        check_accounts(&scenario, &outcome);
        assert!(outcome.drained && outcome.idle, "{scenario:#?} {outcome:#?}");
        check_all_built(&scenario, &outcome);
        let most = outcome.readouts.iter().map(|readout| readout.most_bytes).max();
        assert!(most < Some(buffer_bytes.0 + 2 * u64::from(FRAGMENT)), "{most:?} bytes: {scenario:#?}");
    }
}

#[test]
fn a_full_event_builder_inhibits_the_trigger_and_counts_it() {
    let config =
        Config { trigger: Trigger::Driven, events: None, builder_slots: 1, buffer_events: 10, ..base_config() };
    let scenario = scenario(1, config);
    let outcome = run(&scenario);
    check_accounts(&scenario, &outcome);
    assert!(outcome.drained);
    assert!(outcome.manager.inhibited > 0 && outcome.manager.inhibitions > 1);
    assert_eq!(outcome.manager.triggered + outcome.manager.inhibited, TRIGGERS);
}

#[test]
fn a_stopped_run_drains() {
    for (seed, protocol) in [(1, Protocol::Push), (2, Protocol::Pull), (4, Protocol::Phased { first: 1 })] {
        let config = Config { events: None, protocol, ..base_config() };
        let scenario = Scenario { stop_at: Some(Time(Span::from_micros(700).0)), ..scenario(seed, config) };
        let outcome = run(&scenario);
        check_accounts(&scenario, &outcome);
        assert!(outcome.drained && outcome.manager.built > 10, "{outcome:#?}");
        assert_eq!(outcome.manager.rejected > 10, matches!(protocol, Protocol::Phased { .. }), "{outcome:#?}");
        assert_eq!(outcome.manager.open(), 0);
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
