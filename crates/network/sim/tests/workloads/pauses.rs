//! Hosts that pause without end, how far that spreads, and what watchdogs do about it.

use crate::support::{assert_between, network, run_with};
use evb_record::{FindingKind, LinkRecord, Record};

/// Two leaves with two hosts each, and a spine: 1 GB/s everywhere, so that a packet of 1000 bytes takes 1 us. h0 sends to h2, and h1
/// to h3: more than the link between leaf and spine carries, so that both are paused for half of the time in any case.
const LEAVES: &str = r#"
[network]
topology = { type = "clos", leaves = 2, ports_per_leaf = 2, spines = 1 }
link = { rate = "1 GB/s", delay = "0 s" }
switch = { delay = "0 s" }
flow = { type = "store-and-forward", queue = "4 kB", full = "priority-pause", reaction = "0 s", WATCHDOG }
nic = { packet = "1000 B" }
placement = { readout = 0, builder = 2 }
fault = [FAULT]
[workload]
type = "pairs"
[trigger]
duration = "10 ms"
[run]
warmup = "0 s"
drain_timeout = "2 ms"
[readout]
units = 2
source = { type = "fixed", size = "1000 B" }
[builder]
units = 2
"#;

const STORM: &str = r#"{ target = "leaf1>h3", at = "1 ms", until = "5 ms", action = "pause" }"#;

fn run(watchdog: &str, fault: &str) -> Record {
    run_with(&LEAVES.replace(", WATCHDOG", watchdog).replace("FAULT", fault), &[])
}

fn link<'a>(record: &'a Record, name: &str) -> &'a LinkRecord {
    network(record).links.iter().find(|link| link.name == name).expect("there is such a link")
}

fn has_storm(record: &Record) -> bool {
    record.findings.iter().any(|finding| finding.kind == FindingKind::PauseStorm)
}

/// One host pauses for 4 of 10 ms. The queues of its switch fill, then those of the spine and the other leaf, and both hosts that send
/// stand still, also the one that sends to another host.
#[test]
fn a_pause_spreads_from_a_host_to_all_that_send() {
    let record = run("", STORM);
    let chain = ["leaf1>h3", "spine0>leaf1", "leaf0>spine0", "h1>leaf0"].map(|name| link(&record, name));
    for (place, link) in (1..).zip(chain) {
        assert_eq!(link.pause_chain, place, "{link:?}");
        assert_between(&link.name, link.paused, 0.39, 0.8);
    }
    assert_between("h0>leaf0", link(&record, "h0>leaf0").paused, 0.39, 0.8);
    assert_eq!(link(&record, "leaf1>h2").paused, 0.0);
    assert_eq!((network(&record).lost_packets, has_storm(&record)), (0, false));
}

/// The watchdog acts 1 ms after the beginning of the pause, and restores the queue 1 ms after its end: for 4 ms what comes for the
/// host is lost, and the other pair of hosts has its link again.
#[test]
fn a_watchdog_drops_what_is_for_a_host_that_pauses() {
    let watchdog = r#", watchdog = { detection = "1 ms", restoration = "1 ms" }"#;
    let record = run(watchdog, STORM);
    let stuck = link(&record, "leaf1>h3");
    assert_eq!((stuck.storms, has_storm(&record), record.good), (1, true, false));
    // The trunk carries one packet in a microsecond, every second one for the host that pauses.
    assert_between("dropped", stuck.watchdog_dropped as f64, 1800.0, 2200.0);
    assert_eq!(network(&record).lost_packets, stuck.watchdog_dropped);
    assert_between("paused", stuck.paused, 0.39, 0.46);
    let arrived = |record: &Record| link(record, "leaf1>h2").packets as f64;
    assert_between("the other pair", arrived(&record) / arrived(&run("", STORM)), 1.4, 1.6);
}

#[test]
fn a_watchdog_that_forwards_does_not_obey() {
    let watchdog = r#", watchdog = { detection = "1 ms", restoration = "1 ms", action = "forward" }"#;
    let record = run(watchdog, STORM);
    let stuck = link(&record, "leaf1>h3");
    assert_eq!((stuck.storms, has_storm(&record)), (1, true));
    assert_eq!((stuck.watchdog_dropped, network(&record).lost_packets), (0, 0));
    assert_between("paused", stuck.paused, 0.099, 0.11);
}

#[test]
fn a_watchdog_that_never_acts_changes_nothing() {
    let watchdog = r#", watchdog = { detection = "1 s", restoration = "1 s" }"#;
    let [with, without] = [run(watchdog, STORM), run("", STORM)];
    assert_eq!(network(&with).links, network(&without).links);
}
