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
const NSCC: &str = r#"network.transport={ type="ultra-ethernet", round_trip="6 us" }"#;
const RCCC: &str = r#"network.transport={ type="ultra-ethernet", round_trip="6 us", control={ type="rccc" } }"#;
const TRIMMING: &[&str] = &["network.switch.trimming=true", "network.flow.priorities=2"];
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
    for transport in [RENO, CUBIC, GO_BACK_N, SELECTIVE, NSCC, RCCC] {
        // The queue takes the first windows of Ultra Ethernet, which are short.
        let record = run_with(INCAST, &[transport, "network.flow.queue=\"50 kB\""]);
        is_whole(&record);
        let counts = connections(&record);
        assert!(network(&record).lost_packets > 0 && counts.sent_again > 0, "{transport}: {counts:?}");
        assert_eq!(counts.count, 8);
    }
}

#[test]
fn senders_that_meet_at_a_receiver_are_counted() {
    for transport in [CUBIC, GO_BACK_N, RCCC] {
        assert_eq!(connections(&run_with(INCAST, &[transport])).most_senders, 8, "{transport}");
        let alone = ["readout.units=1", "workload.destinations=[0]"];
        assert_eq!(connections(&run_with(INCAST, &[&alone[..], &[transport]].concat())).most_senders, 1, "{transport}");
    }
}

#[test]
fn senders_in_step_do_not_meet() {
    let rotation =
        "workload={ type=\"rotation\", start=\"retarded\", window=1, awaits=\"acknowledgement\", messages=16 }";
    let record = run_with(INCAST, &["builder.units=8", "run.warmup=0 s", rotation, GO_BACK_N]);
    assert_eq!((record.events.built, connections(&record).most_senders), (8 * 16, 1));
}

/// 137 segments take 168.5 us. The last of them needs 3.7 us to the receiver, waits up to 1 us, and is acknowledged in 2.6 us.
#[test]
fn a_sender_may_await_the_acknowledgement_of_each_message() {
    let alone = ["readout.units=1", "workload.destinations=[0]", "workload.window=1", GO_BACK_N];
    let microseconds = |awaits: &str| 1e6 / run_with(INCAST, &[&alone[..], &[awaits]].concat()).event_rate_hz;
    assert_near("departure", microseconds("workload.awaits=departure"), 168.5, 0.002);
    assert_between("acknowledgement", microseconds("workload.awaits=acknowledgement"), 174.5, 176.5);
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

/// A queue of 20 packets is full at once. Nothing is lost with trimming: headers arrive, and the link is as full as with TCP.
#[test]
fn trimming_turns_losses_into_headers() {
    let queue = [
        "network.flow.queue=\"30 kB\"",
        r#"network.switch.marking={ low="6 kB", high="24 kB" }"#,
        "run.warmup=\"0 s\"",
    ];
    for transport in [NSCC, RCCC] {
        let record = run_with(INCAST, &[TRIMMING, &queue, &[transport]].concat());
        is_whole(&record);
        let counts = connections(&record);
        assert!(counts.trimmed > 0 && counts.sent_again == counts.trimmed, "{transport}: {counts:?}");
        assert_eq!((network(&record).lost_packets, counts.timeouts), (0, 0), "{transport}");
        let link = link(&record, "switch0>h8");
        assert!(link.trimmed > 0 && link.dropped == 0 && link.most_bytes <= 30_000, "{link:?}");
        assert_near(transport, record.throughput_bytes_per_s, 1.25e9 * 1460.0 / 1538.0, 0.03);
        assert_between("fairness", counts.rates.fairness, 0.97, 1.0);
    }
}

/// Receivers grant what their link takes: after the first windows the queue does not grow.
#[test]
fn credit_keeps_the_queue_short() {
    let rccc =
        r#"network.transport={ type="ultra-ethernet", round_trip="6 us", window="3 kB", control={ type="rccc" } }"#;
    let record = run_with(INCAST, &[TRIMMING, &[rccc, "network.flow.queue=\"1 MB\"", "run.warmup=\"0 s\""]].concat());
    is_whole(&record);
    let queue = link(&record, "switch0>h8").most_bytes;
    assert!(queue <= 8 * 3 * 1538, "{queue} bytes, and the first windows have three packets each");
    assert_near("throughput", record.throughput_bytes_per_s, 1.25e9 * 1460.0 / 1538.0, 0.03);
}

/// Four senders behind four uplinks: with many paths each uplink carries a quarter, with one path some are idle.
#[test]
fn packets_of_a_connection_take_many_paths() {
    let tree = [
        "network.topology={ type=\"fat-tree\", levels=[{ down=4, up=4 }, { down=4 }] }",
        "network.routing={ type=\"ecmp\" }",
        "builder.units=4",
        "readout.units=4",
        "workload.destinations=[0, 1, 2, 3]",
        "network.placement={ readout=0, builder=4 }",
        "network.flow.queue=\"200 kB\"",
    ];
    let with_paths = |paths: u16| {
        let nscc = format!("network.transport={{ type=\"ultra-ethernet\", round_trip=\"12 us\", paths={paths} }}");
        run_with(INCAST, &[TRIMMING, &tree, &[&nscc]].concat())
    };
    let (one, many) = (with_paths(1), with_paths(64));
    let links = |record: &Record| {
        let ups = network(record).links.iter().filter(|link| link.name.starts_with("leaf0>spine"));
        ups.map(|link| link.bytes as f64).collect::<Vec<_>>()
    };
    let mean = links(&many).iter().sum::<f64>() / 4.0;
    links(&many).iter().for_each(|&bytes| assert_near("bytes of an uplink", bytes, mean, 0.15));
    assert!(links(&one).iter().any(|&bytes| bytes < 0.1 * mean), "{:?}", links(&one));
    assert!(many.throughput_bytes_per_s > 1.2 * one.throughput_bytes_per_s);
    is_whole(&many);
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

/// A readout unit sends small fragments as fast as its link takes them. A connection that waits for its turn collects whole segments
/// meanwhile. With a queue in the interface it sends at once, and collects only while one of its segments waits.
#[test]
fn the_queue_of_an_interface_takes_segments_at_once() {
    const SMALL: &str = r#"
[network]
preset = "ideal"
topology = { type = "crossbar", ports = 6 }
link = { rate = "10 Gbit/s", delay = "1 us" }
flow = { type = "store-and-forward", queue = "10 MB", full = "drop", reaction = "0 s" }
nic = { packet = "1460 B", header = "78 B", minimum = "84 B" }
switch = { delay = "500 ns", arbitration = "oldest" }
placement = { readout = 0, builder = 1 }
control = { type = "separate", delay = "1 us", rate = "10 Gbit/s" }
transport = { type = "tcp", control = "reno", window = "100 kB" }
[readout]
units = 1
source = { type = "fixed", size = "100 B" }
[builder]
units = 4
[trigger]
type = "free-running"
block = 1
duration = "10 ms"
[storage]
keep = "none"
"#;
    let segments = |queue: &str| {
        let record = run_with(SMALL, &[&format!("network.transport.interface_queue=\"{queue}\"")]);
        assert!(record.events.built > 1000, "{:?}", record.events);
        connections(&record).segments as f64 / record.events.built as f64
    };
    let (in_turn, at_once) = (segments("0 B"), segments("1 MB"));
    assert_between("segments of a fragment in turn", in_turn, 0.1, 0.25);
    assert_between("segments of a fragment at once", at_once, 0.3, 0.6);
}

/// Eight senders fill a short queue at once, each with one message. Without probes a lost tail waits for a timeout.
const LOST_TAILS: &[&str] = &[
    r#"network.transport={ type="tcp", control="reno", tail_probes=false, least_timeout="20 ms", ack_delay="1 ms" }"#,
    "network.flow.queue=\"30 kB\"",
    "workload.messages=1",
    "run.warmup=\"0 s\"",
];

#[test]
fn what_happens_over_time_adds_up_to_the_totals() {
    let record = run_with(INCAST, LOST_TAILS);
    let counts = connections(&record);
    let over_time = counts.over_time.as_ref().expect("it took time");
    let sum = |counts: &[u64]| counts.iter().sum::<u64>();
    assert!(counts.sent_again > 0 && counts.timeouts > 0, "{counts:?}");
    assert_eq!((sum(&over_time.sent_again), sum(&over_time.timeouts)), (counts.sent_again, counts.timeouts));
    let bytes = over_time.goodput_bytes_per_s.iter().sum::<f64>() * over_time.step_s;
    assert_near("bytes", bytes, 8.0 * 200e3, 1e-8);
    assert_near("steps", 64.0 * over_time.step_s, record.seconds, 1e-9);
}

#[test]
fn a_timeout_is_seen_as_steps_without_goodput() {
    let record = run_with(INCAST, LOST_TAILS);
    let over_time = connections(&record).over_time.as_ref().expect("it took time");
    let is_silent = |step: &usize| over_time.goodput_bytes_per_s[*step] == 0.0;
    let steps: Vec<_> = (0..64).collect();
    let silences = steps.split(|step| !is_silent(step));
    let silent = silences.max_by_key(|silence| silence.len()).expect("there are steps");
    assert_between("silence", silent.len() as f64 * over_time.step_s, 15e-3, 20e-3);
    // Who waits is known, and how small the window is when it ends.
    assert!(silent.iter().all(|&step| over_time.outstanding[step] >= 1.0), "{over_time:?}");
    assert!(silent.iter().all(|&step| over_time.window_bytes[step].is_some_and(|bytes| bytes > 0.0)), "{over_time:?}");
}

/// Windows where a window is regulated, rates where a rate is, and neither over a fixed window or with credit.
#[test]
fn windows_and_rates_are_recorded_where_they_change() {
    for (transport, has_window, has_rate) in [
        (DCTCP, true, false),
        (GO_BACK_N, false, false),
        (DCQCN, false, true),
        (NSCC, true, false),
        (RCCC, false, false),
    ] {
        let record = run_with(INCAST, &[transport, RED, "trigger.duration=\"30 ms\""]);
        let over_time = connections(&record).over_time.as_ref().expect("it took time");
        let found = (!over_time.window_bytes.is_empty(), !over_time.rate_bytes_per_s.is_empty());
        assert_eq!(found, (has_window, has_rate), "{transport}");
        assert_eq!(!over_time.notices.is_empty(), transport == DCQCN, "{transport}");
        // Eight senders share the link, and no rate is above that of a link.
        let rates: Vec<_> = over_time.rate_bytes_per_s.iter().flatten().collect();
        assert!(rates.iter().all(|&&rate| (50e6..1.25e9).contains(&rate)), "{rates:?}");
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
