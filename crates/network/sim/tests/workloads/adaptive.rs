//! Routes that follow the load: those of adaptive routing at low load, of pairs that probe, and of flowlets.

use crate::support::{assert_between, efficiency, network, run_with};
use std::collections::BTreeMap;

/// Messages of one packet at a tenth of the rate of a link, between hosts drawn at random.
const LOW_LOAD: &str = r#"
[network]
preset = "ideal"
topology = { type = "fat-tree", radix = 4 }
link = { rate = "80 Mbit/s", delay = "0 s" }
switch = { delay = "0 s", arbitration = "random" }
flow = { type = "cut-through", buffer = "256 B", reaction = "0 s" }
routing = { type = "adaptive" }
nic = { packet = "64 B", header = "0 B", minimum = "0 B", overhead = "0 s", messages = 1 }
control = { type = "separate", delay = "1 us", rate = "80 Mbit/s" }
placement = { readout = 0, builder = 0 }
[workload]
type = "random"
load = 0.1
arrivals = "poisson"
[trigger]
duration = "60 ms"
[run]
warmup = "1 ms"
[readout]
units = 16
source = { type = "fixed", size = "64 B" }
[builder]
units = 16
"#;

/// The switch from which a link leads upwards, if it does.
fn leads_up_from(link: &str) -> Option<&str> {
    let (from, to) = link.split_once('>').expect("a link has two ends");
    let stages = ["edge", "aggregation", "core"];
    let stage = |end: &str| stages.iter().position(|&stage| end.starts_with(stage));
    (stage(from)? < stage(to)?).then_some(from)
}

#[test]
fn a_switch_uses_its_links_upwards_evenly() {
    let record = run_with(LOW_LOAD, &[]);
    let mut upwards: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for link in &network(&record).links {
        if let Some(from) = leads_up_from(&link.name) {
            upwards.entry(from).or_default().push(link.packets as f64);
        }
    }
    assert_eq!(upwards.len(), 16);
    for (switch, packets) in upwards {
        let [one, other] = packets[..] else { panic!("{switch} has links upwards: {packets:?}") };
        println!("{switch}: {one} and {other} packets");
        // If each packet draws one of the two, the difference has this standard deviation, but for the few that find
        // one taken.
        let deviation = (one + other).sqrt();
        assert!((one - other).abs() <= 4.0 * deviation, "{switch}: {one} and {other} packets");
    }
}

/// As many pairs as there are routes between two switches.
const PAIRS: &str = r#"
[network]
preset = "ideal"
topology = { type = "clos", leaves = 2, ports_per_leaf = 4, spines = 4 }
link = { rate = "1 GB/s", delay = "0 s" }
switch = { delay = "100 ns", arbitration = "round-robin" }
flow = { type = "wormhole", slack = "512 B", reaction = "0 s" }
routing = { type = "dispersive", patience = "1 us", after = 1, probes = 16 }
nic = { packet = "4 kB", header = "0 B" }
[workload]
type = "two-way"
[trigger]
duration = "3 ms"
[run]
warmup = "1 ms"
[readout]
units = 4
source = { type = "fixed", size = "100 kB" }
[builder]
units = 4
"#;

#[test]
fn probing_pairs_find_free_routes() {
    let [probing, random] = ["16", "0"].map(|probes| run_with(PAIRS, &[&format!("network.routing.probes={probes}")]));
    let changes = [&probing, &random].map(|record| network(record).route_changes);
    println!("{changes:?} changes with probes and without");
    assert!(probing.simulation.expect("a simulation").efficiency > 0.98);
    assert!(changes[0] < 16 && changes[1] > 2 * changes[0], "{changes:?}");
}

/// The hosts of each leaf send to those of the next one, with eight spines for eight hosts: a permutation.
const PERMUTATION: &str = r#"
[network]
preset = "ideal"
topology = { type = "clos", leaves = 4, ports_per_leaf = 8, spines = 8 }
link = { rate = "100 Gbit/s", delay = "50 ns" }
switch = { delay = "200 ns", arbitration = "round-robin" }
flow = { type = "cut-through", buffer = "64 KiB", reaction = "100 ns" }
nic = { packet = "4 KiB", header = "0 B" }
placement = { readout = 0, builder = 0 }
control = { type = "separate", delay = "5 us", rate = "10 Gbit/s" }
[workload]
type = "assigned"
destinations = [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 0, 1, 2, 3, 4, 5, 6, 7]
load = 0.8
arrivals = "poisson"
[trigger]
duration = "3 ms"
[run]
warmup = "1 ms"
[readout]
units = 32
source = { type = "fixed", size = "16 KiB" }
[builder]
units = 32
"#;

/// A hash of eight flows leaves (7/8)^8 = 0.34 of the eight links of a leaf idle, and gives (7/8)^7 = 0.39 of them one flow each. The
/// others have several, and carry their full rate at most: on average 0.39 * 0.8 + 0.26 = 0.58 of the rate of all links, of 0.8 offered.
#[test]
fn flowlets_balance_a_permutation_that_a_hash_does_not() {
    let carried = |routing: &str| efficiency(&run_with(PERMUTATION, &[&format!("network.routing={{{routing}}}")]));
    assert_between("ecmp", carried("type=\"ecmp\""), 0.48, 0.68);
    assert_between("LetFlow", carried("type=\"flowlets\",gap=\"500 ns\",choice=\"random\""), 0.7, 0.82);
    assert_between("shortest queue", carried("type=\"flowlets\",gap=\"500 ns\""), 0.78, 0.82);
}
