//! Limits of the system, and of evb itself: an error names the limit and the remedy.

use crate::support::{Evb, Lab, Outcome, PROCESSES, THREADS, good, not_good, peak_memory, read_all, wait_until};
use evb_record::FindingKind;
use rustix::process::{Signal, geteuid};
use std::{fs, os::unix::fs::PermissionsExt as _};

const SMALL: &str = r#"
[trigger]
type = "free-running"
events = 500
[readout]
units = 8
source = { type = "fixed", size = "1 kB" }
[builder]
units = 8
[run]
peer_timeout = "5 s"
"#;

/// The command in a shell that has set a limit.
fn limited(command: Evb, limit: &str) -> Outcome {
    command.under(&["bash", "-c", &format!("{limit}; exec \"$0\" \"$@\"")]).run()
}

/// Few open files: an error at once, with the number that is needed, or a good run.
#[test]
fn the_limit_of_open_files_is_told() {
    let lab = Lab::with(SMALL);
    for mode in [THREADS, PROCESSES, &["--set", "transport.type=tcp"]] {
        for files in [8, 12, 16, 24, 64] {
            let outcome = limited(lab.run(mode), &format!("ulimit -n {files}"));
            if outcome.code() == Some(0) {
                good(&outcome);
                continue;
            }
            assert!(
                outcome.stderr.contains("open files") && outcome.stderr.contains("ulimit -n"),
                "{files}: {outcome}"
            );
            assert_eq!(outcome.code(), Some(2), "{files}: {outcome}");
        }
    }
}

/// The same for few nodes, whose own files are the most.
#[test]
fn the_limit_of_open_files_of_a_node_is_told() {
    let lab = Lab::with(SMALL);
    for files in 12..24 {
        let two = ["--processes", "--set", "readout.units=1", "--set", "builder.units=1"];
        let outcome = limited(lab.run(&two), &format!("ulimit -n {files}"));
        let is_told = outcome.stderr.contains("open files") && outcome.stderr.contains("ulimit -n");
        assert!(outcome.code() == Some(0) || is_told, "{files}: {outcome}");
    }
}

/// The limit that a shell has set for old programs does not limit evb.
#[test]
fn the_soft_limit_of_open_files_is_raised() {
    let lab = Lab::with(SMALL);
    good(&limited(lab.run(PROCESSES), "ulimit -S -n 16"));
}

/// Without threads and processes to be had: an error that says so, whichever of them is the first that is missing.
#[test]
fn the_limit_of_threads_is_told() {
    if !geteuid().is_root() {
        eprintln!("skipped: only root can be a user who has no other process");
        return;
    }
    let lab = Lab::with(SMALL);
    fs::set_permissions(lab.path("."), fs::Permissions::from_mode(0o777)).unwrap();
    let commands: [&[&str]; 4] = [
        &["run", "experiment.toml", "--json", "--set", "run.workers=4"],
        &["run", "experiment.toml", "--json", "--processes"],
        &["simulate", "experiment.toml", "--json"],
        &[
            "bench",
            "ping-pong",
            "--transport",
            "threads",
            "--sizes",
            "8B",
            "--nodes",
            "2",
            "--launches",
            "1",
            "--no-pin",
        ],
    ];
    for command in commands {
        for threads in 1..=6 {
            // A user without other processes.
            let script = format!("ulimit -u {threads}; exec \"$0\" \"$@\"");
            let user = ["setpriv", "--reuid", "64321", "--clear-groups", "bash", "-c", &script];
            let outcome = lab.evb(command).under(&user).run();
            if outcome.code() == Some(2) {
                assert!(outcome.stderr.contains("ulimit -u"), "{threads}: {command:?}: {outcome}");
            } else {
                assert_eq!(outcome.code(), Some(0), "{threads}: {command:?}: {outcome}");
            }
        }
    }
}

/// A fragment may be half of a readout unit's buffer, and every builder ready for many: they wait in the source.
#[test]
fn large_fragments_stay_within_the_buffer() {
    let large = r#"
[trigger]
type = "free-running"
events = 20
[readout]
units = 1
source = { type = "fixed", size = "32 MiB" }
max_fragment = "32 MiB"
[builder]
units = 1
[storage]
keep = "none"
[run]
workers = 1
peer_timeout = "30 s"
"#;
    let lab = Lab::with(large);
    let mut run = lab.run(THREADS).start();
    let mut peak = 0;
    while run.is_running() {
        peak = peak.max(peak_memory(run.pid()).unwrap_or(0));
    }
    let outcome = run.wait();
    let record = good(&outcome);
    assert!(record.readouts[0].most_bytes <= 3 << 25, "{outcome}");
    // 20 fragments are 640 MiB; three are 96 MiB.
    assert!(0 < peak && peak < 300 << 10, "{peak} KiB");
}

/// Triggers that come faster than anybody can count them do not keep a run from ending.
#[test]
fn a_trigger_of_1_ghz_is_stopped_at_once() {
    for spacing in ["regular", "poisson"] {
        let lab = Lab::with(SMALL);
        let fast =
            lab.run(&["--set", "trigger.type=rate", "--set", "trigger.rate=\"1 GHz\"", "--set", "storage.keep=none"]);
        let fast = fast.set(&format!("trigger.spacing={spacing}")).set("trigger.events=1000000000");
        let run = fast.start();
        let started = std::time::Instant::now();
        wait_until("two seconds", || (started.elapsed().as_secs() >= 2).then_some(()));
        run.signal(Signal::INT);
        // Its 1,000,000,000 triggers would take hours.
        let outcome = run.wait();
        let record = not_good(&outcome);
        assert!(record.trigger.inhibited > 1_000_000, "{outcome}");
        assert!(record.findings.iter().any(|finding| finding.kind == FindingKind::RateNotKept), "{outcome}");
    }
}

/// A line without an end is not read without an end.
#[test]
fn records_have_bounded_length() {
    let lab = Lab::new();
    let file = fs::File::create(lab.path("long.jsonl")).unwrap();
    // It takes no room on the disk.
    file.set_len(3_000_000_000).unwrap();
    let outcome = limited(lab.evb(&["compare", "long.jsonl", "long.jsonl"]), "ulimit -v 1000000");
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains("long.jsonl: line 1: longer than a record can be"), "{outcome}");
}

/// A full disk leaves no event in the files that is not counted as built.
#[test]
fn a_disk_that_is_full_keeps_the_events_that_are_built() {
    let lab = Lab::with(SMALL);
    let full = ["--set", "trigger.events=200000", "--set", "builder.units=2"];
    let outcome = limited(lab.run(&full), "ulimit -f 2000");
    let record = not_good(&outcome);
    assert!(record.findings.iter().any(|finding| finding.kind == FindingKind::Failed), "{outcome}");
    let stored: u64 = record.builders.iter().map(|builder| builder.stored).sum();
    let in_files = read_all(&lab.stored_files()).events.len() as u64;
    assert_eq!((stored, in_files), (record.events.built, record.events.built), "{outcome}");
}

/// A simulation that takes too much memory ends with an error that says what took it.
#[test]
fn the_memory_of_a_simulation_is_watched() {
    let lab = Lab::with(SMALL);
    let outcome = lab.simulate(&["--memory", "1 MB", "--set", "trigger.events=100000000"]).run();
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    let told = ["of memory, of at most 1 MB", "planned events", "--memory SIZE"];
    assert!(told.iter().all(|part| outcome.stderr.contains(part)), "{outcome}");
}
