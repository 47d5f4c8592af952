//! Runs that go well: every way of building gives every event, complete, and one record.

use crate::support::{Lab, PROCESSES, THREADS, good, not_good, read_all};
use evb_record::FindingKind;

const SMALL: &str = r#"
[trigger]
type = "free-running"
events = 3000
[readout]
units = 3
source = { type = "uniform", min = "1 B", max = "2 kB" }
[builder]
units = 2
"#;

const EVENTS: u64 = 3000;

/// Threads, and processes over shared memory and TCP, push and pull, both assignments, with and without grouping: every event is built once and
/// is stored with exactly the bytes that its sources made.
#[test]
fn every_way_of_building_builds_every_event() {
    for (mode, transport) in [(THREADS, "in-process"), (PROCESSES, "shm"), (PROCESSES, "tcp")] {
        for protocol in ["push", "pull"] {
            for assignment in ["round-robin", "least-loaded"] {
                for shaping in ["none", "grouping"] {
                    build_all((mode, transport), protocol, assignment, shaping);
                }
            }
        }
    }
}

fn build_all((mode, transport): (&[&str], &str), protocol: &str, assignment: &str, shaping: &str) {
    let lab = Lab::with(SMALL);
    let run = lab.run(mode).set(&format!("protocol.type={protocol}")).set(&format!("transport.type={transport}"));
    let run = run.set(&format!("protocol.assignment={assignment}")).set(&format!("shaping.type={shaping}"));
    let outcome = run.run();
    let record = good(&outcome);
    assert_eq!(record.events.built, EVENTS, "{outcome}");
    assert_eq!(record.protocol, protocol);
    assert_eq!(record.transport, transport);
    assert!(record.faults.is_empty(), "{outcome}");
    assert_eq!(record.builders.iter().map(|builder| builder.stored).sum::<u64>(), EVENTS);
    assert_eq!(record.builders.iter().map(|builder| builder.fragments).sum::<u64>(), 3 * EVENTS);
    let stored = read_all(&lab.stored_files());
    stored.check_generated(record.seed, 3);
    assert!(stored.copies().into_iter().eq((1..=EVENTS).map(|event| (event, 1))), "{outcome}");
    assert_eq!(lab.verify(&lab.stored_files()).code(), Some(0));
}

/// Those who read records rely on these names.
#[test]
fn the_record_has_the_names_that_others_read() {
    let lab = Lab::with(SMALL);
    let outcome = lab.run(&[]).set("storage.keep=none").run();
    let record = outcome.json();
    let number = |path: &str| {
        let value = record.pointer(path).unwrap_or_else(|| panic!("{path} is missing: {outcome}"));
        value.as_f64().unwrap_or_else(|| panic!("{path} is not a number: {outcome}"))
    };
    assert_eq!(record["kind"], "run");
    assert_eq!(record["experiment"], "experiment");
    assert_eq!(record["seed"], 1);
    assert_eq!(record["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(number("/events/triggered"), EVENTS as f64);
    assert_eq!(number("/events/built"), EVENTS as f64);
    assert_eq!(number("/events/incomplete"), 0.0);
    assert_eq!(number("/events/lost"), 0.0);
    for path in ["/seconds", "/event_rate_hz", "/throughput_bytes_per_s", "/latency_us/p50"] {
        assert!(number(path) > 0.0, "{path}: {outcome}");
    }
    assert!(number("/latency_us/p50") <= number("/latency_us/p99"));
    assert!(number("/latency_us/p99") <= number("/latency_us/max"));
    for (path, count) in [("/per_destination_bytes_per_s", 2), ("/per_source_bytes_per_s", 3)] {
        assert_eq!(
            record.pointer(path).and_then(|list| list.as_array()).map(Vec::len),
            Some(count),
            "{path}: {outcome}"
        );
    }
}

/// A rate and the Poisson process trigger as often as configured.
#[test]
fn a_trigger_with_a_rate_gives_all_its_events() {
    for spacing in ["regular", "poisson"] {
        let lab = Lab::with(SMALL);
        // Without storage: what a rate needs of a busy machine is then the turns of one process, and no more.
        let run = lab.run(&[]).set("trigger.type=rate").set("trigger.rate=\"20 kHz\"").set("storage.keep=none");
        let record = good(&run.set(&format!("trigger.spacing={spacing}")).run());
        assert_eq!(record.events.built, EVENTS);
    }
}

/// Nothing builds twenty million events in a second: triggers are turned away, and that is not good unless the file says so.
#[test]
fn a_rate_that_is_not_kept_is_told() {
    let lab = Lab::with(SMALL);
    let trigger =
        |accept: &str| format!("trigger={{type=\"rate\",rate=\"20 MHz\",duration=\"200 ms\",accept_loss={accept}}}");
    let run = |accept| lab.run(&[]).set(&trigger(accept)).set("storage.keep=none").run();
    let record = not_good(&run("0"));
    let finding = record.findings.iter().find(|one| one.kind == FindingKind::RateNotKept).expect("a finding");
    assert!(finding.message.contains("triggers were turned away"), "{finding:?}");
    assert_eq!(record.trigger.offered, record.events.triggered + record.trigger.inhibited);
    assert_eq!(record.trigger.offered_rate_hz, Some(20e6));
    good(&run("100"));
}

/// One in n is kept, or nothing, and a small file size makes many files, which are good together.
#[test]
fn storage_keeps_the_configured_events() {
    let lab = Lab::with(SMALL);
    let record = good(&lab.run(&[]).set("storage.keep={ one_in = 100 }").set("storage.file_size=\"8 KiB\"").run());
    let files = lab.stored_files();
    assert!(files.len() > 4, "{files:?}");
    let named: usize = record.builders.iter().map(|builder| builder.files.len()).sum();
    assert_eq!(named, files.len());
    let stored = read_all(&files);
    assert!(stored.copies().into_iter().eq((1..=30).map(|n| (100 * n, 1))));
    assert_eq!(lab.verify(&files).code(), Some(0));

    let lab = Lab::with(SMALL);
    good(&lab.run(&[]).set("storage.keep=none").run());
    assert!(lab.stored_files().is_empty());
}
