//! One plan, two drivers: what does not depend on time is the same in a run and in a simulation, to the last count.

use crate::support::{Lab, Outcome, check_accounts, good, not_good, recorded_data, shipped};
use evb_record::{BuilderRecord, Record, RecordKind};
use std::{collections::BTreeMap, fmt::Debug};

/// What both ways of building must agree on.
fn essence(record: &Record) -> impl PartialEq + Debug {
    let sum = |count: fn(&BuilderRecord) -> u64| record.builders.iter().map(count).sum::<u64>();
    let of_builders = [
        sum(|builder| builder.built),
        sum(|builder| builder.incomplete),
        sum(|builder| builder.rejected),
        sum(|builder| builder.fragments),
        sum(|builder| builder.bytes),
    ];
    // What is lost on purpose is sent again as often as it is asked for.
    let readouts = record.readouts.iter();
    let readouts: Vec<_> = readouts.map(|one| (one.fragments, one.bytes, one.sent - one.repeated)).collect();
    let triggers = record.trigger.offered - record.trigger.inhibited;
    (record.events, triggers, of_builders, readouts, record.faults.clone(), record.bundles.clone())
}

/// Builds the events of a file both ways.
fn agree(lab: &Lab, file: &str, changes: &[&str], judge: impl Fn(&Outcome) -> Record) -> Record {
    let [run, simulated] = ["run", "simulate"].map(|command| {
        let evb = lab.evb(&[command, "--json", file]).set("storage.keep=none");
        judge(&changes.iter().fold(evb, |evb, change| evb.set(change)).run())
    });
    assert_eq!((run.kind, simulated.kind), (RecordKind::Run, RecordKind::Simulation));
    assert_eq!((simulated.transport.as_str(), simulated.events.lost), ("simulated", 0));
    assert_eq!(essence(&run), essence(&simulated), "{file} {changes:?}");
    run
}

#[test]
fn a_run_and_a_simulation_of_one_file_agree() {
    let lab = Lab::new();
    let path = |file: &str| shipped(file).to_str().expect("a path in UTF-8").to_owned();
    for file in ["two-by-two.toml", "pull-2x2.toml", "phased.toml", "demonstrator-8x8.toml"] {
        agree(&lab, &path(file), &["trigger.events=2000"], good);
    }
    agree(&lab, &path("test-beam.toml"), &["trigger.events=300", "trigger.rate=\"5 kHz\"", "trigger.block=1"], good);
    let faults = ["trigger.events=1000", "fault.1.one_in=125", "fault.2.one_in=100"];
    agree(&lab, &path("faults.toml"), &faults, not_good);
    if let Some(data) = recorded_data() {
        let directory = format!("data.directory={:?}", data.to_str().unwrap());
        agree(&lab, &path("cms-csc-replay.toml"), &[&directory], good);
        if data.join("cms-fed-sizes-2017.csv").is_file() {
            agree(&lab, &path("cms-size-model.toml"), &[&directory, "trigger.events=1000"], good);
        }
    }
}

const EXPERIMENT: &str = r#"
[trigger]
type = "rate"
rate = "20 kHz"
spacing = "poisson"
events = 2000
# A block that follows the load has as many events as time lets it.
block = 1
[readout]
source = { type = "log-normal", mean = "600 B", rms = "500 B" }
units = 3
max_fragment = "4 kB"
[builder]
patience = "20 ms"
units = 2
"#;

/// In phased building a readout unit reads at once what is triggered, and an event may be rejected meanwhile; not so when
/// builders ask for events.
const WAYS: [&[&str]; 4] = [
    &["protocol={type=\"push\"}"],
    &["protocol={type=\"pull\"}"],
    &["protocol={type=\"pull\",order=\"same\",window=2,group=1}"],
    &["protocol={type=\"phased\",first=1,accept=0.4,window=1}", "trigger={type=\"free-running\",events=2000}"],
];

/// A patience that no busy machine exhausts: no node asks for fragments that are only slow.
const CALM: &str = "builder.patience=5 s";

/// The record of any run. How fast it was depends on the machine, and is not asked.
fn accounted(outcome: &Outcome) -> Record {
    let record = outcome.record();
    check_accounts(&record);
    assert_eq!((record.events.triggered, record.events.lost), (2000, 0), "{outcome}");
    record
}

#[test]
fn every_way_of_building_counts_the_same() {
    let lab = Lab::with(EXPERIMENT);
    for way in WAYS {
        // Buckets and packets hold several fragments, or a part of one.
        let shapings = [
            "none",
            "grouping",
            "barrel-shifter",
            "barrel-shifter\",bucket=\"300 B\",lead=\"100 B",
            "barrel-shifter\",step=\"barrier\",bucket=\"300 B\",lead=\"100 B",
            "barrel-shifter\",step=\"clock\",bucket=\"4 KiB\",rate=\"200 MB/s",
            "rate-division",
        ];
        for shaping in shapings.map(|kind| format!("shaping={{type=\"{kind}\"}}")) {
            let record = agree(&lab, "experiment.toml", &[way, &[shaping.as_str(), CALM]].concat(), accounted);
            assert_eq!((record.events.incomplete, record.faults), (0, BTreeMap::new()));
        }
    }
}

/// Faults are injected into the same fragments, and cost the same events.
#[test]
fn injected_faults_count_the_same() {
    let faults = [
        ("corrupt", Some("corrupted")),
        ("oversize", Some("oversized")),
        ("duplicate", Some("duplicate")),
        ("lose", None),
    ];
    for (action, kind) in faults {
        // The last event that is hit is not the last of all: a second copy comes before the end.
        let fault = format!("[[fault]]\nnode = \"ru1\"\naction = \"{action}\"\none_in = 70\n");
        let lab = Lab::with(&format!("{EXPERIMENT}{fault}"));
        for way in WAYS {
            // What is lost comes only when it is asked for again.
            let calm = [CALM].into_iter().filter(|_| kind.is_some()).collect::<Vec<_>>();
            let record = agree(&lab, "experiment.toml", &[way, &calm].concat(), accounted);
            assert!(record.faults.keys().map(String::as_str).eq(kind), "{action} {way:?} {:?}", record.faults);
        }
    }
}

/// Several sources in a unit, one of them zero-suppressed and one masked, and a unit with a single source.
const SOURCES: &str = r#"
[trigger]
type = "rate"
rate = "20 kHz"
spacing = "poisson"
events = 2000
block = 1
[readout]
max_fragment = "4 kB"
[[readout.unit]]
sources = [
    { type = "log-normal", mean = "600 B", rms = "500 B" },
    { type = "fixed", size = "100 B", suppressed = 0.4 },
    { type = "fixed", size = "100 B", masked = true },
]
[[readout.unit]]
source = { type = "fixed", size = "1 kB" }
[builder]
# Nothing is lost on its way: a slow machine asks for nothing.
patience = "5 s"
units = 2
"#;

#[test]
fn bundles_of_sources_and_blocks_count_the_same() {
    let lab = Lab::with(SOURCES);
    for way in WAYS {
        let single = agree(&lab, "experiment.toml", &[way, &[CALM]].concat(), accounted);
        let blocks = agree(&lab, "experiment.toml", &[way, &["trigger.block=7", CALM]].concat(), accounted);
        assert_eq!((single.events, &single.faults), (blocks.events, &blocks.faults), "each event is decided on alone");
        assert_eq!((single.events.incomplete, single.faults), (0, BTreeMap::new()));
        let bundles = blocks.bundles.expect("there are bundles");
        assert_eq!((bundles.sources, bundles.block, bundles.masked), (4, 7, vec![2]));
    }
}

#[test]
fn faults_of_a_source_inside_a_unit_count_the_same() {
    for (action, kind) in [("corrupt", "corrupted"), ("oversize", "oversized"), ("lose", "missing")] {
        let fault = format!("[[fault]]\nnode = \"ru0\"\naction = \"{action}\"\nsource = 0\none_in = 70\n");
        let lab = Lab::with(&format!("{SOURCES}{fault}"));
        for way in WAYS {
            for block in ["trigger.block=1", "trigger.block=7"] {
                let record = agree(&lab, "experiment.toml", &[way, &[block, CALM]].concat(), accounted);
                // One event in 70, each with one fragment that is bad.
                let faults = BTreeMap::from([(kind.to_owned(), 2000 / 70)]);
                assert_eq!((record.events.incomplete, &record.faults), (2000 / 70, &faults), "{action} {way:?}");
                let bundles = record.bundles.expect("there are bundles");
                assert_eq!(bundles.faults, BTreeMap::from([(0, faults)]), "{action} {way:?}");
            }
        }
    }
}
