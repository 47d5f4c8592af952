//! Hosts with a port in each of several planes, against figures that follow by hand.

use crate::saturated::Saturated;
use crate::support::{assert_between, assert_near, network, run_with};
use evb_record::{Connections, Record};

/// Four senders and four receivers with links of 100 Gbit/s = 12.5 GB/s, on a crossbar in each plane. Each sends four messages at once,
/// packet by packet.
const CROSSBARS: &str = r#"
[network]
preset = "ideal"
link = { rate = "100 Gbit/s", delay = "100 ns" }
nic = { packet = "4 KiB", header = "0 B", minimum = "0 B", messages = 4, overhead = "0 s" }
planes = { count = 2, choice = "packet" }
placement = { readout = 0, builder = 4 }
[workload]
type = "assigned"
destinations = [0, 1, 2, 3]
window = 8
[trigger]
duration = "1 ms"
[run]
warmup = "200 us"
[readout]
units = 4
source = { type = "fixed", size = "64 KiB" }
[builder]
units = 4
"#;

/// Bytes per second of one link.
const LINK: f64 = 12.5e9;

fn choose(choice: &str, more: &[&str]) -> Record {
    run_with(CROSSBARS, &[&[&*format!("network.planes.choice={choice}")], more].concat())
}

fn check(choice: &str, more: &[&str], links: f64) {
    let record = choose(choice, more);
    assert!(network(&record).deadlock.is_empty());
    assert_near(&format!("{choice} {more:?}"), record.throughput_bytes_per_s, links * LINK, 0.01);
}

/// Eight links lead to four receivers. A pair has one of its two if all between them takes one plane.
#[test]
fn two_planes_carry_twice_what_one_does() {
    check("packet", &[], 8.0);
    check("message", &[], 8.0);
    check("pair", &[], 4.0);
    check("destination", &[], 4.0);
    check("packet", &["network.planes.count=4"], 16.0);
    let alone = run_with(&CROSSBARS.replace("planes = ", "# planes = "), &[]);
    assert_near("one network", alone.throughput_bytes_per_s, 4.0 * LINK, 0.01);
}

/// All send to one receiver, over both its links by the sums of numbers and over one by its own.
#[test]
fn a_receiver_has_all_planes_unless_they_are_chosen_by_its_number() {
    let one = "workload.destinations=[0, 0, 0, 0]";
    check("packet", &[one], 2.0);
    check("message", &[one], 2.0);
    check("pair", &[one], 2.0);
    check("destination", &[one], 1.0);
}

/// A plane that is gone from the start: the hosts see their dead links, and have half of the links left.
#[test]
fn without_a_plane_there_is_half_of_the_rate() {
    let gone = ["network.fault=[{action=\"fail\",target=\"plane1\",at=\"0 s\",reroute=\"10 us\"}]"];
    for choice in ["packet", "message", "pair", "destination"] {
        check(choice, &gone, 4.0);
    }
    let slow = ["network.fault=[{action=\"slow\",target=\"plane1\",at=\"0 s\",factor=2.0}]"];
    check("packet", &slow, 6.0);
}

/// Receiver 1 has lost its link in plane 1, of which its senders hear with the new routes. Others keep both planes.
#[test]
fn only_what_a_plane_does_not_carry_takes_another() {
    let gone = ["network.fault=[{action=\"fail\",target=\"switch0.1>h5.1\",at=\"0 s\",reroute=\"10 us\"}]"];
    check("packet", &gone, 7.0);
    check("message", &gone, 7.0);
    check("pair", &gone, 4.0);
    check("destination", &gone, 4.0);
}

/// Bridges of each plane learn for themselves. No receiver sends, so packets reach all hosts, and the four senders share each link.
#[test]
fn bridges_flood_their_plane_alone() {
    let flow = "network.flow={type=\"store-and-forward\",queue=\"100 MB\",full=\"drop\",reaction=\"0 s\"}";
    let bridges = [flow, "network.routing={type=\"learning\"}"];
    check("message", &bridges, 2.0);
    check("pair", &bridges, 1.0);
}

/// A plane fails in the middle of a run and comes back. What was on its way is lost, and asked for again.
#[test]
fn event_building_survives_a_plane() {
    let building = CROSSBARS
        .replace("[workload]\ntype = \"assigned\"\ndestinations = [0, 1, 2, 3]\nwindow = 8\n", "")
        .replace("duration = \"1 ms\"", "type = \"rate\"\nrate = \"180 kHz\"\nduration = \"6 ms\"")
        .replace("placement = { readout = 0, builder = 4 }", "control = { type = \"separate\", delay = \"5 us\", rate = \"10 Gbit/s\" }\nplacement = { readout = 0, builder = 4 }")
        .replace("[builder]\n", "[storage]\nkeep = \"none\"\n[builder]\npatience = \"500 us\"\n");
    let fault =
        "network.fault=[{action=\"fail\",target=\"plane1\",at=\"2.0062 ms\",until=\"4 ms\",reroute=\"100 us\"}]";
    for choice in ["packet", "message", "pair", "destination"] {
        let record = run_with(&building, &[&format!("network.planes.choice={choice}"), fault]);
        let events = record.events;
        let network = network(&record);
        println!("{choice}: {events:?}, {} lost, {} corrupted", network.lost_packets, network.corrupted_packets);
        assert!(events.triggered > 500 && events.built == events.triggered, "{choice}: {events:?}");
        assert!(network.lost_packets + network.corrupted_packets > 0, "{choice}: the failure is seen");
        let carried = |plane: &str| -> u64 {
            let into_hosts = network.links.iter().filter(|link| link.name.contains(">h") && link.name.ends_with(plane));
            into_hosts.map(|link| link.bytes).sum()
        };
        // Both planes carry events for two thirds of the time.
        assert!(carried(".0") > carried(".1") && carried(".1") > 0, "{choice}: {} {}", carried(".0"), carried(".1"));
    }
}

/// Packets in turn over planes of which one is slower arrive out of order. A queue pair that goes back sends again what has arrived, one
/// that repeats single packets less, and one that keeps its plane nothing.
#[test]
fn packets_in_turn_arrive_out_of_order() {
    let slow = "network.fault=[{action=\"slow\",target=\"plane1\",at=\"0 s\",factor=1.5}]";
    let again = |choice: &str, recovery: &str| {
        let transport = format!("network.transport={{type=\"rdma\",recovery=\"{recovery}\",window=\"64 KiB\"}}");
        let record = choose(choice, &[slow, &transport]);
        let Connections { segments, sent_again, .. } =
            network(&record).connections.as_ref().expect("connections").clone();
        println!(
            "{choice} {recovery}: {sent_again} of {segments} segments again, {} B/s",
            record.throughput_bytes_per_s
        );
        sent_again as f64 / segments as f64
    };
    assert!(again("packet", "go-back-n") > 0.1);
    for choice in ["pair", "destination"] {
        assert!(again(choice, "go-back-n") == 0.0, "{choice}");
    }
}

/// Connections take the planes in turn, packet by packet, or keep the one of their hosts.
#[test]
fn connections_use_all_planes() {
    let tcp = "network.transport={type=\"tcp\",initial_window=100}";
    let ultra = "network.transport={type=\"ultra-ethernet\",round_trip=\"4 us\"}";
    for transport in [tcp, ultra] {
        let rate = |choice: &str| choose(choice, &[transport]).throughput_bytes_per_s;
        let (all, one) = (rate("packet"), rate("pair"));
        assert_between("by pair", one / LINK, 3.4, 4.0 * 1.01);
        assert_between("by packet", all / LINK, 6.4, 8.0 * 1.01);
    }
}

/// Detours stay in their plane: two planes carry what one does for each of its ports.
#[test]
fn detours_stay_in_their_plane() {
    let hyperx = Saturated { topology: r#"{type="hyperx",sizes=[4,4],terminals=2}"#, hosts: 32, channels: 4 };
    let receiver = |host| host / 8 * 8 + (host + 2) % 8;
    for routing in ["valiant", "ugal"] {
        let of = |more: &[&str]| hyperx.assigned(routing, receiver, more);
        assert_near(routing, of(&["network.planes.count=2"]), of(&[]), 0.02);
    }
}
