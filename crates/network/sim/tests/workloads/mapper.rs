//! The mappers of a source-routed network: their maps are the network, and traffic continues by them after a failure.

use crate::support::{assert_between, network, run_with};
use evb_record::{FindingKind, KnownMap, Record};

/// Eight hosts on two leaves with two spines; 80 messages of one packet in each millisecond.
const CLOS: &str = r#"
[network]
topology = { type = "clos", leaves = 2, ports_per_leaf = 4, spines = 2, links = 1 }
link = { rate = "100 MB/s", delay = "50 ns" }
switch = { delay = "100 ns" }
flow = { type = "wormhole", slack = "256 B", reaction = "50 ns" }
routing = { type = "fixed", spread = "destination" }
nic = { packet = "4 kB" }
placement = { readout = 0, builder = 0 }
mapper = { interval = "10 ms", patience = "60 ms", timeout = "200 us", overhead = "1 us" }
fault = [FAULT]
[trigger]
duration = "200 ms"
[workload]
type = "random"
rate = "10 kHz"
arrivals = "regular"
[readout]
units = 8
source = { type = "fixed", size = "2000 B" }
[builder]
units = 8
"#;

fn run(fault: &str, set: &[&str]) -> Record {
    run_with(&CLOS.replace("FAULT", fault), set)
}

fn fails(target: &str) -> String {
    format!(r#"{{ target = "{target}", at = "100 ms", action = "fail" }}"#)
}

fn maps(record: &Record) -> &[KnownMap] {
    &network(record).mapping.as_ref().expect("there are mappers").maps
}

/// Switches, cables and hosts of a map, and the hosts that know it.
fn parts(map: &KnownMap) -> (u64, u64, u64, u64) {
    (map.switches, map.cables, map.hosts, map.known_to)
}

#[test]
fn one_map_of_the_whole_network_is_made() {
    for (routing, whole) in [
        (r#"network.routing={type="dispersive",patience="10 us"}"#, (4, 4, 8, 8)),
        (r#"network.flow={type="cut-through",buffer="16 KiB",reaction="50 ns"}"#, (4, 4, 8, 8)),
        (r#"network.topology={type="crossbar",ports=8}"#, (1, 0, 8, 8)),
        (r#"network.topology={type="torus",width=3,height=3,terminals=1}"#, (9, 18, 9, 9)),
        (r#"network.topology={type="fat-tree",radix=4}"#, (20, 32, 16, 16)),
    ] {
        let record = run("", &[routing]);
        let [map] = maps(&record) else { panic!("{routing}: {:?}", maps(&record)) };
        assert_eq!(parts(map), whole, "{routing}");
        assert!(record.good, "{routing}");
    }
}

/// Until the new map is known, what goes over the spine is lost, a quarter of all; nothing is lost before or after.
#[test]
fn traffic_continues_by_the_next_map() {
    for (target, cables) in [("spine1", 2), ("leaf0>spine1", 3)] {
        let record = run(&fails(target), &[]);
        let [whole, rest] = maps(&record) else { panic!("{target}: {:?}", maps(&record)) };
        assert_eq!((parts(whole).1, parts(rest).1, rest.known_to), (4, cables, 8), "{target}");
        assert!((0.1..0.2).contains(&rest.made_s) && rest.made_s <= rest.known_s, "{target}: {rest:?}");
        let without = rest.known_s - 0.1;
        let share = if target == "spine1" { 0.25 } else { 0.125 };
        let expected = 80_000.0 * without * share;
        assert_between(target, record.events.lost as f64, 0.7 * expected, 1.3 * expected);
    }
}

/// The first leader loses its only link: the other hosts wait for it, then another one leads.
#[test]
fn another_host_leads_when_the_leader_is_cut_off() {
    let first = maps(&run("", &[]))[0].leader.clone();
    let leaf = usize::from(first.trim_start_matches('h').parse::<u8>().unwrap() >= 4);
    let record =
        run(&fails(&format!("{first}>leaf{leaf}")), &["trigger.duration=\"400 ms\"", "trigger.accept_loss=100"]);
    let maps = maps(&record);
    let last = maps.iter().find(|map| map.known_to == 7).unwrap_or_else(|| panic!("{maps:?}"));
    assert!(last.leader != first && last.hosts == 7 && last.made_s > 0.16, "{maps:?}");
}

#[test]
fn events_are_built_while_a_spine_fails() {
    let building = ["workload={type=\"event-building\"}", "readout.units=4", "builder.units=3", "network.placement={}"];
    let trigger = ["trigger.type=\"rate\"", "trigger.rate=\"2 kHz\""];
    let record = run(&fails("spine0"), &[&building[..], &trigger].concat());
    assert!(network(&record).lost_packets > 0, "{record:#?}");
    // The events wait for the next map, and the rate is not kept.
    let kinds: Vec<_> = record.findings.iter().map(|finding| finding.kind).collect();
    assert!(kinds.contains(&FindingKind::RateNotKept) && record.events.lost == 0, "{:?}", record.findings);
    let accepting = [&building[..], &trigger, &["trigger.accept_loss=100"]].concat();
    let record = run(&fails("spine0"), &accepting);
    assert!(record.good && record.events.built > 300, "{:?} {:?}", record.events, record.findings);
}

#[test]
fn mappers_do_the_same_each_time() {
    let [one, other] = [(); 2].map(|()| run(&fails("spine1"), &[]));
    assert_eq!(network(&one), network(&other));
}
