//! Traffic without an event manager for real: the files that `evb simulate` takes, over every message layer of this machine.

use crate::{
    inputs::refuses,
    support::{Lab, both_modes, good, not_good},
};
use evb_record::{FindingKind, Record, RecordKind};
use rustix::process::Signal;

/// Four senders, three receivers, and messages of different lengths.
const FILE: &str = r#"
[readout]
units = 4
source = { type = "log-normal", mean = "1 kB", rms = "800 B" }
[builder]
units = 3
[network]
preset = "fast-ethernet"
[workload]
type = "random"
messages = 500
"#;

/// Every pattern, with the numbers of nodes that it wants.
const PATTERNS: [&str; 14] = [
    "workload={type='assigned',destinations=[0,0,2,1],messages=500}",
    "workload={type='random',messages=500}",
    "workload={type='pairs',messages=500}",
    "workload={type='rotation',start='retarded',messages=500}",
    "workload={type='stream',messages=500}",
    "workload={type='stream',messages=500,rate='4 kHz'}",
    "workload={type='gather',least=1,most=4,messages=500,rate='4 kHz'}",
    "workload={type='gather',least=2,most=3,processors=2,ask=false,messages=500,rate='4 kHz'}",
    "workload={type='all-to-all',messages=50}",
    "workload={type='ping-pong',window=4,messages=500}:4x4",
    "workload={type='two-way',messages=500}:4x4",
    "workload={type='outfarming',messages=500}:1x3",
    "workload={type='broadcast',messages=500}:1x3",
    "workload={type='funnel',messages=500}:4x1",
];

const FARMS: [&str; 2] = [
    "workload={type='push-farm',compute='10 us',messages=200}:4x1",
    "workload={type='pull-farm',compute='10 us',messages=200}:4x1",
];

/// A run and a simulation of the same file.
fn both(lab: &Lab, pattern: &str, options: &[&str]) -> (Record, Record) {
    let (workload, nodes) = pattern.split_once("}:").unwrap_or((pattern.trim_end_matches('}'), "4x3"));
    let (senders, receivers) = nodes.split_once('x').expect("two numbers");
    let sets = [format!("{workload}}}"), format!("readout.units={senders}"), format!("builder.units={receivers}")];
    let set = |evb: crate::support::Evb| sets.iter().fold(evb, |evb, set| evb.set(set)).run();
    (good(&set(lab.run(options))), good(&set(lab.simulate(&[]))))
}

#[test]
fn every_pattern_moves_the_same_messages_as_in_a_simulation() {
    both_modes(|options| {
        let lab = Lab::with(FILE);
        for pattern in PATTERNS.iter().chain(&FARMS) {
            let (run, simulated) = both(&lab, pattern, options);
            assert_eq!((run.kind, simulated.kind), (RecordKind::Run, RecordKind::Simulation));
            assert_eq!(run.events, simulated.events, "{pattern} {options:?}");
            assert_eq!(run.protocol, simulated.protocol);
            let lengths = |record: &Record| {
                (record.per_destination_bytes_per_s.len(), record.per_source_bytes_per_s.len(), record.trigger.offered)
            };
            assert_eq!(lengths(&run), lengths(&simulated), "{pattern} {options:?}");
            assert!(run.throughput_bytes_per_s > 0.0 && run.event_rate_hz > 0.0, "{run:#?}");
        }
    });
}

/// The choice of processors and buffers is that of the simulation: every processor gets the same part of the bytes.
#[test]
fn gathering_takes_the_same_data_as_in_a_simulation() {
    let lab = Lab::with(FILE);
    let gather = "workload={type='gather',least=1,most=4,rate='5 kHz',messages=2000}";
    let (run, simulated) = both(&lab, gather, &["--set", "readout.source={type='fixed',size='1 kB'}"]);
    let parts = |record: &Record| -> Vec<f64> {
        record.per_destination_bytes_per_s.iter().map(|rate| rate / record.throughput_bytes_per_s).collect()
    };
    for (run, simulated) in parts(&run).into_iter().zip(parts(&simulated)) {
        assert!((run - simulated).abs() < 0.03, "{run} and {simulated}");
    }
    assert_eq!(run.trigger.offered, 2000);
    assert!(run.latency_us.p50 > 0.0, "{run:#?}");
}

#[test]
fn traffic_ends_by_time_or_by_a_signal() {
    for transport in ["threads", "tcp"] {
        let lab = Lab::with(&FILE.replace("messages = 500", "rate = \"2 kHz\""));
        let transport = format!("transport.type={}", if transport == "threads" { "in-process" } else { transport });
        let timed = good(&lab.run(&["--set", &transport, "--set", "trigger.duration=100 ms"]).run());
        assert!(timed.events.built > 0, "{timed:#?}");
        let running = lab.run(&["--set", &transport, "--set", "trigger.duration=1 h"]).start();
        std::thread::sleep(std::time::Duration::from_millis(500));
        running.signal(Signal::INT);
        let stopped = good(&running.wait());
        assert!(stopped.events.built > 0 && stopped.seconds < 60.0, "{stopped:#?}");
    }
}

/// A message that is shorter than its word and the time at which it was due is made longer, and the record says so.
#[test]
fn too_short_messages_are_reported() {
    let lab = Lab::with(FILE);
    for source in ["{type='fixed',size='2 B'}", "{type='uniform',min='1 B',max='10 B'}"] {
        let record = good(&lab.run(&[]).set(&format!("readout.source={source}")).run());
        assert!(record.findings.iter().any(|finding| finding.kind.name() == "lengthened"), "{record:#?}");
    }
}

#[test]
fn what_real_nodes_cannot_do_is_refused() {
    let lab = Lab::with(FILE);
    let refused = |set: &str, words: &[&str]| refuses(lab.run(&[]).set(set), words);
    refused(
        "workload={type='random',load=0.5,messages=5}",
        &["part of the rate of a simulated link", "hint: use `evb simulate`"],
    );
    refused(
        "workload={type='gather',least=1,most=2,messages=5}",
        &["as fast as it goes in a simulation only", "--set workload.rate"],
    );
    refuses(lab.run(&["--operator"]), &["no operator commands traffic", "leave out `--operator`"]);
    refuses(lab.run(&["--listen", "127.0.0.1:0"]), &["traffic starts its own nodes", "leave out `--listen`"]);
    refused("run.placement='auto'", &["not bound to cores by `run.placement`", "leave it out"]);
}

/// A rate beyond reach ends with the record: what was due and not sent is counted, and the result is not good.
#[test]
fn a_rate_beyond_reach_ends_with_a_record() {
    let text = "workload={type='pairs',rate='100 MHz'}\ntrigger.duration='500 ms'\n[readout]\nunits=2\n\
                source={type='fixed',size='1 kB'}\n[builder]\nunits=2\n";
    both_modes(|options| {
        let record = not_good(&Lab::with(text).run(options).run());
        assert!(record.findings.iter().any(|finding| finding.kind == FindingKind::RateNotKept), "{record:#?}");
        let offered = 2 * 50_000_000;
        assert!(record.trigger.offered.abs_diff(offered) < offered / 100, "{record:#?}");
        assert!(record.events.built > 0 && record.events.lost == 0, "{record:#?}");
    });
}
