//! Second-level triggers over the Clos network of the Macrame testbed.

use crate::support::{assert_between, assert_near, run_with};

/// 64 buffers on the first four leaves, 64 processors on the next four; a packet from each of 3 to 20 buffers (ATLAS 1998).
const TRIGGER: &str = r#"
[network]
preset = "ds-link-clos"
[workload]
type = "gather"
least = 3
most = 20
processors = 3
ask = false
window = 400
[trigger]
duration = "20 ms"
[run]
warmup = "5 ms"
[readout]
units = 64
source = { type = "fixed", size = "64 B" }
[builder]
units = 64
"#;

/// The same sub-detector went from 50 to 125 kHz (ATLAS 1998).
#[test]
fn adaptive_routing_more_than_doubles_the_event_rate() {
    let rate = |routing: &str| run_with(TRIGGER, &[routing]).event_rate_hz;
    let fixed = rate("network.routing={type=\"fixed\",spread=\"switch\"}");
    let adaptive = rate("network.routing={type=\"adaptive\"}");
    assert_between("adaptive over fixed", adaptive / fixed, 2.0, 3.0);
}

#[test]
fn every_event_is_counted_once() {
    for processors in [1, 3] {
        for ask in [true, false] {
            let set = [
                &format!("workload={{type=\"gather\",least=3,most=20,processors={processors},ask={ask},messages=300}}"),
                "run.warmup=0 s",
                "trigger.duration=10 s",
            ];
            let record = run_with(TRIGGER, &set);
            assert_eq!((record.events.triggered, record.events.built, record.good), (300, 300, true), "{set:?}");
        }
    }
}

/// Buffers and processors on the same hosts, where a message needs no time.
#[test]
fn data_on_the_processors_own_host_are_gathered_too() {
    for ask in [true, false] {
        let gather = format!("workload={{type=\"gather\",least=64,most=64,ask={ask},messages=50}}");
        let set =
            [gather.as_str(), "network.placement={readout=0,builder=0}", "run.warmup=0 s", "trigger.duration=10 s"];
        let record = run_with(TRIGGER, &set);
        assert_eq!((record.events.built, record.good), (50, true));
    }
}

#[test]
fn a_low_rate_is_followed() {
    let set = ["workload.rate=2 kHz", "workload.arrivals=regular", "workload.processors=2", "trigger.duration=220 ms"];
    assert_near("events per second", run_with(TRIGGER, &set).event_rate_hz, 2e3, 0.02);
}
