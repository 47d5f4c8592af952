//! Every table in a narrow terminal and in a wide one: what does not fit makes room by its importance, and is named.

use crate::{
    benchmarks::{assert_narrow, row, suite},
    papers, samples,
};
use evb_record::{BuilderRecord, Events, PaperItem, PaperReport, Record};
use evb_report::{
    NARROW, benchmark_tables, compare, comparison_table, paper_summary, run_summary, simulation_summary, sweep_table,
};

/// So wide that everything fits.
const WIDE: usize = 300;
const MISSING: &str = "no room for: ";

/// A run with large numbers, faults of all kinds and events of all kinds.
fn run() -> Record {
    let many = 123_456_789;
    let builder = BuilderRecord {
        built: many,
        incomplete: many,
        rejected: many,
        fragments: many * 10,
        bytes: many,
        stored: many,
        stored_bytes: many,
        files: vec!["evb-data/a-run-with-a-name/bu0-000.evb".into()],
        ..BuilderRecord::default()
    };
    let kinds = ["missing", "late", "duplicate", "corrupted", "oversized", "out_of_sequence", "resynchronised"];
    Record {
        events: Events { triggered: many, built: many, rejected: many, ..Events::default() },
        builders: vec![builder; 2],
        faults: kinds.map(|kind| (kind.to_owned(), many)).into(),
        ..samples::run()
    }
}

/// A simulation that has something in every column of its links.
fn simulation() -> Record {
    let mut record = samples::clos();
    for (n, link) in (1..).zip(&mut record.simulation.as_mut().unwrap().network.links) {
        (link.packets, link.bytes, link.most_bytes) = (n * 1_000_000, n, n * 1_000_000);
        (link.mean_wait_us, link.most_waiting, link.dropped, link.pauses) = (12_345.0, n * 100, n * 1000, n * 1000);
    }
    record
}

/// A sweep of several keys with points that are not good.
fn sweep() -> Vec<Record> {
    let keys = ["readout.source.mean", "network.routing.type", "builder.protocol", "workload.load"];
    let swept =
        |record: Record| Record { sweep: keys.map(|key| (key.to_owned(), "12.5 kB".to_owned())).into(), ..record };
    vec![swept(run()), swept(simulation()), swept(samples::bad_simulation())]
}

/// All published values of a paper, as they came out last.
fn paper(expected: &str) -> PaperReport {
    let items: Vec<PaperItem> = expected.lines().map(|line| serde_json::from_str(line).expect("an item")).collect();
    PaperReport { items, findings: Vec::new(), tables: Vec::new(), ..papers::report() }
}

#[test]
fn every_table_is_as_narrow_as_the_terminal() {
    let all = suite();
    let mut now = suite();
    now.iter_mut().for_each(|row| row.settings.compute_us = 100.0);
    now.extend(suite());
    now[0].settings.wait = "spin".into();
    let many: Vec<_> = (0..12).map(|n| row("stream", &format!("ofi:provider;{n}"), 64, 16_777_216, 54_321.0)).collect();
    let texts = |width| {
        vec![
            run_summary(&run(), width),
            simulation_summary(&simulation(), width),
            sweep_table(&sweep(), width),
            benchmark_tables(&all, &crate::benchmarks::parameters(), width),
            benchmark_tables(&many, &[], width),
            comparison_table(&compare(&all, &now, 0.05), width),
            paper_summary(&papers::report(), width),
        ]
    };
    for text in texts(NARROW) {
        assert_narrow(&text);
    }
    for text in texts(WIDE) {
        assert!(!text.contains(MISSING), "{text}");
    }
}

#[test]
fn tables_of_all_papers_are_narrow() {
    for expected in [
        include_str!("../../../../../papers/atlas-communication-1997/expected.jsonl"),
        include_str!("../../../../../papers/atlas-ethernet-1998/expected.jsonl"),
        include_str!("../../../../../papers/cms-adaptive-routing-2007/expected.jsonl"),
        include_str!("../../../../../papers/cms-demonstrator-1999/expected.jsonl"),
        include_str!("../../../../../papers/hluchyj-karol-1988/expected.jsonl"),
        include_str!("../../../../../papers/karol-1987/expected.jsonl"),
        include_str!("../../../../../papers/patel-1981/expected.jsonl"),
        include_str!("../../../../../papers/pollaczek-1930/expected.jsonl"),
        include_str!("../../../../../papers/velo-2008/expected.jsonl"),
    ] {
        let text = paper_summary(&paper(expected), NARROW);
        assert_narrow(&text);
        assert!(text.contains("verdict") && text.contains("ours"), "these are never left out: {text}");
    }
}

#[test]
fn the_least_important_columns_make_room_and_are_named() {
    let text = simulation_summary(&simulation(), NARROW);
    assert!(text.contains("no room for: pauses\n"), "{text}");
    assert!(text.contains("dropped"), "{text}");
    let text = run_summary(&run(), NARROW);
    assert!(text.contains("no room for: fragments\n"), "{text}");
    let text = sweep_table(&sweep(), NARROW);
    assert!(text.contains("because") && text.contains("event"), "{text}");
}
