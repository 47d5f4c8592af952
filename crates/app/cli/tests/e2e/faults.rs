//! Faults on purpose: each is counted by kind exactly as often as it was brought about, and no wrong event is built.

use crate::support::{Lab, Outcome, both_modes, check_accounts, find_stored, read_all};
use evb_events::{Event, Status};
use evb_record::Record;
use std::{collections::BTreeMap, sync::Mutex};

/// Some more than the last harmed event: a copy of its fragment arrives before the fragments of the events that follow,
/// and so before the end of the run.
const EVENTS: u64 = 1040;
/// One fragment in this many is harmed: those of the events that it divides.
const ONE_IN: u64 = 100;
const HARMED: u64 = EVENTS / ONE_IN;

const EXPERIMENT: &str = r#"
[trigger]
type = "free-running"
events = 1040
[readout]
units = 3
source = { type = "uniform", min = "16 B", max = "600 B" }
max_fragment = "1 kB"
[builder]
units = 2
"#;

fn run(mode: &[&str], fault: &str, changes: &[&str]) -> (Lab, Outcome, Record) {
    let lab = Lab::with(&format!("{EXPERIMENT}\n[[fault]]\nnode = \"ru1\"\none_in = {ONE_IN}\n{fault}\n"));
    let outcome = changes.iter().fold(lab.run(mode), |run, change| run.set(change)).run();
    let record = outcome.record();
    check_accounts(&record);
    assert_eq!((record.events.triggered, record.events.lost), (EVENTS, 0), "{outcome}");
    let stored = read_all(&lab.stored_files());
    stored.check_generated(record.seed, 3);
    assert!(stored.copies().into_iter().eq((1..=EVENTS).map(|event| (event, 1))), "{outcome}");
    (lab, outcome, record)
}

/// The fault makes events incomplete and is counted as `kind`; `check` sees each harmed event.
fn costs_events(fault: &str, changes: &[&str], kind: &str, check: impl Fn(&Event) + Sync) {
    both_modes(|mode| {
        let (lab, outcome, record) = run(mode, fault, changes);
        assert_eq!(outcome.code(), Some(1), "{outcome}");
        assert_eq!(record.events.incomplete, HARMED, "{outcome}");
        assert_eq!(record.faults, BTreeMap::from([(kind.to_owned(), HARMED)]), "{outcome}");
        let stored = read_all(&lab.stored_files());
        for event in &stored.events {
            assert_eq!(event.complete, event.id.0 % ONE_IN != 0, "event {}", event.id);
        }
        (1..=HARMED).for_each(|n| check(find_stored(&stored, n * ONE_IN)[0]));
        assert_eq!(lab.verify(&lab.stored_files()).json()["intact"], true);
    });
}

/// The fault is counted, and every event is complete all the same.
fn costs_nothing(fault: &str, counted: &[(&str, u64)]) -> Record {
    let last = Mutex::new(None);
    both_modes(|mode| {
        let (_lab, outcome, record) = run(mode, fault, &[]);
        assert_eq!(outcome.code(), Some(0), "{outcome}");
        assert_eq!((record.events.built, record.good), (EVENTS, true), "{outcome}");
        let found: Vec<_> = record.faults.iter().map(|(kind, &count)| (kind.as_str(), count)).collect();
        assert_eq!(found, counted, "{outcome}");
        *last.lock().unwrap() = Some(record);
    });
    last.into_inner().unwrap().expect("both have run")
}

#[test]
fn corrupted_fragments_are_kept_and_marked() {
    costs_events("action = \"corrupt\"", &[], "corrupted", |event| {
        assert_eq!(event.fragments[1].status, Status::Corrupted, "{event:?}");
        assert!(!event.fragments[1].bytes.is_empty(), "{event:?}");
    });
}

#[test]
fn oversized_fragments_are_cut_and_marked() {
    costs_events("action = \"oversize\"", &[], "oversized", |event| {
        assert_eq!(event.fragments[1].status, Status::Oversized, "{event:?}");
        assert_eq!(event.fragments[1].bytes.len(), 1000, "{event:?}");
    });
}

/// What is lost on its way is asked for and sent again: that costs time, and no event.
#[test]
fn lost_fragments_are_asked_for_and_sent_again() {
    let record = costs_nothing("action = \"lose\"", &[]);
    assert_eq!(record.readouts.iter().map(|unit| unit.repeated).collect::<Vec<_>>(), [0, HARMED, 0], "{record:#?}");
    assert!(record.builders.iter().map(|builder| builder.asked).sum::<u64>() >= HARMED, "{record:#?}");
}

#[test]
fn duplicated_fragments_are_dropped_and_counted() {
    costs_nothing("action = \"duplicate\"", &[("duplicate", HARMED)]);
}

#[test]
fn delayed_fragments_are_waited_for() {
    costs_nothing("action = \"delay\"\nby = \"100 ms\"", &[]);
}

/// Fragments that come after the deadline are missing in their events, which is counted as what it is; they are counted as
/// late when the run still goes on, and are never put into another event.
#[test]
fn fragments_after_the_deadline_are_late() {
    both_modes(|mode| {
        // The trigger takes seven seconds, so the first of the late fragments come before the end.
        let changes =
            ["builder.deadline=\"2 s\"", "builder.patience=\"3 s\"", "trigger.type=rate", "trigger.rate=\"150 Hz\""];
        let (_lab, outcome, record) = run(mode, "action = \"delay\"\nby = \"4 s\"", &changes);
        assert_eq!(outcome.code(), Some(1), "{outcome}");
        assert_eq!((record.events.incomplete, record.faults["cut"]), (HARMED, HARMED), "{outcome}");
        assert!((1..=HARMED).contains(&record.faults["late"]) && record.faults.len() == 2, "{outcome}");
    });
}

/// All at once, on several units, with grouping and pull.
#[test]
fn faults_of_all_kinds_at_once_are_counted_by_kind() {
    let others = r#"action = "corrupt"
[[fault]]
node = "ru0"
action = "oversize"
one_in = 125
[[fault]]
node = "ru2"
action = "duplicate"
one_in = 50
[[fault]]
node = "ru0"
action = "delay"
one_in = 200
by = "50 ms""#;
    both_modes(|mode| {
        let (_lab, outcome, record) = run(mode, others, &["protocol.type=pull", "shaping.type=grouping"]);
        assert_eq!(outcome.code(), Some(1), "{outcome}");
        let counted = [("corrupted", 10), ("duplicate", 20), ("oversized", 8)];
        assert_eq!(record.faults, counted.map(|(kind, count)| (kind.to_owned(), count)).into(), "{outcome}");
        // Events 500 and 1000 have both faults.
        assert_eq!(record.events.incomplete, 10 + 8 - 2, "{outcome}");
    });
}
