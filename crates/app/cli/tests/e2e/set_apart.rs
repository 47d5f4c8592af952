//! What event files say beside payloads, and the files of fragments that belong to no event.

use crate::{
    identity::{Sent, boards_with, mark_of, send},
    support::{Lab, Outcome, Service, THREADS, apart_files, check_accounts, free_tcp_port, read_all},
};
use evb_core::Mark;
use evb_events::{Event, Fragment, Metadata, Reader, Status, verify};
use std::{
    collections::BTreeMap,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// A board whose fragments come early and one that restarts its counter.
const BOARDS: fn() -> Vec<Vec<Sent>> = || vec![vec![(5, 1..=900)], vec![(900, 40..=300), (0, 306..=900)]];

fn trigger_of(fragment: &Fragment) -> u64 {
    u64::from_le_bytes(*fragment.bytes.first_chunk().expect("a payload"))
}

/// The number that the board gave the fragment of a trigger.
fn number_of(sent: &[Sent], trigger: u64) -> u64 {
    let part = sent.iter().find(|(_, triggers)| triggers.contains(&trigger)).expect("it was sent");
    part.0 + trigger - part.1.start()
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock that is set").as_nanos() as u64
}

fn metadata(file: &Path) -> Metadata {
    Reader::open(file).expect("an event file").metadata().expect("metadata").clone()
}

/// The records of fragments that belong to no event, by source.
fn set_apart(lab: &Lab) -> BTreeMap<u16, Vec<Event>> {
    let files = apart_files(&lab.path("evb-data"));
    files.into_iter().map(|file| (metadata(&file).readout.expect("a unit"), read_all(&[file]).events)).collect()
}

/// Each fragment that a board sent is in an event or set apart, once, with its number, its mark and a time.
fn check_all_are_there(lab: &Lab, sent: &[Vec<Sent>], marks: bool, times: (u64, u64)) {
    let events = read_all(&lab.stored_files()).events;
    let apart = set_apart(lab);
    for (source, sent) in (0_u16..).zip(sent) {
        let mut triggers: Vec<u64> = Vec::new();
        for event in events.iter().chain(apart.get(&source).into_iter().flatten()) {
            for fragment in event.fragments.iter().filter(|fragment| fragment.source.0 == source) {
                if fragment.status == Status::Missing {
                    continue;
                }
                let trigger = trigger_of(fragment);
                triggers.push(trigger);
                assert_eq!(fragment.counter, Some(number_of(sent, trigger)), "source {source} trigger {trigger}");
                let mark = marks.then(|| Mark::new(mark_of(trigger)));
                assert_eq!(fragment.mark, mark, "source {source} trigger {trigger}");
                let time = event.triggered.expect("a time");
                assert!((times.0..=times.1).contains(&time), "{time} is not in {times:?}");
            }
        }
        triggers.sort_unstable();
        let expected: Vec<u64> = sent.iter().flat_map(|(_, triggers)| triggers.clone()).collect();
        assert_eq!(triggers, expected, "source {source}");
    }
}

/// The record names how many fragments were set apart, why, and where they are.
fn check_record(lab: &Lab, outcome: &Outcome) {
    let record = outcome.record();
    check_accounts(&record);
    let apart = set_apart(lab);
    for (source, readout) in (0_u16..).zip(&record.readouts) {
        let mut reasons = BTreeMap::<String, u64>::new();
        for fragment in apart.get(&source).into_iter().flatten().flat_map(|event| &event.fragments) {
            *reasons.entry(fragment.apart.expect("a reason").name().to_owned()).or_default() += 1;
        }
        assert_eq!(readout.apart_by_reason, reasons, "{outcome}");
        assert_eq!(readout.apart, reasons.values().sum::<u64>(), "{outcome}");
        assert_eq!(readout.apart_files.len(), usize::from(readout.apart > 0), "{outcome}");
        for file in &readout.apart_files {
            assert!(lab.path(file).exists(), "{outcome}");
        }
    }
}

/// With marks: fragments from before the first common event are set apart.
#[test]
fn fragments_without_an_event_are_stored_with_all_that_is_known() {
    let (before, sent) = (now(), BOARDS());
    let (lab, outcome) = boards_with(&sent, true, "");
    check_all_are_there(&lab, &sent, true, (before, now()));
    check_record(&lab, &outcome);
    let early = &set_apart(&lab)[&0];
    assert_eq!(early.len(), 39, "{outcome}");
    let found = verify(&apart_files(&lab.path("evb-data"))).expect("readable files");
    assert!(found.is_intact() && found.events == 0 && found.apart == 39, "{found:?}\n{outcome}");
}

/// Without marks, the fragments behind a restart cannot be matched by evb: they are stored, so that others can.
#[test]
fn fragments_out_of_step_can_be_matched_later() {
    let (before, sent) = (now(), vec![vec![(1, 1..=600)], vec![(1, 1..=100), (1, 101..=600)]]);
    let (lab, outcome) = boards_with(&sent, false, "");
    check_all_are_there(&lab, &sent, false, (before, now()));
    check_record(&lab, &outcome);
    assert_eq!(set_apart(&lab)[&1].len(), 500, "{outcome}");
}

/// A board that never comes leaves the fragments of the others without an event: they are stored when the run ends.
#[test]
fn fragments_that_wait_for_a_missing_board_are_stored() {
    let ports = [free_tcp_port(), free_tcp_port()];
    let unit = |port| format!("[[readout.unit]]\nsource = {{ type = \"tcp\", listen = \"127.0.0.1:{port}\" }}\n");
    let lab = Lab::with(&format!("{}[trigger]\ntype = \"data\"\n[builder]\nunits = 1\n", ports.map(unit).concat()));
    let service = Service::start(&lab, &[]);
    for (command, state) in [("configure", "configured"), ("start", "running")] {
        service.command(command);
        service.wait_for_state(state);
    }
    let sent: Vec<Sent> = vec![(7, 1..=100)];
    let before = now();
    send(0, ports[0], &sent, true);
    service.wait("all have come", |status| status["record"]["readouts"][0]["came"] == 100);
    service.command("stop");
    let status = service.wait_for_state("stopped");
    check_all_are_there(&lab, &[sent], true, (before, now()));
    let readout = &status["record"]["readouts"][0];
    assert_eq!(readout["apart_by_reason"]["unplaced"], 100, "{readout}");
    assert_eq!(readout["waiting"], serde_json::Value::Null, "{readout}");
}

#[test]
fn fragments_set_apart_are_only_counted_where_none_are_wanted() {
    for sections in ["[storage]\napart = \"0 B\"\n", "[storage]\nkeep = \"none\"\n"] {
        let (lab, outcome) = boards_with(&BOARDS(), true, sections);
        let record = outcome.record();
        assert_eq!(record.readouts[0].apart_by_reason, [("early".to_owned(), 39)].into(), "{outcome}");
        assert!(record.readouts[0].apart_files.is_empty() && set_apart(&lab).is_empty(), "{outcome}");
    }
}

#[test]
fn a_file_of_fragments_set_apart_keeps_its_bound_and_counts_the_others() {
    let (lab, outcome) = boards_with(&BOARDS(), true, "[storage]\napart = \"1 kB\"\n");
    let records = &set_apart(&lab)[&0];
    let (last, stored) = records.split_last().expect("records");
    let [count] = &last.fragments[..] else { panic!("{last:?}") };
    assert_eq!((count.status, stored.len() as u64 + count.counter.unwrap_or(0)), (Status::Missing, 39), "{outcome}");
    assert!((5..15).contains(&stored.len()), "{outcome}");
}

/// Times of events are between the start of the run and its end, in the order of building.
#[test]
fn an_event_file_has_the_start_of_its_run_and_the_times_of_its_events() {
    let before = now();
    let lab = Lab::with(
        "[trigger]\nevents = 200\n[readout]\nunits = 2\nsource = { type = \"fixed\", size = \"1 kB\" }\n[builder]\nunits = 2\n",
    );
    let outcome = lab.run(THREADS).run();
    let after = now();
    for file in lab.stored_files() {
        let metadata = metadata(&file);
        assert!((before..=after).contains(&metadata.start), "{outcome}");
        assert!(metadata.clock.contains("system clock") && metadata.run_type.is_empty());
        let events = read_all(&[file]).events;
        let times: Vec<_> = events.iter().map(|event| event.triggered.expect("a time")).collect();
        assert!(times.iter().all(|time| (metadata.start..=after).contains(time)), "{outcome}");
        let identities = events.iter().flat_map(|event| &event.fragments).map(|f| (f.counter, f.mark, f.apart));
        assert!(identities.into_iter().all(|identity| identity == (None, None, None)), "generated fragments have none");
    }
    assert!(apart_files(&lab.path("evb-data")).is_empty());
}
