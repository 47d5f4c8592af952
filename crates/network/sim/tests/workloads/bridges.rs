//! Learning bridges: what they flood until they know, what a tree carries, and what happens when it changes.

use crate::support::{assert_between, network, run_with};
use evb_record::Record;

/// Twelve hosts on three leaves, each leaf joined to four others by the tree through one of two roots.
const CLOS: &str = r#"
[network]
topology = { type = "clos", leaves = 3, ports_per_leaf = 4, spines = 2 }
link = { rate = "100 Mbit/s", delay = "1 us" }
switch = { delay = "5 us" }
flow = { type = "store-and-forward", queue = "64 KiB", full = "drop", reaction = "0 s" }
routing = { type = "learning" }
nic = { packet = "1500 B" }
placement = { readout = 0, builder = 6 }
[trigger]
duration = "1 s"
[workload]
type = "WORKLOAD"
messages = 50
[readout]
units = 6
source = { type = "fixed", size = "1000 B" }
[builder]
units = 6
"#;

fn run(workload: &str, set: &[&str]) -> Record {
    run_with(&CLOS.replace("WORKLOAD", workload), set)
}

/// A question to a host that has sent nothing yet reaches all hosts but its sender, the answer one; then all switches
/// know both.
#[test]
fn the_first_packet_to_a_host_reaches_all() {
    let record = run("ping-pong", &["readout.units=1", "builder.units=1"]);
    assert!(record.good, "{record:#?}");
    assert_eq!(network(&record).flooded_packets, 12 - 2);
}

/// Receivers that never send are never heard.
#[test]
fn packets_to_a_silent_host_reach_all_hosts_each_time() {
    let set = ["readout.units=1", "builder.units=1", "workload.rate=\"1 kHz\""];
    let record = run("assigned", &[&set[..], &["workload.destinations=[0]"]].concat());
    assert!(record.good, "{record:#?}");
    assert_eq!(network(&record).flooded_packets, 50 * (12 - 2));
}

#[test]
fn hosts_are_forgotten_after_the_age() {
    // A round trip takes 0.6 ms: the receiver is forgotten before the next one, or never.
    for (age, floods) in [("\"100 us\"", 50), ("\"10 ms\"", 1)] {
        let record = run("ping-pong", &["readout.units=1", "builder.units=1", &format!("network.routing.age={age}")]);
        let flooded = network(&record).flooded_packets;
        assert!(record.good && flooded >= floods * 10 && flooded <= floods * 20, "{age}: {flooded}");
    }
}

/// The reason for static tables in ATLAS 1998: between two switches learning leaves one link.
#[test]
fn learning_leaves_one_link_between_two_switches() {
    let carried = |routing: &str| {
        let record = run("all-to-all", &["workload={type=\"all-to-all\",messages=60}", routing]);
        assert!(record.events.built > 0, "{record:#?}");
        record.throughput_bytes_per_s
    };
    let (learning, fixed) =
        (carried("network.routing={type=\"learning\"}"), carried("network.routing={type=\"ecmp\"}"));
    assert_between("static tables over learning", fixed / learning, 1.3, 2.5);
}

/// A packet takes room in an input once, until its last copy has left: none is lost for lack of headroom.
#[test]
fn switches_that_pause_their_senders_flood_too() {
    let queues =
        r#"network.flow={type="store-and-forward",queue="8 KiB",headroom="4 KiB",full="pause",reaction="0 s"}"#;
    let record = run("all-to-all", &["workload={type=\"all-to-all\",messages=60}", queues]);
    let network = network(&record);
    assert_eq!(network.lost_packets, 0, "{record:#?}");
    assert!(
        network.flooded_packets > 0 && network.links.iter().any(|link| link.most_headroom_bytes > 0),
        "{record:#?}"
    );
}

/// Each input takes six times what it has room for: it gets the room back when the last copy of a packet has left.
#[test]
fn copies_give_their_room_back() {
    let queues =
        r#"network.flow={type="store-and-forward",queue="8 KiB",headroom="4 KiB",full="pause",reaction="0 s"}"#;
    let set = ["readout.units=1", "builder.units=1", "workload.rate=\"1 kHz\"", "workload.destinations=[0]", queues];
    let record = run("assigned", &set);
    assert!(record.good, "{record:#?}");
    assert_eq!((network(&record).lost_packets, network(&record).flooded_packets), (0, 50 * (12 - 2)));
}

/// When the tree changes, all switches forget: the next packet reaches all hosts again.
#[test]
fn a_new_tree_is_learnt_again() {
    let one = ["readout.units=1", "builder.units=1", "workload.messages=100"];
    let fails = |target: &str| {
        let fault = format!(r#"network.fault=[{{target="{target}",at="10 ms",action="fail",reroute="1 ms"}}]"#);
        network(&run("ping-pong", &[&one[..], &[&fault]].concat())).flooded_packets
    };
    // The cable is not on the tree, but all learn of its failure.
    assert_eq!(fails("spine1>leaf2"), 2 * 10);
    assert_eq!(network(&run("ping-pong", &one)).flooded_packets, 10);
}
