//! Several runs with the same nodes, and runs as an operator commands them.

use crate::support::{
    Group, Lab, PROCESSES, Running, SHORT_FILES, TCP_PROCESSES, THREADS, belongings, both_modes, check_accounts,
    free_tcp_port, good, never_stood_still, node_pid, wait_until,
};
use evb_record::FindingKind;
use rustix::process::Signal;
use std::{collections::BTreeSet, fs, thread, time::Duration};

const SMALL: &str = r#"
[trigger]
type = "free-running"
events = 300
[readout]
units = 2
source = { type = "uniform", min = "10 B", max = "3 kB" }
[builder]
units = 2
"#;

/// Starts an endless run for an operator.
fn operated(lab: &Lab, mode: &[&str]) -> Running {
    lab.run(mode).args(&["--operator"]).set("trigger.events=1000000000").start_listening()
}

/// The processes stay, nothing is left open from one run to the next, and each run has its own files.
#[test]
fn many_runs_with_the_same_nodes_leave_nothing_behind() {
    both_modes(|mode| {
        let lab = Lab::with(SMALL);
        let mut run = lab.run(mode).args(&["--runs", "40"]).start();
        let mut seen = BTreeSet::new();
        while run.is_running() {
            seen.insert(belongings(run.pid()).0.len());
            thread::sleep(Duration::from_millis(20));
        }
        let outcome = run.wait();
        let records = outcome.records();
        assert_eq!((outcome.code(), records.len()), (Some(0), 40), "{outcome}");
        assert!(records.iter().all(|record| record.good && record.events.built == 300), "{outcome}");
        let files = lab.stored_files();
        let of_last = lab.files_of(40);
        assert_eq!((files.len(), of_last.len(), lab.verify(&of_last).code()), (80, 2, Some(0)));
        assert_eq!(fs::read_to_string(lab.path("evb-data/run-number")).unwrap(), "40\n");
        assert!(seen.iter().all(|&processes| processes <= 6), "{seen:?}");
    });
}

/// Between two runs the nodes have what they had after the first one.
#[test]
fn what_a_run_had_open_is_closed_at_its_end() {
    for mode in [THREADS, PROCESSES] {
        let lab = Lab::with(SMALL);
        let mut run = lab.run(mode).args(&["--operator"]).start_listening();
        let mut one_run = || {
            run.say("start");
            run.wait_for_new("run control: stopped");
            belongings(run.pid())
        };
        let (processes, open) = one_run();
        for _ in 0..9 {
            one_run();
        }
        // The last thread of a run may take a moment to end.
        wait_until("what the runs had open is closed", || {
            let (those_now, open_now) = belongings(run.pid());
            let is_closed = open_now.iter().zip(open).all(|(now, after_first)| *now <= after_first);
            (those_now == processes && is_closed).then_some(())
        });
        run.say("quit");
        assert_eq!(run.wait().records().len(), 10);
    }
}

#[test]
fn an_operator_starts_pauses_resumes_and_stops() {
    both_modes(|mode| {
        let lab = Lab::with(SMALL);
        let mut run = operated(&lab, mode);
        for (word, state) in [
            ("configure", "configured"),
            ("start", "running"),
            ("pause", "paused"),
            ("start", "run control is paused: \"start\" means nothing now"),
            ("resume", "running"),
            ("stop", "stopped"),
            ("start", "running"),
            ("abort", "stopped"),
        ] {
            run.say(word);
            run.wait_for_new(state);
            if word == "resume" {
                lab.wait_for_event(1);
            }
        }
        run.say("quit");
        let outcome = run.wait();
        let records = outcome.records();
        assert_eq!((outcome.code(), records.len()), (Some(1), 2), "{outcome}");
        assert!(records[0].good && records[0].events.built > 0, "{outcome}");
        assert_eq!(records[1].findings[0].kind, FindingKind::Interrupted, "{outcome}");
        records.iter().for_each(check_accounts);
    });
}

/// The end of the commands is the end of the session, and it drains.
#[test]
fn the_end_of_standard_input_stops_the_run() {
    let lab = Lab::with(SMALL);
    let mut run = operated(&lab, PROCESSES);
    run.say("start");
    run.wait_for_new("running");
    lab.wait_for_event(1);
    run.say_no_more();
    assert!(good(&run.wait()).events.built > 0);
}

/// A node that dies degrades its run. It is started again for the next one.
#[test]
fn a_node_that_died_is_there_in_the_next_run() {
    let lab = Lab::with(SMALL);
    let mut run = operated(&lab, PROCESSES);
    run.say("start");
    run.wait_for_new("running");
    let dead = node_pid(run.pid(), "bu1");
    Group::signal_one(dead, Signal::KILL);
    run.wait_for_new("degraded");
    run.say("stop");
    run.wait_for_new("stopped");
    run.say("start");
    run.wait_for_new("running");
    assert_ne!(node_pid(run.pid(), "bu1"), dead);
    lab.wait_for_event(2);
    run.say("quit");
    let records = run.wait().records();
    assert_eq!(records[0].lost_nodes, ["bu1"]);
    assert!(records[1].good && records[1].lost_nodes.is_empty(), "{:?}", records[1]);
}

/// Nodes that could not go on leave the run, and not the session: they open everything anew at the next start.
#[test]
fn nodes_that_failed_take_part_in_the_next_run() {
    for mode in [THREADS, TCP_PROCESSES] {
        let lab = Lab::with(SMALL);
        let run = lab.run(mode).args(&["--operator"]).set("trigger.events=1000000000");
        let mut run = run.under(&SHORT_FILES).start_listening();
        for _ in 0..2 {
            run.say("start");
            run.wait_for_new("run control: failed");
        }
        run.say("quit");
        let outcome = run.wait();
        let records = outcome.records();
        assert_eq!(records.len(), 2, "{outcome}");
        for record in records {
            check_accounts(&record);
            never_stood_still(&record);
            let failed = record.findings.iter().filter(|finding| finding.kind == FindingKind::Failed).count();
            assert_eq!((record.lost_nodes.len(), failed), (2, 2), "{outcome}");
        }
    }
}

/// Nodes need no file: the plan comes to them. Folders may be others on their machine.
#[test]
fn the_plan_travels_and_folders_may_differ() {
    let (lab, other) = (Lab::with(SMALL), Lab::new());
    let address = format!("127.0.0.1:{}", free_tcp_port());
    let token = "0f".repeat(32);
    let run = lab.run(&["--listen", &address]).env("EVB_TOKEN", &token).start();
    let nodes = ["evm", "ru0", "ru1", "bu0", "bu1"].map(|role| {
        let node = other.evb(&["node", "--role", role, "--join", &address, "--storage", "here"]);
        node.env("EVB_TOKEN", &token).start()
    });
    good(&run.wait());
    nodes.into_iter().for_each(|node| assert_eq!(node.wait().code(), Some(0)));
    wait_until("both files are here", || (fs::read_dir(other.path("here")).ok()?.count() == 2).then_some(()));
    assert!(lab.stored_files().is_empty());
}
