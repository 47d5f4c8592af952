//! Nodes that share processors, where the cost of each piece of work is known.

use crate::support::{assert_between, assert_near, run_with};
use evb_experiment::Experiment;
use evb_record::{CpuRecord, Record};
use std::num::NonZeroUsize;

/// Two readout units and two builder units on one computer, whose work costs nothing but what a test sets.
const SHARED: &str = r#"
[network]
preset = "ideal"
[network.cpu]
cores = 2
computers = "one"
messages = "memory"
[readout]
units = 2
source = { type = "fixed", size = "1 kB" }
[builder]
units = 2
[storage]
keep = "none"
[trigger]
events = 20000
block = 1
"#;

fn run(set: &[&str]) -> Record {
    run_with(SHARED, set)
}

fn cpu(record: &Record) -> &CpuRecord {
    let simulation = record.simulation.as_ref().expect("it was simulated");
    simulation.cpu.as_ref().expect("it has processors")
}

fn count(record: &Record, item: &str) -> u64 {
    cpu(record).work.iter().find(|work| work.item == item).map_or(0, |work| work.count)
}

const ONE_WORKER: &str = "run.workers=1";

#[test]
fn one_worker_does_the_work_of_all_nodes_one_after_the_other() {
    // An event has two fragments, each read and checked.
    let record = run(&[ONE_WORKER, "network.cpu.readout.fragment=1 us", "network.cpu.builder.fragment=2 us"]);
    assert_near("event rate", record.event_rate_hz, 1e6 / 6.0, 0.01);
    assert_near("load", cpu(&record).workers[0].load, 1.0, 0.01);
    assert_eq!(cpu(&record).workers[0].nodes, ["evm", "ru0", "ru1", "bu0", "bu1"]);
    assert_eq!((count(&record, "readout.fragment"), count(&record, "builder.byte")), (40_000, 40_000_000));
}

#[test]
fn two_workers_share_the_work() {
    let work = ["network.cpu.readout.fragment=1 us", "network.cpu.builder.fragment=2 us"];
    let record = run(&work);
    assert_near("event rate", record.event_rate_hz, 2e6 / 6.0, 0.02);
    // More workers than cores are no faster.
    let many = run(&[&work[..], &["run.workers=4"]].concat());
    assert_near("event rate", many.event_rate_hz, 2e6 / 6.0, 0.05);
}

#[test]
fn processes_share_the_cores_of_their_computer() {
    let work =
        ["network.cpu.nodes=processes", "network.cpu.readout.fragment=1 us", "network.cpu.builder.fragment=2 us"];
    let record = run(&work);
    assert_eq!(cpu(&record).workers.len(), 5);
    assert_near("event rate", record.event_rate_hz, 2e6 / 6.0, 0.05);
    let alone = run(&[&work[..], &["network.cpu.cores=1"]].concat());
    assert_near("event rate on one core", alone.event_rate_hz, 1e6 / 6.0, 0.02);
}

#[test]
fn bytes_cost_time_at_each_place() {
    let record = run(&[ONE_WORKER, "network.cpu.readout.byte=1 ns", "network.cpu.receive.byte=2 ns"]);
    assert_near("event rate", record.event_rate_hz, 1e9 / (2000.0 * 3.0), 0.01);
    // Half of the fragments come from the other worker.
    let crossing = run(&["network.cpu.crossing.byte=2 ns"]);
    assert_near("event rate", crossing.event_rate_hz, 2.0 * 1e9 / (1000.0 * 2.0), 0.05);
    assert_eq!(count(&run(&[ONE_WORKER, "network.cpu.crossing.byte=2 ns"]), "crossing.byte"), 0, "one worker");
}

#[test]
fn blocks_cost_less_than_their_events_alone() {
    let work = [ONE_WORKER, "network.cpu.readout.block=1 us", "network.cpu.builder.fragment=100 ns"];
    assert_near("alone", run(&work).event_rate_hz, 1e6 / 2.2, 0.01);
    let blocks = run(&[&work[..], &["trigger.block=10"]].concat());
    assert_near("in blocks", blocks.event_rate_hz, 10e6 / 4.0, 0.02);
}

#[test]
fn payload_beyond_the_caches_costs_more() {
    let cache = ["network.cpu.builder.byte=1 ns", "network.cpu.cache.byte=3 ns"];
    let with = |size: &str| run(&[&cache[..], &[ONE_WORKER, size]].concat());
    let near = with("network.cpu.cache.size=1 GB");
    assert_eq!(count(&near, "cache.byte"), 0);
    let far = with("network.cpu.cache.size=1 kB");
    assert_near("all near", near.event_rate_hz, 1e9 / 2000.0, 0.01);
    assert_near("all far", far.event_rate_hz, 1e9 / 8000.0, 0.05);
}

#[test]
fn a_turn_looks_for_messages_of_each_peer() {
    let record = run(&["readout.units=1", "builder.units=1", "network.cpu.poll_peer=10 ns"]);
    // Each of the three nodes has two peers.
    assert!(count(&record, "poll") > 0);
    assert_eq!(count(&record, "poll_peer"), 2 * count(&record, "poll"));
}

#[test]
fn a_core_that_more_workers_share_takes_longer_to_change() {
    let with = |cores: &str| run(&["network.cpu.nodes=processes", "network.cpu.refill=1 us", cores]);
    let one = with("network.cpu.cores=1");
    assert!(count(&one, "context_switch") > 0);
    // Four other processes have had the core.
    assert_eq!(count(&one, "refill"), 4 * count(&one, "context_switch"));
    assert_eq!(count(&with("network.cpu.cores=5"), "refill"), 0);
}

#[test]
fn a_worker_that_sleeps_takes_time_to_wake() {
    // Triggers are far apart: all workers sleep when one comes.
    let slow = [
        "trigger.type=rate",
        "trigger.rate=100 Hz",
        "trigger.events=50",
        "protocol.group=2",
        "protocol.group_timeout=1 us",
    ];
    let with = |more: &[&str]| run(&[&slow[..], more].concat()).latency_us.p50;
    // Who polls for a while is awake when the fragments come: the trigger wakes the event manager's worker, and that the other.
    let polls = with(&["network.cpu.poll=1 us"]);
    assert_near("two wake", with(&["network.cpu.poll=1 us", "network.cpu.wake.delay=50 us"]) - polls, 100.0, 0.05);
    // Who does not poll sleeps again: there is a wait for the fragments, and one for the end of the event, too.
    assert_near("all wake each time", with(&["network.cpu.wake.delay=50 us"]), 200.0, 0.02);
}

/// Each core is away for a fifth of the time: 200 us after each 800 us, at random.
#[test]
fn interruptions_take_their_part_of_the_time_and_delay_events() {
    let work = ["network.cpu.readout.fragment=1 us", "network.cpu.builder.fragment=2 us"];
    let taken = "network.cpu.interruptions=[{every=\"800 us\",length=\"200 us\"}]";
    let (alone, record) = (run(&work), run(&[&work[..], &[taken]].concat()));
    assert_between("event rate", record.event_rate_hz / alone.event_rate_hz, 0.7, 0.85);
    // At a tenth of the full rate only the interruptions delay events.
    let slow = ["trigger={type=\"rate\",rate=\"30 kHz\",events=6000}"];
    let [alone, record] = [&[][..], &[taken]].map(|more| run(&[&work[..], &slow, more].concat()));
    assert!(alone.latency_us.p99 < 50.0, "{:?}", alone.latency_us);
    assert_between("99th percentile", record.latency_us.p99, 150.0, 1000.0);
}

/// A fifth of the events comes while the one core is away, and waits for the rest: 100 us of 200 us on average.
#[test]
fn work_waits_for_the_rest_of_an_interruption() {
    let seldom = [ONE_WORKER, "trigger={type=\"rate\",rate=\"1 kHz\",events=4000}"];
    let taken = "network.cpu.interruptions=[{every=\"800 us\",length=\"200 us\"}]";
    let mean = |more: &[&str]| run(&[&seldom[..], more].concat()).latency_us.mean.expect("events");
    assert_between("mean wait", mean(&[taken]) - mean(&[]), 18.0, 22.0);
}

#[test]
fn computers_of_each_host_send_over_the_network() {
    let each = ["network.cpu.computers=each-host", "network.cpu.messages=network", "network.cpu.cores=1"];
    let record = run(&[&each[..], &["network.cpu.builder.fragment=2 us"]].concat());
    // Each builder has a computer of its own, and half of the events.
    assert_near("event rate", record.event_rate_hz, 2.0 * 1e6 / 4.0, 0.02);
    assert!(record.simulation.as_ref().is_some_and(|simulation| simulation.packets > 40_000));
}

#[test]
fn units_of_one_host_have_a_core_each_where_there_are_two() {
    let folded = ["network.placement={ manager = 2, readout = 0, builder = 0 }", "network.cpu.computers=each-host"];
    let work = ["network.cpu.readout.fragment=1 us", "network.cpu.builder.fragment=1 us"];
    let record = run(&[&folded[..], &work, &["network.cpu.messages=network"]].concat());
    // Each unit works for 1 us on an event on average: 1 MHz at most with a core each, and 500 kHz on one core for both.
    assert_between("event rate", record.event_rate_hz, 0.75e6, 1e6);
}

#[test]
fn equal_simulations_give_equal_records() {
    let simulate = || {
        let mut record = run(&["network.cpu.nodes=processes", "network.cpu.poll=50 ns", "network.cpu.send.call=1 us"]);
        record.simulation.iter_mut().for_each(|simulation| simulation.wall_seconds = 0.0);
        record
    };
    assert_eq!(simulate(), simulate());
}

#[test]
fn times_of_hosts_have_no_meaning_beside_processors() {
    let work = [ONE_WORKER, "network.cpu.readout.fragment=1 us"];
    let plain = run(&work).event_rate_hz;
    let with_host = run(&[&work[..], &["network.host.send=10 us", "network.host.receive=10 us"]].concat());
    assert_near("event rate", with_host.event_rate_hz, plain, 1e-9);
}

#[test]
fn what_has_no_costs_is_refused() {
    let refused = |set: &[&str]| {
        let set: Vec<String> = set.iter().map(|&key| key.to_owned()).collect();
        let experiment = Experiment::parse(SHARED, "test.toml", &set).unwrap_or_else(|error| panic!("{error:#?}"));
        let result = evb_sim::simulate(&experiment.plans()[0], NonZeroUsize::MIN, None, &mut |_| true);
        result.expect_err("it has no costs").to_string()
    };
    let slots = refused(&["shaping={ type = \"rate-division\" }"]);
    assert!(slots.contains("where no interface sends the slots of this shaping"), "{slots}");
    let traffic = refused(&["workload={ type = \"random\" }", "trigger={ duration = \"1 ms\" }"]);
    assert!(traffic.ends_with("and this is a traffic pattern"), "{traffic}");
}

/// Events of 2 kB, of which all are kept.
const KEPT: [&str; 2] = [ONE_WORKER, "storage.keep=all"];

#[test]
fn a_writer_stores_the_events_of_its_builder() {
    let cost = ["builder.units=1", "network.cpu.storage={event=\"3 us\",byte=\"1 ns\"}"];
    let record = run(&[&KEPT[..], &cost].concat());
    // Nothing else takes time, so that the writer is always busy.
    assert_near("event rate", record.event_rate_hz, 1e6 / 5.0, 0.01);
    assert_eq!((count(&record, "storage.event"), count(&record, "storage.byte")), (20_000, 40_000_000));
    let writer = cpu(&record).workers.iter().find(|worker| worker.nodes == ["bu0.writer"]).expect("it has a worker");
    assert_near("load", writer.load, 1.0, 0.01);
    // Events that are not kept need no writer.
    let dropped = run(&[&cost[..], &[ONE_WORKER, "network.cpu.builder.fragment=100 ns"]].concat());
    assert_near("event rate", dropped.event_rate_hz, 1e6 / 0.2, 0.01);
    assert_eq!((count(&dropped, "storage.event"), cpu(&dropped).workers.len()), (0, 1));
}

#[test]
fn a_writer_takes_its_part_of_the_cores() {
    let work = ["network.cpu.builder.fragment=1 us", "network.cpu.storage.event=2 us"];
    // 2 us for an event's fragments, and as much to store it.
    let one = run(&[&KEPT[..], &work, &["network.cpu.cores=1"]].concat());
    assert_near("one core", one.event_rate_hz, 1e6 / 4.0, 0.02);
    let two = run(&[&KEPT[..], &work, &["network.cpu.cores=2"]].concat());
    assert_near("two cores", two.event_rate_hz, 1e6 / 2.0, 0.02);
    assert!(one.good && two.good, "{:?}", one.findings);
}

#[test]
fn a_disk_limits_what_is_stored_as_soon_as_its_memory_is_full() {
    let disk = |cache: &str| {
        let disk = format!("network.cpu.disk={{rate=\"100 MB/s\",cache=\"{cache}\"}}");
        run(&[&KEPT[..], &["network.cpu.builder.fragment=1 us", &disk]].concat())
    };
    // Two builders share the disk, which takes 20 us for an event.
    assert_near("without memory", disk("0 B").event_rate_hz, 100e6 / 2000.0, 0.01);
    // All 40 MB fit: only the builder limits.
    assert_near("with memory for all", disk("1 GB").event_rate_hz, 1e6 / 2.0, 0.01);
    // The first 20 MB are fast, the others are not: 20 us for each of the 10,000 events that do not fit, and for those of the first.
    let half = disk("20 MB");
    assert_near("seconds", half.seconds, 0.2, 0.05);
}

#[test]
fn a_write_takes_the_latency_of_the_disk() {
    let slow = ["trigger.type=rate", "trigger.rate=100 Hz", "trigger.events=50", "protocol.group=2"];
    let with = |latency: &str| {
        let disk = format!("network.cpu.disk={{rate=\"1 GB/s\",latency=\"{latency}\"}}");
        run(&[&KEPT[..], &slow, &["protocol.group_timeout=1 us", &disk]].concat()).latency_us.p50
    };
    assert_near("latency", with("200 us") - with("0 s"), 200.0, 0.01);
}

#[test]
fn filter_units_take_their_part_of_the_cores() {
    let filter = ["filter={program=[\"./select\"],units=2,accept=0.5,time=\"10 us\"}", "builder.units=1", ONE_WORKER];
    let with = |more: &[&str]| run(&[&filter[..], more].concat());
    // Two units of one builder, 10 us for each event.
    let alone = with(&["network.cpu.cores=3"]);
    assert_near("two units", alone.event_rate_hz, 2e6 / 10.0, 0.02);
    assert_near("one core", with(&["network.cpu.cores=1"]).event_rate_hz, 1e6 / 10.0, 0.02);
    let cost = ["network.cpu.cores=3", "network.cpu.filter={event=\"8 us\",byte=\"1 ns\"}"];
    assert_near("with the cost to get an event", with(&cost).event_rate_hz, 2e6 / 20.0, 0.02);
    assert_eq!(count(&alone, "filter.time"), 20_000);
    assert_between("accepted", alone.events.built as f64, 9_500.0, 10_500.0);
    assert_eq!(alone.events.built + alone.events.rejected, 20_000);
}

#[test]
fn the_units_of_a_computer_are_sampled_as_those_of_a_run() {
    // The writer is slow: all slots of its builder hold events that wait for it.
    let slow = ["builder.units=1", "builder.slots=8", "network.cpu.storage.event=20 us"];
    let record = run(&[&KEPT[..], &slow].concat());
    let occupancy = record.occupancy.as_ref().expect("it was sampled");
    assert!(occupancy.looks > 100, "{occupancy:?}");
    assert_near("waiting for the writer", occupancy.builders[0].storing, 8.0, 0.15);
    assert_near("one of two cores", occupancy.machine_busy.unwrap_or_default(), 0.5, 0.02);
    // Without processors nothing is sampled.
    let plain = SHARED.replace("[network.cpu]\ncores = 2\ncomputers = \"one\"\nmessages = \"memory\"\n", "");
    assert_eq!(run_with(&plain, &[]).occupancy, None);
}

/// Lost fragments leave events incomplete, and builders give them up after 100 s only.
#[test]
fn a_simulation_that_is_stuck_is_sampled_no_more() {
    let lost = SHARED.to_owned() + "[[fault]]\nnode = \"ru0\"\naction = \"lose\"\none_in = 100\n";
    let record = run_with(&lost, &["builder.patience=100 s", "run.drain_timeout=10 ms"]);
    assert!(!record.good && record.events.built < 20_000, "{:?}", record.events);
    let looks = record.occupancy.expect("it was sampled").looks;
    assert!((1..1000).contains(&looks), "{looks} samples");
}
