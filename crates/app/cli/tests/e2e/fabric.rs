//! `evb bench all-pairs`: the test of a fabric. Nothing here depends on how fast the machine is.

use crate::support::{Lab, Outcome};
use evb_record::{LinkVerdict, Qualification};
use std::fs;

const SHORT: [&str; 7] = ["bench", "all-pairs", "--json", "--time", "5ms", "--warmup", "1ms"];

/// The record on standard output; the exit status must agree with it.
fn record(outcome: &Outcome) -> Qualification {
    let record: Qualification =
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}: {outcome}"));
    assert_eq!(outcome.code(), Some(i32::from(!record.good)), "{outcome}");
    record
}

fn read(lab: &Lab, name: &str) -> String {
    fs::read_to_string(lab.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn failed_with(outcome: &Outcome, text: &str) {
    assert!(outcome.code() == Some(2) && outcome.stderr.contains(text), "{text}: {outcome}");
}

#[test]
fn every_pair_of_nodes_is_measured_once() {
    let lab = Lab::new();
    for (transport, nodes) in [("threads", 4), ("shm", 5), ("tcp", 5)] {
        let sizes =
            ["--transport", transport, "--nodes", &nodes.to_string(), "--sizes", "64B,4KiB", "--out", transport];
        let outcome = lab.evb(&SHORT).args(&sizes).run();
        let record = record(&outcome);
        let expected: Vec<_> = (0..nodes).flat_map(|one| (one + 1..nodes).map(move |other| [one, other])).collect();
        let links: Vec<_> = record.links.iter().map(|link| link.nodes).collect();
        assert_eq!((links, record.rounds), (expected, nodes - 1 + nodes % 2), "{transport}");
        assert_eq!((record.size_bytes, record.bulk_bytes, record.transport.as_str()), (64, 4096, transport));
        for link in &record.links {
            // A busy machine may give a direction none of these 5 ms; the link is not good then.
            let measured = link.slower.is_some() && link.bytes_per_s.iter().all(|&rate| rate > 0.0);
            assert!(link.lost == 0 && (measured || link.verdict != LinkVerdict::Good), "{transport}: {link:?}");
        }
        let written = read(&lab, &format!("{transport}/all-pairs.json"));
        assert_eq!(written, outcome.stdout, "{transport}");
        for plot in ["all-pairs-latency.svg", "all-pairs-throughput.svg"] {
            assert!(read(&lab, &format!("{transport}/{plot}")).starts_with("<svg"), "{transport}: {plot}");
        }
    }
}

#[test]
fn a_fabric_that_does_not_keep_the_limits_is_not_accepted() {
    let lab = Lab::new();
    lab.write("strict.toml", "half_round_trip = \"1 ns\"\ninterface_losses = 1000000000000\n");
    lab.write("wrong.toml", "half_round_trips = \"1 us\"\n");
    let outcome = lab.evb(&SHORT).args(&["--transport", "shm", "--nodes", "3", "--accept", "strict.toml"]).run();
    let record = record(&outcome);
    assert_eq!(record.not_accepted.len(), 1, "{record:?}");
    assert!(!record.good && record.not_accepted[0].starts_with("half_round_trip: 3 of 3 links; n"), "{record:?}");
    let outcome = lab.evb(&SHORT).args(&["--accept", "wrong.toml"]).run();
    failed_with(&outcome, "wrong.toml");
    failed_with(&outcome, "expected one of `half_round_trip`");
}

/// Machines are started by a command of the user; here by one that leaves out the name of the machine.
#[test]
fn nodes_are_started_on_hosts() {
    let lab = Lab::new();
    lab.write("shell", "host=$1; shift; test \"$host\" != broken || exit 7; exec \"$@\"\n");
    let on = |hosts: &str| {
        let there = ["--hosts", hosts, "--shell", "sh shell", "--listen", "127.0.0.1"];
        lab.evb(&SHORT).args(&there).run()
    };
    let one = record(&on("a,b,c"));
    assert_eq!((one.nodes, one.hosts), (3, ["a", "b", "c"].map(str::to_owned).to_vec()));
    assert_eq!(one.counters.len(), 3, "each node tells the counters of its interfaces");
    failed_with(&on("a,broken,c"), "the process of node 1 of the launch ended: exit status: 7");
    failed_with(&on("a"), "one node has no links");
    let shm = lab.evb(&SHORT).args(&["--hosts", "a,b", "--transport", "shm", "--listen", "127.0.0.1"]).run();
    failed_with(&shm, "shm has no --hosts");
}

#[test]
fn options_without_meaning_are_refused() {
    let lab = Lab::new();
    for (more, what) in [
        (["--rate", "1kHz"], "--rate"),
        (["--window", "4"], "--window"),
        (["--nodes", "3,4"], "several numbers of --nodes"),
        (["--sizes", "1B,2B,3B"], "more than two --sizes"),
        (["--transport", "shm,tcp"], "one real transport"),
        (["--transport", "sim:myrinet-clos-128"], "one real transport"),
    ] {
        failed_with(&lab.evb(&SHORT).args(&more).run(), what);
    }
    failed_with(&lab.evb(&["bench", "ping-pong", "--accept", "limits.toml"]).run(), "--accept is for all-pairs");
}
