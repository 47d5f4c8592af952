//! Slots of a barrel shifter that begin at wrong times.

use crate::support::{assert_between, efficiency, network, run_with};
use evb_record::Record;

/// Eight units that share hosts with eight builders on one switch. A bucket of 16 KiB takes 68 us at the rate of the slots.
const SHIFTER: &str = r#"
[network]
topology = { type = "crossbar", ports = 8 }
link = { rate = "2 Gbit/s", delay = "0 s" }
nic = { packet = "2048 B" }
flow = { type = "cut-through", buffer = "16 KiB", reaction = "1 us" }
control = { type = "separate", delay = "5 us", rate = "10 Gbit/s" }
placement = { readout = 0, builder = 0 }
[trigger]
type = "free-running"
duration = "100 ms"
block = 1
[readout]
units = 8
source = { type = "fixed", size = "4 KiB" }
[builder]
units = 8
slots = 64
[protocol]
type = "push"
[run]
warmup = "30 ms"
[storage]
keep = "none"
"#;

const CLOCK: &str = "step=\"clock\",rate=\"240 MB/s\",guard=\"20 us\"";
const BARRIER: &str = "step=\"barrier\"";
const CREDIT: &str = "step=\"credit\"";

fn shifted(keys: &[&str]) -> Record {
    seeded(1, keys)
}

fn seeded(seed: u64, keys: &[&str]) -> Record {
    let shaping = format!("shaping={{type=\"barrel-shifter\",bucket=\"16 KiB\",{}}}", keys.join(","));
    let mut record = run_with(SHIFTER, &[&shaping, &format!("run.seed={seed}")]);
    record.simulation.as_mut().expect("simulated").wall_seconds = 0.0;
    record
}

/// The longest mean time for which packets waited for a link, in microseconds.
fn wait_us(record: &Record) -> f64 {
    network(record).links.iter().map(|link| link.mean_wait_us).fold(0.0, f64::max)
}

#[test]
fn errors_of_no_time_change_nothing() {
    for step in [CLOCK, BARRIER, CREDIT] {
        let zero = shifted(&[step, "skew=\"0 s\"", "jitter={mean=\"0 s\"}"]);
        assert!(zero == shifted(&[step]), "{step}");
    }
}

#[test]
fn the_seed_decides_which_unit_is_late() {
    for step in [CLOCK, BARRIER, CREDIT] {
        for error in ["skew=\"30 us\"", "jitter={mean=\"30 us\"}"] {
            let record = shifted(&[step, error]);
            assert!(record == shifted(&[step, error]), "{step}, {error}");
            let other = Record { seed: record.seed, ..seeded(2, &[step, error]) };
            assert!(record != other, "{step}, {error}");
        }
    }
}

/// Two units differ by up to twice the skew.
#[test]
fn packets_wait_when_the_skew_is_above_what_the_guard_bears() {
    let of = |skew: &str| shifted(&[CLOCK, &format!("skew=\"{skew} us\"")]);
    let none = shifted(&[CLOCK]);
    assert_between("wait, no skew", wait_us(&none), 0.0, 0.0);
    assert_between("wait, below the guard", wait_us(&of("9")), 0.0, 0.0);
    assert_between("efficiency, below the guard", efficiency(&of("9")) / efficiency(&none), 0.99, 1.01);
    assert_between("wait, above the guard", wait_us(&of("40")), 1.0, 100.0);
}

/// A round takes as long as its latest unit.
#[test]
fn a_round_waits_for_the_latest_unit() {
    let [none, late] = ["0", "50"].map(|skew| efficiency(&shifted(&[BARRIER, &format!("skew=\"{skew} us\"")])));
    assert_between("time of a round", none / late, 1.5, 3.0);
    let random = efficiency(&shifted(&[BARRIER, "jitter={mean=\"20 us\"}"]));
    assert_between("rounds with jitter", random / none, 0.3, 0.9);
}

/// With measured clocks, the record has the error of the measurement and that which it cannot see.
#[test]
fn the_record_tells_the_skew() {
    let skew = |keys: &[&str]| shifted(keys).shaping.expect("it was shaped").skew_us;
    let measured = skew(&[CLOCK]).expect("clocks are measured");
    assert_eq!(skew(&[CLOCK, "skew=\"9 us\""]), Some(measured + 9.0));
    assert_eq!(skew(&[BARRIER]), None);
    assert_eq!(skew(&[BARRIER, "skew=\"9 us\""]), Some(9.0));
}
