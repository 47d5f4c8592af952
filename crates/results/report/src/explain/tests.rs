//! Each limit is named by its evidence, and faults come before what is full.

use super::*;
use evb_record::{
    Background, BuilderOccupancy, Dip, Events, Finding, Network, NetworkFault, ReadoutOccupancy, ReadoutRecord,
    Shaping, Simulation, SourceRecord, SourceState,
};

/// A run of 4 x 2 with 64 slots, whose units have something to do.
fn run() -> Record {
    let mut record: Record = serde_json::from_str(include_str!("../../tests/it/run.json")).expect("a record");
    record.trigger.slots = 64.0;
    record.trigger.offered_rate_hz = None;
    record.builders[0].stored_bytes = 1_000_000_000;
    record.occupancy = Some(Occupancy {
        looks: 10,
        machine_busy: Some(0.5),
        readouts: vec![ReadoutOccupancy { filled: 0.1, waited_for: 2.0 }; 4],
        builders: vec![BuilderOccupancy { building: 20.0, storing: 1.0 }; 2],
    });
    record
}

fn first(change: impl FnOnce(&mut Occupancy)) -> String {
    let mut record = run();
    change(record.occupancy.as_mut().expect("it has one"));
    explain(&record)[0].what.clone()
}

#[test]
fn each_limit_of_a_run_is_named_by_its_evidence() {
    assert_eq!(first(|_| {}), "latency");
    assert_eq!(first(|it| it.builders[1].storing = 60.0), "storage of bu1");
    assert_eq!(first(|it| it.readouts[3].waited_for = 15.0), "ru3");
    assert_eq!(first(|it| it.machine_busy = Some(0.99)), "processors");
    assert_eq!(first(|it| it.builders.iter_mut().for_each(|builder| builder.building = 63.0)), "builders");
    assert_eq!(first(|it| it.readouts.iter_mut().for_each(|readout| readout.filled = 0.95)), "network");
    let mut record = run();
    record.trigger.offered_rate_hz = Some(record.event_rate_hz);
    assert_eq!(explain(&record)[0].what, "trigger");
    record.occupancy = None;
    record.trigger.offered_rate_hz = None;
    assert!(explain(&record).is_empty() && explanation(&record, 80).contains("nothing in the record"));
}

#[test]
fn builders_that_take_turns_are_not_slow_storage() {
    let mut record = run();
    record.trigger.slots = 0.125;
    let occupancy = record.occupancy.as_mut().expect("it has one");
    occupancy.builders.fill(BuilderOccupancy { building: 0.12, storing: 0.1 });
    assert_eq!(explain(&record)[0].what, "builders");
    assert!(explanation(&record, 200).contains("of 0.12 slots"), "{}", explanation(&record, 200));
}

/// The same, simulated without processors.
fn simulated() -> Record {
    Record { kind: RecordKind::Simulation, occupancy: None, ..run() }
}

#[test]
fn a_simulation_with_processors_has_the_limits_of_its_units() {
    let mut record = simulated();
    record.simulation = Some(Simulation::default());
    assert_eq!(explain(&record)[0].what, "hosts");
    record.occupancy = run().occupancy;
    assert_eq!(explain(&record)[0].what, "latency");
    record.occupancy.as_mut().expect("it has one").machine_busy = Some(0.99);
    let limit = &explain(&record)[0];
    assert_eq!(
        (&*limit.what, &*limit.how_known),
        ("processors", "the processors of all computers worked 99.0 % of the time")
    );
}

fn link(name: &str, used: f64, blocked: f64) -> LinkRecord {
    LinkRecord { name: name.into(), used, blocked, ..LinkRecord::default() }
}

#[test]
fn a_simulation_is_limited_by_full_links_by_blocked_ones_or_by_neither() {
    let mut record = simulated();
    let mut what = |links: Vec<LinkRecord>, deadlock: &[&str]| {
        let deadlock = deadlock.iter().map(|&link| link.to_owned()).collect();
        let network = Network { links, deadlock, ..Network::default() };
        record.simulation = Some(Simulation { network, ..Simulation::default() });
        explain(&record)[0].what.clone()
    };
    assert_eq!(what(vec![link("a", 0.5, 0.1), link("b", 0.99, 0.0), link("c", 0.95, 0.5)], &[]), "b");
    assert_eq!(what(vec![link("a", 0.5, 0.7), link("b", 0.6, 0.4)], &[]), "a");
    assert_eq!(what(vec![link("a", 0.5, 0.1)], &[]), "hosts");
    assert_eq!(what(vec![link("a", 0.99, 0.1)], &["x", "y"]), "x");
}

/// Where pauses hold up senders, hosts are not what limits.
#[test]
fn a_simulation_whose_senders_are_paused_is_limited_by_pauses() {
    let mut record = simulated();
    let queue = LinkRecord { most_bytes: 25_000_000, ..link("spine0>leaf1", 0.3, 0.0) };
    let mut limit = |paused: f64| {
        let host = LinkRecord { paused, ..link("h1>leaf0", 0.2, 0.0) };
        let network = Network { links: vec![host, queue.clone()], ..Network::default() };
        record.simulation = Some(Simulation { network, ..Simulation::default() });
        explain(&record).remove(0)
    };
    let paused = limit(0.7);
    assert_eq!(paused.what, "h1>leaf0");
    let expected =
        "h1>leaf0 paused 70.0 %; the longest queue was that of spine0>leaf1, 25.0 MB; no link was used above 30.0 %";
    assert_eq!(paused.how_known, expected);
    assert_eq!(limit(0.1).what, "hosts");
}

#[test]
fn a_simulation_without_full_links_is_limited_by_slots_at_wrong_times() {
    let mut record = simulated();
    let mut what = |used: f64, skew_us: Option<f64>| {
        let network = Network { links: vec![link("a", used, 0.1)], ..Network::default() };
        record.simulation = Some(Simulation { network, ..Simulation::default() });
        record.shaping = Some(Shaping { step: Some("barrier".into()), skew_us, ..Shaping::default() });
        explain(&record)[0].what.clone()
    };
    assert_eq!(what(0.5, Some(3.0)), "slots");
    assert_eq!(what(0.5, None), "hosts");
    assert_eq!(what(0.99, Some(3.0)), "a");
}

/// Roles and subjects.
fn all(record: &Record) -> Vec<(LimitRole, String)> {
    explain(record).into_iter().map(|limit| (limit.role, limit.what)).collect()
}

fn roles(expected: &[(LimitRole, &str)]) -> Vec<(LimitRole, String)> {
    expected.iter().map(|(role, what)| (*role, (*what).to_owned())).collect()
}

/// A run on a busy machine.
fn busy_run(findings: &[(FindingKind, &str)]) -> Record {
    let mut record = run();
    record.occupancy.as_mut().expect("it has one").machine_busy = Some(0.99);
    record.findings = findings.iter().map(|(kind, subject)| Finding::new(*kind, *subject, "a message")).collect();
    record
}

#[test]
fn faults_come_first_then_their_consequences_then_what_is_full() {
    let record = busy_run(&[
        (FindingKind::LostNode, "bu1"),
        (FindingKind::NotDrained, "evm"),
        (FindingKind::IncompleteEvents, "events"),
        (FindingKind::SilentSource, "ru2"),
        (FindingKind::RateNotKept, "trigger.rate"),
        (FindingKind::NoSteadyState, "window"),
        (FindingKind::DeadLink, "transport.links"),
    ]);
    let expected = [
        (LimitRole::Cause, "bu1"),
        (LimitRole::Cause, "ru2"),
        (LimitRole::Cause, "transport.links"),
        (LimitRole::Consequence, "evm"),
        (LimitRole::Consequence, "events"),
        (LimitRole::Resource, "processors"),
    ];
    assert_eq!(all(&record), roles(&expected));
    let text = explanation(&record, 80);
    assert!(text.starts_with("cause  bu1: a message\n") && text.contains("\neffect evm: "), "{text}");
    assert!(text.contains("\nlimit  processors: "), "{text}");
}

#[test]
fn a_run_without_faults_has_limits_alone() {
    let record = busy_run(&[(FindingKind::RateNotKept, "trigger.rate"), (FindingKind::NoSecondIdentity, "ru0")]);
    assert_eq!(all(&record), roles(&[(LimitRole::Resource, "processors")]));
}

#[test]
fn an_event_rate_that_is_kept_excuses_no_fault() {
    let mut record = busy_run(&[(FindingKind::LostEvents, "events")]);
    record.trigger.offered_rate_hz = Some(record.event_rate_hz);
    assert_eq!(all(&record)[0], (LimitRole::Consequence, "events".into()));
    assert!(all(&record).iter().all(|(_, what)| what != "trigger"), "{:?}", all(&record));
}

#[test]
fn a_source_that_stops_is_named_without_a_finding() {
    let mut record = busy_run(&[(FindingKind::IncompleteEvents, "events")]);
    record.events = Events { triggered: 200, built: 50, incomplete: 150, ..Events::default() };
    let came = |came| ReadoutRecord { came, ..ReadoutRecord::default() };
    record.readouts = vec![came(200), came(50), came(199), came(0)];
    let expected = [(LimitRole::Cause, "ru1"), (LimitRole::Cause, "ru3"), (LimitRole::Consequence, "events")];
    assert_eq!(all(&record)[..3], roles(&expected));
    record.findings.push(Finding::new(FindingKind::LostNode, "ru1", "ru1 is gone: killed"));
    let named: Vec<_> =
        explain(&record).into_iter().filter(|limit| limit.what == "ru1").map(|limit| limit.why).collect();
    assert_eq!(named[0], "is gone: killed");
    assert_eq!(named.iter().filter(|why| why.contains("its source")).count(), 0, "{named:?}");
    // Other sources may be ahead by chance while a run goes on.
    let running = explain_running(&Record { findings: Vec::new(), ..record.clone() });
    assert_eq!(running[0].what, "ru3");
    record.events = Events { triggered: 200, built: 200, ..Events::default() };
    record.findings.clear();
    assert_eq!(all(&record)[0].1, "processors");
}

#[test]
fn a_disconnected_source_says_since_when() {
    let mut record = busy_run(&[(FindingKind::IncompleteEvents, "events")]);
    record.events = Events { triggered: 200, built: 50, incomplete: 150, ..Events::default() };
    let source = SourceRecord {
        state: SourceState::Disconnected,
        since_s: 3.25,
        last_s: Some(3.125),
        ..SourceRecord::default()
    };
    let sending = SourceRecord { state: SourceState::Sending, last_s: Some(10.0), ..SourceRecord::default() };
    let readout = |came, source| ReadoutRecord { came, source: Some(source), ..ReadoutRecord::default() };
    record.readouts = vec![readout(200, sending), readout(199, source)];
    record.seconds = 10.0;
    assert_ne!(explain(&record)[0].what, "ru1", "all came but one");
    let first = explain_running(&record).remove(0);
    assert_eq!((first.what.as_str(), first.role), ("ru1", LimitRole::Cause));
    assert_eq!(first.why, "its front end is disconnected since 3.250 s after the start");
    assert!(first.how_known.contains("the last one at 3.125 s"), "{first:?}");
}

#[test]
fn a_run_that_is_not_over_has_lost_nothing_yet() {
    let record = busy_run(&[
        (FindingKind::LostEvents, "events"),
        (FindingKind::MissedEnd, "ru0"),
        (FindingKind::SilentSource, "ru0"),
    ]);
    let what: Vec<_> = explain_running(&record).into_iter().map(|limit| limit.what).collect();
    assert_eq!(what, ["processors"]);
}

#[test]
fn background_traffic_is_named_where_it_fills_a_link() {
    let mut record = simulated();
    let full = |background_bytes| LinkRecord { bytes: 1000, background_bytes, ..link("a", 0.99, 0.0) };
    let background = Background { name: "storage".into(), messages: 1, ..Background::default() };
    let explained = |record: &mut Record, links| {
        let network = Network { links, ..Network::default() };
        let background = vec![background.clone()];
        record.simulation = Some(Simulation { network, background, ..Simulation::default() });
        explain(record).remove(0)
    };
    let limit = explained(&mut record, vec![full(400)]);
    assert!(limit.how_known.ends_with("; 40.0 % of the bytes of a were of background traffic (storage)"), "{limit:?}");
    assert!(limit.advice.contains("a lower priority for background traffic"), "{limit:?}");
    let limit = explained(&mut record, vec![full(10)]);
    assert!(!limit.how_known.contains("background") && !limit.advice.contains("background"), "{limit:?}");
    let blocked = LinkRecord { bytes: 1000, background_bytes: 500, ..link("b", 0.1, 0.5) };
    let limit = explained(&mut record, vec![blocked]);
    assert!(limit.how_known.contains("50.0 % of the bytes of b were of background traffic"), "{limit:?}");
    let bursts = LinkRecord { bytes: 1000, background_bytes: 300, ..link("c", 0.6, 0.0) };
    let limit = explained(&mut record, vec![link("b", 0.1, 0.0), bursts]);
    assert_eq!((&*limit.what, &*limit.why), ("c", "no link is full on average; background traffic comes in bursts"));
    assert!(limit.how_known.contains("30.0 % of the bytes of c"), "{limit:?}");
}

#[test]
fn faults_of_a_network_come_before_its_full_links() {
    let mut record = simulated();
    let dip = Dip { before_hz: 20_000.0, lowest_hz: 0.0, recovered_after_s: None, after_hz: 0.0, resolution_s: 1e-3 };
    let fault = NetworkFault {
        target: "h0>leaf0".into(),
        action: "fail".into(),
        at_s: 0.02,
        rerouted_s: Some(0.025),
        lost_packets: 3,
        cut_off: vec!["ru0".into()],
        dip: Some(dip),
        ..NetworkFault::default()
    };
    let links = vec![link("a", 0.99, 0.0), LinkRecord { dropped: 12, ..link("b", 0.1, 0.0) }];
    let network = Network { links, faults: vec![fault], lost_packets: 15, ..Network::default() };
    record.simulation = Some(Simulation { network, ..Simulation::default() });
    let expected = [(LimitRole::Cause, "h0>leaf0"), (LimitRole::Cause, "b"), (LimitRole::Resource, "a")];
    assert_eq!(all(&record), roles(&expected));
    let text = explanation(&record, 300);
    assert!(text.starts_with("cause  h0>leaf0: was down from 20.0 ms to the end, which cuts off ru0\n"), "{text}");
    assert!(text.contains("20.0 kHz before, 0 Hz at the lowest, not recovered"), "{text}");
    assert!(text.contains("12 packets dropped there, 15 lost in all, at 1 link\n"), "{text}");
}

#[test]
fn too_little_headroom_is_a_cause() {
    let mut record = simulated();
    let links = vec![link("a", 0.5, 0.0), LinkRecord { ingress_dropped: 7, ..link("b", 0.1, 0.0) }];
    let network = Network { links, lost_packets: 8, ..Network::default() };
    record.simulation = Some(Simulation { network, ..Simulation::default() });
    let text = explanation(&record, 300);
    assert!(text.starts_with("cause  b: its receiver asked for a pause, and had no headroom"), "{text}");
    assert!(text.contains("7 packets lost there, 8 lost in all"), "{text}");
}
