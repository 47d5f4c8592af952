//! Adaptive routing at low load: the links that a packet finds free are equal.

use crate::support::{network, run_with};
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
