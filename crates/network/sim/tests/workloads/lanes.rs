//! Virtual lanes by weights: senders share the link to one receiver, and the shares follow from the tables by hand.

use crate::support::{assert_near, network, run_with};

/// Host 0 sends data, of service level 1, to host 2; host 1 sends background traffic, of service level 0. Packets have 1024 bytes, which
/// are 16 units of weight.
const TRAFFIC: &str = r#"
[network]
preset = "ideal"
topology = { type = "crossbar", ports = 4 }
link = { rate = "8 Gbit/s", delay = "0 s" }
flow = { type = "cut-through", buffer = "64 KiB", reaction = "0 s", virtual_channels = 3, channel = "priority" }
nic = { packet = "1 KiB", header = "0 B", minimum = "0 B" }
placement = { readout = 0, builder = 2 }
[workload]
type = "pairs"
[readout]
units = 1
source = { type = "fixed", size = "64 KiB" }
[builder]
units = 1
[[background]]
name = "others"
pattern = "random"
senders = { on = "hosts", first = 1 }
receivers = { on = "hosts", first = 2 }
message = { type = "fixed", size = "64 KiB" }
priority = "lower"
[trigger]
duration = "6 ms"
[run]
warmup = "1 ms"
"#;

/// Control messages have a lane of their own, which nothing uses here.
const CONTROL: &str = "{lane=2,weight=16}";

/// The part of the data in the bytes on the link to the receiver, which is never idle.
fn share(lanes: &str, set: &[&str]) -> f64 {
    let record = run_with(TRAFFIC, &[&[&*format!("network.switch.lanes={{{lanes}}}")], set].concat());
    let link = network(&record).links.iter().find(|link| link.name == "switch0>h2").expect("there is such a link");
    assert_near("the link", link.used, 1.0, 0.01);
    1.0 - link.background_bytes as f64 / link.bytes as f64
}

#[test]
fn lanes_share_a_link_by_their_weights() {
    for (data, others, expected) in [(48, 16, 0.75), (16, 16, 0.5), (16, 144, 0.1), (32, 64, 1.0 / 3.0)] {
        let low = format!("low=[{CONTROL},{{lane=0,weight={others}}},{{lane=1,weight={data}}}]");
        assert_near(&low, share(&low, &[]), expected, 0.01);
    }
}

/// The packet in which a weight ends is sent whole: a weight of 1 is one packet, and one of 17 is two. An entry without weight is skipped,
/// and a lane with two entries has two turns.
#[test]
fn a_weight_ends_with_a_whole_packet() {
    let begun = format!("low=[{CONTROL},{{lane=0,weight=1}},{{lane=1,weight=17}}]");
    assert_near(&begun, share(&begun, &[]), 2.0 / 3.0, 0.01);
    let entries = "{lane=1,weight=32},{lane=0,weight=16},{lane=1,weight=16},{lane=0,weight=0}";
    let twice = format!("low=[{CONTROL},{entries}]");
    assert_near(&twice, share(&twice, &[]), 3.0 / 4.0, 0.01);
}

/// A packet of low priority goes after one packet of high priority, after four (4096 bytes), after eight, and never.
#[test]
fn the_limit_of_high_priority_lets_low_priority_through() {
    for (limit, expected) in [(0, 1.0 / 2.0), (1, 4.0 / 5.0), (2, 8.0 / 9.0), (255, 1.0)] {
        let tables = format!("high=[{CONTROL},{{lane=1,weight=255}}],low=[{{lane=0,weight=16}}],limit={limit}");
        assert_near(&tables, share(&tables, &[]), expected, 0.01);
    }
}

#[test]
fn what_a_lane_does_not_use_is_for_the_others() {
    let low = format!("low=[{CONTROL},{{lane=0,weight=16}},{{lane=1,weight=240}}]");
    let load = ["workload.load=0.4", "workload.arrivals=regular"];
    assert_near("load 0.4", share(&low, &load), 0.4, 0.01);
}

/// Service levels of one lane are equal: their inputs take turns.
#[test]
fn service_levels_lead_to_lanes() {
    let lanes = format!("low=[{CONTROL},{{lane=1,weight=64}}],service_levels=[1,1,2]");
    assert_near(&lanes, share(&lanes, &[]), 0.5, 0.01);
    let swapped = format!("low=[{CONTROL},{{lane=0,weight=48}},{{lane=1,weight=16}}],service_levels=[1,0,2]");
    assert_near(&swapped, share(&swapped, &[]), 0.75, 0.01);
}

/// Three inputs, two of them with data in one lane: none of these two starves, whichever input the other lane serves in between.
#[test]
fn inputs_take_turns_within_a_lane() {
    let low = format!("network.switch.lanes={{low=[{CONTROL},{{lane=0,weight=16}},{{lane=1,weight=16}}]}}");
    let two = ["readout.units=2", "workload={type=\"assigned\",destinations=[0,0]}"];
    // The background comes from the last of three inputs, or from the first one.
    for (readout, builder, background) in [(0, 2, 3), (1, 3, 0)] {
        let places = [
            format!("network.placement.readout={readout}"),
            format!("network.placement.builder={builder}"),
            format!("background.0.senders.first={background}"),
            format!("background.0.receivers.first={builder}"),
        ];
        let record = run_with(TRAFFIC, &[&[&*low], &two[..], &places.each_ref().map(String::as_str)[..]].concat());
        for sender in &record.per_source_bytes_per_s {
            assert_near("a quarter of the link", *sender, 0.25e9, 0.02);
        }
    }
}
