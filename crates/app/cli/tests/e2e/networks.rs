//! Simulated networks: those that cannot be, deadlocks, and parts that fail.

use crate::{
    inputs::refuses,
    support::{Evb, Lab, Outcome, good, not_good, shipped},
};
use std::collections::BTreeSet;

const SMALL: &str = r#"
[trigger]
type = "free-running"
events = 50
[readout]
units = 2
source = { type = "fixed", size = "1 kB" }
[builder]
units = 2
"#;

/// Four hosts on two leaves with two spines, each sender with receivers on the other leaf.
const CLOS: &str = r#"
[network]
topology = { type = "clos", leaves = 2, ports_per_leaf = 2, spines = 2 }
routing = { type = "fixed", spread = "source" }
[workload]
type = "rotation"
messages = 2000
[readout]
units = 2
source = { type = "fixed", size = "2 kB" }
[builder]
units = 2
"#;

#[test]
fn networks_that_cannot_be_are_refused() {
    let explicit = |links: &str| {
        let cables: Vec<_> = links.split(' ').filter_map(|link| link.split_once('-')).collect();
        let cables: Vec<_> = cables.iter().map(|(a, b)| format!("{{ ends = [{a:?}, {b:?}] }}")).collect();
        format!("network.topology={{ type = \"explicit\", switches = [\"a\", \"b\"], link = [{}] }}", cables.join(", "))
    };
    let lab = Lab::with(SMALL);
    let with = |changes: &[&str]| changes.iter().fold(lab.simulate(&[]), |evb, change| evb.set(change));
    good(&with(&[&explicit("h0-a h1-a h2-b h3-b h4-b a-b")]).run());
    let split = explicit("h0-a h1-a h2-b h3-b h4-b");
    refuses(with(&[&split]), &["a and b are not connected", "help: add a link between"]);
    let without_h1 = explicit("h0-a h2-b h3-b h4-b a-b");
    refuses(with(&[&without_h1]), &["the host port h1 is not joined", "help: add a link for h1"]);
    refuses(with(&["network.flow.buffer=\"0 B\""]), &["network.flow.buffer", "help: write 1 B or more"]);
    let slack = ["network.preset=myrinet-oct-sw8", "network.flow.slack=\"8 B\""];
    refuses(with(&slack), &["a slack of 8 B is below the round trip of link", "help: use a slack of 37 B or more"]);
    refuses(with(&["network.preset=token-ring"]), &["token-ring", "help: this version has \"ideal\""]);
    refuses(with(&["network.topology.ports=3"]), &["the network has 3 hosts", "help: hosts are counted from 0"]);
    refuses(with(&["workload.type=random"]), &["the traffic has no end", "help: say when to stop"]);
    let live = shipped("live-front-ends.toml");
    refuses(lab.evb(&["simulate", live.to_str().unwrap()]), &["live", "hint: ", "generated source"]);
    let replay = shipped("cms-csc-replay.toml");
    refuses(lab.evb(&["simulate", replay.to_str().unwrap()]), &["EVB_DATA", "hint: ", "evb simulate"]);
}

fn torus(lab: &Lab) -> Evb {
    lab.evb(&["simulate", "--quiet", shipped("torus-deadlock.toml").to_str().unwrap()])
}

#[test]
fn a_torus_without_virtual_channels_stops_for_good() {
    let lab = Lab::new();
    let outcome = torus(&lab).args(&["--json"]).run();
    let record = not_good(&outcome);
    let ring = record.simulation.as_ref().unwrap().network.deadlock.clone();
    assert!(ring.len() > 2 && ring.iter().collect::<BTreeSet<_>>().len() == ring.len(), "{ring:?}");
    for (index, link) in ring.iter().enumerate() {
        // Each link ends at the switch where the next one begins.
        let (next, end) = (&ring[(index + 1) % ring.len()], link.split_once('>').unwrap().1);
        assert_eq!(end.split('.').next(), next.split('>').next(), "{ring:?}");
    }
    let text = torus(&lab).run();
    assert_eq!(text.code(), Some(1), "{text}");
    assert!(text.stdout.contains(&ring.join(" waits for ")) && text.stdout.contains("hint: "), "{text}");

    let flow = r#"{ type = "cut-through", buffer = "2 kB", reaction = "800 ns", virtual_channels = 2 }"#;
    let free = torus(&lab).args(&["--json"]).set(&format!("network.flow={flow}")).set("trigger.duration=\"2 ms\"");
    let record = good(&free.run());
    assert!(record.simulation.unwrap().network.deadlock.is_empty() && record.events.built > 500);
}

fn harmed(fault: &str) -> Outcome {
    Lab::with(&format!("{CLOS}[[network.fault]]\n{fault}\n")).simulate(&[]).run()
}

/// A spine that fails: until routes without it are found, packets over it are lost, and then all goes over the other.
#[test]
fn traffic_goes_round_a_failed_spine() {
    let outcome = harmed("target = \"spine0\"\naction = \"fail\"\nat = \"100 us\"\nreroute = \"20 us\"");
    let record = outcome.record();
    let network = &record.simulation.as_ref().unwrap().network;
    assert_eq!(record.events.triggered, 4000, "{outcome}");
    assert_eq!(record.events.built + record.events.lost, 4000, "{outcome}");
    assert_eq!(record.events.lost, network.lost_packets + network.corrupted_packets, "{outcome}");
    assert!(record.events.built > 3900 && network.packets_left == 0, "{outcome}");
    let over = |spine: &str| {
        let links = network.links.iter().filter(|link| link.name.ends_with(spine));
        links.map(|link| link.packets).sum::<u64>()
    };
    assert!(over(">spine0") > 100 && over(">spine1") > 2500, "{outcome}");
    assert_eq!(outcome.code(), Some(if record.events.lost > 0 { 1 } else { 0 }));
}

/// The only link of a host that fails: what it should have carried is lost, the rest goes on.
#[test]
fn a_host_without_a_link_loses_only_its_own() {
    let outcome = harmed("target = \"leaf1>h2\"\naction = \"fail\"\nat = \"100 us\"\nreroute = \"20 us\"");
    let record = not_good(&outcome);
    let network = &record.simulation.as_ref().unwrap().network;
    assert_eq!(record.events.lost, network.lost_packets + network.corrupted_packets, "{outcome}");
    assert!(record.events.lost > 1000 && record.events.built > 2000 && network.packets_left == 0, "{outcome}");
}

#[test]
fn corrupted_packets_are_thrown_away_and_counted() {
    let outcome = harmed("target = \"h0>leaf0\"\naction = \"corrupt\"\nat = \"0 s\"\none_in = 100");
    let record = not_good(&outcome);
    let network = &record.simulation.as_ref().unwrap().network;
    assert_eq!((network.corrupted_packets, network.lost_packets), (20, 0), "{outcome}");
    assert_eq!((record.events.lost, record.events.built), (20, 3980), "{outcome}");
}

#[test]
fn a_slow_link_slows_what_goes_over_it() {
    let record = good(&Lab::with(CLOS).simulate(&[]).run());
    let slow = good(&harmed("target = \"h0>leaf0\"\naction = \"slow\"\nat = \"0 s\"\nfactor = 4"));
    let ratio = |source: usize| record.per_source_bytes_per_s[source] / slow.per_source_bytes_per_s[source];
    assert!(slow.seconds > 3.9 * record.seconds && ratio(0) > 3.9, "{record:#?} {slow:#?}");
}
