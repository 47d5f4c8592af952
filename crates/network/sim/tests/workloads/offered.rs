//! The verdict on an offered load, from a tenth of what a network carries to ten times as much, in short and long runs.

use crate::support::run_with;
use evb_record::{Outcome, Record};

/// Senders and receivers of 1 GB/s.
const TRAFFIC: &str = r#"
[network]
preset = "ideal"
link = { rate = "1 GB/s", delay = "100 ns" }
[workload]
type = "assigned"
destinations = [0, 1, 2]
[readout]
units = 3
source = { type = "fixed", size = "10 kB" }
[builder]
units = 3
[trigger]
duration = "20 ms"
"#;

/// Event building on gigabit Ethernet, with room for few events or many.
const BUILDING: &str = r#"
[network]
preset = "gigabit-ethernet"
[protocol]
type = "push"
[readout]
units = 2
source = { type = "uniform", min = "1 kB", max = "3 kB" }
[builder]
units = 2
slots = 16
[storage]
keep = "none"
[trigger]
type = "free-running"
duration = "50 ms"
block = 1
"#;

/// Loads in per cent of what is carried.
const LOADS: [u32; 16] = [10, 20, 35, 50, 70, 80, 90, 95, 100, 105, 110, 130, 200, 300, 500, 1000];
const SECONDS: [f64; 5] = [0.001, 0.004, 0.02, 0.1, 1.0];
/// Most items of a run: longer runs differ from shorter ones only in their time.
const MOST: f64 = 20_000.0;
/// Part of an offered load that is carried at least if it is called good.
const CARRIED: f64 = 0.95;

/// Sweeps loads and times. `most` items are carried per second, and `set` describes a rate and a time.
fn judged(text: &str, most: f64, set: impl Fn(f64, f64) -> Vec<String>) {
    let mut wrong = Vec::new();
    for load in LOADS {
        for seconds in SECONDS {
            let rate = most * f64::from(load) / 100.0;
            if rate * seconds > MOST || rate * seconds < 1.0 {
                continue;
            }
            let set = set(rate, seconds);
            let record = run_with(text, &set.iter().map(String::as_str).collect::<Vec<_>>());
            if let Err(why) = check(&record, most, seconds, load) {
                wrong.push(format!("{set:?}: {why}: {:?}, {:?}", record.outcome(), record.findings));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{} are wrong", wrong.join("\n"), wrong.len());
}

fn check(record: &Record, most: f64, seconds: f64, load: u32) -> Result<(), String> {
    let came = record.trigger.offered as f64;
    // What a network carries in a time, and what it was asked for; one item more was under way at each end.
    let carried = (most * seconds + 2.0) / came;
    let fits = record.latency_us.max * 1e-6 * 10.0 <= seconds;
    // A buffer that is full for a moment turns triggers away, at any load.
    let is_light = load <= 80 && came >= 100.0 && record.trigger.inhibited == 0;
    match record.outcome() {
        Outcome::Good if carried < CARRIED => Err(format!("good at {carried:.3}")),
        Outcome::CannotTell if fits => Err(format!("cannot tell, and {} us are long enough", record.latency_us.max)),
        Outcome::NotGood if is_light && fits => Err(format!("not good at {load} %")),
        _ => Ok(()),
    }
}

fn time(seconds: f64) -> String {
    format!("trigger.duration=\"{} us\"", (seconds * 1e6).round())
}

#[test]
fn the_verdict_on_offered_traffic_holds() {
    let most = run_with(TRAFFIC, &[]).event_rate_hz;
    for arrivals in ["regular", "poisson"] {
        judged(TRAFFIC, most, |rate, seconds| {
            let workload = format!(
                "workload={{type=\"assigned\",destinations=[0,1,2],rate=\"{:.0} Hz\",arrivals=\"{arrivals}\"}}",
                rate / 3.0
            );
            vec![workload, time(seconds)]
        });
    }
}

#[test]
fn the_verdict_on_a_trigger_rate_holds() {
    let most = run_with(BUILDING, &[]).event_rate_hz;
    for (spacing, events) in [("regular", 16_384), ("poisson", 16_384), ("poisson", 64)] {
        judged(BUILDING, most, |rate, seconds| {
            let duration = (seconds * 1e6).round();
            let trigger = format!(
                "trigger={{type=\"rate\",rate=\"{rate:.0} Hz\",spacing=\"{spacing}\",duration=\"{duration} us\",block=1}}"
            );
            vec![trigger, format!("readout.buffer_events={events}")]
        });
    }
}
