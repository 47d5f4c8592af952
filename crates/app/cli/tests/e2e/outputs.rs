//! Output that cannot be written is an error, never lost silently.

use crate::support::{
    Lab, Outcome, PROCESSES, SHORT_FILES, TCP_PROCESSES, THREADS, never_stood_still, not_good, read_all, wait_until,
};
use std::fs;

const SMALL: &str = r#"
[trigger]
type = "free-running"
events = 200
[readout]
units = 2
source = { type = "fixed", size = "1 kB" }
[builder]
units = 1
"#;

/// The command in a shell, which sends its output where `redirected` says.
fn shell(lab: &Lab, redirected: &str, arguments: &[&str]) -> Outcome {
    let script = format!("\"$0\" \"$@\" {redirected}");
    lab.evb(arguments).under(&["bash", "-c", &script]).run()
}

#[test]
fn a_full_standard_output_is_told() {
    let lab = Lab::with(SMALL);
    assert_eq!(lab.evb(&["run", "experiment.toml", "-q"]).run().code(), Some(0));
    let benchmark =
        ["bench", "ping-pong", "--transport", "threads", "--sizes", "8B", "--nodes", "2", "--launches", "1"];
    let benchmark = [&benchmark[..], &["--time", "1ms", "--warmup", "1ms", "-q", "--no-pin"]].concat();
    let outcome = lab.evb(&[&benchmark[..], &["--json"]].concat()).run();
    lab.write("records.jsonl", &outcome.stdout);
    let file = lab.stored_files().remove(0);
    let file = file.to_str().unwrap();
    let commands: [&[&str]; 15] = [
        &["run", "experiment.toml", "--json", "-q"],
        &["run", "experiment.toml", "-q"],
        &["simulate", "experiment.toml", "--json", "-q"],
        &["simulate", "experiment.toml", "-q"],
        &["check", "experiment.toml"],
        &benchmark,
        &["compare", "records.jsonl", "records.jsonl"],
        &["compare", "records.jsonl", "records.jsonl", "--json"],
        &["events", "verify", file],
        &["events", "verify", file, "--json"],
        &["events", "show", file],
        &["events", "export", file, "--format", "csv"],
        &["events", "export", file, "--format", "csv", "--output", "/dev/full"],
        &["--help"],
        &["--version"],
    ];
    for command in commands {
        let outcome = shell(&lab, ">/dev/full", command);
        assert_eq!(outcome.code(), Some(2), "{command:?}: {outcome}");
        let is_told = outcome.stderr.contains("No space left on device") || command.contains(&"--output");
        assert!(is_told && outcome.stderr.starts_with("error: "), "{command:?}: {outcome}");
    }
}

#[test]
fn files_that_cannot_be_written_are_told() {
    let lab = Lab::with(SMALL);
    fs::create_dir(lab.path("out")).unwrap();
    for name in ["points.csv", "links.csv"] {
        std::os::unix::fs::symlink("/dev/full", lab.path("out").join(name)).unwrap();
        let outcome = lab.evb(&["simulate", "experiment.toml", "-q", "--out", "out", "--resume"]).run();
        assert_eq!(outcome.code(), Some(2), "{outcome}");
        assert!(outcome.stderr.contains(name), "{outcome}");
        fs::remove_file(lab.path("out").join(name)).unwrap();
    }
    let outcome = lab.evb(&["simulate", "experiment.toml", "-q", "--trace", "/dev/full"]).run();
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains("/dev/full") || outcome.stderr.contains("trace"), "{outcome}");
}

/// `head` has what it wanted: no error, and the exit status of the result. The reader is gone before the first byte.
#[test]
fn a_reader_that_goes_ends_nothing() {
    let lab = Lab::with(SMALL);
    assert_eq!(lab.evb(&["run", "experiment.toml", "-q"]).run().code(), Some(0));
    let file = lab.stored_files().remove(0);
    let commands: [&[&str]; 4] = [
        &["check", "experiment.toml"],
        &["simulate", "experiment.toml", "-q"],
        &["events", "export", file.to_str().unwrap(), "--format", "csv"],
        &["--help"],
    ];
    for command in commands {
        let script = "exec 3> >(true); wait $!; exec \"$0\" \"$@\" >&3";
        let outcome = lab.evb(command).under(&["bash", "-c", script]).run();
        assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(0), ""), "{command:?}: {outcome}");
    }
}

/// A file that may not grow further is a full disk: the run stops, says how much was needed, and what is stored is valid.
#[test]
fn the_limit_of_file_sizes_stops_a_run_as_a_full_disk_does() {
    for mode in [THREADS, TCP_PROCESSES] {
        let lab = Lab::with(SMALL);
        let outcome = lab.run(mode).set("trigger.events=100000").under(&SHORT_FILES).run();
        let record = not_good(&outcome);
        let findings = format!("{:?}", record.findings);
        for part in ["File too large", " bytes in ", "ulimit -f"] {
            assert!(findings.contains(part), "{part}: {outcome}");
        }
        never_stood_still(&record);
        let files = lab.stored_files();
        read_all(&files).check_generated(record.seed, 2);
        let found = lab.verify(&files).json();
        assert_eq!((&found["intact"], &found["damaged"]), (&true.into(), &0.into()), "{found}");
    }
}

#[test]
fn the_limit_of_file_sizes_is_reported_for_other_outputs() {
    let lab = Lab::with(SMALL);
    let limited = ["bash", "-c", "ulimit -f 0; \"$0\" \"$@\" >out.txt"];
    for command in [&["check", "experiment.toml"][..], &["simulate", "experiment.toml", "-q", "--trace", "trace.txt"]] {
        let outcome = lab.evb(command).under(&limited).run();
        assert_eq!(outcome.code(), Some(2), "{outcome}");
        assert!(outcome.stderr.contains("File too large"), "{outcome}");
    }
}

/// A table that cannot be finished is reported and removed.
#[test]
fn the_limit_of_file_sizes_leaves_no_part_of_a_table() {
    let lab = Lab::with(SMALL);
    assert_eq!(lab.run(THREADS).set("trigger.events=1000").run().code(), Some(0));
    let file = lab.stored_files().remove(0);
    for format in ["parquet", "arrow"] {
        let export = ["events", "export", file.to_str().unwrap(), "--format", format, "--output", "table"];
        let outcome = lab.evb(&export).under(&SHORT_FILES).run();
        assert_eq!(outcome.code(), Some(2), "{outcome}");
        assert!(outcome.stderr.starts_with("error: cannot write table: File too large"), "{outcome}");
        assert!(!lab.path("table").exists(), "{outcome}");
    }
}

/// Runs that begin at once in one folder never take each other's numbers, and leave nothing there but the latest of them.
#[test]
fn runs_that_begin_together_have_names_of_their_own() {
    let lab = Lab::with(SMALL);
    for round in 1..=3 {
        let runs: Vec<_> = (0..8).map(|_| lab.run(&["-q"]).set("trigger.events=1").start()).collect();
        for run in runs {
            let outcome = run.wait();
            assert_eq!(outcome.code(), Some(0), "{outcome}");
        }
        wait_until("one file for each run", || (lab.stored_files().len() == round * 8).then_some(()));
        let beside = fs::read_dir(lab.path("evb-data")).unwrap().count() - round * 8;
        assert_eq!(beside, 1, "the number of the latest run");
    }
}

/// A builder with more files than a report may name goes on, and the record counts them.
#[test]
fn very_many_files_are_counted() {
    for mode in [THREADS, PROCESSES] {
        let lab = Lab::with(SMALL);
        let outcome = lab.run(mode).set("trigger.events=3000").set("storage.file_size=\"4 KiB\"").run();
        assert_eq!(outcome.code(), Some(0), "{outcome}");
        let builder = &outcome.record().builders[0];
        let files = lab.stored_files().len();
        assert!(files > 1000, "{files}");
        assert_eq!((builder.file_count, builder.files.len()), (files as u64, 1000));
    }
}
