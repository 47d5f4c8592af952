//! Links of several rates in one network (cut-through).

use crate::support::{assert_between, assert_near, efficiency, network, run_with};
use evb_record::Record;

/// Hosts with 100 MB/s on leaves whose uplinks carry as much in all.
const CLOS: &str = r#"
[network]
preset = "infiniband-hdr-fat-tree"
topology = { type = "clos", leaves = 4, ports_per_leaf = 4, spines = 4 }
link = { rate = "100 MB/s" }
nic = { packet = "1000 B" }
routing = { type = "adaptive" }
placement = { readout = 0, builder = 0 }
control = { type = "separate", delay = "5 us", rate = "10 Gbit/s" }
[workload]
type = "pairs"
window = 4
[trigger]
duration = "10 ms"
[run]
warmup = "2 ms"
[readout]
units = 16
source = { type = "fixed", size = "64 kB" }
[builder]
units = 16
"#;

fn clos(set: &[&str]) -> Record {
    run_with(CLOS, set)
}

/// Half as many spines with two uplinks each are as good, and nearly as good with uplinks of twice the rate: of two packets in
/// one buffer for the same host the second one holds up those behind it.
#[test]
fn fewer_and_faster_uplinks_carry_as_much() {
    let slow = clos(&[]).throughput_bytes_per_s;
    let double = clos(&["network.topology.spines=2", "network.topology.links=2"]).throughput_bytes_per_s;
    let fast = clos(&["network.topology.spines=2", "network.topology.uplink=200 MB/s"]);
    assert_near("two links", double, slow, 0.01);
    assert_near("twice the rate", fast.throughput_bytes_per_s, slow, 0.05);
    let uplinks =
        network(&fast).links.iter().filter(|link| link.name.starts_with("leaf") && link.name.contains("spine"));
    uplinks.for_each(|link| assert_between(&link.name, link.used, 0.9, 1.01));
}

/// Uplinks of half the rate, as many as hosts, carry half.
#[test]
fn slower_uplinks_carry_less() {
    let fast = clos(&[]);
    let slow = clos(&["network.topology.uplink=50 MB/s"]);
    assert_near("half the rate", slow.throughput_bytes_per_s, fast.throughput_bytes_per_s / 2.0, 0.02);
    assert_near("of the full performance of destinations", efficiency(&slow), efficiency(&fast) / 2.0, 0.02);
}

/// A source with ten times the rate of the destination fills that, and a packet is under way as long as its two links need.
#[test]
fn a_fast_source_fills_a_slow_destination() {
    let links = "[{ends=[\"h0\",\"s\"],rate=\"1 GB/s\"},{ends=[\"h1\",\"s\"],rate=\"100 MB/s\"}]";
    let topology = format!("network.topology={{type=\"explicit\",switches=[\"s\"],link={links}}}");
    let one = ["readout.units=1", "builder.units=1", "network.placement={readout=0,builder=1}", topology.as_str()];
    assert_between("efficiency", efficiency(&clos(&one)), 0.999, 1.0);
    let turned = ["readout.units=1", "builder.units=1", "network.placement={readout=1,builder=0}", topology.as_str()];
    assert_between("efficiency of a fast destination", efficiency(&clos(&turned)), 0.099, 0.101);
}

/// One switch; hosts 0 to 3 have 100 MB/s, hosts 4 to 7 have 25 MB/s. Each sends to one host and receives from one.
const MIXED_HOSTS: &str = r#"
[network]
preset = "infiniband-hdr-fat-tree"
topology = { type = "crossbar", ports = 8 }
link = { rate = "100 MB/s" }
host_link = [{ first = 4, count = 4, rate = "25 MB/s", delay = "1 us" }]
nic = { packet = "1000 B", header = "0 B" }
placement = { readout = 0, builder = 0 }
control = { type = "separate", delay = "5 us", rate = "10 Gbit/s" }
[workload]
type = "assigned"
window = 4
[trigger]
duration = "40 ms"
[run]
warmup = "10 ms"
[readout]
units = 8
source = { type = "fixed", size = "64 kB" }
[builder]
units = 8
"#;

/// Each pair has the rate of its slower host. The full performance is 4 x 100 and 4 x 25 MB/s.
#[test]
fn efficiency_counts_each_destination_by_its_own_rate() {
    let to = |destinations: &str| run_with(MIXED_HOSTS, &[&format!("workload.destinations={destinations}")]);
    for (name, destinations, throughput) in [
        ("alike", "[1,2,3,0,5,6,7,4]", 500e6),
        ("fast to slow and back", "[4,5,6,7,0,1,2,3]", 200e6),
        ("two fast pairs", "[1,0,4,5,7,6,2,3]", 200e6 + 50e6 + 4.0 * 25e6),
    ] {
        let record = to(destinations);
        assert_near(name, record.throughput_bytes_per_s, throughput, 0.01);
        assert_near(name, efficiency(&record), throughput / 500e6, 0.01);
    }
}

/// No link of a host carries more than its own rate.
#[test]
fn interfaces_send_at_the_rate_of_their_links() {
    let record = run_with(MIXED_HOSTS, &["workload={type=\"random\",window=4}"]);
    for link in &network(&record).links {
        let rate = if link.name.contains('h') && link.name.contains(['4', '5', '6', '7']) { 25e6 } else { 100e6 };
        assert_between(&link.name, link.bytes as f64 / record.seconds / rate, 0.05, 1.0);
    }
}
