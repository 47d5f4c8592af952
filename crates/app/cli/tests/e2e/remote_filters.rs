//! Filter units of other machines: they select what those of the builder select, come and go at will, and strangers get
//! nothing.

use crate::{
    filters::{EVENTS, ONE_LINE, lab, physics, selected},
    support::{Evb, Group, Lab, PROCESSES, Running, THREADS, free_tcp_ports, good, not_good, wait_until},
};
use evb_record::FindingKind;
use rustix::process::Signal;
use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

const TOKEN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
const WRONG: &str = "ff112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

/// A lab with a filter in Python for two builders at ports that were free, one after the other.
fn remote_lab(more: &str, python: &str) -> (Lab, [String; 2]) {
    let first = free_tcp_ports(2);
    let filter = format!("[filter]\nlisten = \"127.0.0.1:{first}\"\n{more}");
    (lab(&filter, python), [first, first + 1].map(|port| format!("127.0.0.1:{port}")))
}

fn run(lab: &Lab, mode: &[&str]) -> Evb {
    lab.run(mode).env("EVB_TOKEN", TOKEN)
}

/// `evb filter` for all of these builders.
fn filter(lab: &Lab, builders: &[String], options: &[&str]) -> Evb {
    let join = builders.iter().fold(lab.evb(&["filter"]), |evb, address| evb.args(&["--join", address]));
    join.args(options).args(&["--patience", "30", "--", "python3", "filter.py"]).env("EVB_TOKEN", TOKEN)
}

fn ends_well(filter: Running) {
    let outcome = filter.wait();
    assert_eq!(outcome.code(), Some(0), "{outcome}");
}

/// Two filter units for each builder, before and during a run, and for two runs in turn.
#[test]
fn remote_filter_units_select_what_local_ones_select() {
    let kept = selected(THREADS);
    for mode in [THREADS, PROCESSES] {
        let (lab, builders) = remote_lab("", ONE_LINE);
        let early = filter(&lab, &builders, &["--runs", "2"]).start();
        let running = run(&lab, mode).args(&["--runs", "2"]).start();
        let late = filter(&lab, &builders, &["--processes", "2", "--runs", "1"]).start();
        let outcome = running.wait();
        assert_eq!(outcome.code(), Some(0), "{outcome}");
        for record in outcome.records() {
            let found = record.filter.expect("events were selected");
            assert!(record.good && found.joined >= 2 && found.lost == 0, "{:?}", record.findings);
            assert_eq!((found.given["network"].events, found.accepted), (EVENTS, kept.len() as u64));
        }
        let stored = crate::support::read_all(&lab.stored_files());
        assert_eq!(stored.events.len(), 2 * kept.len());
        ends_well(early);
        late.signal(Signal::TERM);
        ends_well(late);
    }
}

/// A filter that takes its time, and leaves a file when it has its first event.
const SLOW: &str = "import os, time; import evb_filter\nname = f'has-events-{os.getppid()}-{os.getpid()}'\ndef decide(event):\n  open(name, 'w').close()\n  time.sleep(0.002)\n  return len(event[3]) > 1000\nevb_filter.run(decide)\n";

/// Waits until this number of programs of a filter command have had events.
fn wait_for_events(lab: &Lab, command: &Running, programs: usize) {
    let name = format!("has-events-{}-", command.pid());
    wait_until("all programs have events", || {
        let files = std::fs::read_dir(lab.path(".")).expect("the folder of the test").flatten();
        (files.filter(|file| file.file_name().to_string_lossy().starts_with(&name)).count() == programs).then_some(())
    });
}

/// Filter units that are killed give their events back: none is lost, and none is in quarantine.
#[test]
fn filter_units_that_are_killed_give_their_events_back() {
    let (lab, builders) = remote_lab("", SLOW);
    let running = run(&lab, THREADS).start();
    let other = filter(&lab, &builders, &["--runs", "1"]).start();
    wait_for_events(&lab, &other, 2);
    let victim = filter(&lab, &builders, &["--processes", "2"]).start();
    wait_for_events(&lab, &victim, 4);
    Group::signal_one(victim.pid(), Signal::KILL);
    let outcome = running.wait();
    let record = good(&outcome);
    assert_eq!(physics(&lab, &record), selected(THREADS));
    let found = record.filter.as_ref().expect("events were selected");
    assert_eq!((found.quarantined, found.joined, found.lost), (0, 6, 4), "{outcome}");
    assert!(found.given["network"].events > EVENTS, "some were given again: {outcome}");
    assert!(record.findings.iter().any(|finding| finding.kind == FindingKind::LostFilterUnits), "{outcome}");
    ends_well(other);
}

#[test]
fn a_run_waits_for_its_first_filter_unit() {
    let (lab, builders) = remote_lab("", ONE_LINE);
    let mut running = run(&lab, THREADS).start();
    running.wait_for(&format!("bu1 waits for filter units at {}", builders[1]));
    running.wait_for("no filter unit is there");
    let unit = filter(&lab, &builders, &["--runs", "1"]).start();
    let record = good(&running.wait());
    assert_eq!(physics(&lab, &record), selected(THREADS));
    ends_well(unit);
}

/// A stranger without the token is rejected, and one that sends nothing or nonsense delays no other.
#[test]
fn strangers_get_nothing() {
    let (lab, builders) = remote_lab("", ONE_LINE);
    let mut running = run(&lab, THREADS).start();
    running.wait_for("no filter unit is there");
    let stranger = filter(&lab, &builders, &[]).env("EVB_TOKEN", WRONG).run();
    assert_eq!(stranger.code(), Some(2), "{stranger}");
    assert!(stranger.stderr.contains("the token is not that of the run"), "{stranger}");
    let mut silent: Vec<_> = (0..20).map(|_| TcpStream::connect(&builders[0]).unwrap()).collect();
    let mut rude = TcpStream::connect(&builders[1]).unwrap();
    rude.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let unit = filter(&lab, &builders, &["--runs", "1"]).start();
    good(&running.wait());
    ends_well(unit);
    silent.push(rude);
    for mut stream in silent {
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut said = Vec::new();
        let _reset = stream.read_to_end(&mut said);
        assert!(said.is_empty(), "a stranger gets no byte");
    }
}

/// The crash of a remote program costs its event the decision, as that of a local one.
#[test]
fn a_crash_of_a_remote_program_costs_its_event_the_decision() {
    let crash = "import os; import evb_filter\ndef decide(event):\n  if event.number % 700 == 0: os.abort()\n  return len(event[3]) > 1000\nevb_filter.run(decide)\n";
    let (lab, builders) = remote_lab("", crash);
    let units = filter(&lab, &builders, &["--processes", "2"]).start();
    let outcome = run(&lab, THREADS).run();
    let record = not_good(&outcome);
    let found = record.filter.as_ref().expect("events were selected");
    assert_eq!((found.quarantined, found.reasons["crashed"]), (4, 4), "{outcome}");
    units.signal(Signal::TERM);
    ends_well(units);
}

/// A run that ends without any filter unit keeps its events without a decision.
#[test]
fn a_run_that_ends_without_filter_units_keeps_its_events() {
    let (lab, _) = remote_lab("timeout = \"1 s\"\n", ONE_LINE);
    let mut running = run(&lab, THREADS).set("run.drain_timeout=\"2 s\"").start();
    running.wait_for("no filter unit is there");
    running.signal(Signal::TERM);
    let outcome = running.wait();
    let record = not_good(&outcome);
    let found = record.filter.as_ref().expect("events were selected");
    assert!(found.quarantined > 0, "{outcome}");
    assert_eq!((found.reasons["nobody"], record.events.lost), (found.quarantined, 0), "{outcome}");
}

#[test]
fn a_run_without_a_token_takes_no_filter_units() {
    let (lab, _) = remote_lab("", ONE_LINE);
    for mode in [THREADS, PROCESSES] {
        let outcome = lab.run(mode).run();
        assert_eq!(outcome.code(), Some(2), "{outcome}");
        assert!(outcome.stderr.contains("EVB_TOKEN is not set"), "{outcome}");
    }
}
