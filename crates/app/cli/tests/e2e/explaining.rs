//! `evb explain` names what is broken before what is full.

use crate::{
    live::{Listening, encoded},
    support::{Lab, Outcome, THREADS, holds_event, not_good, wait_until},
};
use evb_sources::Frame;
use rustix::process::Signal;
use std::{io::Write as _, net::TcpStream};

/// Eight hosts on two leaves with two spines: readout units on one leaf, builder units on the other.
const CLOS: &str = r#"
[network]
topology = { type = "clos", leaves = 2, ports_per_leaf = 4, spines = 2 }
placement = { readout = 0, builder = 4 }
[trigger]
type = "rate"
rate = "20 kHz"
duration = "20 ms"
block = 1
[readout]
units = 2
source = { type = "fixed", size = "2 kB" }
[builder]
units = 2
[run]
drain_timeout = "10 ms"
"#;

const INCAST: &str = r#"
[network]
preset = "roce-100g-clos"
topology = { type = "crossbar", ports = 9 }
flow = { type = "store-and-forward", queue = "64 kB", full = "drop" }
placement = { readout = 0, builder = 8 }
[workload]
type = "random"
load = 0.9
[trigger]
duration = "2 ms"
[readout]
units = 8
source = { type = "fixed", size = "1 MB" }
[builder]
units = 1
"#;

/// What `evb explain` says about the records that a command has printed: each line that names something.
fn explained(lab: &Lab, outcome: &Outcome) -> Vec<String> {
    let records = lab.write("record.jsonl", &outcome.stdout);
    let explained = lab.evb(&["explain", records.to_str().unwrap()]).run();
    let heads = ["cause", "effect", "limit", "also"];
    let named = |line: &&str| heads.iter().any(|head| line.starts_with(head));
    let lines: Vec<_> = explained.stdout.lines().filter(named).map(str::to_owned).collect();
    assert!(!lines.is_empty(), "{explained}");
    lines
}

#[test]
fn a_front_end_that_dies_is_named_before_busy_processors() {
    let listening = Listening::new("tcp", 32);
    let run = listening.start(THREADS, &["run.drain_timeout=\"1 s\""]);
    let mut board = TcpStream::connect(("127.0.0.1", listening.tcp)).unwrap();
    for counter in 1..=50 {
        let bytes = [counter as u8; 10];
        let payload = bytes.as_slice();
        let frame =
            Frame { source: 0, counter, end_of_run: false, resynchronised: false, good: true, mark: None, payload };
        board.write_all(&encoded(frame)).unwrap();
    }
    let other = listening.feed(1, "tcp", &[]).wait();
    assert_eq!(other.code(), Some(0), "{other}");
    wait_until("both are in step", || holds_event(&listening.lab.stored_files(), true).then_some(()));
    drop(board);
    run.signal(Signal::INT);
    let outcome = run.wait();
    not_good(&outcome);
    let lines = explained(&listening.lab, &outcome);
    assert!(lines[0].starts_with("cause  ru0: "), "{lines:?}");
    assert!(lines.iter().any(|line| line.starts_with("effect ")), "{lines:?}");
    let resource = lines.iter().position(|line| line.starts_with("limit"));
    let effect = lines.iter().rposition(|line| line.starts_with("effect"));
    assert!(resource.is_none_or(|resource| Some(resource) > effect), "{lines:?}");
}

#[test]
fn a_front_end_that_never_connects_is_named() {
    let listening = Listening::new("tcp", 32);
    let run = listening.start(THREADS, &["run.drain_timeout=\"1 s\""]);
    let other = listening.feed(1, "tcp", &[]).wait();
    assert_eq!(other.code(), Some(0), "{other}");
    run.signal(Signal::INT);
    let outcome = run.wait();
    not_good(&outcome);
    let lines = explained(&listening.lab, &outcome);
    assert!(lines[0].starts_with("cause  ru0: "), "{lines:?}");
}

#[test]
fn a_killed_builder_is_named() {
    let lab = Lab::with(&format!("{CLOS}[[fault]]\nnode = \"bu1\"\naction = \"kill\"\nat = \"10 ms\"\n"));
    let outcome = lab.simulate(&[]).run();
    let lines = explained(&lab, &outcome);
    assert!(lines[0].starts_with("cause  bu1: "), "{lines:?}");
}

#[test]
fn a_dead_spine_a_cut_link_and_drops_are_named() {
    let of_fault = |target: &str| {
        let fault = format!(
            "[[network.fault]]\ntarget = \"{target}\"\naction = \"fail\"\nat = \"10 ms\"\nreroute = \"2 ms\"\n"
        );
        let lab = Lab::with(&format!("{CLOS}{fault}"));
        let text = lab.evb(&["simulate", "--quiet", "experiment.toml"]).run();
        let row = text.stdout.lines().find(|line| line.starts_with("fault")).map(str::to_owned);
        assert!(row.is_some_and(|row| row.contains(&format!("{target} was down from 10.0 ms"))), "{text}");
        assert!(text.stdout.lines().any(|line| line.starts_with("timeline")), "{text}");
        explained(&lab, &lab.simulate(&[]).run())
    };
    assert!(of_fault("spine0")[0].starts_with("cause  spine0: was down from 10.0 ms"), "{:?}", of_fault("spine0"));
    let cut = of_fault("h0>leaf0");
    assert!(cut[0].starts_with("cause  h0>leaf0: "), "{cut:?}");
    assert!(cut[1].starts_with("effect ") && cut.iter().all(|line| !line.contains("nothing else limits")), "{cut:?}");

    let lab = Lab::with(INCAST);
    let outcome = lab.simulate(&[]).run();
    let record = not_good(&outcome);
    assert!(record.goodput_bytes_per_s < Some(0.5 * record.throughput_bytes_per_s), "{outcome}");
    let lines = explained(&lab, &outcome);
    assert!(lines[0].starts_with("cause  switch0>h8: its queue was full"), "{lines:?}");
    let text = lab.evb(&["simulate", "--quiet", "experiment.toml"]).run();
    let goodput = text.stdout.lines().any(|line| line.starts_with("goodput") && line.contains("of lost messages"));
    assert!(goodput && text.stdout.contains("% by goodput; "), "{text}");
}
