//! Two files of benchmarks compared.

use crate::{
    benchmarks::{assert_narrow, launched, lossy, row, suite, untrusted, with},
    samples,
    texts::snapshot,
};
use evb_record::{Benchmark, Calibration, Change, Comparison, CoreToCore, Record, SIMULATED};
use evb_report::{NARROW, compare, compare_runs, comparison_table, run_comparison_table};

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
        (found.difference.verdict, found.difference.good)
    };
    assert_eq!(of("ping-pong", 1000.0, 1200.0), (Change::Slower, false));
    assert_eq!(of("ping-pong", 1000.0, 800.0), (Change::Faster, true));
    assert_eq!(of("pairs", 1000.0, 1200.0), (Change::Faster, true));
    assert_eq!(of("pairs", 1000.0, 800.0), (Change::Slower, false));
    assert_eq!(of("ping-pong", 1000.0, 1010.0), (Change::Same, true), "the whole interval is within the tolerance");
    assert_eq!(of("ping-pong", 1000.0, 1049.0), (Change::CannotTell, true), "slower, but does it matter?");
    assert_eq!(of("ping-pong", 1000.0, 1060.0), (Change::Slower, false), "beyond both");
}

/// A machine whose cores are 55 ns or 240 ns apart, by chance.
#[test]
fn a_large_change_among_launches_that_scatter_is_not_the_same() {
    let old = launched(&[240.0, 55.1, 239.0, 241.0, 55.0, 240.5]);
    let new = launched(&[55.2, 240.0, 55.0, 54.9, 241.0, 55.4]);
    let found = pair(old.clone(), new);
    assert_eq!((found.difference.verdict, found.difference.good), (Change::CannotTell, true));
    assert!(found.difference.change_percent.is_some_and(|change| change < -70.0), "{found:#?}");
    assert!(
        found.difference.change_low_percent < Some(-70.0) && found.difference.change_high_percent > Some(0.0),
        "{found:#?}"
    );
    assert!(found.difference.seen_from_percent.is_some_and(|least| least > 100.0), "{found:#?}");
    let tenfold = launched(&[2400.0, 551.0, 2390.0, 2410.0, 550.0, 2405.0]);
    assert_eq!(pair(old, tenfold).difference.verdict, Change::Slower);
}

#[test]
fn few_launches_tell_little_and_say_so() {
    let steady = [100.0, 100.1, 99.9, 100.0, 100.05, 99.95];
    let of = |old: usize, new: usize, factor: f64| {
        let new: Vec<_> = steady[..new].iter().map(|value| value * factor).collect();
        let found = pair(launched(&steady[..old]), launched(&new));
        (found.difference.verdict, found.difference.reason.unwrap_or_default())
    };
    let hint = "measure with --launches 6 or more";
    assert_eq!(of(6, 2, 3.0), (Change::CannotTell, format!("6 before and 2 now are too few launches: {hint}")));
    assert_eq!(of(3, 3, 3.0), (Change::Slower, String::new()));
    let few = format!("4 launches are too few to tell that nothing changed: {hint}");
    assert_eq!(of(4, 6, 1.0), (Change::CannotTell, few));
    assert_eq!(of(5, 5, 1.0), (Change::Same, String::new()));
}

/// Simulated values are the same in every launch, so one launch is enough.
#[test]
fn simulated_rows_need_no_more_than_one_launch() {
    let simulated = |value: f64| with(&launched(&[value]), |settings| settings.wait = SIMULATED.into());
    assert_eq!(pair(simulated(100.0), simulated(100.0)).difference.verdict, Change::Same);
    assert_eq!(pair(simulated(100.0), simulated(104.0)).difference.verdict, Change::Same);
    assert_eq!(pair(simulated(100.0), simulated(106.0)).difference.verdict, Change::Slower);
}

#[test]
fn untrusted_rows_do_not_fail_but_losses_do() {
    let old = row("ping-pong", "tcp", 2, 8, 1000.0);
    let slow = row("ping-pong", "tcp", 2, 8, 3000.0);
    let doubtful = pair(old.clone(), untrusted(slow.clone(), "few samples"));
    assert_eq!((doubtful.difference.verdict, doubtful.difference.good), (Change::Untrusted, true));
    assert_eq!(doubtful.difference.reason.as_deref(), Some("new file: few samples"));
    assert_eq!(pair(untrusted(old.clone(), "few samples"), slow.clone()).difference.verdict, Change::Untrusted);
    let lost = pair(old.clone(), lossy(slow.clone()));
    assert_eq!(
        (lost.difference.verdict, lost.difference.good),
        (Change::NotGood, false),
        "though a lossy row is not trusted either"
    );
    assert_eq!(pair(lossy(old.clone()), lossy(slow.clone())).difference.verdict, Change::Untrusted);
    let cores = |line_ns| CoreToCore { line_ns, message_ns: 70.5 };
    let drifted = |line_ns| Benchmark {
        calibration: Some(Calibration { before: cores(line_ns), after: cores(line_ns) }),
        ..slow.clone()
    };
    let moved = pair(old.clone(), drifted(61.0 * 1.26));
    assert_eq!((moved.difference.verdict, moved.difference.good), (Change::Untrusted, true));
    assert_eq!(
        moved.difference.reason.as_deref(),
        Some("the machine has changed: a word took 61 ns between two cores, now 77 ns")
    );
    assert_eq!(pair(old.clone(), drifted(61.0 * 1.24)).difference.verdict, Change::Slower);
    assert_eq!(
        pair(old, Benchmark { calibration: None, ..slow }).difference.verdict,
        Change::Slower,
        "calibrated in one only"
    );
}

#[test]
fn rows_are_matched_by_all_that_was_chosen() {
    let old = row("pairs", "tcp", 4, 64, 1000.0);
    let others = [
        Benchmark { transport: "shm".into(), ..old.clone() },
        Benchmark { pattern: "stream".into(), ..old.clone() },
        with(&old, |settings| settings.size_bytes = 65),
        with(&old, |settings| settings.nodes = 6),
        with(&old, |settings| settings.compute_us = 1.0),
        with(&old, |settings| settings.window = 2),
        with(&old, |settings| settings.rate_hz = Some(1.0)),
        with(&old, |settings| settings.wait = "spin".into()),
    ];
    for other in others {
        let found = compare(std::slice::from_ref(&old), &[other], 0.05);
        let verdicts: Vec<_> = found.iter().map(|row| (row.difference.verdict, row.difference.good)).collect();
        assert_eq!(verdicts, [(Change::Missing, false), (Change::New, true)], "{found:#?}");
    }
    let gone = compare(&[untrusted(old, "few samples")], &[], 0.05);
    assert_eq!(
        (gone[0].difference.verdict, gone[0].difference.good),
        (Change::Missing, true),
        "the old row was not trusted either"
    );
}

#[test]
fn a_comparison_as_a_table() {
    let old = suite();
    let mut new: Vec<_> = old.iter().filter(|row| row.settings.size_bytes != 64).cloned().collect();
    new[2] = row("pairs", "threads", 4, 8, 1e3);
    let last = new.len() - 1;
    new[last].launches = row("ping-pong", "tcp", 2, 8, 1e3).launches;
    new[last].settings.wait = "spin".into();
    let lost = new.iter_mut().find(|row| row.transport == "tcp").unwrap();
    *lost = lossy(lost.clone());
    let text = comparison_table(&compare(&old, &new, 0.05), NARROW);
    assert_narrow(&text);
    snapshot("comparison", &text);
}

/// A run that was as fast each time, and one that was slower; a point that is gone, and one that is new.
#[test]
fn runs_as_a_table() {
    let steady = |factor: f64, point: &str| {
        let mut record = samples::run();
        record.window.steady = true;
        (record.good, record.findings) = (true, Vec::new());
        record.event_rate_hz *= factor;
        record.throughput_bytes_per_s *= factor;
        record.sweep = [("builder.units".to_owned(), point.to_owned())].into();
        record
    };
    let launches = |factor: f64, point| -> Vec<Record> {
        [1.0, 1.002, 0.999, 1.001, 0.998, 1.0].iter().map(|noise| steady(factor * noise, point)).collect()
    };
    let old = [launches(1.0, "2"), launches(1.0, "4"), launches(1.0, "8")].concat();
    let new = [launches(1.001, "2"), launches(0.8, "4"), launches(1.0, "16")].concat();
    let rows = compare_runs(&old, &new, 0.05);
    let of = |point: &str, quantity: &str| {
        let row = rows.iter().find(|row| row.sweep["builder.units"] == point && row.difference.quantity == quantity);
        row.map(|row| (row.difference.verdict, row.difference.good))
    };
    assert_eq!(of("2", "event_rate_hz"), Some((Change::Same, true)));
    assert_eq!(of("4", "event_rate_hz"), Some((Change::Slower, false)));
    assert_eq!(of("8", "event_rate_hz"), Some((Change::Missing, false)));
    assert_eq!(of("16", "event_rate_hz"), Some((Change::New, true)));
    let mut whole = launches(1.0, "2");
    whole[3].window.steady = false;
    let doubtful = compare_runs(&launches(1.0, "2"), &whole, 0.05);
    assert_eq!((doubtful[0].difference.verdict, doubtful[0].difference.good), (Change::Untrusted, true));
    let mut lossy = launches(1.0, "2");
    lossy[5].good = false;
    assert_eq!(compare_runs(&launches(1.0, "2"), &lossy, 0.05)[0].difference.verdict, Change::NotGood);
    let text = run_comparison_table(&rows, NARROW);
    assert_narrow(&text);
    snapshot("run_comparison", &text);
}
