//! Background traffic beside a workload.

use crate::support::{assert_near, network, run_with};
use evb_record::{Background, LinkRecord, Record};

/// Two senders of traffic to two receivers, over one switch that gives its outputs to the inputs in turn.
const TRAFFIC: &str = r#"
[network]
preset = "ideal"
topology = { type = "crossbar", ports = 8 }
link = { rate = "10 Gbit/s", delay = "1 us" }
flow = { type = "store-and-forward", queue = "100 kB", full = "priority-pause", reaction = "0 s", priorities = 2 }
nic = { packet = "1460 B", header = "78 B", minimum = "84 B" }
switch = { delay = "500 ns", arbitration = "round-robin" }
[workload]
type = "assigned"
destinations = [0, 1]
window = 2
[readout]
units = 2
source = { type = "fixed", size = "14600 B" }
[builder]
units = 2
[run]
warmup = "1 ms"
[trigger]
duration = "11 ms"
"#;

/// Payload that one link carries, in bytes per second.
const LINK: f64 = 1.25e9 * 1460.0 / 1538.0;

/// A workload with one table of background traffic, in messages like its own.
fn beside(text: &str, keys: &str, set: &[&str]) -> Record {
    let message = r#"message={type="fixed",size="14600 B"}"#;
    let background = format!("background=[{{name=\"others\",{message},{keys}}}]");
    let set: Vec<&str> = [&*background].into_iter().chain(set.iter().copied()).collect();
    run_with(text, &set)
}

fn background(record: &Record) -> &Background {
    &record.simulation.as_ref().expect("it was simulated").background[0]
}

fn link<'r>(record: &'r Record, name: &str) -> &'r LinkRecord {
    network(record).links.iter().find(|link| link.name == name).expect("there is such a link")
}

/// What was sent has arrived, was lost, or is under way; messages of the background have one size.
#[track_caller]
fn is_conserved(record: &Record, under_way: u64) {
    let found = background(record);
    assert_eq!(found.sent, found.messages + found.lost + under_way, "{found:?}");
    assert_eq!((found.sent_bytes, found.bytes), (14_600 * found.sent, 14_600 * found.messages), "{found:?}");
}

/// Host 4 sends to the host of receiver 0, beside sender 0: two inputs of the switch take turns at its output.
#[test]
fn a_link_is_shared_evenly() {
    let others = r#"senders={on="hosts"},receivers={on="hosts",first=2}"#;
    let record = beside(TRAFFIC, others, &[]);
    let found = background(&record);
    assert_near("background", found.throughput_bytes_per_s, LINK / 2.0, 0.01);
    assert_near("receiver 0", record.per_destination_bytes_per_s[0], LINK / 2.0, 0.01);
    assert_near("receiver 1", record.per_destination_bytes_per_s[1], LINK, 0.01);
    assert_near("all", found.throughput_bytes_per_s + record.per_destination_bytes_per_s[0], LINK, 0.005);
    let shared = link(&record, "switch0>h2");
    assert_near("background on the link", shared.background_bytes as f64, shared.bytes as f64 / 2.0, 0.01);
    assert_eq!(link(&record, "switch0>h3").background_bytes, 0);
    assert_near("seconds", found.seconds, 10e-3, 1e-9);
    is_conserved(&record, 0);
}

/// Sender 0 and background traffic take turns in the interface of their host, packet by packet, also when messages of the
/// background are ten times as long.
#[test]
fn an_interface_is_shared_evenly() {
    for size in ["14600 B", "146 kB"] {
        let others = r#"senders={on="hosts",first=0},receivers={on="hosts",first=6}"#;
        let size = format!("background.0.message.size={size}");
        let record = beside(TRAFFIC, others, &[&size]);
        assert_near("background", background(&record).throughput_bytes_per_s, LINK / 2.0, 0.02);
        assert_near("sender 0", record.per_source_bytes_per_s[0], LINK / 2.0, 0.02);
        assert_near("sender 1", record.per_source_bytes_per_s[1], LINK, 0.01);
    }
}

#[test]
fn what_shares_nothing_changes_nothing() {
    let alone = run_with(TRAFFIC, &[]);
    let record = beside(TRAFFIC, r#"senders={on="hosts",count=2},receivers={on="hosts",first=6,count=2}"#, &[]);
    assert_near("background", background(&record).throughput_bytes_per_s, LINK * 1.9, 0.05);
    let mut main = record.clone();
    main.simulation = alone.simulation.clone();
    assert!(main == alone, "{main:#?}\n{alone:#?}");
}

/// Traffic of a lower priority gets what the workload leaves: nothing of a full link, and the rest of one that is not.
#[test]
fn lower_priority_takes_only_what_is_left() {
    for sender in ["4", "0"] {
        let others =
            format!(r#"senders={{on="hosts",first={sender}}},receivers={{on="hosts",first=2}},priority="lower""#);
        let full = beside(TRAFFIC, &others, &[]);
        assert_near("receiver 0", full.per_destination_bytes_per_s[0], LINK, 0.01);
        assert!(background(&full).throughput_bytes_per_s < 0.01 * LINK, "{:?}", background(&full));
        let half = beside(TRAFFIC, &others, &["workload.load=0.4", "workload.arrivals=regular"]);
        assert_near("receiver 0", half.per_destination_bytes_per_s[0], 0.5e9, 0.01);
        assert_near("background", background(&half).throughput_bytes_per_s, LINK - 0.5e9, 0.02);
    }
}

/// Messages come from `from` on and end at `until`, or by their number.
#[test]
fn it_begins_and_ends_in_time() {
    let others = r#"senders={on="hosts"},receivers={on="hosts",first=6},rate="2 kHz",arrivals="regular""#;
    let whole = beside(TRAFFIC, &format!(r#"{others},from="3 ms",until="6 ms""#), &[]);
    let found = background(&whole);
    // At 3.5 ms, 4 ms, and so on; the one at 6 ms does not begin.
    assert_eq!((found.sent, found.messages), (5, 5), "{found:?}");
    assert_near("seconds", found.seconds, 3e-3, 1e-9);
    assert_near("rate", found.throughput_bytes_per_s, 5.0 * 14_600.0 / 3e-3, 1e-9);
    assert_near("offered", found.offered_bytes_per_s.expect("at a rate"), 2e3 * 14_600.0, 1e-9);
    let two = beside(TRAFFIC, &format!("{others},messages=2"), &[]);
    assert_eq!(background(&two).sent, 2, "{:?}", background(&two));
    assert_near("latency", background(&two).latency_us.max, 2.0 + 0.5 + 11.0 * 1538.0 * 8e-4, 0.02);
}

const EVENTS: &str = r#"
[network]
preset = "ideal"
topology = { type = "crossbar", ports = 16 }
link = { rate = "10 Gbit/s", delay = "1 us" }
flow = { type = "store-and-forward", queue = "100 kB", full = "pause", reaction = "0 s" }
nic = { packet = "1460 B", header = "78 B", minimum = "84 B" }
switch = { delay = "500 ns", arbitration = "oldest" }
[readout]
units = 4
source = { type = "fixed", size = "20 kB" }
[builder]
units = 4
[trigger]
type = "rate"
rate = "10 kHz"
events = 300
block = 1
"#;

const STORAGE: &str = r#"senders={on="builders"},receivers={on="hosts",count=2},pattern="assigned""#;

/// The background has no end of its own. The run ends when its events are built, and the verdict is that of them.
#[test]
fn it_does_not_prolong_the_run() {
    let alone = run_with(EVENTS, &[]);
    let record = beside(EVENTS, STORAGE, &[]);
    assert!(record.good && record.events.built == 300, "{:?}", record.findings);
    assert_near("seconds", record.seconds, alone.seconds, 0.01);
    let found = background(&record);
    // Two servers get all that their links carry. What fills their queues is under way in the end.
    assert_near("background", found.throughput_bytes_per_s, 2.0 * LINK, 0.02);
    is_conserved(&record, found.sent - found.messages);
    // Of each of four inputs 100 kB and what came before the pause: seven messages; and two at each sender.
    assert!(found.sent - found.messages <= 4 * 2 + 4 * 7, "{found:?}");
    assert_eq!(record.builders.iter().map(|builder| builder.bytes).sum::<u64>(), 300 * 80_000);
}

/// Connections, a queue that drops, and shaping: events are whole, and all of the background arrives over TCP.
#[test]
fn it_goes_over_connections_and_beside_slots() {
    let tcp = r#"network.transport={ type="tcp", least_timeout="5 ms", ack_delay="1 ms" }"#;
    let shaped = r#"shaping={ type="barrel-shifter", step="credit", bucket="20 kB", lead="4 kB" }"#;
    let divided = r#"shaping={ type="rate-division", packet="1460 B" }"#;
    let send = r#"senders={on="readouts"},receivers={on="hosts",count=2},pattern="assigned",load=0.3"#;
    for set in [&[tcp, "network.flow.full=drop"][..], &[shaped], &[shaped, tcp], &[divided]] {
        let record = beside(EVENTS, send, set);
        assert!(record.good && record.events.built == 300, "{set:?}: {:?}", record.findings);
        let found = background(&record);
        let offered = found.offered_bytes_per_s.expect("a load");
        assert_near("background", found.throughput_bytes_per_s, offered, 0.1);
        assert_eq!(found.lost, 0);
        // With as much as goes, slots keep their turn.
        let full = beside(EVENTS, r#"senders={on="readouts"},receivers={on="hosts",count=2}"#, set);
        assert!(full.good && full.events.built == 300, "{set:?}: {:?}", full.findings);
    }
}

/// A server whose link fails loses messages of the background. That is no fault of the events.
#[test]
fn losses_of_the_background_are_no_fault_of_the_workload() {
    let fault = "network.fault=[{target=\"switch0>h9\",at=\"5 ms\",action=\"fail\"}]";
    let record = beside(EVENTS, STORAGE, &[fault]);
    assert!(record.good && record.events.built == 300, "{:?}", record.findings);
    let found = background(&record);
    assert!(found.lost > 10, "{found:?}");
    assert!(found.sent >= found.messages + found.lost, "{found:?}");
}

/// A run whose events are stuck ends, although the background would go on for ever.
#[test]
fn a_stuck_workload_ends() {
    let fault = "network.fault=[{target=\"h1>switch0\",at=\"5 ms\",action=\"fail\"}]";
    for trigger in ["trigger.type=rate", "trigger={type=\"free-running\",events=300,block=1}"] {
        let record = beside(EVENTS, STORAGE, &[fault, trigger, "run.drain_timeout=20 ms", "builder.patience=5 ms"]);
        assert!(!record.good && record.seconds < 1.0, "{:?}", record.findings);
    }
}

#[test]
fn the_same_seed_gives_the_same_record() {
    let run = |seed: &str| {
        let random = r#"senders={on="readouts"},receivers={on="builders"},load=0.2"#;
        let mut record = beside(EVENTS, random, &[seed]);
        record.simulation.as_mut().expect("it was simulated").wall_seconds = 0.0;
        record
    };
    assert_eq!(run("run.seed=1"), run("run.seed=1"));
    assert_ne!(background(&run("run.seed=1")), background(&run("run.seed=2")));
}
