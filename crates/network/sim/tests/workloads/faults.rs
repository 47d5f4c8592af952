//! Links and switches that fail, slow down or corrupt: everything sent is accounted for.

use crate::support::{assert_near, efficiency, network, run_with};
use evb_record::{FindingKind, Record};

/// One packet for each message, so that packets and messages can be counted against each other.
const RANDOM: &str = r#"
[network]
topology = { type = "clos", leaves = 2, ports_per_leaf = 4, spines = 2, links = 1 }
link = { rate = "100 MB/s", delay = "50 ns" }
switch = { delay = "100 ns" }
flow = { type = "FLOW" }
routing = { type = "ecmp" }
placement = { readout = 0, builder = 0 }
fault = [FAULT]
[workload]
type = "random"
messages = 400
[readout]
units = 8
source = { type = "fixed", size = "4000 B" }
[builder]
units = 8
"#;

const FLOWS: [&str; 3] = [
    r#"wormhole", slack = "256 B", reaction = "50 ns"#,
    r#"cut-through", buffer = "16 KiB", reaction = "50 ns"#,
    r#"store-and-forward", queue = "64 KiB", full = "pause", reaction = "50 ns"#,
];

fn run(flow: &str, fault: &str, set: &[&str]) -> Record {
    let text = RANDOM.replace(r#"FLOW" "#, &format!(r#"{flow}" "#)).replace("FAULT", fault);
    run_with(&text, set)
}

/// All messages that were sent were delivered, lost, or are reported as left over.
fn check_account(what: &str, record: &Record) {
    let (events, net) = (record.events, network(record));
    println!(
        "{what}: {events:?}, lost {}, corrupted {}, left {}",
        net.lost_packets, net.corrupted_packets, net.packets_left
    );
    let packets = events.built + net.lost_packets + net.corrupted_packets + net.packets_left;
    assert_eq!(record.simulation.as_ref().expect("it was simulated").packets, packets, "{what}");
    // A message that the interface had not begun is not a packet; all messages to other hosts are one packet each.
    assert!(net.deadlock.is_empty(), "{what}: {:?}", net.deadlock);
    assert_eq!(record.good, events.built == events.triggered, "{what}");
}

#[test]
fn a_healthy_network_delivers_everything() {
    for flow in FLOWS {
        let record = run(flow, "", &[]);
        check_account(flow, &record);
        assert_eq!((record.events.triggered, record.events.built), (3200, 3200), "{flow}");
    }
}

#[test]
fn traffic_continues_around_a_failed_link() {
    for flow in FLOWS {
        for target in ["leaf0>spine0", "spine0>leaf1"] {
            let fault = format!(r#"{{ target = "{target}", at = "2 ms", action = "fail", reroute = "1 ms" }}"#);
            let record = run(flow, &fault, &[]);
            check_account(&format!("{flow}, {target}"), &record);
            assert_eq!(record.events.triggered, 3200, "{flow}");
            let net = network(&record);
            assert!(net.lost_packets + net.corrupted_packets <= 20, "{flow}: only what was on it is lost");
            let failed = net.links.iter().find(|link| link.name == target).expect("it is there");
            let other =
                net.links.iter().find(|link| link.name == target.replace("spine0", "spine1")).expect("so is that");
            assert!(failed.packets < other.packets / 2, "{flow}: {failed:?}, {other:?}");
        }
    }
}

#[test]
fn traffic_continues_around_a_failed_switch() {
    for flow in FLOWS {
        let fault = r#"{ target = "spine1", at = "2 ms", action = "fail", reroute = "100 us" }"#;
        let record = run(flow, fault, &[]);
        check_account(flow, &record);
        assert_eq!(record.events.triggered, 3200, "{flow}");
        assert!(record.events.built > 3100, "{flow}: {:?}", record.events);
    }
}

/// Half of the hosts lose their connection to the other half.
#[test]
fn packets_without_a_route_are_lost_and_counted() {
    for flow in &FLOWS {
        let fail =
            |spine: u8| format!(r#"{{ target = "spine{spine}", at = "2 ms", action = "fail", reroute = "1 ms" }}"#);
        let record = run(flow, &format!("{}, {}", fail(0), fail(1)), &[]);
        check_account(flow, &record);
        assert_eq!(record.events.triggered, 3200, "{flow}");
        assert!(network(&record).lost_packets > 500 && record.events.built > 1000, "{flow}: {:?}", record.events);
    }
}

#[test]
fn a_corrupting_link_corrupts_its_share() {
    for flow in FLOWS {
        let fault = r#"{ target = "h0>leaf0", at = "0 s", action = "corrupt", one_in = 10 }"#;
        let record = run(flow, fault, &[]);
        check_account(flow, &record);
        assert_eq!((network(&record).corrupted_packets, record.events.built), (40, 3160), "{flow}");
    }
}

#[test]
fn a_slow_link_is_slower_by_its_factor() {
    for flow in FLOWS {
        let set = ["workload={type=\"assigned\",destinations=[1,0,3,2,5,4,7,6],messages=100}", "run.warmup=0 s"];
        let healthy = run(flow, "", &set);
        let fault = r#"{ target = "leaf0>h1", at = "0 s", action = "slow", factor = 4.0 }"#;
        let slow = run(flow, fault, &set);
        check_account(flow, &slow);
        assert_near(flow, slow.seconds / healthy.seconds, 4.0, 0.05);
        // The time of the packets to the slow host, and that of all others.
        let expected = (4.0 + 7.0) / 8.0 * efficiency(&healthy) * healthy.seconds;
        assert_near("service", efficiency(&slow) * slow.seconds, expected, 0.01);
    }
}

/// A dead node sends nothing more.
#[test]
fn a_killed_sender_is_silent() {
    let set = ["fault=[{node=\"ru0\",action=\"kill\",at=\"2 ms\"}]"];
    let record = run(FLOWS[1], "", &set);
    let from = network(&record).links.iter().find(|link| link.name == "h0>leaf0").expect("it is there");
    assert!((10..60).contains(&from.packets), "2 ms of at least 40 us each: {}", from.packets);
    assert_eq!((&record.lost_nodes[..], record.good), (&["ru0".to_owned()][..], false));
}

/// A packet requests several links at once, or waits in one of several queues: it must be sent once, or lost once.
#[test]
fn adaptive_routing_accounts_for_failures_and_drops() {
    let small = r#"store-and-forward", queue = "9 kB", full = "drop", reaction = "50 ns"#;
    for flow in FLOWS.into_iter().chain([small]) {
        for fault in ["", r#"{ target = "spine0>leaf1", at = "2 ms", action = "fail", reroute = "300 us" }"#] {
            let record = run(flow, fault, &["network.routing={type=\"adaptive\"}", "network.topology.spines=4"]);
            check_account(&format!("{flow}, {fault}"), &record);
            assert_eq!(record.events.triggered, 3200, "{flow}");
            assert!(record.events.built > 2000, "{flow}: {:?}", record.events);
            let net = network(&record);
            let delivered: u64 =
                net.links.iter().filter(|link| link.name.contains(">h")).map(|link| link.packets).sum();
            assert_eq!(delivered, record.events.built + net.corrupted_packets, "{flow}: each is delivered once");
        }
    }
}

/// Events over two spines, of which one dies; hosts 0 and 8 are those of the first readout unit and the first builder.
const BUILDING: &str = r#"
[network]
topology = { type = "clos", leaves = 4, ports_per_leaf = 4, spines = 2 }
placement = { readout = 0, builder = 8 }
fault = [{ target = "TARGET", action = "fail", at = "20 ms", reroute = "5 ms" }]
[trigger]
type = "rate"
rate = "20 kHz"
duration = "50 ms"
block = 1
[readout]
units = 8
source = { type = "fixed", size = "10 kB" }
[builder]
units = 8
"#;

#[test]
fn a_dead_spine_has_its_times_and_its_dip_in_the_record() {
    let record = run_with(&BUILDING.replace("TARGET", "spine0"), &[]);
    let [fault] = network(&record).faults.as_slice() else { panic!("{:?}", network(&record).faults) };
    assert_eq!((fault.target.as_str(), fault.action.as_str()), ("spine0", "fail"));
    assert_near("fault", fault.at_s, 20e-3, 1e-9);
    assert_near("new routes", fault.rerouted_s.expect("there are some"), 25e-3, 1e-9);
    assert!(fault.rerouted_packets > 0 && fault.cut_off.is_empty(), "{fault:?}");
    let dip = fault.dip.expect("there are enough events");
    assert_near("before", dip.before_hz, 20e3, 0.05);
    assert_near("after", dip.after_hz, 20e3, 0.05);
    assert!(dip.lowest_hz < 0.2 * dip.before_hz, "{dip:?}");
    assert_near("recovery", dip.recovered_after_s.expect("it is back"), 5e-3, 0.25);
    let timeline = network(&record).timeline.as_ref().expect("there is a fault");
    let all: f64 = timeline.rates_hz.iter().map(|rate| rate * timeline.step_s).sum();
    assert_near("events of the timeline", all, record.events.built as f64, 0.01);
}

#[test]
fn a_host_link_that_is_cut_names_its_nodes_and_never_recovers() {
    let record = run_with(&BUILDING.replace("TARGET", "h0>leaf0"), &["run.drain_timeout=\"10 ms\""]);
    let [fault] = network(&record).faults.as_slice() else { panic!("{:?}", network(&record).faults) };
    assert!(fault.cut_off.contains(&"ru0".to_owned()), "{fault:?}");
    let dip = fault.dip.expect("there are enough events");
    assert_eq!((dip.lowest_hz, dip.recovered_after_s, dip.after_hz), (0.0, None, 0.0), "{dip:?}");
    assert!(!record.good && record.events.lost > 500, "{:?}", record.events);
}

#[test]
fn a_run_by_number_that_a_fault_stops_shows_the_time_around_the_fault() {
    let text = BUILDING.replace("TARGET", "h1>leaf0").replace("duration = \"50 ms\"", "events = 2000");
    let record = run_with(&text, &[]);
    let dip = network(&record).faults[0].dip.expect("there are enough events");
    assert_near("before", dip.before_hz, 20e3, 0.05);
    assert_eq!((dip.lowest_hz, dip.recovered_after_s), (0.0, None), "{dip:?}");
}

#[test]
fn a_fault_after_the_end_and_a_healthy_network_leave_no_trace() {
    for fault in ["", r#"{ target = "leaf0", action = "fail", at = "1000 s" }"#] {
        let record = run(FLOWS[1], fault, &[]);
        assert_eq!((network(&record).faults.len(), &network(&record).timeline), (0, &None), "{fault}");
    }
}

/// Triggers that come without end do not keep a run alive whose event manager can send nothing.
#[test]
fn a_run_ends_although_its_event_manager_is_cut_off() {
    let cut = r#"
[network]
preset = "roce-100g-clos"
topology = { type = "clos", leaves = 2, ports_per_leaf = 4, spines = 2 }
fault = [{ target = "h0>leaf0", at = "5 ms", action = "fail" }]
[trigger]
type = "rate"
rate = "20 kHz"
events = 500
[readout]
units = 3
source = { type = "fixed", size = "2 kB" }
[builder]
units = 3
"#;
    let record = run_with(cut, &[]);
    assert!(!record.good && record.events.built > 0 && record.events.lost > 0, "{:?}", record.events);
    assert!(record.findings.iter().any(|one| one.kind == FindingKind::NotDrained), "{:?}", record.findings);
}

/// A cable fails for a while: all goes over the other spine, and over both again after that.
#[test]
fn a_cable_that_is_mended_is_used_again() {
    for flow in FLOWS {
        let fault = r#"{ target = "leaf0<>spine0", at = "2 ms", until = "6 ms", action = "fail", reroute = "100 us" }"#;
        let (healthy, mended) = (run(flow, "", &[]), run(flow, fault, &[]));
        let stays = run(flow, &fault.replace(r#"until = "6 ms", "#, ""), &[]);
        for record in [&mended, &stays] {
            check_account(flow, record);
        }
        let packets = |record: &Record, name: &str| {
            let links = &network(record).links;
            links.iter().find(|link| link.name == name).expect("it is there").packets
        };
        for name in ["leaf0>spine0", "spine0>leaf0"] {
            let [never, until, always] = [&healthy, &mended, &stays].map(|record| packets(record, name));
            assert!(always < until && until < never, "{flow}, {name}: {always}, {until}, {never}");
        }
        let faults = &network(&mended).faults;
        assert_eq!((faults[0].at_s, faults[0].until_s), (2e-3, Some(6e-3)), "{flow}");
    }
}

/// A link that is slow for a while carries as much as before when it is not.
#[test]
fn a_slow_link_is_fast_again() {
    let fault = r#"{ target = "h0<>leaf0", at = "0 s", until = "UNTIL", action = "slow", factor = 10.0 }"#;
    let seconds = |until: &str| run(FLOWS[1], &fault.replace("UNTIL", until), &[]).seconds;
    let healthy = run(FLOWS[1], "", &[]).seconds;
    let [short, long] = ["1 ms", "20 ms"].map(seconds);
    assert!(healthy < short && short < long, "{healthy}, {short}, {long}");
    assert!(short < healthy + 2e-3, "{healthy}, {short}");
}
