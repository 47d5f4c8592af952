//! Sweeps and seeds.

use crate::support::{Lab, PROCESSES, THREADS, check_accounts, good};
use std::fs;

const SWEPT: &str = r#"
[trigger]
type = "free-running"
events = 200
[readout]
units = 2
source = { type = "log-normal", mean = "1 kB", rms = "800 B" }
[builder]
units = 2
[storage]
keep = "none"
[sweep]
"builder.units" = [1, 3]
"protocol.type" = ["push", "pull"]
"#;

/// One record for each point, in the order of the file, the last key running fastest.
#[test]
fn a_sweep_gives_one_record_for_each_point_in_order() {
    for mode in [THREADS, PROCESSES] {
        let outcome = Lab::with(SWEPT).run(mode).run();
        assert_eq!(outcome.code(), Some(0), "{outcome}");
        let points: Vec<_> = outcome
            .records()
            .into_iter()
            .map(|record| {
                check_accounts(&record);
                assert_eq!(record.events.built, 200);
                let [units, protocol] = ["builder.units", "protocol.type"].map(|key| record.sweep[key].clone());
                assert_eq!(
                    (record.builder_units.to_string(), record.protocol.as_str()),
                    (units, protocol.trim_matches('"'))
                );
                (record.builder_units, record.protocol)
            })
            .collect();
        let wanted = [(1, "push"), (1, "pull"), (3, "push"), (3, "pull")];
        assert_eq!(points, wanted.map(|(units, protocol)| (units, protocol.to_owned())));
    }
}

/// A point that goes badly makes the whole sweep bad, and does not hide the others.
#[test]
fn one_bad_point_makes_a_sweep_bad() {
    let fault = "\n[[fault]]\nnode = \"ru0\"\naction = \"corrupt\"\none_in = 200\n";
    let lab = Lab::with(&SWEPT.replace("[sweep]", &format!("{fault}\n[sweep]\n\"fault.0.one_in\" = [100, 10_000]")));
    let outcome = lab.run(THREADS).run();
    assert_eq!(outcome.code(), Some(1), "{outcome}");
    let bad: Vec<_> = outcome.records().iter().map(|record| record.events.incomplete).collect();
    assert_eq!(bad, [2, 2, 2, 2, 0, 0, 0, 0], "{outcome}");
}

/// Points that follow each other within a millisecond keep their files apart.
#[test]
fn many_short_points_keep_their_files_apart() {
    let seeds: Vec<_> = (1..=60).collect();
    let short = SWEPT.split_once("[sweep]").unwrap().0.replace("\"none\"", "\"all\"");
    let lab = Lab::with(&format!("{short}[sweep]\n\"run.seed\" = {seeds:?}\n"));
    let outcome = lab.run(THREADS).set("trigger.events=1").set("run.workers=1").run();
    assert_eq!((outcome.code(), outcome.records().len()), (Some(0), 60), "{outcome}");
    assert_eq!(lab.stored_files().len(), 2 * 60);
}

/// The same seed gives the same bytes, whatever carries the nodes, and another seed gives others.
#[test]
fn the_seed_decides_every_byte() {
    let exported = |mode: &[&str], seed: &[&str]| {
        let lab = Lab::with(&SWEPT.split_once("[sweep]").unwrap().0.replace("\"none\"", "\"all\""));
        let record = good(&lab.run(mode).args(seed).run());
        let export =
            lab.evb(&["events", "export", "--format", "payloads", "-o", "out"]).paths(&lab.stored_files()).run();
        assert_eq!(export.code(), Some(0), "{export}");
        let files = ["source-000.raw", "source-001.raw"];
        (record.seed, files.map(|file| fs::read(lab.path("out").join(file)).unwrap()))
    };
    let (seed, one) = exported(THREADS, &["--seed", "7"]);
    assert_eq!(seed, 7);
    assert!(exported(PROCESSES, &["--seed", "7"]).1 == one);
    assert!(exported(THREADS, &["--set", "run.seed=7"]).1 == one);
    assert!(exported(THREADS, &["--seed", "8"]).1 != one);
    assert!(one[0] != one[1]);
}
