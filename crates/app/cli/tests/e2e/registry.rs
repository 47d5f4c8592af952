//! The registry of runs in trouble: runs continue, the trouble is shown while it lasts, and the registry catches up.

use crate::support::{Lab, Service, can_mount, wait_until};
use rusqlite::Connection;
use serde_json::Value;
use std::{fs, io::Write as _, path::Path, process};

const ENDLESS: &str = r#"
[trigger]
type = "free-running"
events = 1000000000
[readout]
units = 2
source = { type = "fixed", size = "1 kB" }
[builder]
units = 2
[storage]
keep = { one_in = 1000 }
"#;

/// Makes a disk that only the service sees, for its registry.
const ON_A_SMALL_DISK: &str = r#"mkdir small && mount -t tmpfs -o size=400k none small || exit 77
exec "$0" "$@""#;

fn start_run(service: &Service, number: u64) {
    assert_eq!(service.command("start").status, 200);
    service.wait("a run that builds events", |status| {
        let built = status["record"]["events"]["built"].as_u64();
        status["state"] == "running" && status["run"]["number"] == number && built > Some(0)
    });
}

fn stop_run(service: &Service) {
    assert_eq!(service.command("stop").status, 200);
    service.wait_for_state("stopped");
}

/// Waits until the status shows trouble with the registry.
fn wait_for_trouble(service: &Service, words: &str) {
    let status = service.wait("the trouble", |status| !status["error"].is_null());
    let (error, hint) = (status["error"]["error"].as_str().unwrap(), status["error"]["hint"].as_str().unwrap());
    assert!(error.contains("runs.db") && error.contains(words) && hint.contains("runs continue"), "{error}: {hint}");
}

/// Waits until the trouble is over and all runs are in the registry. Their states, the latest first.
fn wait_for_runs(service: &Service, states: &[&str]) {
    service.wait("the end of the trouble", |status| status["error"].is_null());
    wait_until("all runs in the registry", || {
        let runs = service.get("/api/runs");
        let known: Vec<_> = runs["runs"].as_array()?.iter().filter_map(|run| run["state"].as_str()).collect();
        (known == states).then_some(())
    });
    wait_until("the end of the trouble in the log", || {
        service.get("/api/log").to_string().contains("written again").then_some(())
    });
}

/// Does a run through trouble with the registry, and another one within it.
fn check(service: &Service, words: &str, begin: impl FnOnce(), end: impl FnOnce()) {
    start_run(service, 1);
    begin();
    stop_run(service);
    wait_for_trouble(service, words);
    start_run(service, 2);
    let runs: Value = service.get("/api/runs");
    assert_eq!(runs["runs"][0]["state"], "running", "the end of run 1 is not written yet: {runs}");
    end();
    wait_for_runs(service, &["running", "stopped"]);
    stop_run(service);
    let run = service.get("/api/runs/1");
    assert!(run["record"]["events"]["built"].as_u64() > Some(0) && run["good"].is_boolean(), "{run}");
}

#[test]
fn runs_continue_while_the_registry_is_locked() {
    let lab = Lab::with(ENDLESS);
    let service = Service::start(&lab, &[]);
    let other = Connection::open(lab.path("evb-data/runs.db")).unwrap();
    let lock = || other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let holder = format!("(process {})", process::id());
    check(&service, &holder, lock, || other.execute_batch("ROLLBACK").unwrap());
}

#[test]
fn a_service_does_not_start_with_a_locked_registry_and_says_why() {
    let lab = Lab::with(ENDLESS);
    drop(Service::start(&lab, &[]));
    let other = Connection::open(lab.path("evb-data/runs.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let outcome = Service::command_of(&lab, &[]).run();
    assert_eq!((outcome.code(), outcome.stdout.as_str()), (Some(2), ""), "{outcome}");
    let holder = format!("(process {})", process::id());
    for words in ["runs.db is locked by another program; it is open in", &holder, "hint: end the program"] {
        assert!(outcome.stderr.contains(words), "{words}: {outcome}");
    }
    other.execute_batch("ROLLBACK").unwrap();
    start_run(&Service::start(&lab, &[]), 1);
}

#[test]
fn a_registry_that_is_deleted_during_a_run_is_written_again() {
    let lab = Lab::with(ENDLESS);
    let service = Service::start(&lab, &[]);
    start_run(&service, 1);
    stop_run(&service);
    start_run(&service, 2);
    let path = lab.path("evb-data/runs.db");
    fs::remove_file(&path).unwrap();
    wait_until("another file", || path.is_file().then_some(()));
    wait_for_runs(&service, &["running", "stopped"]);
    stop_run(&service);
    wait_for_runs(&service, &["stopped", "stopped"]);
}

#[test]
fn runs_continue_while_the_disk_of_the_registry_is_full() {
    let lab = Lab::with(ENDLESS);
    if !can_mount(&lab) {
        return;
    }
    let command = Service::command_of(&lab, &["--registry", "small/runs.db"]);
    let service = Service::of(command.under(&["unshare", "--mount", "sh", "-c", ON_A_SMALL_DISK]));
    // The disk as the service sees it.
    let disk = format!("/proc/{}/root{}", service.evb.pid(), lab.path("small").display());
    let rest = Path::new(&disk).join("rest");
    check(&service, "full", || fill(&rest), || fs::remove_file(&rest).unwrap());
}

/// Writes a file until the disk is full.
fn fill(path: &Path) {
    let mut file = fs::File::create(path).unwrap();
    while file.write_all(&[0; 512]).is_ok() {}
}
