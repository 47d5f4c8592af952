//! A disk that fills up stops the run cleanly: what is stored is valid, and the error says what was needed.

use crate::support::{
    Lab, Outcome, PROCESSES, THREADS, can_mount, good, never_stood_still, not_good, read_all, stored_files,
};
use evb_record::{Finding, FindingKind};
use std::path::PathBuf;

const LARGE: &str = r#"
[trigger]
type = "free-running"
duration = "50 s"
[readout]
units = 2
source = { type = "fixed", size = "10 kB" }
[builder]
units = 2
[storage]
directory = "disk"
"#;

/// Makes a disk of 3 MB that only the command sees, and copies what it holds out when the command has ended.
const ON_A_SMALL_DISK: &str = r#"mkdir disk && mount -t tmpfs -o size=3m none disk || exit 77
"$0" "$@"
status=$?
cp disk/*.evb copied/ || exit 78
exit $status"#;

fn run_on_a_small_disk(lab: &Lab, mode: &[&str], compression: &str) -> Outcome {
    std::fs::create_dir(lab.path("copied")).unwrap();
    let run = lab.run(mode).set(&format!("storage.compression={compression:?}"));
    run.under(&["unshare", "--mount", "sh", "-c", ON_A_SMALL_DISK]).run()
}

#[test]
fn a_full_disk_stops_the_run_and_keeps_stored_events() {
    for (mode, compression) in [(THREADS, "none"), (PROCESSES, "none"), (THREADS, "zstd")] {
        let lab = Lab::with(LARGE);
        if !can_mount(&lab) {
            return;
        }
        let outcome = run_on_a_small_disk(&lab, mode, compression);
        let record = not_good(&outcome);
        never_stood_still(&record);
        let note = record.findings.iter().find(|finding| finding.message.contains("No space left on device"));
        let Finding { kind, message, hint, .. } = note.unwrap_or_else(|| panic!("{outcome}"));
        assert_eq!(*kind, FindingKind::Failed, "{outcome}");
        assert!(message.contains("bytes") && message.chars().any(|c| c.is_ascii_digit()), "{message}");
        assert!(hint.as_ref().is_some_and(|hint| hint.starts_with("free some space")), "{outcome}");
        let files = stored_files(&lab.path("copied"));
        let stored = read_all(&files);
        stored.check_generated(record.seed, 2);
        assert!(stored.events.len() as u64 >= record.events.built, "{outcome}");
        let found = lab.verify(&files).json();
        assert_eq!((&found["intact"], &found["damaged"]), (&true.into(), &0.into()), "{found}");
    }
}

/// Every command reads a compressed file as one that is not.
#[test]
fn a_compressed_file_is_read_as_any_other() {
    let lab = Lab::with(&LARGE.replace("duration = \"50 s\"", "events = 300").replace("\"disk\"", "\"evb-data\""));
    let record = good(&lab.run(THREADS).set("storage.compression=\"zstd\"").run());
    let files = lab.stored_files();
    assert!(files.iter().all(|file| std::fs::read(file).is_ok_and(|bytes| bytes[8..12] == *b"evbz")), "{files:?}");
    read_all(&files).check_generated(record.seed, 2);
    let found = lab.verify(&files).json();
    assert_eq!((&found["intact"], &found["events"]), (&true.into(), &300.into()), "{found}");
    let names: Vec<_> = files.iter().map(|file| file.to_str().expect("a name")).collect();
    let table = lab.evb(&["events", "export", "--format", "csv"]).args(&names).run();
    assert_eq!(table.stdout.lines().count(), 1 + 2 * 300, "{table}");
}

/// A folder that cannot be written ends the run before it begins.
#[test]
fn a_folder_that_cannot_be_made_is_reported_at_once() {
    for mode in [THREADS, PROCESSES] {
        let lab = Lab::with(LARGE);
        lab.write("disk", "a file where the folder should be");
        let outcome = lab.run(mode).run();
        assert_eq!(outcome.code(), Some(2), "{outcome}");
        assert!(outcome.stderr.contains("disk"), "{outcome}");
        assert_eq!(outcome.stdout, "");
    }
}

/// `evb-data/*` names the file with the latest run number, too. Another file that is none of events is an error.
#[test]
fn the_file_of_the_run_number_is_left_out() {
    let lab = Lab::with(LARGE);
    lab.run(THREADS).set("storage.directory=evb-data").set("trigger.duration=1 ms").run();
    let all = || {
        let entries = std::fs::read_dir(lab.path("evb-data")).expect("the folder of the events").flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let number = lab.path("evb-data/run-number");
    assert!(all().contains(&number));
    let events = |what: &str, files: &[PathBuf]| lab.evb(&["events", what]).paths(files).run();
    for what in ["verify", "show"] {
        let outcome = events(what, &all());
        assert_eq!(outcome.code(), Some(0), "{outcome}");
        assert!(outcome.stderr.contains("run-number is left out"), "{outcome}");
    }
    let outcome = events("verify", &[number]);
    assert!(outcome.code() == Some(2) && outcome.stderr.contains("no event file is given"), "{outcome}");
    std::fs::write(lab.path("evb-data/run-number.txt"), "1\n").expect("a file");
    let outcome = events("verify", &all());
    assert!(outcome.code() == Some(2) && outcome.stderr.contains("run-number.txt"), "{outcome}");
}
