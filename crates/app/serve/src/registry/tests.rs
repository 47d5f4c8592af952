use super::*;
use evb::{Config, Keep, Plan, SourceSpec, run_in_threads};
use evb_record::{Finding, FindingKind, Record};

pub(super) fn begun(number: u64) -> Begun {
    Begun {
        number,
        run_type: "physics".into(),
        experiment: "two-by-two".into(),
        comment: "first, \"light\"".into(),
        started: 1000.5,
        host: "daq1".into(),
        version: "0.1.0".into(),
        seed: u64::MAX,
        experiment_text: "[experiment]\n".into(),
        nodes: vec![NodeOfRun { name: "evm".into(), host: "daq2".into(), clock_ahead_s: -0.25 }],
    }
}

pub(super) fn ended() -> Ended {
    let building = Config { events: Some(100), ..Config::new(2, 2) };
    let mut plan = Plan::new(building, SourceSpec::Fixed { size: "2 kB".parse().unwrap() });
    plan.storage.keep = Keep::None;
    let record = run_in_threads(&plan, "", &mut ()).unwrap();
    Ended { state: "stopped", ended: 1010.25, comment: "=done".into(), record }
}

#[test]
fn runs_come_back_with_all_that_was_noted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new/runs.db");
    let registry = Registry::create(&path).unwrap();
    assert_eq!(registry.latest().unwrap(), 0);
    registry.begin(&begun(7)).unwrap();
    assert!(registry.begin(&begun(7)).is_err(), "a number is taken once");
    let end = ended();
    registry.end(7, &end).unwrap();
    assert!(registry.comment(7, "changed").unwrap());
    assert!(!registry.comment(8, "there is none").unwrap());
    drop(registry);
    let registry = Registry::open(&path).unwrap();
    let run = registry.show(7).unwrap().unwrap();
    assert_eq!((run.row.state.as_str(), run.row.ended, run.row.good), ("stopped", Some(1010.25), Some(true)));
    assert_eq!((run.row.events, run.row.comment.as_str(), run.seed), (100, "changed", u64::MAX));
    assert_eq!(run.record, Some(end.record));
    assert_eq!((run.nodes[0].host.as_str(), run.nodes[0].clock_ahead_s), ("daq2", -0.25));
    assert!(registry.show(8).unwrap().is_none());
    assert!(registry.show(u64::MAX).unwrap().is_none(), "the number is too large for the database");
    assert_eq!(registry.latest().unwrap(), 7);
}

#[test]
fn the_verdict_is_that_of_the_record_or_follows_from_good_in_earlier_ones() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::create(&folder.path().join("runs.db")).unwrap();
    let finished = ended();
    let undecided = Finding::new(FindingKind::NotConfirmed, "ru0", "a note");
    let judged = |findings: Vec<Finding>| Record { findings, ..finished.record.clone() }.judged();
    let earlier = |good: bool| Record { good, verdict: None, ..finished.record.clone() };
    let records = [judged(vec![]), judged(vec![undecided]), earlier(true), earlier(false)];
    for (number, record) in (1..).zip(records) {
        registry.begin(&begun(number)).unwrap();
        registry.end(number, &Ended { record, ..ended() }).unwrap();
    }
    registry.begin(&begun(5)).unwrap();
    let runs = registry.list(None, 5).unwrap();
    let verdicts: Vec<_> = runs.iter().rev().map(|run| run.verdict).collect();
    let (good, open, bad) = (Some(Outcome::Good), Some(Outcome::CannotTell), Some(Outcome::NotGood));
    assert_eq!(verdicts, [good, open, good, bad, None]);
    assert!(csv(&runs).contains(",false,cannot_tell,"), "{}", csv(&runs));
    registry.close_interrupted().unwrap();
    assert_eq!(registry.list(None, 1).unwrap()[0].verdict, bad);
}

#[test]
fn a_run_without_a_recorded_end_is_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let registry = Registry::create(&path).unwrap();
    for number in 1..=5 {
        registry.begin(&begun(number)).unwrap();
        if number < 5 {
            registry.end(number, &ended()).unwrap();
        }
    }
    drop(registry);
    let registry = Registry::create(&path).unwrap();
    assert_eq!(registry.close_interrupted().unwrap(), 1);
    assert_eq!(registry.close_interrupted().unwrap(), 0);
    let numbers = |runs: Vec<RunRow>| runs.into_iter().map(|run| run.number).collect::<Vec<_>>();
    assert_eq!(numbers(registry.list(None, 3).unwrap()), [5, 4, 3]);
    assert_eq!(numbers(registry.list(Some(3), 3).unwrap()), [2, 1]);
    assert_eq!(registry.list(None, 1).unwrap()[0].state, "interrupted");
}

#[test]
fn a_later_layout_and_other_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    drop(Registry::create(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", 9).unwrap();
    assert!(matches!(Registry::create(&path), Err(RegistryError::Layout { found: 9, .. })));
    assert!(matches!(Registry::open(&path), Err(RegistryError::Layout { found: 9, .. })));
    std::fs::write(folder.path().join("other"), "this is a text of some length, and no database at all").unwrap();
    assert!(matches!(Registry::create(&folder.path().join("other")), Err(RegistryError::Database { .. })));
    assert!(matches!(Registry::open(&folder.path().join("none")), Err(RegistryError::Database { .. })));
}

#[test]
fn csv_keeps_commas_and_quotes_and_has_no_formulas() {
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::create(&folder.path().join("runs.db")).unwrap();
    registry.begin(&begun(1)).unwrap();
    registry.end(1, &ended()).unwrap();
    let text = csv(&registry.list(None, 10).unwrap());
    let line = text.lines().nth(1).unwrap();
    assert!(
        line.starts_with("1,physics,two-by-two,\"first, \"\"light\"\"\",'=done,stopped,1000.500,1010.250,100,"),
        "{line}"
    );
    assert_eq!(text.lines().next().unwrap().split(',').count(), 15);
}

#[test]
fn parquet_has_all_runs_and_missing_values() {
    use ::parquet::{
        file::reader::{FileReader as _, SerializedFileReader},
        record::RowAccessor as _,
    };
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::create(&folder.path().join("runs.db")).unwrap();
    registry.begin(&begun(1)).unwrap();
    registry.end(1, &ended()).unwrap();
    registry.begin(&begun(2)).unwrap();
    let path = folder.path().join("runs.parquet");
    parquet(&registry.list(None, 10).unwrap(), std::fs::File::create(&path).unwrap()).unwrap();
    let file = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
    let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2);
    assert_eq!((rows[0].get_long(0).unwrap(), rows[1].get_long(0).unwrap()), (2, 1), "the latest first");
    assert_eq!(rows[1].get_string(3).unwrap(), "first, \"light\"");
    assert_eq!((rows[1].get_double(7).unwrap(), rows[1].get_bool(11).unwrap()), (1010.25, true));
    assert!(rows[0].get_double(7).is_err() && rows[0].get_bool(11).is_err(), "no end yet");
}
