//! Two files of benchmarks compared.

use crate::{
    benchmarks::{assert_narrow, lossy, row, suite, untrusted},
    texts::snapshot,
};
use evb_record::{Benchmark, Calibration, Change, Comparison, CoreToCore};
use evb_report::{compare, comparison_table};

/// The comparison of one row with another, with a tolerance of 5 %.
fn pair(old: Benchmark, new: Benchmark) -> Comparison {
    let mut rows = compare(&[old], &[new], 0.05);
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

#[test]
fn verdicts_follow_the_direction_of_the_quantity() {
    let of = |pattern, old, new| {
        let found = pair(row(pattern, "tcp", 2, 8, old), row(pattern, "tcp", 2, 8, new));
        (found.verdict, found.good)
    };
    assert_eq!(of("ping-pong", 1000.0, 1200.0), (Change::Slower, false));
    assert_eq!(of("ping-pong", 1000.0, 800.0), (Change::Faster, true));
    assert_eq!(of("pairs", 1000.0, 1200.0), (Change::Faster, true));
    assert_eq!(of("pairs", 1000.0, 800.0), (Change::Slower, false));
    assert_eq!(of("ping-pong", 1000.0, 1049.0), (Change::Same, true), "within the tolerance, without an overlap");
    assert_eq!(of("ping-pong", 1000.0, 1051.0), (Change::Slower, false), "beyond both");
}

#[test]
fn overlapping_intervals_are_the_same_however_far_the_medians() {
    let mut new = row("ping-pong", "tcp", 2, 8, 2000.0);
    new.launches.low = 1019.0;
    assert_eq!(pair(row("ping-pong", "tcp", 2, 8, 1000.0), new.clone()).verdict, Change::Same);
    new.launches.low = 1021.0;
    assert_eq!(pair(row("ping-pong", "tcp", 2, 8, 1000.0), new).verdict, Change::Slower);
}

#[test]
fn what_cannot_be_trusted_is_no_reason_to_fail_but_losses_are() {
    let old = row("ping-pong", "tcp", 2, 8, 1000.0);
    let slow = row("ping-pong", "tcp", 2, 8, 3000.0);
    let doubtful = pair(old.clone(), untrusted(slow.clone(), "few samples"));
    assert_eq!((doubtful.verdict, doubtful.good), (Change::Untrusted, true));
    assert_eq!(doubtful.reason.as_deref(), Some("new file: few samples"));
    assert_eq!(pair(untrusted(old.clone(), "few samples"), slow.clone()).verdict, Change::Untrusted);
    let lost = pair(old.clone(), lossy(slow.clone()));
    assert_eq!((lost.verdict, lost.good), (Change::NotGood, false), "though a lossy row is not trusted either");
    assert_eq!(pair(lossy(old.clone()), lossy(slow.clone())).verdict, Change::Untrusted);
    let cores = |line_ns| CoreToCore { line_ns, message_ns: 70.5 };
    let drifted = |line_ns| Benchmark {
        calibration: Some(Calibration { before: cores(line_ns), after: cores(line_ns) }),
        ..slow.clone()
    };
    let moved = pair(old.clone(), drifted(61.0 * 1.26));
    assert_eq!((moved.verdict, moved.good), (Change::Untrusted, true));
    assert_eq!(
        moved.reason.as_deref(),
        Some("the machine has changed: a word took 61 ns between two cores, now 77 ns")
    );
    assert_eq!(pair(old.clone(), drifted(61.0 * 1.24)).verdict, Change::Slower);
    assert_eq!(pair(old, Benchmark { calibration: None, ..slow }).verdict, Change::Slower, "calibrated in one only");
}

#[test]
fn rows_are_matched_by_all_that_was_chosen() {
    let old = row("pairs", "tcp", 4, 64, 1000.0);
    let others = [
        Benchmark { transport: "shm".into(), ..old.clone() },
        Benchmark { pattern: "stream".into(), ..old.clone() },
        Benchmark { size_bytes: 65, ..old.clone() },
        Benchmark { nodes: 6, ..old.clone() },
        Benchmark { compute_us: 1.0, ..old.clone() },
        Benchmark { window: 2, ..old.clone() },
        Benchmark { rate_hz: Some(1.0), ..old.clone() },
        Benchmark { wait: "spin".into(), ..old.clone() },
    ];
    for other in others {
        let found = compare(std::slice::from_ref(&old), &[other], 0.05);
        let verdicts: Vec<_> = found.iter().map(|row| (row.verdict, row.good)).collect();
        assert_eq!(verdicts, [(Change::Missing, false), (Change::New, true)], "{found:#?}");
    }
    let gone = compare(&[untrusted(old, "few samples")], &[], 0.05);
    assert_eq!((gone[0].verdict, gone[0].good), (Change::Missing, true), "nobody could have trusted it");
}

#[test]
fn a_comparison_as_a_table() {
    let old = suite();
    let mut new: Vec<_> = old.iter().filter(|row| row.size_bytes != 64).cloned().collect();
    new[2] = row("pairs", "threads", 4, 8, 1e3);
    let last = new.len() - 1;
    new[last].launches = row("ping-pong", "tcp", 2, 8, 1e3).launches;
    new[last].wait = "spin".into();
    let lost = new.iter_mut().find(|row| row.transport == "tcp").unwrap();
    *lost = lossy(lost.clone());
    let text = comparison_table(&compare(&old, &new, 0.05));
    assert_narrow(&text);
    snapshot("comparison", &text);
}
