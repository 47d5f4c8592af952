//! Every way of ending a run early drains it: what was triggered is built.

use crate::support::{Lab, Outcome, PROCESSES, Running, THREADS, both_modes, good, read_all, wait_until};
use rustix::process::Signal;
use std::fs;

const ENDLESS: &str = r#"
[trigger]
type = "free-running"
duration = "50 s"
[readout]
units = 2
source = { type = "fixed", size = "300 B" }
[builder]
units = 2
[run]
drain_timeout = "30 s"
peer_timeout = "30 s"
"#;

/// A run that has stored events already.
fn under_way(lab: &Lab, mode: &[&str]) -> Running {
    let run = lab.run(mode).start();
    wait_until("events are stored", || {
        let sizes: Vec<_> = lab.stored_files().iter().map(|path| fs::metadata(path).unwrap().len()).collect();
        (sizes.len() == 2 && sizes.iter().all(|&size| size > 100_000)).then_some(())
    });
    run
}

fn check_drained(lab: &Lab, outcome: &Outcome) {
    let record = good(outcome);
    assert!(record.events.built > 0 && record.seconds < 45.0, "{outcome}");
    let files = lab.stored_files();
    let stored = read_all(&files);
    stored.check_generated(record.seed, 2);
    assert!(stored.copies().into_iter().eq((1..=record.events.triggered).map(|event| (event, 1))), "{outcome}");
    let verified = lab.verify(&files);
    assert_eq!(verified.code(), Some(0), "{verified}");
}

/// Ctrl-C as a script sends it: to the command only.
#[test]
fn an_interrupt_drains_the_run() {
    for mode in [THREADS, PROCESSES] {
        let lab = Lab::with(ENDLESS);
        let run = under_way(&lab, mode);
        run.signal(Signal::INT);
        let outcome = run.wait();
        assert!(outcome.stderr.contains("the run drains"), "{outcome}");
        check_drained(&lab, &outcome);
    }
}

/// Ctrl-C as a terminal sends it: to the command and to all its nodes.
#[test]
fn an_interrupt_of_the_whole_group_drains_the_run() {
    for mode in [THREADS, PROCESSES] {
        let lab = Lab::with(ENDLESS);
        let run = under_way(&lab, mode);
        run.group().signal(Signal::INT);
        check_drained(&lab, &run.wait());
    }
}

#[test]
fn a_termination_drains_the_run() {
    for mode in [THREADS, PROCESSES] {
        let lab = Lab::with(ENDLESS);
        let run = under_way(&lab, mode);
        run.group().signal(Signal::TERM);
        check_drained(&lab, &run.wait());
    }
}

/// A second Ctrl-C stores what there is of open events.
#[test]
fn a_second_interrupt_stores_what_there_is() {
    both_modes(|mode| {
        // A builder waits for a lost fragment, so that the run cannot drain.
        let lose = "\n[[fault]]\nnode = \"ru0\"\naction = \"lose\"\none_in = 10\n";
        let lab = Lab::with(&format!("{ENDLESS}{lose}"));
        let mut run = lab.run(mode).set("builder.patience=\"3 s\"").start();
        wait_until("events are stored", || {
            let sizes = lab.stored_files().into_iter().map(|path| fs::metadata(path).unwrap().len());
            (sizes.sum::<u64>() > 100_000).then_some(())
        });
        run.signal(Signal::INT);
        run.wait_for("the run drains");
        run.signal(Signal::INT);
        let outcome = run.wait();
        assert_eq!(outcome.code(), Some(1), "{outcome}");
        let record = outcome.record();
        assert!(record.events.incomplete > 0 && record.events.lost == 0, "{outcome}");
        assert_eq!(lab.verify(&lab.stored_files()).code(), Some(1), "incomplete events are reported");
    });
}

/// `duration` ends a run, and so does the number of events, whichever comes first.
#[test]
fn a_duration_ends_the_run() {
    both_modes(|mode| {
        let lab = Lab::with(ENDLESS);
        let outcome = lab.run(mode).set("trigger.duration=\"300 ms\"").run();
        let record = good(&outcome);
        assert!(record.seconds >= 0.3, "{outcome}");
        check_drained(&lab, &outcome);
        let outcome = lab.run(mode).set("trigger.events=10").set("storage.keep=none").run();
        assert_eq!(good(&outcome).events.triggered, 10);
    });
}

/// A run of a trigger so slow that hardly anything comes is whole. The first trigger comes after one interval.
#[test]
fn a_run_with_hardly_an_event_is_good() {
    both_modes(|mode| {
        let lab = Lab::with(ENDLESS);
        let slow = ["trigger.type=rate", "trigger.rate=\"4 Hz\"", "trigger.duration=\"400 ms\""];
        let outcome = slow.into_iter().fold(lab.run(mode), |run, change| run.set(change)).run();
        // A busy machine may take longer than the duration, and then more come.
        let record = good(&outcome);
        let most = (record.seconds * 4.0) as u64;
        assert!((1..=most).contains(&record.events.triggered), "{outcome}");
        assert_eq!(lab.verify(&lab.stored_files()).code(), Some(0));
    });
}
