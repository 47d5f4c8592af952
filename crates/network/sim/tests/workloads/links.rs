//! One sender and one receiver: every time can be calculated.

use crate::support::{assert_near, bytes_into_hosts, efficiency, network, run_with};

/// 100 MB/s, so 10 ns per byte; a switch that adds one byte's time.
const PAIR: &str = r#"
[network]
topology = { type = "crossbar", ports = 4 }
link = { rate = "100 MB/s", delay = "0 s" }
switch = { delay = "0 s" }
flow = { type = "cut-through", buffer = "64 KiB", reaction = "0 s" }
nic = { packet = "4000 B" }
[workload]
type = "rotation"
messages = 1
[run]
warmup = "0 s"
[readout]
units = 1
source = { type = "fixed", size = "1 kB" }
max_fragment = "1 MB"
[builder]
units = 1
"#;

/// Nanoseconds per byte.
const BYTE: f64 = 10.0;

/// Nanoseconds from start to end of a number of messages.
fn time(set: &[&str]) -> f64 {
    run_with(PAIR, set).seconds * 1e9
}

/// A message over two leaves and a spine, each of which cuts through or stores: a switch that stores adds the time of the whole packet,
/// one that cuts through that of a byte, whatever the others do.
#[test]
fn each_switch_cuts_through_or_stores() {
    let clos = "network.topology={type = \"clos\", leaves = 2, ports_per_leaf = 1, spines = 1}";
    let queues = "network.flow={type = \"store-and-forward\", queue = \"64 KiB\", full = \"drop\", reaction = \"0 s\"}";
    let credits = "network.flow.buffer=64 KiB";
    for (flow, names, storing) in [
        (credits, None, 0),
        (credits, Some("leaf*"), 1),
        (credits, Some("spine0"), 2),
        (queues, None, 3),
        (queues, Some("leaf*"), 1),
        (queues, Some("spine0"), 2),
        (queues, Some("*"), 0),
    ] {
        let names = names.map(|names| format!("network.switch.cut_through=[\"{names}\"]"));
        let set: Vec<_> = [clos, flow, "workload.messages=1"].into_iter().chain(names.as_deref()).collect();
        let expected = f64::from(1 + storing) * 1000.0 * BYTE + f64::from(3 - storing) * BYTE;
        assert_near(&format!("{set:?}"), time(&set), expected, 1e-6);
    }
}

/// Nanoseconds that the interface needs for a message: for each of its packets an overhead, and the bytes on the wire.
fn message_time(size: u64, overhead: f64, header: u64, minimum: u64) -> f64 {
    let full = size / 4000;
    let sizes = (0..full).map(|_| 4000).chain((!size.is_multiple_of(4000)).then_some(size % 4000));
    sizes.map(|bytes| overhead + (bytes + header).max(minimum) as f64 * BYTE).sum()
}

#[test]
fn a_message_takes_overhead_and_wire_time_of_each_of_its_packets() {
    for size in [1, 63, 64, 1000, 3999, 4000, 4001, 8000, 100_001] {
        let source = format!("readout.source.size={size} B");
        let nic = ["network.nic.overhead=700 ns", "network.nic.header=16 B", "network.nic.minimum=80 B"];
        for messages in [1, 2, 500] {
            let count = format!("workload.messages={messages}");
            let set = [nic[0], nic[1], nic[2], source.as_str(), count.as_str()];
            let record = run_with(PAIR, &set);
            let expected = messages as f64 * message_time(size, 700.0, 16, 80) + BYTE;
            assert_near(&format!("{messages} x {size} B"), record.seconds * 1e9, expected, 1e-6);
            let rate = (messages * size) as f64 / expected * 1e9;
            assert_near("throughput", record.throughput_bytes_per_s, rate, 1e-6);
            // The filling of the smallest packet is not payload.
            let filled = messages as f64 * message_time(size, 700.0, 16, 0);
            assert_near("efficiency", efficiency(&record), filled / expected, 1e-6);
            assert_eq!((record.events.built, record.good), (messages, true));
        }
    }
}

#[test]
fn bytes_into_the_host_are_those_on_the_wire() {
    let record = run_with(
        PAIR,
        &["network.nic.header=16 B", "network.nic.minimum=80 B", "readout.source.size=4001 B", "workload.messages=30"],
    );
    assert_eq!(bytes_into_hosts(&record), 30 * (4016 + 80));
    let used: Vec<_> = network(&record).links.iter().filter(|link| link.packets > 0).collect();
    assert_eq!(used.len(), 2, "one link to the switch and one from it");
    assert!(used.iter().all(|link| link.packets == 60 && link.bytes == 30 * 4096), "{used:?}");
}

#[test]
fn the_rate_of_the_interface_bounds_the_pace() {
    for flow in [
        "{type=\"cut-through\",buffer=\"64 KiB\",reaction=\"0 s\"}",
        "{type=\"wormhole\",slack=\"64 B\",reaction=\"0 s\"}",
    ] {
        let flow = format!("network.flow={flow}");
        let set = ["network.nic.rate=40 MB/s", "workload.messages=100", "readout.source.size=3000 B", flow.as_str()];
        // The first byte is through the switch after one byte's time of the link, or (worms) of the pace.
        assert_near(&flow, time(&set), 100.0 * 3000.0 * 25.0 + 10.0, 1e-5);
    }
}

#[test]
fn delays_add_once_to_a_stream_of_packets() {
    let set = ["network.link.delay=300 ns", "network.switch.delay=2 us", "workload.messages=50"];
    assert_near("cut-through", time(&set), 50.0 * 1000.0 * BYTE + BYTE + 2.0 * 300.0 + 2000.0, 1e-9);
    let stored = "network.flow={type=\"store-and-forward\",queue=\"64 KiB\",full=\"drop\",reaction=\"0 s\"}";
    let whole = 51.0 * 1000.0 * BYTE + 2.0 * 300.0 + 2000.0;
    assert_near("store and forward", time(&[set[0], set[1], set[2], stored]), whole, 1e-9);
}

#[test]
fn two_ports_double_the_throughput() {
    let set = ["workload.messages=400", "readout.source.size=4000 B", "network.nic.overhead=1 us", "workload.window=4"];
    let one = time(&set);
    let two = time(&[set[0], set[1], set[2], set[3], "network.nic.ports=2"]);
    assert_near("speed-up", (one - BYTE) / (two - BYTE), 2.0, 1e-9);
}

/// Packets of a message travel over both ports.
#[test]
fn two_ports_halve_the_time_of_a_long_message() {
    let one = time(&["readout.source.size=80000 B"]);
    let two = time(&["readout.source.size=80000 B", "network.nic.ports=2"]);
    assert_near("speed-up", (one - BYTE) / (two - BYTE), 2.0, 1e-9);
}
