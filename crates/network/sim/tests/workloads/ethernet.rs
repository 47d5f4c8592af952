//! Store and forward: frames, full queues, trunks and trees.

use crate::support::{assert_near, efficiency, network, run_with};
use evb_record::FindingKind;

/// Frames of Fast Ethernet without the cost of the hosts.
const FRAMES: &str = r#"
[network]
preset = "fast-ethernet"
host = { send = "0 s", receive = "0 s" }
[workload]
type = "assigned"
destinations = [0]
messages = 1
[readout]
units = 1
source = { type = "fixed", size = "46 B" }
[builder]
units = 1
"#;

/// 80 ns per byte on both links, 100 ns of cable each, and 5 us in the switch. A frame has 38 B around its payload.
#[test]
fn a_frame_is_stored_whole_before_it_is_forwarded() {
    for (payload, wire) in [(1, 84.0), (46, 84.0), (47, 85.0), (1500, 1538.0)] {
        let size = format!("readout.source.size={payload} B");
        let through = run_with(FRAMES, &[&size]).seconds * 1e6;
        assert_near(&size, through, 2.0 * wire * 0.08 + 2.0 * 0.1 + 5.0, 1e-9);
        let cut = "network.flow={type=\"cut-through\",buffer=\"64 KiB\",reaction=\"0 s\"}";
        assert_near("less", through - run_with(FRAMES, &[&size, cut]).seconds * 1e6, (wire - 1.0) * 0.08, 1e-9);
    }
}

/// 46 us on either side (ATLAS 1998, figure 5), the frame on two links, and the switch.
#[test]
fn a_message_takes_the_time_of_the_hosts_and_of_two_frames() {
    let frames = |wire: f64| 2.0 * (wire * 0.08 + 0.1) + 5.0;
    let host = "network.host={send=\"46 us\",receive=\"46 us\"}";
    for (size, wire) in [(10, 84.0), (1000, 1038.0), (1460, 1498.0)] {
        let time = run_with(FRAMES, &[host, &format!("readout.source.size={size} B")]).seconds * 1e6;
        assert_near(&format!("{size} B"), time, 92.0 + frames(wire), 1e-9);
    }
}

/// Eight senders, one receiver, a small queue.
const INCAST: &str = r#"
[network]
preset = "gigabit-ethernet"
host = { send = "0 s", receive = "0 s" }
flow = { queue = "16 KiB" }
[workload]
type = "assigned"
destinations = [0, 0, 0, 0, 0, 0, 0, 0]
messages = 300
[readout]
units = 8
source = { type = "fixed", size = "1500 B" }
[builder]
units = 1
"#;

#[test]
fn a_full_queue_drops_and_counts() {
    let record = run_with(INCAST, &["network.flow.full=drop"]);
    let (events, lost) = (record.events, network(&record).lost_packets);
    assert_eq!(events.triggered, 8 * 300);
    assert_eq!(events.built + lost, events.triggered, "one packet each");
    assert!(lost > 1000, "{lost}");
    let dropped: u64 = network(&record).links.iter().map(|link| link.dropped).sum();
    assert_eq!(dropped, lost);
    // Those that came through kept the link busy all the time.
    assert!(efficiency(&record) > 0.99, "{}", efficiency(&record));
    assert!(!record.good);
}

#[test]
fn pauses_lose_nothing_and_bound_the_queues() {
    for full in ["pause", "priority-pause"] {
        let record = run_with(INCAST, &[&format!("network.flow.full={full}")]);
        assert_eq!((record.events.built, network(&record).lost_packets, record.good), (2400, 0, true), "{full}");
        assert!(network(&record).links.iter().map(|link| link.pauses).sum::<u64>() > 0, "{full}: no pauses");
        // 16 KiB of each input, and the frames that were under way: one more, and those sent within the reaction.
        let most = network(&record).links.iter().filter(|link| link.name.starts_with('s')).map(|link| link.most_bytes);
        let bound = 8 * (16_384 + 2 * 1538 + 2 * 1538);
        assert!(most.clone().max() <= Some(bound), "{full}: {:?} of {bound}", most.max());
        assert!(efficiency(&record) > 0.99, "{full}: {}", efficiency(&record));
    }
}

/// Eight senders over cables of 2 km, one receiver, and inputs that ask for a pause at 20 kB.
const LONG_CABLES: &str = r#"
[network]
preset = "ideal"
link = { rate = "10 Gbit/s", delay = "10 us" }
switch = { delay = "400 ns" }
flow = { type = "store-and-forward", queue = "20 kB", full = "priority-pause", reaction = "600 ns" }
nic = { packet = "1460 B", header = "78 B" }
[workload]
type = "assigned"
destinations = [0, 0, 0, 0, 0, 0, 0, 0]
messages = 100
[readout]
units = 8
source = { type = "fixed", size = "14600 B" }
[builder]
units = 1
"#;

/// 1250 B/us for twice 10 us of cable and 0.4 us of switch, and two packets of 1538 B: 28,576 B.
const NEEDED: u64 = 25_500 + 2 * 1538;

/// The most bytes in one headroom, the packets lost at inputs, and the verdict.
fn headroom(set: &[&str]) -> (u64, u64, bool) {
    let record = run_with(LONG_CABLES, set);
    let links = &network(&record).links;
    let dropped = links.iter().map(|link| link.ingress_dropped).sum();
    assert_eq!(network(&record).lost_packets, dropped, "nothing else is lost");
    let found = record.findings.iter().any(|finding| finding.kind == FindingKind::HeadroomFull);
    assert_eq!(found, dropped > 0, "{:?}", record.findings);
    (links.iter().map(|link| link.most_headroom_bytes).max().unwrap_or(0), dropped, record.good)
}

const SHARED: &str = r#"network.switch.memory={ size = "100 kB", alpha = 0.5, least = "2 kB" }"#;

/// IEEE 802.1Qbb: what is on the cable both ways, within the response, and a packet of each side.
#[test]
fn headroom_follows_from_the_cable_and_is_enough() {
    for memory in [&[][..], &[SHARED]] {
        let (most, dropped, good) = headroom(memory);
        assert_eq!((dropped, good), (0, true), "{memory:?}");
        // An eighth of the link to the receiver drains meanwhile, and packets are whole.
        let least = NEEDED - 25_500 / 8 - 3 * 1538;
        assert!((least..=NEEDED).contains(&most), "{memory:?}: {most} of {least} to {NEEDED}");
    }
}

#[test]
fn packets_without_headroom_are_lost_and_told() {
    for memory in [&[][..], &[SHARED]] {
        let with =
            |bytes: u64| headroom(&[&[format!("network.flow.headroom=\"{bytes} B\"").as_str()], memory].concat());
        assert_eq!(with(NEEDED).1, 0, "{memory:?}");
        let (most, dropped, good) = with(NEEDED / 2);
        assert!(most <= NEEDED / 2 && dropped > 0 && !good, "{memory:?}: {most}, {dropped}");
    }
}

/// The threshold of each of n inputs is alpha B / (1 + n alpha), and `least` beside it (Choudhury and Hahne 1998).
#[test]
fn inputs_share_memory_by_the_dynamic_threshold() {
    for (alpha, share) in [(0.5, 0.5 / 5.0), (2.0, 2.0 / 17.0)] {
        let memory = format!("network.switch.memory={{ size = \"1 MB\", alpha = {alpha:?}, least = \"3 kB\" }}");
        let record = run_with(LONG_CABLES, &[&memory, "network.flow.queue=\"1 MB\"", "workload.messages=400"]);
        assert!(record.good, "{:?}", record.findings);
        let waiting =
            network(&record).links.iter().find(|link| link.name == "switch0>h8").expect("the output").most_bytes;
        let inputs = 8.0 * (share * 1e6 + 3e3);
        // Some of each headroom is in use beside the memory.
        let most = inputs + 8.0 * NEEDED as f64;
        assert!((inputs..most).contains(&(waiting as f64)), "alpha {alpha}: {waiting}, {inputs} to {most}");
    }
}

/// Two switches with two hosts each, and a trunk between.
fn trunk(count: u16) -> f64 {
    let text = format!(
        r#"
[network]
preset = "gigabit-ethernet"
host = {{ send = "0 s", receive = "0 s" }}
routing = {{ type = "fixed", spread = "source" }}
[network.topology]
type = "explicit"
switches = ["left", "right"]
link = [
  {{ ends = ["left", "right"], count = {count} }},
  {{ ends = ["h0", "left"] }},
  {{ ends = ["h1", "left"] }},
  {{ ends = ["h2", "right"] }},
  {{ ends = ["h3", "right"] }},
]
[workload]
type = "assigned"
destinations = [0, 1]
messages = 1000
[readout]
units = 2
source = {{ type = "fixed", size = "1500 B" }}
[builder]
units = 2
"#
    );
    let record = run_with(&text, &[]);
    assert!(record.good, "{:?}", record.findings);
    record.throughput_bytes_per_s
}

#[test]
fn a_trunk_of_two_doubles_the_throughput() {
    let one = trunk(1);
    assert_near("one link", one, 125e6 * 1500.0 / 1538.0, 0.01);
    assert_near("two links", trunk(2), 2.0 * one, 0.01);
}

#[test]
fn a_spanning_tree_leaves_one_cable_of_a_ring_unused() {
    let ring = r#"
[network]
preset = "gigabit-ethernet"
routing = { type = "spanning-tree" }
[network.topology]
type = "explicit"
switches = ["a", "b", "c", "d"]
link = [
  { ends = ["a", "b"] }, { ends = ["b", "c"] }, { ends = ["c", "d"] }, { ends = ["d", "a"] },
  { ends = ["h0", "a"] }, { ends = ["h1", "b"] }, { ends = ["h2", "c"] }, { ends = ["h3", "d"] },
]
[network.placement]
readout = 0
builder = 0
[workload]
type = "random"
messages = 300
[readout]
units = 4
source = { type = "fixed", size = "1500 B" }
[builder]
units = 4
"#;
    let unused = |record: &evb_record::Record| {
        let inner = network(record).links.iter().filter(|link| !link.name.contains('h') && link.packets == 0);
        let mut names: Vec<_> = inner.map(|link| link.name.split('>').map(str::to_owned).collect::<Vec<_>>()).collect();
        names.iter_mut().for_each(|ends| ends.sort());
        names
    };
    let tree = run_with(ring, &[]);
    let cables = unused(&tree);
    assert_eq!((cables.len(), tree.good), (2, true), "{cables:?}");
    assert_eq!(cables[0], cables[1], "both directions of one cable");
    assert!(unused(&run_with(ring, &["network.routing={type=\"ecmp\"}"])).is_empty());
}
