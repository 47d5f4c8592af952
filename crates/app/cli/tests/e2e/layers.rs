//! Event building and benchmarks over every message layer. What is not installed is skipped, and the test says so.

use crate::support::{Evb, HARDWARE, Lab, PROCESSES, good, is_there};
use evb_record::{Benchmark, SIMULATED};
use std::fs;

/// Six nodes, whose largest fragments do not go within one message of any layer.
const SMALL: &str = r#"
[trigger]
type = "free-running"
events = 2000
[readout]
units = 3
source = { type = "uniform", min = "1 B", max = "40 kB" }
[builder]
units = 2
[storage]
keep = "none"
"#;

const EVENTS: u64 = 2000;

/// `mpirun` of each MPI, with what it needs to start more ranks than there are cores, also for root.
const LAUNCHERS: [&[&str]; 2] = [&["mpirun.openmpi", "--oversubscribe", "--allow-run-as-root"], &["mpirun.mpich"]];

fn builds_all(run: Evb, transport: &str) {
    let outcome = run.run();
    let record = good(&outcome);
    assert_eq!((record.events.built, record.transport.as_str()), (EVENTS, transport), "{outcome}");
    assert!(record.faults.is_empty(), "{outcome}");
}

/// Returns true if this process has the capability CAP_NET_RAW.
fn may_send_frames() -> bool {
    const NET_RAW: u64 = 1 << 13;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    effective.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok()).is_some_and(|all| all & NET_RAW != 0)
}

#[test]
fn libfabric_builds_events() {
    if !is_there("fi_info") {
        return;
    }
    for provider in ["tcp", "shm"] {
        let lab = Lab::with(SMALL);
        let run = lab.run(&[]).set("transport.type=ofi").set(&format!("transport.provider={provider}"));
        builds_all(run, "ofi");
    }
}

#[test]
fn ethernet_builds_events() {
    let lab = Lab::with(SMALL);
    let run = || lab.run(&[]).set("transport.type=ethernet");
    let outcome = run().set("transport.interface=none-such").run();
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    if !may_send_frames() {
        return assert!(outcome.stderr.contains("CAP_NET_RAW"), "{outcome}");
    }
    assert!(outcome.stderr.contains("\"none-such\"") && outcome.stderr.contains("ip link"), "{outcome}");
    builds_all(run(), "ethernet");
}

#[test]
fn bonds_build_events() {
    let lab = Lab::with(SMALL);
    let run = |links: &str| lab.run(&[]).set("transport.type=bond").set(&format!("transport.links={links}"));
    for (links, reason) in [
        ("tcp@127.0.0.1", "from 2 to 16"),
        ("tcp@127.0.0.1+pigeon", "pigeon"),
        ("tcp@127.0.0.1+tcp@203.0.113.0/24", "no address in the network"),
        ("tcp@127.0.0.1+tcp@203.0.113.7", "the link tcp@203.0.113.7"),
    ] {
        let outcome = run(links).run();
        assert_eq!(outcome.code(), Some(2), "{outcome}");
        assert!(outcome.stderr.contains(reason), "{outcome}");
    }
    for stripe in ["message", "size", "destination"] {
        builds_all(run("tcp@127.0.0.1+tcp@127.0.0.2").set(&format!("transport.stripe={stripe}")), "bond");
    }
    builds_all(run("tcp+shm"), "bond");
}

#[test]
fn simulated_hardware_builds_events() {
    if !is_there("verilator") {
        return;
    }
    let lab = Lab::with(SMALL);
    let run = || lab.run(HARDWARE).set("trigger.events=20");
    let outcome = run().run();
    let record = good(&outcome);
    assert_eq!((record.events.built, record.transport.as_str()), (20, "velo-rtl"), "{outcome}");
    let outcome = run().args(PROCESSES).run();
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains("simulated hardware is one process"), "{outcome}");
}

#[test]
fn a_provider_that_is_not_there_is_an_error_that_names_those_that_are() {
    if !is_there("fi_info") {
        return;
    }
    let lab = Lab::with(SMALL);
    let outcome = lab.run(&[]).set("transport.type=ofi").set("transport.provider=nothing").run();
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains("nothing") && outcome.stderr.contains("tcp"), "{outcome}");
}

#[test]
fn mpirun_starts_an_event_builder() {
    for launcher in LAUNCHERS.into_iter().filter(|launcher| is_there(launcher[0])) {
        let lab = Lab::with(SMALL);
        let ranks = [launcher, &["-n", "6"]].concat();
        builds_all(lab.run(&[]).under(&ranks), "mpi");
        // The ranks may talk over something else.
        builds_all(lab.run(&[]).set("transport.type=tcp").under(&ranks), "tcp");
    }
}

#[test]
fn as_many_ranks_as_nodes_are_needed() {
    for launcher in LAUNCHERS.into_iter().filter(|launcher| is_there(launcher[0])) {
        let lab = Lab::with(SMALL);
        let outcome = lab.run(&[]).under(&[launcher, &["-n", "2"]].concat()).run();
        assert_ne!(outcome.code(), Some(0), "{outcome}");
        assert!(outcome.stderr.contains("2 ranks for 6 nodes"), "{outcome}");
    }
}

#[test]
fn mpi_needs_a_launcher() {
    let lab = Lab::with(SMALL);
    let outcome = lab.run(&[]).set("transport.type=mpi").run();
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains("mpirun -n"), "{outcome}");
}

/// Every pattern of the note on every layer: each message arrives once, whole and in order.
#[test]
fn every_pattern_works_on_every_layer() {
    let mut layers =
        vec!["threads", "shm", "tcp", "udp", "bond:tcp@127.0.0.1+tcp@127.0.0.2", "bond-size:tcp@127.0.0.1+shm"];
    if is_there("fi_info") {
        layers.extend(["ofi:tcp", "ofi:shm"]);
    }
    if is_there("mpirun") {
        layers.push("mpi");
    }
    if may_send_frames() {
        layers.push("ethernet:lo");
    }
    for layer in layers {
        let lab = Lab::new();
        let outcome = lab.evb(&["bench", "--transport", layer, "--nodes", "3", "--launches", "1", "--time", "4ms"]);
        let outcome = outcome.args(&["--warmup", "1ms", "--sizes", "8B,20kB", "--compute", "50us", "--json"]).run();
        assert_eq!(outcome.code(), Some(0), "{outcome}");
        let records: Vec<Benchmark> =
            outcome.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert_eq!(records.len(), 9 * 2, "{outcome}");
        assert!(records.iter().all(|record| record.transport == layer && record.good), "{outcome}");
    }
}

/// The same on the simulated hardware, twice: a simulation is the same each time, to the last byte.
#[test]
fn every_pattern_works_on_simulated_hardware_and_gives_the_same_again() {
    if !is_there("verilator") {
        return;
    }
    let measure = || {
        let lab = Lab::new();
        let bench = ["bench", "--transport", "velo-rtl", "--nodes", "3", "--time", "60us", "--warmup", "5us", "--json"];
        let outcome = lab.evb(&bench).args(&["--sizes", "8B,1kB", "--compute", "5us"]).run();
        assert_eq!(outcome.code(), Some(0), "{outcome}");
        outcome.stdout
    };
    let lines = measure();
    let records: Vec<Benchmark> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(records.len(), 9 * 2, "{lines}");
    for record in &records {
        assert!(record.good && record.trusted && record.messages > 0, "{record:#?}");
        assert_eq!((record.transport.as_str(), record.settings.wait.as_str()), ("velo-rtl", SIMULATED));
        assert!(record.calibration.is_none() && record.cores.is_empty() && record.launches.values.len() == 1);
    }
    assert_eq!(measure(), lines);
}

#[test]
fn hardware_joins_as_many_nodes_as_its_switch_has_ports() {
    if !is_there("verilator") {
        return;
    }
    let outcome = Lab::new().evb(&["bench", "all-to-all", "--transport", "velo-rtl", "--nodes", "17"]).run();
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains("17 nodes") && outcome.stderr.contains("16 by a switch"), "{outcome}");
}

#[test]
fn hardware_cannot_be_simulated_without_its_tools() {
    let lab = Lab::new();
    let outcome = lab.evb(&["bench", "ping-pong", "--transport", "velo-rtl"]).env("PATH", lab.path(".")).run();
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains("verilator does not run"), "{outcome}");
    assert!(outcome.stderr.contains("install Verilator 5 and a C++ compiler"), "{outcome}");
}

/// Shared memory makes its rings as large as the messages that are measured.
#[test]
fn messages_above_a_ring_of_the_usual_size_are_measured() {
    let lab = Lab::new();
    let bench =
        ["bench", "one-way", "--transport", "shm", "--sizes", "8B,1MiB", "--launches", "1", "--time", "4ms", "--json"];
    let outcome = lab.evb(&bench).run();
    assert_eq!(outcome.code(), Some(0), "{outcome}");
}

/// What is measured of a layer, a simulation can be given.
#[test]
fn a_network_is_fitted_to_a_layer_and_simulated() {
    let lab = Lab::with(SMALL);
    let bench = [
        "bench",
        "--transport",
        "threads",
        "--launches",
        "2",
        "--time",
        "20ms",
        "--fit",
        "like.toml",
        "--out",
        "measured",
    ];
    let outcome = lab.evb(&bench).run();
    if outcome.stdout.contains("cannot be trusted") && outcome.stderr.contains("do not form a rising line") {
        // Other processes of a busy machine determine the times: it measures no network, and says so.
        assert_eq!(outcome.code(), Some(2), "{outcome}");
        return println!("the machine is too busy: {}", outcome.stderr);
    }
    assert_eq!(outcome.code(), Some(0), "{outcome}");
    assert!(outcome.stderr.contains("like.toml holds the network"), "{outcome}");
    let measured = fs::read_to_string(lab.path("measured/records.jsonl")).expect("the records are there");
    assert_eq!(measured.lines().count(), 2 * 6, "two patterns of six sizes are all that it needs");
    let network = fs::read_to_string(lab.path("like.toml")).expect("the network is there");
    assert!(network.contains("[network]") && network.contains("link.rate"), "{network}");
    let misses =
        outcome.stderr.lines().find_map(|line| line.strip_prefix("evb: Simulated, ")).expect("how far it is off");
    assert!(misses.contains("typically") && misses.contains("at worst"), "{misses}");
    assert!(network.contains(misses), "the file and the terminal say the same: {misses} and {network}");
    let outcome = lab.evb(&["simulate", "experiment.toml", "--network", "like.toml", "--json"]).run();
    assert_eq!(outcome.code(), Some(0), "{outcome}");
    assert_eq!(outcome.json()["events"]["built"], EVENTS);
    assert_eq!(outcome.json()["findings"][0]["kind"], "not_modelled", "{outcome}");
    let outcome = lab.evb(&["simulate", "experiment.toml", "--network", "like.toml"]).run();
    assert!(outcome.stdout.contains("fitted to messages over threads: generating, checking and storing"), "{outcome}");
    assert!(outcome.stdout.contains("\ngood: "), "it is a remark: {outcome}");
    let outcome = lab.evb(&["simulate", "experiment.toml", "--json"]).run();
    assert_eq!(outcome.json()["findings"].as_array().map(Vec::len), Some(0), "a network that was described: {outcome}");
    let outcome = lab.evb(&["bench", "ping-pong", "--transport", "sim:like.toml", "--json"]).run();
    assert_eq!(outcome.code(), Some(0), "{outcome}");
}
