//! The two ports of the CMS preseries of 2007, beside the tables of the paper.

use crate::support::{assert_near, run_with};

const PRESERIES: &str = r#"
[network]
preset = "myrinet-clos-128"
placement = { readout = 1, builder = 8 }
[workload]
type = "stream"
window = 8
[trigger]
duration = "30 ms"
[run]
warmup = "5 ms"
[readout]
units = 1
source = { type = "fixed", size = "16 kB" }
[builder]
units = 1
"#;

fn each(ports: u16, units: u16) -> f64 {
    let set = [format!("network.nic.ports={ports}"), format!("readout.units={units}"), format!("builder.units={units}")];
    run_with(PRESERIES, &set.each_ref().map(String::as_str)).throughput_bytes_per_s / f64::from(units) / 1e6
}

/// Table V: throughput of each node in MB/s.
const MSTREAMIO: [(u16, [f64; 7]); 2] = [
    (1, [233.46, 192.16, 157.05, 137.23, 123.33, 110.33, 102.00]),
    (2, [465.66, 346.06, 289.47, 263.11, 224.63, 209.64, 199.18]),
];

#[test]
fn streams_from_many_to_many_get_slower_with_their_number() {
    for (ports, published) in MSTREAMIO {
        let ours: Vec<_> = (1..=7).map(|units| each(ports, units)).collect();
        println!("{ports} ports: {ours:.1?}, published {published:?}");
    }
}

/// Table II.
#[test]
fn one_way_is_as_fast_as_published() {
    let alone = "network.host={send=\"0 s\",receive=\"0 s\"}";
    for (ports, published) in [(1, 246.71), (2, 493.41)] {
        let ports = format!("network.nic.ports={ports}");
        let record = run_with(PRESERIES, &[alone, &ports]);
        assert_near(&ports, record.throughput_bytes_per_s / 1e6, published, 0.01);
    }
}

/// Tables III and IV: the sum of both directions of one host. The model misses what the chip set costs beside the bus.
#[test]
fn two_ways_are_bound_by_the_memory_of_the_hosts() {
    for (ports, expected, published) in [(1, 2.0 * 246.71, 465.98), (2, 684.85, 649.90)] {
        let ports = format!("network.nic.ports={ports}");
        let pairs = "workload={type=\"pairs\",window=8}";
        let set = [pairs, &ports, "readout.units=2", "builder.units=2", "network.placement={readout=0,builder=0}"];
        let both = run_with(PRESERIES, &set).throughput_bytes_per_s / 1e6;
        println!("published {published}");
        assert_near(&ports, both, expected, 0.05);
    }
}
