//! Messages over connections, marks in queues, and shared memory.

use crate::support::{assert_between, assert_near, network, run_with};
use evb_record::{Connections, LinkRecord, Record};

/// Some senders to one receiver over links of 10 Gbit/s, through a switch whose queues drop.
const INCAST: &str = r#"
[network]
preset = "ideal"
link = { rate = "10 Gbit/s", delay = "1 us" }
flow = { type = "store-and-forward", queue = "100 kB", full = "drop", reaction = "0 s" }
nic = { packet = "1460 B", header = "78 B", minimum = "84 B" }
switch = { delay = "500 ns", arbitration = "oldest" }
placement = { readout = 0, builder = 8 }
[workload]
type = "assigned"
destinations = [0, 0, 0, 0, 0, 0, 0, 0]
window = 2
[readout]
units = 8
source = { type = "fixed", size = "200 kB" }
[builder]
units = 1
[run]
warmup = "20 ms"
[trigger]
duration = "60 ms"
"#;

const RENO: &str = r#"network.transport={ type="tcp", control="reno", least_timeout="5 ms", ack_delay="1 ms" }"#;
const CUBIC: &str = r#"network.transport={ type="tcp", least_timeout="5 ms", ack_delay="1 ms" }"#;
const DCTCP: &str = r#"network.transport={ type="tcp", control="dctcp", least_timeout="5 ms", ack_delay="1 ms" }"#;
const GO_BACK_N: &str = r#"network.transport={ type="rdma", window="32 kB" }"#;
const SELECTIVE: &str = r#"network.transport={ type="rdma", recovery="selective", window="32 kB" }"#;
const DCQCN: &str = r#"network.transport={ type="rdma", control={ type="dcqcn" } }"#;
const STEP: &str = r#"network.switch.marking={ low="30 kB", high="30 kB" }"#;
const RED: &str = r#"network.switch.marking={ low="10 kB", high="60 kB", most=0.1 }"#;

fn connections(record: &Record) -> &Connections {
    network(record).connections.as_ref().expect("there is a transport")
}

fn link<'r>(record: &'r Record, name: &str) -> &'r LinkRecord {
    network(record).links.iter().find(|link| link.name == name).expect("there is such a link")
}

/// All that was sent has arrived.
#[track_caller]
fn is_whole(record: &Record) {
    assert!(record.events.built == record.events.triggered && record.events.built > 20, "{:?}", record.events);
    assert_eq!(network(record).packets_left, 0);
}

#[test]
fn without_a_transport_an_incast_loses_messages() {
    let record = run_with(INCAST, &[]);
    assert!(record.events.built < record.events.triggered / 2, "{:?}", record.events);
    assert!(network(&record).connections.is_none());
}

#[test]
fn connections_deliver_all_over_queues_that_drop() {
    for transport in [RENO, CUBIC, GO_BACK_N, SELECTIVE] {
        let record = run_with(INCAST, &[transport]);
        is_whole(&record);
        let counts = connections(&record);
        assert!(network(&record).lost_packets > 0 && counts.sent_again > 0, "{transport}: {counts:?}");
        assert_eq!(counts.count, 8);
    }
}

/// The link to the receiver is full of segments; their headers are the rest.
#[test]
fn tcp_fills_the_link() {
    for transport in [RENO, CUBIC, DCTCP] {
        let record = run_with(INCAST, &[transport, STEP]);
        is_whole(&record);
        assert_near(transport, record.throughput_bytes_per_s, 1.25e9 * 1460.0 / 1538.0, 0.02);
    }
}

/// DCTCP keeps a queue near its marks (Alizadeh et al., SIGCOMM 2010, section 3.3), and loses nothing. All share alike.
#[test]
fn dctcp_keeps_queues_short() {
    let record = run_with(INCAST, &[DCTCP, STEP, "network.flow.queue=\"1 MB\""]);
    let reno = run_with(INCAST, &[RENO, STEP, "network.flow.queue=\"1 MB\""]);
    let queue = |record: &Record| link(record, "switch0>h8").most_bytes as f64;
    assert_between("bytes in the queue", queue(&record), 30e3, 60e3);
    assert!(queue(&reno) > 500e3, "{}", queue(&reno));
    assert!(link(&record, "switch0>h8").marked > 1000);
    let counts = connections(&record);
    assert_eq!((counts.timeouts, network(&record).lost_packets), (0, 0));
    assert_between("fairness", counts.rates.fairness, 0.98, 1.0);
}

/// RoCE: without congestion control senders are paused; DCQCN lowers their rates before that.
#[test]
fn dcqcn_lowers_rates_before_the_pause() {
    let pause = "network.flow.full=pause";
    let alone = run_with(INCAST, &[r#"network.transport={ type="rdma" }"#, pause, RED]);
    let controlled = run_with(INCAST, &[DCQCN, pause, RED]);
    let pauses = |record: &Record| network(record).links.iter().map(|link| link.pauses).sum::<u64>();
    for record in [&alone, &controlled] {
        is_whole(record);
        assert_eq!((network(record).lost_packets, connections(record).sent_again), (0, 0));
    }
    assert!(connections(&controlled).notices > 100, "{:?}", connections(&controlled));
    assert!(pauses(&alone) > 100 && pauses(&controlled) < pauses(&alone) / 10, "{}", pauses(&controlled));
    assert_near("throughput", controlled.throughput_bytes_per_s, alone.throughput_bytes_per_s, 0.1);
}

/// Choudhury and Hahne, IEEE/ACM Transactions on Networking 6 (1998), section III: n full queues have
/// alpha B / (1 + n alpha) each.
#[test]
fn full_queues_share_memory_by_the_dynamic_threshold() {
    let queues = |alpha: f64, receivers: u16| {
        let destinations = (0..8).map(|n| (n % receivers).to_string()).collect::<Vec<_>>().join(",");
        let memory = format!("network.switch.memory={{ size = \"300 kB\", alpha = {alpha:?} }}");
        let set = [
            &format!("workload.destinations=[{destinations}]"),
            &format!("builder.units={receivers}"),
            "network.flow.queue=\"1 MB\"",
            &memory,
        ];
        let record = run_with(INCAST, &set);
        (0..receivers).map(|n| link(&record, &format!("switch0>h{}", 8 + n)).most_bytes as f64).collect::<Vec<_>>()
    };
    for (alpha, receivers, share) in
        [(1.0, 1, 1.0 / 2.0), (1.0, 2, 1.0 / 3.0), (2.0, 2, 2.0 / 5.0), (0.5, 1, 1.0 / 3.0)]
    {
        for queue in queues(alpha, receivers) {
            assert_near(&format!("alpha {alpha}, {receivers} queues"), queue, share * 300e3, 0.05);
        }
    }
}

#[test]
fn each_queue_has_the_least_memory_beside_the_shared_one() {
    let memory = r#"network.switch.memory={ size = "20 kB", alpha = 1.0, least = "50 kB" }"#;
    let record = run_with(INCAST, &[memory]);
    assert_between("bytes", link(&record, "switch0>h8").most_bytes as f64, 50e3, 70e3);
}

const EVENTS: &str = r#"
[network]
preset = "ideal"
link = { rate = "10 Gbit/s", delay = "1 us" }
flow = { type = "store-and-forward", queue = "60 kB", full = "drop", reaction = "0 s" }
nic = { packet = "1460 B", header = "78 B", minimum = "84 B" }
switch = { delay = "500 ns", arbitration = "oldest" }
[readout]
units = 16
source = { type = "fixed", size = "20 kB" }
[builder]
units = 4
[trigger]
type = "rate"
rate = "2 kHz"
duration = "50 ms"
block = 1
"#;

/// Shallow queues drop fragments. Over TCP all events are complete; without a transport builders wait for what is lost.
#[test]
fn events_are_complete_over_tcp() {
    let record = run_with(EVENTS, &[CUBIC]);
    assert!(network(&record).lost_packets > 0 && record.events.built > 80, "{:?}", record.events);
    assert_eq!(record.events.built, record.events.triggered);
    let without = run_with(EVENTS, &["builder.patience=\"5 ms\"", "builder.deadline=\"20 ms\""]);
    assert!(without.events.built < without.events.triggered, "{:?}", without.events);
}

#[test]
fn shaping_goes_over_connections() {
    for step in ["credit", "barrier"] {
        let shaping = format!(r#"shaping={{ type="barrel-shifter", step="{step}", bucket="20 kB", lead="4 kB" }}"#);
        let record = run_with(EVENTS, &[CUBIC, &shaping]);
        assert!(record.events.built == record.events.triggered, "{step}: {:?}", record.events);
        assert_eq!(network(&record).lost_packets, 0, "{step}");
    }
}

#[test]
fn the_same_seed_gives_the_same_record() {
    let run = || {
        let mut record = run_with(INCAST, &[DCQCN, RED]);
        record.simulation.as_mut().expect("it was simulated").wall_seconds = 0.0;
        record
    };
    assert_eq!(run(), run());
}
