use crate::samples;
use evb_record::{Dip, Events, Finding, FindingKind, NetworkFault, Record, Timeline};
use evb_report::{NARROW, csv, groups_csv, links_csv, run_summary, simulation_summary, sweep_table};

pub(crate) fn snapshot(name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn summaries() {
    snapshot("run", &run_summary(&samples::run(), NARROW));
    snapshot("good_simulation", &simulation_summary(&samples::simulation(), NARROW));
    snapshot("bad_simulation", &simulation_summary(&samples::bad_simulation(), NARROW));
    let mut gathering = samples::simulation();
    gathering.protocol = "gather".into();
    gathering.simulation.as_mut().unwrap().network.links.clear();
    snapshot("gathering", &simulation_summary(&gathering, NARROW));
}

#[test]
fn a_summary_says_what_a_fault_did_and_what_was_of_use() {
    let mut record = samples::bad_simulation();
    record.goodput_bytes_per_s = Some(0.25 * record.throughput_bytes_per_s);
    let simulation = record.simulation.as_mut().unwrap();
    simulation.goodput_efficiency = Some(0.25 * simulation.efficiency);
    let dip = Dip {
        before_hz: 20_000.0,
        lowest_hz: 9_500.0,
        recovered_after_s: Some(7e-3),
        after_hz: 20_000.0,
        resolution_s: 1e-3,
    };
    simulation.network.faults = vec![NetworkFault {
        target: "spine0".into(),
        action: "fail".into(),
        at_s: 20e-3,
        until_s: None,
        rerouted_s: Some(25e-3),
        rerouted_packets: 214,
        lost_packets: 3,
        cut_off: Vec::new(),
        dip: Some(dip),
    }];
    let rate = |step: u32| if (26..35).contains(&step) { f64::from(step - 26) * 2_000.0 } else { 20_000.0 };
    simulation.network.timeline = Some(Timeline { step_s: 1e-3, rates_hz: (0..64).map(rate).collect() });
    snapshot("faulty_simulation", &simulation_summary(&record, NARROW));
    snapshot("faulty_sweep", &sweep_table(&[record, samples::simulation()], NARROW));
}

#[test]
fn a_summary_shows_connections_over_time_where_something_was_sent_again() {
    let mut record = samples::lossy_simulation();
    snapshot("lossy_simulation", &simulation_summary(&record, NARROW));
    let connections = record.simulation.as_mut().unwrap().network.connections.as_mut().unwrap();
    let over_time = connections.over_time.as_mut().unwrap();
    (over_time.sent_again, over_time.timeouts) = (vec![0; 64], vec![0; 64]);
    let text = simulation_summary(&record, NARROW);
    assert!(text.contains("connections") && !text.contains("over time"), "{text}");
}

#[test]
fn a_summary_says_how_many_fragments_belong_to_no_event_and_where_they_are() {
    let mut record = samples::run();
    assert!(!run_summary(&record, NARROW).contains("set apart"));
    record.readouts[0].apart_by_reason = [("early".to_owned(), 3)].into();
    record.readouts[1].apart_by_reason = [("duplicate".to_owned(), 2), ("out_of_step".to_owned(), 38)].into();
    record.readouts[1].apart_files = vec!["evb-data/lab-7-ru1.apart.evb".to_owned()];
    let summary = run_summary(&record, 200);
    let row = summary.lines().find(|line| line.trim_start().starts_with("set apart")).expect("a row");
    let text = "ru0 3 early (not stored); ru1 2 duplicate, 38 out of step (lab-7-ru1.apart.evb)";
    assert!(row.ends_with(text), "{row}");
}

/// A record of phased building, in which most events were rejected.
fn phased(record: Record) -> Record {
    let events = Events { triggered: 10_000, built: 2000, rejected: 8000, ..Events::default() };
    let mut record = Record { protocol: "phased".into(), events, good: true, ..record };
    (record.findings, record.lost_nodes, record.faults) = Default::default();
    let count = record.builders.len() as u64;
    for builder in &mut record.builders {
        (builder.built, builder.incomplete, builder.rejected) = (2000 / count, 0, 8000 / count);
    }
    record
}

#[test]
fn what_was_rejected_is_shown_where_there_is_any() {
    snapshot("phased_run", &run_summary(&phased(samples::run()), NARROW));
    snapshot("phased_simulation", &simulation_summary(&phased(samples::simulation()), NARROW));
    snapshot("phased_sweep", &sweep_table(&[phased(samples::simulation()), samples::simulation()], NARROW));
    let bad = Record {
        good: false,
        findings: vec![Finding::new(FindingKind::Failed, "bu0", "a note")],
        ..phased(samples::run())
    };
    assert!(run_summary(&bad, NARROW).ends_with("not good: failed, see above\n"));
}

/// The last line names the reason of the worst finding, and an open verdict is neither of the others.
#[test]
fn the_last_line_has_the_verdict_and_its_reason() {
    let last_line = |kinds: &[FindingKind], incomplete: u64| {
        let mut record = samples::run();
        record.findings = kinds.iter().map(|kind| Finding::new(*kind, "ru0", "a note")).collect();
        (record.events.built, record.events.incomplete) = (record.events.triggered - incomplete, incomplete);
        run_summary(&record.judged(), NARROW).lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(last_line(&[FindingKind::NotConfirmed], 0), "cannot tell: not confirmed, see above");
    let both = [FindingKind::NotConfirmed, FindingKind::SilentSource];
    assert_eq!(last_line(&both, 0), "not good: silent source, see above");
    let of = "of 10000 events 3 are incomplete and 0 are lost";
    assert_eq!(last_line(&both[..1], 3), format!("not good: {of}"));
    assert_eq!(last_line(&[FindingKind::LostNode], 3), format!("not good: lost node, see above; {of}"));
    assert!(last_line(&[FindingKind::NoSteadyState], 0).starts_with("good: all "));
}

#[test]
fn a_sweep_is_as_good_as_its_worst_point() {
    let point = |kind: Option<FindingKind>| {
        let mut record = samples::simulation();
        record.findings = kind.map(|kind| Finding::new(kind, "trigger.rate", "a note")).into_iter().collect();
        record.judged()
    };
    let (good, open, bad) =
        (point(None), point(Some(FindingKind::RateNotJudged)), point(Some(FindingKind::RateNotKept)));
    let text = sweep_table(&[good.clone(), open.clone()], NARROW);
    assert!(
        text.contains("because") && !text.contains("not good") && text.ends_with("cannot tell: 1 of 2 points\n"),
        "{text}"
    );
    let text = sweep_table(&[good, open, bad], NARROW);
    assert!(text.contains("cannot tell: a "), "{text}");
    assert!(text.ends_with("not good: 1 of 3 points\n"), "{text}");
}

#[test]
fn sweeps() {
    snapshot("sweep", &sweep_table(&samples::sweep(), NARROW));
    let mut records = samples::loads();
    records[3] = Record { sweep: records[3].sweep.clone(), ..samples::bad_simulation() };
    records[4].good = false;
    let refused = "17 offered messages were refused: the senders did not keep up";
    records[4].findings.push(Finding::new(FindingKind::RateNotKept, "workload.load", refused));
    snapshot("sweep_with_bad_points", &sweep_table(&records, NARROW));
    snapshot("sweep_of_real_runs", &sweep_table(&[samples::run(), samples::run()], NARROW));
    assert!(sweep_table(&[], NARROW).contains("not good: the sweep has no points"));
}

/// Means with intervals where there are several replicates; where there is one, nothing is said about the interval.
#[test]
fn replicates_are_one_row() {
    let replicate = |routing: &str, seed: u64, rate: f64| {
        let sweep = [("network.routing".into(), routing.into()), ("run.seed".into(), seed.to_string())].into();
        Record { sweep, seed, event_rate_hz: rate, ..samples::simulation() }
    };
    let mut records = vec![
        replicate("random", 1, 10_000.0),
        replicate("fixed", 1, 20_000.0),
        replicate("random", 2, 11_000.0),
        replicate("random", 3, 12_000.0),
    ];
    snapshot("replicates", &sweep_table(&records, 100));
    snapshot("groups_csv", &groups_csv(&records).unwrap());
    let bad = Record { sweep: records[3].sweep.clone(), ..samples::bad_simulation() };
    records[3] = bad.judged();
    snapshot("replicates_with_a_bad_one", &sweep_table(&records, 100));
    assert_eq!(groups_csv(&records[..2]), None, "there are no replicates yet");
    assert!(sweep_table(&records[..2], 200).contains("run.seed"));
}

#[test]
fn lines_of_csv() {
    let mut records = samples::loads();
    records.truncate(2);
    records[1].experiment = "with \"quotes\", commas\nand lines".into();
    records[1].faults = [("late".to_owned(), 7)].into();
    records[1].latency_us.p50 = f64::NAN;
    snapshot("csv", &csv(&records));
    records[0].simulation.as_mut().unwrap().network.links.truncate(2);
    snapshot("links_csv", &links_csv(&records[..1]));
}

#[test]
fn cells_of_csv_are_quoted_when_they_must_be() {
    let cases = [
        ("plain text", "plain text"),
        ("a,b", "\"a,b\""),
        ("a\nb", "\"a\nb\""),
        ("a\rb", "\"a\rb\""),
        ("a\"b", "\"a\"\"b\""),
    ];
    for (name, cell) in cases {
        let text = csv(&[Record { experiment: name.into(), ..samples::run() }]);
        assert!(text.contains(&format!("run,{cell},1,")), "{name:?}: {text}");
    }
}

#[test]
fn csv_has_every_scalar_of_a_record_and_its_value() {
    let mut record = samples::bad_simulation();
    record.sweep = [("network.routing".to_owned(), "random".to_owned())].into();
    let mut fields = Vec::new();
    samples::flatten("", &serde_json::to_value(&record).unwrap(), &mut fields);
    // It would make the tables of equal simulations different.
    fields.retain(|(name, _)| name != "wall_seconds");
    let text = csv(&[record]);
    assert!(!text.contains("wall_seconds"));
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    for (name, value) in &fields {
        let name = name.strip_prefix("sweep.").unwrap_or(name);
        let at = names.iter().position(|found| *found == name).unwrap_or_else(|| panic!("no {name}"));
        // The swept key selects the field of its name.
        let expected = if name == "network.routing" { "random" } else { value };
        let both = (values[at].parse::<f64>(), expected.parse::<f64>());
        assert!(values[at] == expected || matches!(both, (Ok(a), Ok(b)) if a == b), "{name}: {} {value}", values[at]);
    }
    let distinct: std::collections::BTreeSet<_> = names.iter().collect();
    assert_eq!(distinct.len(), names.len(), "a name is there twice");
}

#[test]
fn csv_has_every_scalar_of_a_link() {
    let record = samples::simulation();
    let mut fields = Vec::new();
    let link = &record.simulation.as_ref().unwrap().network.links[0];
    samples::flatten("", &serde_json::to_value(link).unwrap(), &mut fields);
    let text = links_csv(&[record]);
    let mut names: Vec<_> = text.lines().next().unwrap().split(',').skip(1).collect();
    names.sort_unstable();
    let mut expected: Vec<_> = fields.iter().map(|field| field.0.as_str()).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
}

#[test]
fn real_and_simulated_records_together() {
    let text = csv(&[samples::run(), samples::simulation()]);
    let cells: Vec<_> = text.lines().map(|line| line.split(',').count()).collect();
    assert!(cells.iter().all(|count| *count == cells[0]), "{cells:?}");
    assert!(!csv(&[samples::run()]).contains("wall_seconds"));
    assert_eq!(links_csv(&[samples::run()]).lines().count(), 1);
}

/// Numbers that are none, and lists that are empty, in every text.
#[test]
fn impossible_numbers_do_no_harm() {
    for value in [f64::NAN, f64::INFINITY, -1.0, 0.0] {
        let mut record = samples::simulation();
        record.seconds = value;
        record.latency_us.p50 = value;
        record.per_destination_bytes_per_s = vec![value];
        let simulation = record.simulation.as_mut().unwrap();
        simulation.wall_seconds = value;
        simulation.efficiency = value;
        for link in &mut simulation.network.links {
            (link.blocked, link.mean_wait_us) = (value, value);
        }
        let empty = Record { per_destination_bytes_per_s: Vec::new(), ..record.clone() };
        for record in [record, empty] {
            assert!(!simulation_summary(&record, NARROW).is_empty());
            let records = [record];
            assert!(!sweep_table(&records, NARROW).is_empty());
            assert!(!csv(&records).contains("NaN"));
            assert!(!links_csv(&records).contains("inf"));
        }
    }
}
