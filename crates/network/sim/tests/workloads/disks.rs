//! Builders with slow disks: storing takes time, and nothing is lost by it.

use crate::support::{assert_between, run_with};
use evb_record::{FindingKind, Record};

/// Each event has 20 kB, which the disk takes 5 ms for.
const SLOW: &str = r#"
[trigger]
type = "free-running"
events = 400
[readout]
units = 2
source = { type = "fixed", size = "10 kB" }
[builder]
units = 2
slots = 8
[[fault]]
node = "bu0"
action = "slow-disk"
rate = "4 MB/s"
[[fault]]
node = "bu1"
action = "slow-disk"
rate = "4 MB/s"
"#;

fn all_built(set: &[&str]) -> Record {
    let record = run_with(SLOW, set);
    assert_eq!((record.events.built, record.events.triggered), (400, 400), "{record:#?}");
    assert!(record.good, "{:?}", record.findings);
    record
}

#[test]
fn events_go_through_a_slow_disk_one_after_another() {
    let record = all_built(&[]);
    assert_between("seconds", record.seconds, 1.0, 1.01);
    // The slots of a builder bound what waits for its disk.
    assert_between("latency", record.latency_us.max, 30_000.0, 45_000.0);
    assert!(record.readouts.iter().all(|readout| readout.most_events <= 24), "{:?}", record.readouts);
}

#[test]
fn events_that_are_not_kept_need_no_disk() {
    let record = all_built(&["storage.keep={one_in=10}"]);
    assert_between("seconds", record.seconds, 0.08, 0.15);
    assert_eq!(all_built(&["protocol.type=pull"]).events.built, 400);
}

/// The drain takes twenty times as long as it may be stuck.
#[test]
fn a_stuck_drain_is_given_up_and_a_long_one_is_not() {
    let changes =
        ["trigger.events=100000", "trigger.duration=\"100 ms\"", "builder.slots=200", "run.drain_timeout=\"50 ms\""];
    let record = run_with(SLOW, &changes);
    assert!(record.good && record.events.lost == 0, "{:?}", record.findings);
    assert!(record.events.built >= 400, "{:?}", record.events);
    let lose = format!("{SLOW}[[fault]]\nnode = \"ru0\"\naction = \"lose\"\none_in = 100\n");
    let record = run_with(&lose, &[&changes[..], &["builder.patience=\"100 s\""]].concat());
    let finding = record.findings.iter().find(|finding| finding.kind == FindingKind::NotDrained).expect("it is stuck");
    assert_eq!(finding.message, "the run did not drain: nothing moved for 50 ms");
}
