//! Nodes that die or fall silent during a run at full rate: no hang, no wrong event, and the verdict tells.

use crate::support::{
    Group, Lab, Outcome, PROCESSES, Running, Stored, THREADS, good, node_pid, not_good, read_all, wait_until,
};
use evb_record::Record;
use rustix::process::Signal;
use std::{fs, path::PathBuf, time::Duration};

/// Nothing but the loss itself may end these runs, so the silence that counts as death is long.
const FREE_RUNNING: &str = r#"
[trigger]
type = "free-running"
duration = "50 s"
[readout]
units = 2
source = { type = "uniform", min = "100 B", max = "400 B" }
[builder]
units = 2
[run]
seed = 5
peer_timeout = "30 s"
drain_timeout = "20 s"
"#;
const SEED: u64 = 5;
/// Bytes of each builder's file after which its run is surely at full rate.
const WELL_UNDER_WAY: u64 = 300_000;

/// What must hold after a loss.
type Check = fn(&Lab, &Outcome, &Record);

fn start(lab: &Lab, changes: &[&str]) -> Running {
    let run = changes.iter().fold(lab.run(PROCESSES), |run, change| run.set(change)).start();
    wait_for_growth(lab, WELL_UNDER_WAY);
    run
}

/// Waits until each builder has stored this number of bytes more than now.
fn wait_for_growth(lab: &Lab, bytes: u64) {
    ["b0", "b1"].into_iter().for_each(|builder| wait_for_growth_of(lab, builder, bytes));
}

fn wait_for_growth_of(lab: &Lab, builder: &str, bytes: u64) {
    let size_now = || of_builder(lab, builder).iter().map(|path| fs::metadata(path).unwrap().len()).sum::<u64>();
    let before = size_now();
    wait_until("events are stored", || (size_now() >= before + bytes).then_some(()));
}

fn of_builder(lab: &Lab, builder: &str) -> Vec<PathBuf> {
    let mut files = lab.stored_files();
    files.retain(|path| path.to_str().is_some_and(|path| path.contains(&format!("-{builder}-"))));
    files
}

/// The files of these builders have no damage, and hold no event twice.
fn check_survivors(lab: &Lab, builders: &[&str]) {
    let files: Vec<_> = builders.iter().flat_map(|builder| of_builder(lab, builder)).collect();
    let found = lab.verify(&files).json();
    assert_eq!(found["intact"], true, "{found}");
    assert_eq!(found["unclosed"], 0, "{found}");
}

/// The files of a builder that died may end within an event, and nothing else.
fn check_killed(lab: &Lab, builder: &str) {
    let found = lab.verify(&of_builder(lab, builder)).json();
    let kinds: Vec<_> = found["findings"].as_array().unwrap().iter().map(|finding| &finding["kind"]).collect();
    let harmless = |kind: &str| kind == "file ends within an event" || kind == "file was not closed";
    assert!(kinds.iter().all(|kind| harmless(kind.as_str().unwrap())), "{found}");
    assert_eq!(found["damaged"], 0, "{found}");
}

fn lost_one(outcome: &Outcome, name: &str) -> Record {
    let record = not_good(outcome);
    assert_eq!(record.lost_nodes, [name], "{outcome}");
    assert!(record.findings.iter().any(|finding| finding.message.contains(name)), "{outcome}");
    record
}

/// With a builder dead, nothing is lost: every triggered event is built by somebody and is stored.
fn check_dead_builder(lab: &Lab, outcome: &Outcome, record: &Record) {
    assert_eq!((record.events.lost, record.events.incomplete), (0, 0), "{outcome}");
    assert_eq!(record.events.built, record.events.triggered, "{outcome}");
    check_survivors(lab, &["b0"]);
    check_killed(lab, "b1");
    let stored = read_all(&lab.stored_files());
    stored.check_generated(SEED, 2);
    check_all_stored(&stored, record.events.triggered);
}

fn check_all_stored(stored: &Stored, triggered: u64) {
    let copies = stored.copies();
    let absent: Vec<_> = (1..=triggered).filter(|event| !copies.contains_key(event)).take(20).collect();
    assert!(absent.is_empty(), "of {triggered} events these are in no file: {absent:?}");
    assert_eq!(copies.keys().next_back(), Some(&triggered));
}

/// With a readout unit dead, every event is stored once, with that unit's fragment missing from some event on.
fn check_dead_readout(lab: &Lab, outcome: &Outcome, record: &Record) {
    assert_eq!(record.events.lost, 0, "{outcome}");
    check_survivors(lab, &["b0", "b1"]);
    let stored = read_all(&lab.stored_files());
    stored.check_generated(SEED, 2);
    check_all_stored(&stored, record.events.triggered);
    let complete = stored.events.iter().filter(|event| event.complete).count() as u64;
    assert_eq!(complete, record.events.built, "{outcome}");
    assert_eq!(stored.events.len() as u64, record.events.triggered, "{outcome}");
}

/// With the event manager dead the builders close their files, and what they have stored is what they say.
fn check_dead_manager(lab: &Lab, outcome: &Outcome, record: &Record) {
    check_survivors(lab, &["b0", "b1"]);
    let stored = read_all(&lab.stored_files());
    stored.check_generated(SEED, 2);
    let said: u64 = record.builders.iter().map(|builder| builder.stored).sum();
    assert_eq!(stored.events.len() as u64, said, "{outcome}");
    assert!(record.events.built + record.events.incomplete <= said, "{outcome}");
    assert!(record.events.built > 0, "{outcome}");
}

/// `kill -9` of a builder's process: the others build its events again.
#[test]
fn a_killed_builder_loses_no_event() {
    let lab = Lab::with(FREE_RUNNING);
    let mut run = start(&lab, &[]);
    Group::signal_one(node_pid(run.pid(), "bu1"), Signal::KILL);
    run.wait_for("bu1 is gone");
    run.signal(Signal::INT);
    let outcome = run.wait();
    let record = lost_one(&outcome, "bu1");
    check_dead_builder(&lab, &outcome, &record);
}

/// `kill -9` of a readout unit's process: events are completed without it.
#[test]
fn a_killed_readout_unit_leaves_incomplete_events() {
    let lab = Lab::with(FREE_RUNNING);
    let mut run = start(&lab, &[]);
    Group::signal_one(node_pid(run.pid(), "ru0"), Signal::KILL);
    run.wait_for("ru0 is gone");
    wait_for_growth(&lab, 10_000);
    run.signal(Signal::INT);
    let outcome = run.wait();
    let record = lost_one(&outcome, "ru0");
    assert!(record.events.incomplete > 0, "{outcome}");
    check_dead_readout(&lab, &outcome, &record);
}

/// `kill -9` of the event manager's process: the run ends by itself.
#[test]
fn a_killed_event_manager_ends_the_run() {
    let lab = Lab::with(FREE_RUNNING);
    let run = start(&lab, &[]);
    Group::signal_one(node_pid(run.pid(), "evm"), Signal::KILL);
    let outcome = run.wait();
    let record = lost_one(&outcome, "evm");
    check_dead_manager(&lab, &outcome, &record);
}

/// Stopped processes, as on a machine that hangs, are found by their silence. The three runs continue at the
/// same time, since they mostly wait.
#[test]
fn stopped_processes_are_found_by_their_silence() {
    let check: [(&str, Check); 3] =
        [("ru0", check_dead_readout), ("bu1", check_dead_builder), ("evm", check_dead_manager)];
    std::thread::scope(|scope| {
        for (name, check) in check {
            scope.spawn(move || stop_one(name, check));
        }
    });
}

fn stop_one(name: &str, check: Check) {
    let lab = Lab::with(FREE_RUNNING);
    let mut run = start(&lab, &["run.peer_timeout=\"3 s\"", "run.drain_timeout=\"2 s\""]);
    Group::signal_one(node_pid(run.pid(), name), Signal::STOP);
    run.wait_for(&format!("{name} is lost to its peers"));
    run.signal(Signal::INT);
    let outcome = run.wait();
    let record = lost_one(&outcome, name);
    check(&lab, &outcome, &record);
}

/// A node that does nothing for less than its peers wait costs time, and nothing else.
#[test]
fn a_node_that_is_stopped_for_a_while_costs_nothing() {
    std::thread::scope(|scope| {
        for (name, transport) in [("evm", "shm"), ("ru0", "tcp"), ("ru1", "shm"), ("bu0", "tcp"), ("bu1", "shm")] {
            scope.spawn(move || stop_for_a_while(name, transport));
        }
    });
}

fn stop_for_a_while(name: &str, transport: &str) {
    let lab = Lab::with(FREE_RUNNING);
    let run = start(&lab, &[&format!("transport.type={transport}"), "run.peer_timeout=\"20 s\""]);
    let node = node_pid(run.pid(), name);
    Group::signal_one(node, Signal::STOP);
    // Many times the patience of the builders.
    std::thread::sleep(Duration::from_secs(2));
    Group::signal_one(node, Signal::CONT);
    wait_for_growth(&lab, 10_000);
    run.signal(Signal::INT);
    let outcome = run.wait();
    let record = good(&outcome);
    assert_eq!((record.events.incomplete, record.events.lost), (0, 0), "{outcome}");
    assert!(record.faults.is_empty(), "{outcome}");
    check_survivors(&lab, &["b0", "b1"]);
}

/// A builder that was given up and then goes on does no harm: its events were given to others.
#[test]
fn a_builder_that_wakes_up_after_it_was_given_up_does_no_harm() {
    let lab = Lab::with(FREE_RUNNING);
    let mut run = start(&lab, &["run.peer_timeout=\"2 s\"", "run.drain_timeout=\"5 s\""]);
    let builder = node_pid(run.pid(), "bu1");
    Group::signal_one(builder, Signal::STOP);
    run.wait_for("bu1 is lost to its peers");
    Group::signal_one(builder, Signal::CONT);
    wait_for_growth_of(&lab, "b0", 10_000);
    run.signal(Signal::INT);
    let outcome = run.wait();
    let record = not_good(&outcome);
    // It accuses all others, and is not believed.
    assert_eq!(record.lost_nodes, ["bu1"], "{outcome}");
    assert_eq!((record.events.lost, record.events.incomplete), (0, 0), "{outcome}");
    check_survivors(&lab, &["b0"]);
    let stored = read_all(&lab.stored_files());
    stored.check_generated(SEED, 2);
    check_all_stored(&stored, record.events.triggered);
}

/// The experiment file can kill nodes itself, in threads and in processes, with the same outcome.
#[test]
fn killed_nodes_are_reported_and_accounted_for() {
    for mode in [THREADS, PROCESSES] {
        let barrier = "barrel-shifter\",step=\"barrier";
        let clock = "barrel-shifter\",step=\"clock\",rate=\"200 MB/s";
        let ways =
            [["push", "none"], ["pull", "grouping"], ["push", "barrel-shifter"], ["pull", barrier], ["push", clock]];
        for [protocol, shaping] in ways {
            let changes = [format!("protocol.type={protocol}"), format!("shaping={{type=\"{shaping}\"}}")];
            kill_on_purpose(mode, &changes, "bu1", check_dead_builder);
            kill_on_purpose(mode, &changes, "ru0", check_dead_readout);
            kill_on_purpose(mode, &changes, "evm", check_dead_manager);
        }
    }
}

/// To the machines a block is an event, whatever its size: deaths cost no more.
#[test]
fn blocks_of_changing_sizes_are_accounted_for_when_nodes_are_killed() {
    for mode in [THREADS, PROCESSES] {
        for protocol in ["push", "pull"] {
            let trigger = ["trigger.type=rate", "trigger.rate=\"400 kHz\"", "trigger.block=auto"];
            let mut changes = trigger.map(str::to_owned).to_vec();
            changes.push(format!("protocol.type={protocol}"));
            kill_on_purpose(mode, &changes, "bu1", check_dead_builder);
            kill_on_purpose(mode, &changes, "ru0", check_dead_readout);
            kill_on_purpose(mode, &changes, "evm", check_dead_manager);
        }
    }
}

fn kill_on_purpose(mode: &[&str], changes: &[String], name: &str, check: Check) {
    let fault = format!("\n[[fault]]\nnode = \"{name}\"\naction = \"kill\"\nat = \"300 ms\"\n");
    let lab = Lab::with(&format!("{FREE_RUNNING}{fault}"));
    let run = changes.iter().fold(lab.run(mode), |run, change| run.set(change));
    let outcome = run.set("trigger.duration=\"600 ms\"").run();
    let record = lost_one(&outcome, name);
    check(&lab, &outcome, &record);
}

/// Control messages on a separate transport take nothing from these promises.
#[test]
fn nodes_with_a_control_network_are_accounted_for_when_killed() {
    for [data, control] in [["tcp", "shm"], ["shm", "tcp"]] {
        let changes = [
            format!("transport.type={data}"),
            format!("control.transport.type={control}"),
            "shaping={type=\"barrel-shifter\",step=\"barrier\"}".to_owned(),
        ];
        kill_on_purpose(&[], &changes, "bu1", check_dead_builder);
        kill_on_purpose(&[], &changes, "ru0", check_dead_readout);
        kill_on_purpose(&[], &changes, "evm", check_dead_manager);
    }
}

/// When no builder is left, the run ends, and what was not built is lost and counted.
#[test]
fn without_builders_the_run_ends_and_counts_lost_events() {
    for mode in [THREADS, PROCESSES] {
        let kill = |node| format!("\n[[fault]]\nnode = \"{node}\"\naction = \"kill\"\nat = \"300 ms\"\n");
        let lab = Lab::with(&format!("{FREE_RUNNING}{}{}", kill("bu0"), kill("bu1")));
        let outcome = lab.run(mode).run();
        let mut record = not_good(&outcome);
        record.lost_nodes.sort();
        assert_eq!(record.lost_nodes, ["bu0", "bu1"], "{outcome}");
        assert!(record.events.lost > 0, "{outcome}");
        read_all(&lab.stored_files()).check_generated(SEED, 2);
    }
}

/// When every readout unit is gone the run ends; nothing is lost, since every event is stored with what came.
#[test]
fn without_readout_units_the_run_ends() {
    for mode in [THREADS, PROCESSES] {
        let kill = |node| format!("\n[[fault]]\nnode = \"{node}\"\naction = \"kill\"\nat = \"300 ms\"\n");
        let lab = Lab::with(&format!("{FREE_RUNNING}{}{}", kill("ru0"), kill("ru1")));
        let outcome = lab.run(mode).run();
        let mut record = not_good(&outcome);
        record.lost_nodes.sort();
        assert_eq!(record.lost_nodes, ["ru0", "ru1"], "{outcome}");
        assert_eq!(record.events.lost, 0, "{outcome}");
        read_all(&lab.stored_files()).check_generated(SEED, 2);
    }
}

/// A run whose control process is killed leaves no node behind, and closed files.
#[test]
fn nodes_do_not_outlive_their_run_control() {
    let lab = Lab::with(FREE_RUNNING);
    let run = start(&lab, &[]);
    run.signal(Signal::KILL);
    // Waits until the pipes are closed, so until every node has ended.
    let outcome = run.wait();
    assert_eq!(outcome.code(), None, "{outcome}");
    assert_eq!(outcome.stdout, "");
    check_survivors(&lab, &["b0", "b1"]);
    read_all(&lab.stored_files()).check_generated(SEED, 2);
}
