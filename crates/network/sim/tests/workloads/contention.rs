//! Contention of senders, on the switch of the CMS demonstrator of 1999.

use crate::support::{assert_between, assert_near, efficiency, run_with};
use evb_record::Record;

/// Messages long enough that the overhead of a packet, which one sender has while another one sends, does not count.
const DEMONSTRATOR: &str = r#"
[network]
preset = "myrinet-oct-sw8"
[workload]
type = "pairs"
[trigger]
duration = "310 ms"
[run]
warmup = "10 ms"
[readout]
units = 8
source = { type = "fixed", size = "100 kB" }
[builder]
units = 8
"#;

fn assigned(destinations: &str) -> Record {
    let set = format!("workload={{type=\"assigned\",destinations={destinations}}}");
    run_with(DEMONSTRATOR, &[set.as_str()])
}

/// Factor by which each source is slower than alone.
fn check_slowdown(destinations: &str, expected: [f64; 8]) {
    let alone = assigned("[0,1,2,3,4,5,6,7]").per_source_bytes_per_s;
    let shared = assigned(destinations).per_source_bytes_per_s;
    for (source, (slowdown, (alone, shared))) in expected.into_iter().zip(alone.into_iter().zip(shared)).enumerate() {
        assert_near(&format!("{destinations}, source {source}"), alone / shared, slowdown, 0.02);
    }
}

/// Test 3 of the paper.
#[test]
fn sources_of_one_destination_share_it_evenly() {
    check_slowdown("[0,0,2,3,4,5,6,7]", [2.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    check_slowdown("[0,0,0,3,4,5,6,7]", [3.0, 3.0, 3.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    check_slowdown("[0,0,0,0,4,5,6,7]", [4.0, 4.0, 4.0, 4.0, 1.0, 1.0, 1.0, 1.0]);
}

/// Two sources that share a link inside of the switch (test 3 of the paper).
#[test]
fn sources_that_share_an_inner_link_get_half_of_it() {
    check_slowdown("[0,1,2,4,3,5,6,7]", [2.0, 1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0]);
}

/// Test 2 of the paper.
#[test]
fn exclusive_pairs_do_not_disturb_each_other() {
    for size in [512, 1024, 2048, 32_768] {
        let run = |units: u16| {
            let destinations = (0..units).map(|unit| unit.to_string()).collect::<Vec<_>>().join(",");
            let workload = format!("workload={{type=\"assigned\",destinations=[{destinations}]}}");
            let units = [format!("readout.units={units}"), format!("builder.units={units}")];
            let size = format!("readout.source.size={size} B");
            run_with(DEMONSTRATOR, &[&workload, &units[0], &units[1], &size]).throughput_bytes_per_s
        };
        let one = run(1);
        assert_near(&format!("{size} B"), one, f64::from(size) / (4e-6 + f64::from(size) / 132e6), 1e-2);
        for units in [4, 8] {
            assert_near(&format!("{units} pairs of {size} B"), run(units), f64::from(units) * one, 1e-3);
        }
    }
}

const RETARDED: &str = "workload={type=\"rotation\",start=\"retarded\"}";
const SIMULTANEOUS: &str = "workload={type=\"rotation\",start=\"simultaneous\"}";

/// On one crossbar, back-pressure orders the senders however they start.
#[test]
fn a_rotation_of_4_by_4_is_near_full_performance() {
    for size in [1000, 4000, 16_000] {
        let size = format!("readout.source.size={size} B");
        let crossbar = "network.topology={type=\"crossbar\",ports=8}";
        for start in [SIMULTANEOUS, RETARDED] {
            let set = [start, crossbar, &size, "readout.units=4", "builder.units=4"];
            assert_between(&format!("{start}, {size}"), efficiency(&run_with(DEMONSTRATOR, &set)), 0.97, 1.005);
        }
    }
}

/// In turns, by the numbers of the inputs, the senders would sort themselves into the order of a barrel shifter; the real
/// switch does not serve them in just that order.
#[test]
fn a_rotation_of_8_by_8_needs_a_retarded_start() {
    for size in [1000, 4000, 16_000] {
        let size = format!("readout.source.size={size} B");
        let run = |start| efficiency(&run_with(DEMONSTRATOR, &[start, &size, "network.switch.arbitration=oldest"]));
        assert_between(&format!("retarded, {size}"), run(RETARDED), 0.97, 1.005);
        assert_between(&format!("simultaneous, {size}"), run(SIMULTANEOUS), 0.5, 0.85);
    }
}

/// About 60 % in the paper, section IV.B. Long messages on a non-blocking switch: 61.84 % (Hluchyj and Karol 1988);
/// while one sender prepares a short message another one sends, so short ones do better.
#[test]
fn random_traffic_is_bound_by_head_of_line_blocking() {
    let random = |size: &str, topology: &str| {
        let set = ["workload={type=\"random\"}", size, "trigger.duration=2 s", topology];
        efficiency(&run_with(DEMONSTRATOR, &set))
    };
    let (composite, crossbar) = ("network.preset=myrinet-oct-sw8", "network.topology={type=\"crossbar\",ports=16}");
    assert_between("2 kB", random("readout.source.size=2 kB", composite), 0.58, 0.65);
    assert_between("4 kB", random("readout.source.size=4 kB", composite), 0.57, 0.61);
    let long = "readout.source.size=100 kB";
    assert_near("100 kB without internal blocking", random(long, crossbar), 0.6184, 0.02);
    assert_between("100 kB", random(long, composite), 0.50, 0.58);
}

/// Seven senders that each keep their receiver: routes without conflict exist.
const KEPT: &str = r#"
[network]
preset = "myrinet-clos-128"
placement = { readout = 1, builder = 8 }
nic = { ports = 1 }
[workload]
type = "assigned"
destinations = [1, 2, 3, 4, 5, 6, 0]
window = 8
[trigger]
duration = "30 ms"
[run]
warmup = "10 ms"
[readout]
units = 7
source = { type = "fixed", size = "16 kB" }
[builder]
units = 7
"#;

/// Two streams over one link block every packet of both, so that a route changes however many must be blocked in a row;
/// where a second stream would block only now and then, it stays.
#[test]
fn routes_settle_once_nothing_is_blocked_any_more() {
    let mut changes = Vec::new();
    for after in [1, 4] {
        let record = run_with(KEPT, &[&format!("network.routing.after={after}")]);
        let simulation = record.simulation.expect("a simulation");
        assert_between("efficiency", simulation.efficiency, 0.99, 1.01);
        changes.push(simulation.network.route_changes);
    }
    println!("changes after 1 and 4 blocked packets: {changes:?}");
    assert!(changes[1] > 0 && changes[1] < changes[0], "{changes:?}");
    let never = run_with(KEPT, &["network.routing.patience=\"10 ms\""]).simulation.expect("a simulation");
    assert_eq!(never.network.route_changes, 0);
    assert_between("efficiency without changes", never.efficiency, 0.0, 0.99);
}

/// Both ports of one host send to one other host: with joined rails both routes may lead to one port at first, which the
/// blocked packets change.
#[test]
fn routes_to_any_port_settle_on_all_ports() {
    for rails in ["separate", "joined"] {
        let set = ["network.nic.ports=2", "readout.units=1", "builder.units=1", "workload.destinations=[0]"];
        let rails = format!("network.routing.rails={rails}");
        let set: Vec<_> = set.into_iter().chain([rails.as_str()]).collect();
        assert_between(&rails, efficiency(&run_with(KEPT, &set)), 0.98, 1.01);
    }
}

/// An interface with a queue for each peer hides a receiver that is blocked from the others; one without does not.
#[test]
fn peers_in_turn_do_not_wait_for_each_other_in_the_interface() {
    let served = |service: &str, queue: u16| {
        let keys = [format!("network.nic.service={service}"), format!("network.nic.queue={queue}")];
        run_with(REQUESTS, &keys.each_ref().map(String::as_str)).throughput_bytes_per_s
    };
    let (order, turns, short) = (served("in-turn", 64), served("peers-in-turn", 64), served("peers-in-turn", 1));
    assert!(turns > 1.1 * order, "{turns} and {order} B/s");
    assert!(turns > 1.05 * short, "{turns} and {short} B/s: what waits in the readout unit keeps its order");
}

/// Each builder requests the fragments of eight events at once.
const REQUESTS: &str = r#"
[network]
preset = "myrinet-clos-128"
placement = { manager = 0, readout = 1, builder = 8 }
nic = { ports = 1, messages = 1 }
[protocol]
type = "pull"
group = 8
[trigger]
duration = "60 ms"
block = 1
[run]
warmup = "10 ms"
[readout]
units = 2
source = { type = "fixed", size = "16 kB" }
[builder]
units = 2
slots = 32
[storage]
keep = "none"
"#;

/// With virtual channels by destination a packet waits only for those of its group, so a Clos network carries more.
#[test]
fn virtual_channels_relieve_a_clos_network() {
    let clos = |channels: u8| {
        let text = format!(
            r#"
[network]
preset = "infiniband-hdr-fat-tree"
topology = {{ type = "clos", leaves = 4, ports_per_leaf = 4, spines = 4 }}
placement = {{ readout = 0, builder = 0 }}
routing = {{ type = "fixed" }}
flow = {{ virtual_channels = {channels} }}
[workload]
type = "random"
window = 8
[trigger]
duration = "1 ms"
[run]
warmup = "200 us"
[readout]
units = 16
source = {{ type = "fixed", size = "16 KiB" }}
[builder]
units = 16
"#
        );
        efficiency(&run_with(&text, &[]))
    };
    let [one, four] = [1, 4].map(clos);
    println!("one channel {one:.3}, four {four:.3}");
    assert!(four > one * 1.03, "one channel {one}, four {four}");
}
