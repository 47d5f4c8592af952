//! Runs experiments that are written in the tests.

use evb_experiment::Experiment;
use evb_record::{Network, Record};
use std::num::NonZeroUsize;

/// Simulates the one plan of an experiment, with some keys set otherwise.
pub(crate) fn run_with(text: &str, set: &[&str]) -> Record {
    let set: Vec<String> = set.iter().map(|&key| key.to_owned()).collect();
    let experiment = Experiment::parse(text, "test.toml", &set).unwrap_or_else(|error| panic!("{error:#?}"));
    let [plan] = experiment.plans() else { panic!("a sweep") };
    let record =
        evb_sim::simulate(plan, NonZeroUsize::MIN, None, &mut |_| true).unwrap_or_else(|error| panic!("{error}"));
    let network = &plan.network.config;
    check(&record, network.nic.packet.0 as f64 / network.link.rate.as_bytes_per_second());
    record
}

/// The network of a preset.
pub(crate) fn network_config(preset: &str) -> evb_fabric::NetworkConfig {
    let preset = evb_fabric::preset(preset).expect("there is such a preset");
    toml::from_str(preset.toml).unwrap_or_else(|error| panic!("{}: {error}", preset.name))
}

/// Checks what holds for every record. A packet that is on a link when the measurement ends may count whole: `packet` is
/// its time in seconds.
fn check(record: &Record, packet: f64) {
    let events = record.events;
    assert_eq!(events.triggered, events.built + events.incomplete + events.rejected + events.lost, "{record:#?}");
    for link in &network(record).links {
        assert!(link.used + link.blocked <= 1.0 + 1e-9 + 2.0 * packet / record.seconds, "{link:?}");
        assert!(link.used >= 0.0 && link.blocked >= 0.0, "{link:?}");
    }
}

pub(crate) fn network(record: &Record) -> &Network {
    &record.simulation.as_ref().expect("it was simulated").network
}

pub(crate) fn efficiency(record: &Record) -> f64 {
    record.simulation.as_ref().expect("it was simulated").efficiency
}

/// Wire bytes of all links that end at hosts.
pub(crate) fn bytes_into_hosts(record: &Record) -> u64 {
    let into_hosts = network(record).links.iter().filter(|link| link.name.contains(">h"));
    into_hosts.map(|link| link.bytes).sum()
}

/// Within a part of the expected value.
#[track_caller]
pub(crate) fn assert_near(what: &str, value: f64, expected: f64, part: f64) {
    println!("{what}: {value}, expected {expected}");
    assert!((value - expected).abs() <= part * expected.abs(), "{what}: {value}, expected {expected} within {part}");
}

#[track_caller]
pub(crate) fn assert_between(what: &str, value: f64, least: f64, most: f64) {
    println!("{what}: {value}, from {least} to {most}");
    assert!((least..=most).contains(&value), "{what}: {value}, not from {least} to {most}");
}
