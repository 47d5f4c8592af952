//! Regions of interest: an event asks the readout units that seed and number draw, and a file has their fragments alone.

use crate::support::{Lab, PROCESSES, THREADS, good, is_there, read_all};
use evb::{Filter, FirstPhase};
use evb_core::EventId;
use evb_record::Record;
use std::fs;

const EVENTS: u64 = 1500;
const UNITS: u16 = 6;
const SEED: u64 = 5;

const REGIONS: &str = r#"
[trigger]
type = "free-running"
events = 1500
[readout]
units = 6
source = { type = "uniform", min = "500 B", max = "1500 B" }
[builder]
units = 2
[protocol]
type = "phased"
least = 2
most = 4
"#;

/// A program that accepts nothing but whole regions, with even numbers.
const BY_PROGRAM: &str = "[filter]\nunits = 2\naccept = 0.5\nprogram = [\"python3\", \"filter.py\"]\n";
const ONE_LINE: &str = "import evb_filter; evb_filter.run(lambda event: event.number % 2 == 0 and \
                        event.complete and 2 <= len(event.fragments) <= 4)\n";

/// The readout units of an event's region.
fn region(event: u64) -> Vec<u16> {
    let region = FirstPhase::Region { least: 2, most: 4, seed: SEED }.of(EventId(event), UNITS);
    (0..UNITS).filter(|&unit| region.contains(unit.into())).collect()
}

fn drawn(event: u64) -> bool {
    Filter { seed: SEED, accept: 0.25 }.accepts(EventId(event), true)
}

/// The account of a run or simulation: of every event the region was moved, and of the `whole` ones all.
fn check(record: &Record, accepted: impl Fn(u64) -> bool, rest: bool) {
    let kept = (1..=EVENTS).filter(|&event| accepted(event)).count() as u64;
    assert_eq!((record.events.built, record.events.rejected), (kept, EVENTS - kept), "{record:#?}");
    let is_whole = |event| rest && accepted(event);
    let moved = |unit| (1..=EVENTS).filter(|&event| is_whole(event) || region(event).contains(&unit)).count() as u64;
    let sent: Vec<_> = record.readouts.iter().map(|readout| readout.sent).collect();
    assert_eq!(sent, (0..UNITS).map(moved).collect::<Vec<_>>());
    assert_eq!(record.builders.iter().map(|builder| builder.fragments).sum::<u64>(), sent.iter().sum::<u64>());
    assert!(record.faults.is_empty(), "{record:#?}");
}

/// Runs, simulates if the filter can be, and compares counts and stored bytes with what seed and number say.
fn agree(keys: &str, program: &str, accepted: fn(u64) -> bool, rest: bool) {
    let lab = |_| {
        let lab = Lab::with(&format!("{REGIONS}{keys}"));
        fs::copy(
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../../filters/python/evb_filter.py"),
            lab.path("evb_filter.py"),
        )
        .expect("the helper is there");
        lab.write("filter.py", program);
        lab
    };
    for mode in [THREADS, PROCESSES] {
        let lab = lab(mode);
        let record = good(&lab.run(mode).args(&["--seed", "5"]).run());
        check(&record, accepted, rest);
        let stored = read_all(&lab.stored_files());
        let of_event = |event| if rest { (0..UNITS).collect() } else { region(event) };
        stored.check_generated_of(SEED, of_event);
        let kept = (1..=EVENTS).filter(|&event| accepted(event));
        assert!(stored.copies().into_iter().eq(kept.map(|event| (event, 1))));
        assert_eq!(lab.verify(&lab.stored_files()).code(), Some(0));
    }
    if program.is_empty() {
        check(&good(&lab(THREADS).simulate(&["--seed", "5"]).run()), accepted, rest);
    }
}

#[test]
fn accepted_events_are_asked_of_the_other_units() {
    agree("accept = 0.25\n", "", drawn, true);
}

#[test]
fn events_without_a_second_phase_are_their_regions() {
    agree("rest = false\n", "", |_| true, false);
    agree("rest = false\naccept = 0.25\n", "", drawn, false);
    agree("rest = false\n[[filter.step]]\ntype = \"prescale\"\none_in = 3\n", "", |event| event % 3 == 0, false);
}

#[test]
fn a_program_sees_the_fragments_of_the_region() {
    if !is_there("python3") {
        return;
    }
    for rest in [true, false] {
        agree(&format!("rest = {rest}\n{BY_PROGRAM}"), ONE_LINE, |event| event % 2 == 0, rest);
    }
}
