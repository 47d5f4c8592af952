//! A simulation in several partitions against the same in one: both make the same record, to the last digit.

use evb_experiment::Experiment;
use evb_record::Record;
use evb_sim::testing::simulate_partitioned;
use std::num::NonZeroUsize;

/// Simulates an experiment in one part and in several; checks that they agree.
fn check_text(text: &str) {
    let experiment = Experiment::parse(text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error:#?}\n{text}"));
    let [plan] = experiment.plans() else { panic!("a sweep") };
    let mut whole =
        evb_sim::simulate(plan, NonZeroUsize::MIN, None, &mut |_| true).unwrap_or_else(|error| panic!("{error}"));
    whole.simulation.as_mut().expect("simulated").wall_seconds = 0.0;
    assert!(whole.events.built > 50, "{text}\n{:?}", whole.events);
    for partitions in [2, 3].into_iter().filter_map(NonZeroUsize::new) {
        let apart = simulate_partitioned(plan, partitions).unwrap_or_else(|error| panic!("{error}"));
        let apart = apart.unwrap_or_else(|| panic!("not in {partitions} partitions: {text}"));
        assert!(apart == whole, "in {partitions} partitions: {text}\n{}", difference(&apart, &whole));
    }
}

const NETWORK: &str = include_str!("partitions.toml");

/// Each change as `from` and `to` in the text above.
fn check(changes: &[(&str, &str)]) {
    check_text(&changes.iter().fold(NETWORK.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    }));
}

/// The lines in which the long forms of two records differ.
fn difference(one: &Record, other: &Record) -> String {
    let (one, other) = (format!("{one:#?}"), format!("{other:#?}"));
    let lines = one.lines().zip(other.lines()).filter(|(one, other)| one != other);
    lines.take(20).map(|(one, other)| format!("{one} | {other}\n")).collect()
}

/// Sizes and times without any chance: much happens at the same time.
const REGULAR: [(&str, &str); 2] = [
    ("spacing = \"poisson\"", "spacing = \"regular\""),
    ("{ type = \"log-normal\", mean = \"2 kB\", rms = \"2 kB\" }", "{ type = \"fixed\", size = \"2 kB\" }"),
];

#[test]
fn a_record_does_not_depend_on_the_number_of_partitions() {
    check(&[]);
    check(&REGULAR);
}

#[test]
fn the_same_holds_with_shaped_traffic() {
    for (step, rate) in [("link", ""), ("credit", ""), ("barrier", ""), ("clock", "rate = \"240 MB/s\"\n")] {
        let shaping = format!("[shaping]\ntype = \"barrel-shifter\"\nstep = \"{step}\"\n{rate}[run]");
        check(&[("[run]", &shaping)]);
        check(&[("[run]", &shaping), REGULAR[0], REGULAR[1]]);
    }
    check(&[("[run]", "[shaping]\ntype = \"rate-division\"\n[run]")]);
}

/// Each unit draws from streams of its own, whatever else its partition holds.
#[test]
fn the_same_holds_with_slots_at_wrong_times() {
    let jitter = "jitter = { mean = \"2 us\" }";
    for (step, errors) in [
        ("link", jitter.to_owned()),
        ("credit", format!("skew = \"5 us\"\n{jitter}")),
        ("barrier", format!("skew = \"5 us\"\n{jitter}")),
        ("clock", format!("rate = \"240 MB/s\"\nguard = \"5 us\"\nskew = \"5 us\"\n{jitter}")),
    ] {
        let shaping = format!("[shaping]\ntype = \"barrel-shifter\"\nstep = \"{step}\"\n{errors}\n[run]");
        check(&[("[run]", &shaping)]);
    }
}

/// The interface reads buckets ahead, and a fragment may be in two of them.
#[test]
fn the_same_holds_with_buckets_that_wait_in_the_interface() {
    let shaping = "[shaping]\ntype = \"barrel-shifter\"\nstep = \"link\"\nbucket = \"1 KiB\"\n[run]";
    let memory = "nic = { packet = \"1 KiB\", dma = { read = \"300 MB/s\", write = \"300 MB/s\" } }";
    let nic = "nic = { packet = \"8 KiB\" }";
    check(&[("[run]", shaping), (nic, memory)]);
    check(&[("[run]", shaping), (nic, memory), ("[builder]\nunits = 8", "[builder]\nunits = 2")]);
    check(&[("[run]", shaping), (nic, memory), REGULAR[0], REGULAR[1]]);
}

#[test]
fn the_same_holds_with_the_event_manager_in_the_network() {
    let shared = (
        "control = { type = \"separate\", delay = \"10 us\", rate = \"1 Gbit/s\" }",
        "placement = { readout = 0, builder = 8, manager = 7 }\ncontrol = { type = \"shared\" }",
    );
    let seven = ("[readout]\nunits = 8", "[readout]\nunits = 7");
    for protocol in ["push", "pull"] {
        let protocol = format!("type = \"{protocol}\"");
        check(&[shared, seven, ("type = \"push\"", &protocol)]);
        check(&[shared, seven, ("type = \"push\"", &protocol), REGULAR[0], REGULAR[1]]);
    }
}

#[test]
fn the_same_holds_on_other_networks() {
    let clos = "{ type = \"clos\", leaves = 4, ports_per_leaf = 4, spines = 4 }";
    for topology in [
        "{ type = \"fat-tree\", radix = 4 }",
        "{ type = \"grid\", width = 4, height = 4, terminals = 1 }\nrouting = { type = \"dimension-order\" }",
        "{ type = \"clos\", leaves = 8, ports_per_leaf = 2, spines = 1 }",
    ] {
        check(&[(clos, topology)]);
        check(&[(clos, topology), REGULAR[0], REGULAR[1]]);
    }
    check(&[(
        "nic = { packet = \"8 KiB\" }",
        "nic = { packet = \"512 B\", overhead = \"1 us\", dma = { read = \"200 MB/s\", write = \"200 MB/s\" } }\nhost = { send = \"2 us\", receive = \"3 us\" }",
    )]);
}

#[test]
fn a_trigger_as_fast_as_possible_ends_by_number() {
    check(&[
        (
            "type = \"rate\"\nrate = \"30 kHz\"\nspacing = \"poisson\"\nduration = \"6 ms\"",
            "type = \"free-running\"\nevents = 1000",
        ),
        ("warmup = \"2 ms\"", "seed = 7"),
    ]);
}

/// Traffic without an event manager.
#[test]
fn the_same_holds_with_traffic() {
    let [trigger, readout] = ["[trigger]", "[readout]"].map(|section| NETWORK.find(section).expect(section));
    let (network, rest) = (&NETWORK[..trigger], &NETWORK[readout..].replace("[protocol]\ntype = \"push\"\n", ""));
    for workload in [
        "type = \"random\"\nload = 0.7\narrivals = \"poisson\"",
        "type = \"random\"\nload = 1.5",
        "type = \"pairs\"",
        "type = \"rotation\"",
        "type = \"ping-pong\"",
        "type = \"all-to-all\"",
    ] {
        check_text(&format!("{network}[workload]\n{workload}\n[trigger]\nduration = \"3 ms\"\n{rest}"));
    }
}

/// A part does not know whether something moves in the others.
#[test]
fn partitions_give_up_when_nothing_moves_in_one_for_long() {
    let text = NETWORK.replace("[run]", "[run]\ndrain_timeout = \"1 us\"");
    let experiment = Experiment::parse(&text, "test.toml", &[]).unwrap_or_else(|error| panic!("{error:#?}"));
    let [plan] = experiment.plans() else { panic!("a sweep") };
    let two = NonZeroUsize::new(2).expect("2 is not 0");
    assert_eq!(simulate_partitioned(plan, two).unwrap_or_else(|error| panic!("{error}")), None);
}

/// Background traffic begins and ends in the middle, in both directions; with as much as goes, too.
#[test]
fn the_same_holds_with_background_traffic() {
    let background = r#"
[[background]]
name = "storage"
pattern = "random"
senders = { on = "builders" }
receivers = { on = "readouts" }
message = { type = "log-normal", mean = "9 kB", rms = "9 kB" }
load = 0.2
from = "1 ms"
until = "4 ms"
[[background]]
name = "transfer"
pattern = "rotation"
senders = { on = "hosts", first = 2, count = 3 }
receivers = { on = "hosts", first = 9, count = 5 }
message = { type = "fixed", size = "20 kB" }
from = "3 ms"
[run]"#;
    check(&[("[run]", background)]);
    check(&[("[run]", background), REGULAR[0], REGULAR[1]]);
    let lower = "reaction = \"2 us\", virtual_channels = 2, channel = \"priority\" }";
    let second = background.replace("[run]", "priority = \"lower\"\n[run]");
    check(&[("[run]", &second), ("reaction = \"2 us\" }", lower)]);
    let ends_by_number = (
        "type = \"rate\"\nrate = \"30 kHz\"\nspacing = \"poisson\"\nduration = \"6 ms\"",
        "type = \"free-running\"\nevents = 1000",
    );
    check(&[("[run]", background), ends_by_number, ("warmup = \"2 ms\"", "seed = 7")]);
}
