//! A slow disk is not a broken one: it costs time, and neither events nor nodes.

use crate::support::{Lab, both_modes, good, node_pid, not_good, peak_memory, read_all};
use evb::{Experiment, MemoryBound};
use evb_record::{FindingKind, Record};

const SLOW: &str = r#"
[trigger]
type = "free-running"
events = 400
[readout]
units = 2
source = { type = "fixed", size = "10 kB" }
max_fragment = "100 kB"
buffer_bytes = "4 MB"
[builder]
units = 2
slots = 8
[run]
peer_timeout = "20 s"
[[fault]]
node = "bu0"
action = "slow-disk"
rate = "4 MB/s"
[[fault]]
node = "bu1"
action = "slow-disk"
rate = "4 MB/s"
"#;

/// Every event is in the files, once.
fn check_stored(lab: &Lab, record: &Record) {
    let stored = read_all(&lab.stored_files());
    stored.check_generated(record.seed, 2);
    assert!(stored.copies().into_iter().eq((1..=record.events.triggered).map(|event| (event, 1))));
    assert_eq!(lab.verify(&lab.stored_files()).code(), Some(0));
}

#[test]
fn all_events_are_stored_at_the_rate_of_the_disk_in_a_run() {
    both_modes(|mode| {
        let lab = Lab::with(SLOW);
        let outcome = lab.run(mode).run();
        let record = good(&outcome);
        check_stored(&lab, &record);
        for builder in &record.builders {
            assert!(record.seconds >= builder.stored_bytes as f64 / 4e6 - 0.05, "{outcome}");
        }
        // The slots bound what waits; an event that has ended may still be under the eyes of the readout units.
        assert!(record.readouts.iter().all(|readout| readout.most_events <= 64), "{outcome}");
    });
}

/// Each event takes longer than a node may be silent.
#[test]
fn a_node_with_a_slow_disk_lives() {
    both_modes(|mode| {
        let lab = Lab::with(SLOW);
        let changes = [
            "trigger.events=4",
            "builder.slots=2",
            "fault.0.rate=\"20 kB/s\"",
            "readout.source.size=\"25 kB\"",
            "run.peer_timeout=\"1500 ms\"",
        ];
        let outcome = changes.iter().fold(lab.run(mode), |run, change| run.set(change)).run();
        check_stored(&lab, &good(&outcome));
    });
}

/// The drain takes several times as long as the longest allowed standstill.
#[test]
fn a_long_drain_is_not_given_up() {
    both_modes(|mode| {
        let lab = Lab::with(SLOW);
        let changes = [
            "trigger.events=100000",
            "trigger.duration=\"300 ms\"",
            "builder.slots=800",
            "readout.buffer_bytes=\"64 MiB\"",
            "run.drain_timeout=\"1 s\"",
        ];
        let outcome = changes.iter().fold(lab.run(mode), |run, change| run.set(change)).run();
        let record = good(&outcome);
        assert!(record.seconds > 3.0, "{outcome}");
        check_stored(&lab, &record);
    });
}

#[test]
fn a_drain_that_stands_still_is_given_up() {
    both_modes(|mode| {
        let lose = "[[fault]]\nnode = \"ru0\"\naction = \"lose\"\none_in = 100\n";
        let lab = Lab::with(&format!("{SLOW}{lose}"));
        let changes = [
            "trigger.events=100000",
            "trigger.duration=\"700 ms\"",
            "run.drain_timeout=\"1 s\"",
            "builder.patience=\"100 s\"",
        ];
        let outcome = changes.iter().fold(lab.run(mode), |run, change| run.set(change)).run();
        let record = not_good(&outcome);
        let finding = record.findings.iter().find(|finding| finding.kind == FindingKind::NotDrained);
        let message = finding.map(|finding| finding.message.as_str());
        assert_eq!(message, Some("the run did not drain: nothing moved for 1 s"), "{outcome}");
    });
}

#[test]
fn the_resolved_file_shows_its_memory_and_too_much_is_an_error() {
    let lab = Lab::with(SLOW);
    let plain = lab.evb(&["check", "experiment.toml"]).run();
    assert_eq!((plain.code(), plain.stderr.as_str()), (Some(0), ""), "{plain}");
    assert!(plain.stdout.contains("# Memory, at most, over transport \"in-process\":"), "{plain}");
    assert!(plain.stdout.lines().filter(|line| line.starts_with("#  ")).all(|line| line.len() <= 80), "{plain}");
    lab.write("resolved.toml", &plain.stdout);
    assert_eq!(lab.evb(&["check", "resolved.toml"]).run().stdout, plain.stdout);
    let large = lab.evb(&["check", "experiment.toml", "--set", "transport.type=tcp"]);
    let large =
        large.set("builder.slots=65536").set("readout.buffer_events=200000").set("readout.max_fragment=\"32 MiB\"");
    let large = large.set("readout.buffer_bytes=\"1 GiB\"").run();
    assert!(large.stderr.contains("evb: all nodes on this machine may need 8.0 TiB of memory"), "{large}");
    assert!(large.stderr.contains("evb: events take about 327.7 s: 65536 slots of a builder x 19.5 KiB"), "{large}");
}

/// The slots are full all the time.
#[test]
fn nodes_stay_below_their_bound_of_memory() {
    /// What a process has beside what it holds for events: program, libraries, stacks.
    const PROGRAM: u64 = 40 << 20;
    let set =
        ["builder.slots=100", "readout.source.size=\"100 kB\"", "readout.buffer_events=512", "transport.type=shm"];
    let set = [&set[..], &["fault.0.rate=\"30 MB/s\"", "fault.1.rate=\"30 MB/s\"", "trigger.events=800"]].concat();
    let lab = Lab::with(SLOW);
    let running = set.iter().fold(lab.run(&["--processes"]), |run, change| run.set(change)).start();
    let pids = ["evm", "ru0", "bu0"].map(|name| node_pid(running.pid(), name));
    let mut peaks = [0; 3];
    while let [Some(evm), Some(ru), Some(bu)] = pids.map(peak_memory) {
        peaks = [evm, ru, bu].map(|kib| kib << 10);
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let record = good(&running.wait());
    let changes: Vec<String> = set.iter().map(|&change| change.to_owned()).collect();
    let experiment = Experiment::parse(SLOW, "test.toml", &changes).unwrap_or_else(|error| panic!("{error:?}"));
    let plan = &experiment.plans()[0];
    let bound = MemoryBound::of(plan);
    let bounds = [bound.event_manager, bound.readout_unit, bound.builder_unit].map(|node| node.total() + PROGRAM);
    println!("peaks {peaks:?}, bounds {bounds:?}");
    assert!(peaks.iter().zip(bounds).all(|(&peak, bound)| peak > 0 && peak <= bound), "{peaks:?} {bounds:?}");
    let most = plan.building.most_buffered().0;
    assert!(record.readouts.iter().all(|readout| readout.most_bytes <= most), "{:?}", record.readouts);
}
