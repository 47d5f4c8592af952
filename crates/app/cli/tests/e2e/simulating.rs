//! Simulated event building: the same files as for a real run, the same accounts, and the same bytes for the same seed.

use crate::{
    inputs::refuses,
    support::{Lab, Outcome, check_accounts, good, not_good},
};
use evb_record::FindingKind;
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

const SMALL: &str = r#"
[trigger]
type = "free-running"
events = 400
[readout]
units = 3
source = { type = "log-normal", mean = "1 kB", rms = "800 B" }
[builder]
units = 2
[storage]
keep = "none"
"#;

/// The records without the time that the simulation took, which is the only thing that may differ.
fn timeless(outcome: &Outcome) -> Vec<Value> {
    let lines = outcome.stdout.lines().map(|line| {
        let mut record: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {outcome}"));
        record.as_object_mut().unwrap().remove("wall_seconds").unwrap_or_else(|| panic!("no wall_seconds: {outcome}"));
        record
    });
    lines.collect()
}

#[test]
fn the_seed_decides_every_record_and_every_trace() {
    let simulated = |seed: &str, threads: &str| {
        let sweep = "[network]\npreset = \"ds-link-grid\"\n[sweep]\n\"protocol.type\" = [\"push\", \"pull\"]\n\
                     \"network.routing.type\" = [\"random\", \"adaptive\"]\n";
        let lab = Lab::with(&format!("{SMALL}{sweep}"));
        let outcome = lab.simulate(&["--seed", seed, "--threads", threads, "--trace", "trace"]).run();
        assert_eq!(outcome.code(), Some(0), "{outcome}");
        let traces: Vec<_> = (0..4).map(|point| fs::read(lab.path(&format!("trace.{point}"))).unwrap()).collect();
        assert!(!lab.path("trace.4").exists() && traces.iter().all(|trace| !trace.is_empty()));
        (timeless(&outcome), traces)
    };
    let one = simulated("7", "1");
    assert!(one == simulated("7", "1"));
    assert!(one == simulated("7", "2"));
    let other = simulated("8", "2");
    for point in 0..4 {
        assert!(one.0[point]["events"] == other.0[point]["events"]);
        assert!(one.0[point]["latency_us"] != other.0[point]["latency_us"] && one.1[point] != other.1[point]);
    }
}

#[test]
fn every_way_of_building_builds_every_event() {
    for preset in ["ideal", "myrinet-oct-sw8", "gigabit-ethernet"] {
        for protocol in ["push", "pull"] {
            for assignment in ["round-robin", "least-loaded"] {
                for shaping in ["none", "grouping", "barrel-shifter", "rate-division"] {
                    let lab = Lab::with(SMALL);
                    let run = lab.simulate(&[]).set(&format!("network.preset={preset}"));
                    let run = run.set(&format!("protocol={{type={protocol:?},assignment={assignment:?}}}"));
                    let outcome = run.set(&format!("shaping.type={shaping}")).run();
                    let record = good(&outcome);
                    assert_eq!(record.events.built, 400, "{outcome}");
                    assert_eq!(record.builders.iter().map(|builder| builder.fragments).sum::<u64>(), 1200, "{outcome}");
                }
            }
        }
    }
}

/// Nodes that die: as in a real run, the accounts hold and the verdict names them.
#[test]
fn nodes_that_are_killed_are_named() {
    for (node, built_by_others) in [("bu1", true), ("ru2", false), ("evm", false)] {
        let fault = format!("\n[[fault]]\nnode = {node:?}\naction = \"kill\"\nat = \"2 ms\"\n");
        let rate = SMALL.replace("\"free-running\"", "\"rate\"\nrate = \"100 kHz\"");
        let lab = Lab::with(&format!("{rate}{fault}"));
        let outcome = lab.simulate(&[]).run();
        let record = not_good(&outcome);
        assert_eq!(record.lost_nodes, [node], "{outcome}");
        assert!((150..400).contains(&record.events.built) || built_by_others, "{outcome}");
        if built_by_others {
            assert_eq!((record.events.built, record.events.lost), (400, 0), "{outcome}");
        }
        let text = lab.evb(&["simulate", "experiment.toml"]).run();
        assert_eq!(text.code(), Some(1), "{text}");
        assert!(text.stdout.contains(&format!("lost nodes: {node}\nnot good: ")), "{text}");
    }
}

/// Ctrl-C ends a simulation with what it has; of a sweep, points that had not begun are left out.
#[test]
fn an_interrupt_shows_what_was_simulated() {
    let endless = SMALL.replace("events = 400", "duration = \"50000 s\"");
    for (sweep, points) in [("", 1), ("[sweep]\n\"builder.units\" = [1, 2, 3]\n", 3)] {
        let lab = Lab::with(&format!("{endless}{sweep}"));
        let trace = if points == 1 { "trace" } else { "trace.0" };
        let running = lab.simulate(&["--threads", "1", "--trace", "trace"]).start();
        crate::support::wait_until("the simulation is under way", || {
            fs::metadata(lab.path(trace)).is_ok_and(|trace| trace.len() > 0).then_some(())
        });
        running.signal(Signal::INT);
        let outcome = running.wait();
        assert_eq!(outcome.code(), Some(1), "{outcome}");
        let record = outcome.record();
        check_accounts(&record);
        assert!(record.events.built > 0 && record.findings[0].kind == FindingKind::Interrupted, "{outcome}");
        assert_eq!(outcome.stderr.contains("stopped after 1 of 3 points"), points == 3, "{outcome}");
    }
}

/// A real run builds events on the network that is there.
#[test]
fn what_only_a_simulation_can_do() {
    let (lab, shaping) = (Lab::with(SMALL), "shaping={type=\"barrel-shifter\",step=\"link\"}");
    let words = ["`shaping.step` of link is only simulated", "hint: use `evb simulate`"];
    refuses(lab.run(&[]).set(shaping), &words);
    good(&lab.simulate(&[]).set(shaping).run());
}

#[test]
fn progress_without_a_terminal_is_a_line_at_the_end_if_somebody_asks_for_it() {
    let lab = Lab::with(&format!("{SMALL}[sweep]\n\"run.seed\" = [1, 2, 3]\n"));
    let progress = |options: &[&str]| lab.evb(&["simulate", "experiment.toml"]).args(options).run();
    let plain = progress(&["--progress", "plain"]);
    assert_eq!((plain.code(), plain.stderr.as_str()), (Some(0), "evb: 100 %, 0 s left: 3 points\n"), "{plain}");
    for silent in [&[][..], &["--progress", "none"], &["--progress", "plain", "--quiet"]] {
        let outcome = progress(silent);
        assert_eq!((outcome.code(), outcome.stderr.as_str()), (Some(0), ""), "{silent:?}: {outcome}");
        assert!(outcome.stdout.lines().all(|line| line.chars().count() <= evb_report::NARROW), "{outcome}");
    }
}
