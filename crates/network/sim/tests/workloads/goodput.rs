//! Goodput: what arrives and is thrown away is not of use.

use crate::support::{assert_near, efficiency, network, run_with};
use evb_record::Record;

/// All senders at once to one receiver, through a switch that drops.
const INCAST: &str = r#"
[network]
preset = "roce-100g-clos"
topology = { type = "crossbar", ports = 33 }
flow = { type = "store-and-forward", queue = "64 kB", full = "drop" }
placement = { readout = 0, builder = 32 }
control = { type = "separate", delay = "10 us", rate = "10 Gbit/s" }
[readout]
units = 32
source = { type = "fixed", size = "100 kB" }
[builder]
units = 1
"#;
const TRAFFIC: &str = r#"
[workload]
type = "random"
load = 0.9
[trigger]
duration = "2 ms"
"#;
const EVENTS: &str = r#"
patience = "1 ms"
deadline = "5 ms"
[trigger]
type = "rate"
rate = "2 kHz"
duration = "20 ms"
block = 1
"#;

fn goodput(record: &Record) -> f64 {
    record.goodput_bytes_per_s.expect("new records have it")
}

fn goodput_efficiency(record: &Record) -> f64 {
    record.simulation.as_ref().and_then(|simulation| simulation.goodput_efficiency).expect("new records have it")
}

#[test]
fn an_incast_that_delivers_nothing_has_no_goodput() {
    let record = run_with(&format!("{INCAST}{TRAFFIC}"), &[]);
    assert_eq!(record.events.built, 0, "{:?}", record.events);
    assert!(network(&record).lost_packets > 1000 && efficiency(&record) > 0.9 && record.throughput_bytes_per_s > 12e9);
    assert_eq!((goodput(&record), goodput_efficiency(&record)), (0.0, 0.0));
    assert!(!record.good);
}

#[test]
fn goodput_is_the_payload_of_complete_events() {
    let record = run_with(&format!("{INCAST}{EVENTS}"), &[]);
    let events = record.events;
    assert!(events.built > 0 && events.incomplete > 0, "{events:?}");
    let complete = events.built as f64 * 32.0 * 1e5;
    assert_near("goodput", goodput(&record), complete / record.seconds, 1e-3);
    assert!(goodput(&record) < 0.5 * record.throughput_bytes_per_s);
    let least = goodput_efficiency(&record) / efficiency(&record);
    // Packets of fragments that were lost count as well.
    assert!(least < goodput(&record) / record.throughput_bytes_per_s, "{least}");
    assert!(!record.good);
}

#[test]
fn without_losses_all_throughput_is_goodput() {
    let pause = "network.flow.full=pause";
    for (what, text, set) in [
        ("traffic", format!("{INCAST}{TRAFFIC}"), vec![pause]),
        ("events", format!("{INCAST}{EVENTS}"), vec![pause]),
        ("blocks", format!("{INCAST}{EVENTS}"), vec![pause, "trigger.block=4", "builder.deadline=\"1 s\""]),
        ("phases", format!("{INCAST}{EVENTS}"), vec![pause, r#"protocol={type="phased",first=4,accept=0.5}"#]),
        ("sources", format!("{INCAST}{EVENTS}"), vec![pause, "readout.sources=64"]),
    ] {
        let record = run_with(&text, &set);
        assert!(record.events.built > 0 && record.events.incomplete == 0, "{what}: {:?}", record.events);
        assert_near(what, goodput(&record), record.throughput_bytes_per_s, 1e-9);
        assert_near(what, goodput_efficiency(&record), efficiency(&record), 1e-9);
    }
}
