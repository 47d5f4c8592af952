//! Offered and carried rates below and above the capacity of a network.

use crate::support::{assert_near, efficiency, run_with};
use evb_record::{FindingKind, Record};

/// Senders and receivers of 1 GB/s at a switch whose inputs hold up all behind a packet that waits.
const TRAFFIC: &str = r#"
[network]
preset = "ideal"
flow = { type = "wormhole", slack = "64 B", reaction = "0 s" }
link = { rate = "1 GB/s" }
switch = { arbitration = "random" }
[workload]
type = "random"
[readout]
units = 4
source = { type = "fixed", size = "2 kB" }
[builder]
units = 4
[trigger]
duration = "20 ms"
"#;

/// The same with an event manager.
const BUILDING: &str = r#"
[network]
preset = "ideal"
flow = { type = "wormhole", slack = "64 B", reaction = "0 s" }
link = { rate = "1 GB/s" }
control = { type = "separate", delay = "1 us", rate = "10 GB/s" }
[protocol]
type = "pull"
[readout]
units = 4
source = { type = "log-normal", mean = "2 kB", rms = "1 kB" }
[builder]
units = 4
# While a number of slots is looked for, the rate is not the same.
slots = 64
[storage]
keep = "none"
[trigger]
type = "free-running"
duration = "20 ms"
block = 1
"#;

const SEEDS: [u32; 3] = [1, 2, 3];
const LENGTHS: [&str; 3] = ["12 ms", "24 ms", "48 ms"];

/// A record for each length and seed.
fn records(text: &str, offered: &str) -> Vec<Record> {
    let lengths = LENGTHS.iter().flat_map(|length| SEEDS.map(|seed| (length, seed)));
    let run = |(length, seed): (&&str, u32)| {
        run_with(text, &[offered, &format!("trigger.duration={length}"), &format!("run.seed={seed}")])
    };
    lengths.map(run).collect()
}

fn interval(record: &Record) -> (f64, f64) {
    let interval = record.event_rate_interval_hz.unwrap_or_else(|| panic!("no steady window: {:?}", record.findings));
    (interval.low, interval.high)
}

/// Number of pairs of records with intervals that do not meet.
fn apart(records: &[Record]) -> usize {
    let intervals: Vec<_> = records.iter().map(interval).collect();
    let meet = |a: &(f64, f64), b: &(f64, f64)| a.0 <= b.1 && b.0 <= a.1;
    intervals.iter().enumerate().flat_map(|(n, a)| intervals[n + 1..].iter().filter(move |b| !meet(a, b))).count()
}

/// Loads of 10, 50, 90 and 110 % of the capacity, for three lengths and three seeds, which were chosen before. The
/// offered rate lies in 95 of 100 intervals, so of 27 in all but 1.35 on average, and in all but 4 with 99 %. Two
/// intervals of the same rate miss each other less than once in 100 times; of the 36 pairs at one load, which depend on
/// each other, 2 may.
fn carries_what_is_offered(text: &str, most: f64, key: impl Fn(f64) -> String) {
    let mut held = 0;
    for load in [0.1, 0.5, 0.9, 1.1] {
        let mut records = records(text, &key(load * most));
        // Steps of a steady rate look as if they drifted once in a hundred times.
        let all = records.len();
        records.retain(|record| record.window.steady);
        println!("{load}: {} of {all} are steady", records.len());
        assert!(records.len() + 1 >= all, "{load}: {} of {all} are steady", records.len());
        for record in &records {
            let (offered, (low, high)) =
                (record.trigger.offered_rate_hz.expect("a rate is asked for"), interval(record));
            println!("{load}: {offered:.0} offered, {low:.0} to {high:.0}, good: {}", record.good);
            assert_near("offered", offered, load * most, 1e-3);
            let is_reported = record.findings.iter().any(|finding| finding.kind == FindingKind::RateNotKept);
            assert_eq!((is_reported, record.good), (load > 1.0, load < 1.0), "{load}: {:#?}", record.findings);
            held += u32::from(load < 1.0 && (low..=high).contains(&offered));
            assert!(load < 1.0 || high < offered, "{load}: {high} of {offered}");
        }
        assert!(apart(&records) <= 2, "{load}: {} pairs are apart", apart(&records));
    }
    println!("{held} of 27 intervals hold the rate that was offered");
    assert!(held >= 23, "{held} of 27");
}

#[test]
fn traffic_is_carried_as_offered_or_the_shortfall_is_reported() {
    // The load of each of four senders of 2 kB, at 1 GB/s.
    let most = run_with(TRAFFIC, &["trigger.duration=40 ms"]).event_rate_hz;
    carries_what_is_offered(TRAFFIC, most, |rate| format!("workload.load={}", rate / 4.0 * 2e3 / 1e9));
}

#[test]
fn events_are_built_as_triggered_or_the_shortfall_is_reported() {
    // With many events waiting more is built than builders request in free running.
    let flood = "trigger={type=\"rate\",rate=\"2 MHz\",duration=\"40 ms\",accept_loss=100,block=1}";
    let most = run_with(BUILDING, &[flood]).event_rate_hz;
    carries_what_is_offered(BUILDING, most, |rate| {
        format!("trigger={{type=\"rate\",rate=\"{rate:.0} Hz\",spacing=\"poisson\",duration=\"1 s\",block=1}}")
    });
}

/// The warm-up of a network that is slow at first does not count, nor does the drain.
#[test]
fn a_slow_start_does_not_count() {
    let slow = "network.fault=[{target=\"h0>switch0\",action=\"slow\",at=\"0 s\",factor=8},\
                {target=\"h0>switch0\",action=\"slow\",at=\"4 ms\",factor=1}]";
    let set = [slow, "workload={type=\"assigned\",destinations=[0,1,2,3]}", "trigger.duration=20 ms"];
    let record = run_with(TRAFFIC, &set);
    assert!(record.window.steady && record.window.from_s > 0.0039, "{:?}", record.window);
    let whole = run_with(TRAFFIC, &[set[0], set[1], set[2], "run.warmup=0 s"]);
    assert!(whole.event_rate_hz < 0.97 * record.event_rate_hz, "{} {}", whole.event_rate_hz, record.event_rate_hz);
}

/// A share that the file accepts is not a failure, and a larger one is.
#[test]
fn a_loss_may_be_accepted() {
    let accepting = |percent: u8| {
        let trigger = format!("trigger={{duration=\"20 ms\",accept_loss={percent}}}");
        run_with(TRAFFIC, &["workload={type=\"random\",load=0.8}", &trigger])
    };
    // About two thirds of the links can be used.
    assert!(accepting(30).good && !accepting(10).good && !accepting(0).good);
}

/// Ten milliseconds of many events, none of which has ended when the trigger stops.
#[test]
fn a_missing_steady_state_is_reported() {
    let record = run_with(BUILDING, &["trigger={type=\"rate\",rate=\"10 kHz\",duration=\"10 ms\"}"]);
    let kinds: Vec<_> = record.findings.iter().map(|finding| finding.kind).collect();
    assert_eq!((kinds, record.good), (vec![FindingKind::NoSteadyState], true));
    assert!(!record.window.steady && record.event_rate_interval_hz.is_none() && record.event_rate_hz > 0.0);
}

/// The filling of buckets is not payload, and several senders to one receiver prepare their packets at the same time.
#[test]
fn efficiency_counts_payload_and_never_passes_one() {
    let fill = |size: &str| {
        let source = format!("readout.source={{type=\"fixed\",size=\"{size}\"}}");
        let set =
            ["shaping={type=\"barrel-shifter\",step=\"link\",bucket=\"8 kB\"}", "protocol={type=\"pull\"}", &source];
        let record = run_with(BUILDING, &[&set[..], &["builder.slots=8", "readout.buffer_events=64"]].concat());
        let payload = record.throughput_bytes_per_s / 4e9;
        println!("{size}: efficiency {}, payload {payload}", efficiency(&record));
        assert!(efficiency(&record) >= payload - 1e-9 && efficiency(&record) < payload + 0.1, "{size}");
    };
    fill("100 B");
    fill("4 kB");
    let overheads = ["network.nic.overhead=5 us", "readout.units=8", "builder.units=1", "readout.source.size=500 B"];
    let many = run_with(TRAFFIC, &overheads);
    assert!(efficiency(&many) > 0.7 && efficiency(&many) <= 1.0, "{}", efficiency(&many));
}
