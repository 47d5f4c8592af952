//! Costs of a host: its memory and its processor.

use crate::support::{assert_near, network, run_with};

/// Links so fast that only the hosts count.
const PAIR: &str = r#"
[network]
topology = { type = "crossbar", ports = 4 }
link = { rate = "40 Gbit/s", delay = "0 s" }
nic = { packet = "4000 B" }
[workload]
type = "pairs"
window = 8
messages = 2000
[run]
warmup = "0 s"
[readout]
units = 1
source = { type = "fixed", size = "16 kB" }
[builder]
units = 1
"#;

/// Two hosts that both send and receive.
const TWO_WAY: &[&str] =
    &["readout.units=2", "builder.units=2", "network.placement.readout=0", "network.placement.builder=0"];

#[test]
fn one_direction_is_bound_by_the_slower_of_reading_and_writing() {
    for (read, write, expected) in [(500, 700, 500e6), (700, 500, 500e6), (630, 630, 630e6)] {
        let dma = format!("network.nic.dma={{read=\"{read} MB/s\",write=\"{write} MB/s\"}}");
        let record = run_with(PAIR, &[dma.as_str()]);
        assert_near(&dma, record.throughput_bytes_per_s, expected, 2e-3);
    }
}

/// Reading and writing take turns on one bus: equal amounts go at the harmonic mean of the rates.
#[test]
fn both_directions_share_the_bus() {
    for (read, write) in [(500.0, 700.0), (700.0, 500.0), (600.0, 600.0)] {
        let dma = format!("network.nic.dma={{read=\"{read} MB/s\",write=\"{write} MB/s\"}}");
        let set: Vec<_> = TWO_WAY.iter().copied().chain([dma.as_str()]).collect();
        // Each of two hosts sends as much as it receives, so the sum of both senders is that of both directions of one host.
        let both = run_with(PAIR, &set).throughput_bytes_per_s;
        assert_near(&dma, both, 1e6 * 2.0 / (1.0 / read + 1.0 / write), 0.01);
    }
}

/// A message takes its time on the wire, and the mean of the random times that are drawn for it.
#[test]
fn jitter_of_an_interface_is_added_to_the_time_of_messages_or_packets() {
    let rate = "network.link.rate=\"1 Gbit/s\"";
    let wire = run_with(PAIR, &[rate]).event_rate_hz.recip();
    for (jitter, added) in [
        ("{mean=\"20 us\"}", 20e-6),
        ("{mean=\"20 us\",per=\"packet\"}", 80e-6),
        ("{mean=\"20 us\",rms=\"40 us\",per=\"message\"}", 20e-6),
    ] {
        let set = format!("network.nic.jitter={jitter}");
        let time = run_with(PAIR, &[rate, &set]).event_rate_hz.recip();
        assert_near(jitter, time, wire + added, 0.03);
        let again = run_with(PAIR, &[rate, &set]).event_rate_hz.recip();
        assert_eq!(time.to_bits(), again.to_bits(), "{jitter}: the seed decides");
    }
}

#[test]
fn jitter_of_a_host_is_added_to_the_time_of_its_processor() {
    let small = "readout.source.size=8 B";
    for (host, expected) in [
        ("{send=\"0 s\",receive=\"6 us\",jitter={mean=\"4 us\"}}", 100e3),
        ("{send=\"0 s\",receive=\"0 s\",jitter={mean=\"10 us\"}}", 100e3),
    ] {
        let record = run_with(PAIR, &[small, &format!("network.host={host}")]);
        assert_near(host, record.event_rate_hz, expected, 0.05);
    }
}

#[test]
fn the_processor_bounds_the_rate_of_messages() {
    let small = "readout.source.size=8 B";
    for (host, expected) in [
        (["network.host.send=10 us", "network.host.receive=0 s"], 100e3),
        (["network.host.send=0 s", "network.host.receive=10 us"], 100e3),
        (["network.host.send=4 us", "network.host.receive=10 us"], 100e3),
        (["network.host.send=10 us", "network.host.receive=4 us"], 100e3),
    ] {
        let record = run_with(PAIR, &[small, host[0], host[1]]);
        assert_near(&host.join(", "), record.event_rate_hz, expected, 2e-3);
    }
}

/// A host that sends and receives has one processor for both.
#[test]
fn sending_and_receiving_share_the_processor() {
    let host = ["readout.source.size=8 B", "network.host.send=4 us", "network.host.receive=6 us"];
    let set: Vec<_> = TWO_WAY.iter().copied().chain(host).collect();
    assert_near("messages per second", run_with(PAIR, &set).event_rate_hz, 2.0 * 100e3, 0.01);
}

/// A sender that only talks to its own host: its messages need no time, and must not need the stack either.
#[test]
fn messages_within_a_host_need_no_network() {
    let set = ["network.placement={readout=0,builder=0}", "workload.messages=200_000"];
    let record = run_with(PAIR, &set);
    assert_eq!(
        (record.events.built, record.good, network(&record).links.iter().map(|link| link.packets).sum()),
        (200_000, true, 0)
    );
}
