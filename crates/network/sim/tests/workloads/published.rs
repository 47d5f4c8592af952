//! The presets beside the values that their papers published.

use crate::support::{assert_between, assert_near, run_with};

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
    let set =
        [format!("network.nic.ports={ports}"), format!("readout.units={units}"), format!("builder.units={units}")];
    run_with(PRESERIES, &set.each_ref().map(String::as_str)).throughput_bytes_per_s / f64::from(units) / 1e6
}

/// Table V: throughput of each node in MB/s.
const MSTREAMIO: [(u16, [f64; 7]); 2] = [
    (1, [233.46, 192.16, 157.05, 137.23, 123.33, 110.33, 102.00]),
    (2, [465.66, 346.06, 289.47, 263.11, 224.63, 209.64, 199.18]),
];

/// Hosts of the simulation have no jitter: up to five senders of one size can lock in step and be a barrel shifter,
/// without conflicts, which the real ones are not. So only one to one, and six and seven to as many are asserted. The
/// page of the preset has all numbers.
#[test]
fn streams_from_many_to_many_get_slower_with_their_number() {
    for (ports, published) in MSTREAMIO {
        let ours: Vec<_> = (1..=7).map(|units| each(ports, units)).collect();
        println!("{ports} ports: {ours:.1?}, published {published:?}");
        assert_near("one to one", ours[0], published[0], 0.06);
        assert_between("six to six", ours[5], 0.0, 0.6 * ours[0]);
        assert_between("seven to seven", ours[6], 0.0, ours[5].next_down());
    }
}

/// Table II.
#[test]
fn one_direction_is_as_fast_as_published() {
    let alone = "network.host={send=\"0 s\",receive=\"0 s\"}";
    for (ports, published) in [(1, 246.71), (2, 493.41)] {
        let ports = format!("network.nic.ports={ports}");
        let record = run_with(PRESERIES, &[alone, &ports]);
        assert_near(&ports, record.throughput_bytes_per_s / 1e6, published, 0.01);
    }
}

/// Tables III and IV: the sum of both directions of one host. The model leaves out the cost of the chip set beside the
/// bus.
#[test]
fn two_directions_are_bound_by_the_memory_of_the_hosts() {
    for (ports, expected, published) in [(1, 2.0 * 246.71, 465.98), (2, 684.85, 649.90)] {
        let ports = format!("network.nic.ports={ports}");
        let pairs = "workload={type=\"pairs\",window=8}";
        let set = [pairs, &ports, "readout.units=2", "builder.units=2", "network.placement={readout=0,builder=0}"];
        let both = run_with(PRESERIES, &set).throughput_bytes_per_s / 1e6;
        println!("published {published}");
        assert_near(&ports, both, expected, 0.05);
    }
}

/// Two boards.
const VELO: &str = r#"
[network]
preset = "velo-prototype"
[workload]
type = "pairs"
window = 8
messages = 1
[readout]
units = 1
source = { type = "fixed", size = "8 B" }
[builder]
units = 1
"#;

/// VELO 2008, results: half a round trip of 0.97 us, 4.8 million messages per second, 3.0 million and 100 MB/s at 32 B.
#[test]
fn short_messages_are_as_fast_as_published() {
    assert_near("microseconds", run_with(VELO, &[]).seconds * 1e6, 0.97, 0.03);
    let rate = |size: &str| run_with(VELO, &[size, "workload.messages=5000"]).event_rate_hz;
    assert_near("8 B", rate("readout.source.size=8 B"), 4.8e6, 0.1);
    assert_near("32 B", rate("readout.source.size=32 B"), 3.0e6, 0.05);
}

/// One pair of hosts.
const CELLS: &str = r#"
[network]
preset = "atm-155"
[workload]
type = "assigned"
destinations = [0]
messages = 500
[readout]
units = 1
source = { type = "fixed", size = "60 kB" }
[builder]
units = 1
"#;

/// Note 77, section on ATM: about 135 Mbit/s; four senders of 1 kB each and one receiver in 250 us, 30 of which are the
/// application's.
#[test]
fn cells_carry_as_much_as_published() {
    assert_near("Mbit/s", run_with(CELLS, &[]).throughput_bytes_per_s * 8e-6, 135.0, 0.01);
    let funnel = [
        "readout.units=4",
        "workload={type=\"assigned\",destinations=[0,0,0,0],messages=1}",
        "readout.source.size=1 kB",
    ];
    assert_near("microseconds", run_with(CELLS, &funnel).seconds * 1e6, 250.0, 0.15);
}

/// 256 nodes that send to each other.
const DS_LINKS: &str = r#"
[network]
preset = "ds-link-clos"
placement = { readout = 0, builder = 0 }
[workload]
type = "random"
[trigger]
duration = "1500 us"
[run]
warmup = "500 us"
[readout]
units = 256
source = { type = "fixed", size = "64 B" }
[builder]
units = 256
"#;

/// ATLAS 1998, figures 2 and 3: saturation at about half of the rate of the links; the grid below the Clos network;
/// fixed pairs above random traffic. Half of all traffic goes over the middle of a network: that is at most 24 % in the
/// grid and 48 % in the torus.
#[test]
fn ds_links_saturate_as_published() {
    let part = |set: &[&str]| run_with(DS_LINKS, set).throughput_bytes_per_s / 256.0 / 10e6;
    let clos = part(&[]);
    assert_between("Clos, random", clos, 0.43, 0.55);
    assert_between("Clos, pairs", part(&["workload={type=\"pairs\"}"]), 1.3 * clos, 1.0);
    let grid = part(&["network.preset=ds-link-grid"]);
    assert_between("grid, random", grid, 0.15, 0.24);
    assert_between("torus, random", part(&["network.preset=ds-link-torus"]), 1.5 * grid, 0.9 * clos);
}
