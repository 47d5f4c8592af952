//! Phased event building: what is rejected moves no more than its first phase, is not stored, and is accounted for.

use crate::support::{Lab, PROCESSES, THREADS, check_accounts, good, not_good, read_all};
use evb::Filter;
use evb_core::EventId;
use evb_record::Record;

const EVENTS: u64 = 3000;
const UNITS: u64 = 4;
const FIRST: u64 = 1;
const SIZE: u64 = 500;

const PHASED: &str = r#"
[trigger]
type = "free-running"
events = 3000
[readout]
units = 4
source = { type = "fixed", size = "500 B" }
[builder]
units = 2
[protocol]
type = "phased"
first = 1
accept = 0.25
"#;

/// The events that a run with this seed accepts.
fn accepted(seed: u64) -> impl Iterator<Item = u64> {
    let filter = Filter { seed, accept: 0.25 };
    (1..=EVENTS).filter(move |&event| filter.accepts(EventId(event), true))
}

fn sum(record: &Record, count: fn(&evb_record::BuilderRecord) -> u64) -> u64 {
    record.builders.iter().map(count).sum()
}

/// The account of a run or simulation in which nothing went wrong.
fn check(record: &Record) {
    let kept = accepted(record.seed).count() as u64;
    assert_eq!(record.protocol, "phased");
    assert_eq!((record.events.triggered, record.events.built), (EVENTS, kept), "{record:#?}");
    assert_eq!((record.events.rejected, sum(record, |b| b.rejected)), (EVENTS - kept, EVENTS - kept), "{record:#?}");
    let fragments = EVENTS * FIRST + kept * (UNITS - FIRST);
    assert_eq!((sum(record, |b| b.fragments), sum(record, |b| b.bytes)), (fragments, fragments * SIZE));
    let sent: Vec<_> = record.readouts.iter().map(|readout| readout.sent).collect();
    assert_eq!(sent, [EVENTS, kept, kept, kept]);
    assert!(record.faults.is_empty(), "{record:#?}");
}

/// Threads, processes, with and without grouping: the accepted events are stored whole, and no other.
#[test]
fn accepted_events_are_stored_and_no_other() {
    for mode in [THREADS, PROCESSES] {
        for shaping in ["none", "grouping"] {
            let lab = Lab::with(PHASED);
            let outcome = lab.run(mode).args(&["--seed", "5"]).set(&format!("shaping.type={shaping}")).run();
            let record = good(&outcome);
            check(&record);
            let stored = read_all(&lab.stored_files());
            stored.check_generated(record.seed, UNITS as u16);
            assert!(stored.copies().into_iter().eq(accepted(5).map(|event| (event, 1))), "{outcome}");
            assert_eq!(lab.verify(&lab.stored_files()).code(), Some(0));
        }
    }
}

#[test]
fn a_simulation_accepts_the_same_events_as_a_run() {
    let lab = Lab::with(PHASED);
    for preset in ["ideal", "myrinet-oct-sw8"] {
        let outcome = lab.simulate(&["--seed", "5"]).set(&format!("network.preset={preset}")).run();
        check(&good(&outcome));
    }
}

/// All or nothing may be accepted.
#[test]
fn acceptance_of_none_and_of_all_works() {
    for (accept, built) in [("0", 0), ("1", EVENTS)] {
        for mode in ["run", "simulate"] {
            let lab = Lab::with(PHASED);
            let evb = lab.evb(&[mode, "--json", "experiment.toml"]).set(&format!("protocol.accept={accept}"));
            let record = good(&evb.run());
            assert_eq!((record.events.built, record.events.rejected), (built, EVENTS - built));
        }
    }
}

/// What the filter could not see whole is kept, incomplete.
#[test]
fn nothing_is_rejected_unseen() {
    for mode in ["run", "simulate"] {
        let fault = "[[fault]]\nnode = \"ru0\"\naction = \"corrupt\"\none_in = 100\n";
        let lab = Lab::with(&format!("{PHASED}{fault}"));
        let outcome = lab.evb(&[mode, "--json", "experiment.toml"]).set("storage.keep=none").run();
        let record = not_good(&outcome);
        let kept = accepted(record.seed).filter(|event| event % 100 != 0).count() as u64;
        assert_eq!((record.events.incomplete, record.faults["corrupted"]), (EVENTS / 100, EVENTS / 100), "{outcome}");
        assert_eq!((record.events.built, record.events.lost), (kept, 0), "{outcome}");
    }
}

/// The events of a builder that dies begin again with their first phase, and end as they would have.
#[test]
fn a_dead_builder_costs_no_event() {
    let fault = "[[fault]]\nnode = \"bu1\"\naction = \"kill\"\nat = \"100 ms\"\n";
    let rate = PHASED.replace("\"free-running\"", "\"rate\"\nrate = \"5 kHz\"");
    for (mode, more) in [("run", &[][..]), ("run", PROCESSES), ("simulate", &[])] {
        let lab = Lab::with(&format!("{rate}{fault}"));
        let outcome = lab.evb(&[mode, "--json", "experiment.toml"]).args(more).run();
        let record = not_good(&outcome);
        check_accounts(&record);
        assert_eq!(record.lost_nodes, ["bu1"], "{outcome}");
        let kept = accepted(record.seed).filter(|&event| event <= record.events.triggered).count() as u64;
        assert_eq!((record.events.built, record.events.incomplete, record.events.lost), (kept, 0, 0), "{outcome}");
    }
}

/// People see what was rejected.
#[test]
fn the_summary_says_what_was_rejected() {
    for mode in ["run", "simulate"] {
        let outcome = Lab::with(PHASED).evb(&[mode, "experiment.toml", "--seed", "5"]).run();
        let kept = accepted(5).count() as u64;
        let verdict = format!("good: {kept} events built complete and {} rejected, all accounted for", EVENTS - kept);
        assert!(outcome.stdout.contains(&verdict), "{outcome}");
    }
}
