//! A run keeps its size: memory does not grow with the number of events.

use crate::support::{Lab, PROCESSES, THREADS, good, group_memory};
use std::{
    thread,
    time::{Duration, Instant},
};

const FULL_RATE: &str = r#"
[trigger]
type = "free-running"
duration = "1 s"
[readout]
units = 2
source = { type = "log-normal", mean = "2 kB", rms = "2 kB" }
[builder]
units = 2
[storage]
keep = { one_in = 1000 }
file_size = "1 MB"
"#;

/// Most that the last third of a run may add to the memory that the second third needed, in KiB. In the first one buffers for
/// bundles of all sizes are made. Memory that processes share counts for each of them.
const GROWTH: u64 = 8 << 10;

/// Seconds of each run; a night's worth can be given by `EVB_SOAK_SECONDS`.
fn seconds() -> u64 {
    std::env::var("EVB_SOAK_SECONDS").map_or(6, |text| text.parse().expect("EVB_SOAK_SECONDS is a number of seconds"))
}

#[test]
fn memory_stays_flat() {
    for mode in [THREADS, PROCESSES] {
        let lab = Lab::with(FULL_RATE);
        let mut run = lab.run(mode).set(&format!("trigger.duration=\"{} s\"", seconds())).start();
        let (began, mut samples) = (Instant::now(), Vec::new());
        while run.is_running() {
            samples.push((began.elapsed(), group_memory(run.pid())));
            thread::sleep(Duration::from_millis(20));
        }
        good(&run.wait());
        let third = Duration::from_secs(seconds()) / 3;
        let most = |from: u32| {
            let of_third = samples.iter().filter(|(at, _)| (third * from..third * (from + 1)).contains(at));
            of_third.map(|&(_, kib)| kib).max().expect("a run of seconds is seen more than once")
        };
        let (before, after) = (most(1), most(2));
        eprintln!("most memory: {before} KiB, then {after} KiB");
        assert!(after <= before + GROWTH, "{before} KiB in the second third, {after} KiB in the last");
    }
}
