//! The communication patterns of ATLAS DAQ note 77 against closed forms.

use crate::support::{assert_near, network, run_with};

/// Links that need little time, and hosts that need more.
const HOSTS: &str = r#"
[network]
topology = { type = "crossbar", ports = 8 }
link = { rate = "10 Gbit/s", delay = "1 us" }
nic = { packet = "1500 B" }
host = { send = "3 us", receive = "5 us" }
[workload]
type = "pairs"
messages = 1
[run]
warmup = "0 s"
[readout]
units = 1
source = { type = "fixed", size = "1000 B" }
[builder]
units = 1
"#;

/// The time of one cycle in microseconds, from a run of `cycles` whose nodes all begin at once.
fn cycle(workload: &str, cycles: u64, set: &[&str]) -> f64 {
    let workload = format!("workload={{{workload},messages={cycles}}}");
    let set: Vec<_> = [workload.as_str()].into_iter().chain(set.iter().copied()).collect();
    let record = run_with(HOSTS, &set);
    assert!(record.good, "{:?}", record.findings);
    record.seconds * 1e6 / cycles as f64
}

/// One cycle of many, in microseconds, without those at the beginning.
fn steady(workload: &str, set: &[&str]) -> f64 {
    let workload = format!("workload={{{workload}}}");
    let set: Vec<_> = [workload.as_str(), "trigger.duration=510 ms", "run.warmup=10 ms"]
        .into_iter()
        .chain(set.iter().copied())
        .collect();
    1e6 / run_with(HOSTS, &set).event_rate_hz
}

fn one_way() -> f64 {
    run_with(HOSTS, &[]).seconds * 1e6
}

#[test]
fn a_ping_pong_takes_two_ways() {
    assert_near("microseconds", cycle("type=\"ping-pong\"", 100, &[]), 2.0 * one_way(), 1e-9);
}

/// Sending is over before the other's message comes: both directions take as long as one.
#[test]
fn two_directions_at_once_take_as_long_as_one() {
    assert_near("microseconds", cycle("type=\"two-way\"", 100, &[]), one_way(), 1e-9);
}

/// Three pairs make three times as many cycles.
#[test]
fn pairs_of_ping_pong_do_not_meet() {
    let set = ["readout.units=3", "builder.units=3"];
    assert_near("microseconds", cycle("type=\"ping-pong\"", 100, &set), 2.0 * one_way(), 1e-9);
    let workload = "workload={type=\"ping-pong\",messages=100}";
    let rate = run_with(HOSTS, &[&[workload][..], &set].concat()).event_rate_hz;
    assert_near("cycles per second", rate, 3e6 / (2.0 * one_way()), 1e-9);
}

/// The processor of each of six hosts sends five messages and looks at five.
#[test]
fn all_to_all_is_bound_by_the_processors() {
    let set = ["readout.units=2", "builder.units=4"];
    assert_near("microseconds", cycle("type=\"all-to-all\"", 50, &set), 5.0 * (3.0 + 5.0), 0.12);
    let record = run_with(HOSTS, &[&["workload={type=\"all-to-all\",messages=50}"][..], &set].concat());
    assert_eq!((record.events.triggered, record.per_destination_bytes_per_s.len()), (50 * 30, 6));
    let total: f64 = record.per_destination_bytes_per_s.iter().sum();
    assert_near("bytes per second", total, 50.0 * 30.0 * 1000.0 / record.seconds, 1e-9);
    assert_eq!(record.per_source_bytes_per_s, record.per_destination_bytes_per_s);
}

/// The host of the sender needs its time for each message, but only once for a broadcast: its interface makes the
/// copies.
#[test]
fn a_broadcast_needs_the_processor_once() {
    for receivers in [1, 3, 7] {
        let units = format!("builder.units={receivers}");
        let wire = 1000.0 * 8.0 / 10e3;
        let outfarming = cycle("type=\"outfarming\"", 200, &[&units, "network.host.receive=0 s"]);
        assert_near("outfarming", outfarming, f64::from(receivers) * 3.0 + wire, 0.02);
        let broadcast = cycle("type=\"broadcast\"", 200, &[&units, "network.host.receive=0 s"]);
        assert_near("broadcast", broadcast, 3.0 + f64::from(receivers) * wire, 0.02);
    }
}

/// Times: 5 us for each message, 3 us to request the next one, and the computing; the window covers the way there and
/// back.
#[test]
fn a_push_farm_needs_its_processor_or_its_link() {
    for (senders, work) in [(1, 30), (2, 100), (4, 0), (4, 100), (7, 400)] {
        let (units, workload) =
            (format!("readout.units={senders}"), format!("type=\"push-farm\",window=4,compute=\"{work} us\""));
        let expected = f64::from(senders) * 5.0 + 3.0 + f64::from(work);
        assert_near(&workload, steady(&workload, &[&units]), expected, 2e-3);
    }
    // 4 x 100 kB need 320 us on the receiver's link, more than all that the processor does.
    let large = ["readout.units=4", "readout.source.size=100 kB"];
    for work in ["0 s", "100 us", "200 us"] {
        let workload = format!("type=\"push-farm\",compute=\"{work}\"");
        assert_near(&workload, steady(&workload, &large), 320.0, 0.02);
    }
    assert_near("overhead", steady("type=\"push-farm\",compute=\"300 us\",overhead=\"100 us\"", &large), 423.0, 2e-3);
}

/// 3 us for the request and 5 us for the answer, for each sender, and the computing.
#[test]
fn a_pull_farm_needs_its_processor_or_its_link() {
    for (senders, work) in [(1, 50), (2, 100), (4, 200), (7, 400)] {
        let (units, workload) =
            (format!("readout.units={senders}"), format!("type=\"pull-farm\",compute=\"{work} us\""));
        let expected = f64::from(senders) * (3.0 + 5.0) + f64::from(work);
        assert_near(&workload, steady(&workload, &[&units]), expected, 2e-3);
    }
    // Asking is not hidden behind the transfer, which begins with the first answer.
    let large = ["readout.units=4", "readout.source.size=1 MB"];
    assert_near("large", steady("type=\"pull-farm\"", &large), 3200.0, 0.02);
}

#[test]
fn a_funnel_is_a_push_farm_that_computes_nothing() {
    let senders = ["readout.units=4"];
    assert_near("microseconds", steady("type=\"funnel\"", &senders), steady("type=\"push-farm\"", &senders), 1e-9);
}

/// Each sender has its part of the link, at a constant rate; the excess waits at the senders.
#[test]
fn constant_bit_rates_are_followed_until_the_processor_is_full() {
    let farm = "type=\"push-farm\",overhead=\"100 us\",arrivals=\"regular\"";
    for (rate, expected) in [("5 kHz", 200.0), ("8 kHz", 125.0), ("20 kHz", 123.0)] {
        let workload = format!("{farm},rate=\"{rate}\"");
        assert_near(rate, steady(&workload, &["readout.units=4"]), expected, 2e-3);
    }
}

/// Queues that drop: a node waits for ever for an answer that was lost, and the record reports it.
#[test]
fn losses_are_reported() {
    let drop =
        ["network.flow={type=\"store-and-forward\",full=\"drop\",reaction=\"0 s\",queue=\"2 kB\"}", "readout.units=7"];
    let workload = "workload={type=\"funnel\",window=8,messages=100}";
    let record = run_with(HOSTS, &[&[workload][..], &drop].concat());
    assert!(!record.good && record.events.lost > 0 && network(&record).lost_packets > 0, "{record:#?}");
}
