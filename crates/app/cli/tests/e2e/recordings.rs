//! Files that other systems have recorded: each producer of them is a source.

use crate::support::{Lab, Outcome, THREADS, check_accounts, read_all, recorded_data};
use std::fs;

/// Files of EUDAQ, written by hand, behind a byte that chooses the producer.
const VERSION_1: &[u8] = include_bytes!("../../../../data/sources/tests/corpus/eudaq/version-1");
const VERSION_2: &[u8] = include_bytes!("../../../../data/sources/tests/corpus/eudaq/version-2");

/// A run with these producers of a file.
fn run(file: &[u8], producers: &[&str]) -> (Lab, Outcome) {
    let unit = |keys: &&str| {
        format!("[[readout.unit]]\nsource = {{ type = \"eudaq\", file = \"run.raw\", producer = {keys} }}\n")
    };
    let units: String = producers.iter().map(unit).collect();
    let lab =
        Lab::with(&format!("[trigger]\ntype = \"data\"\n{units}[builder]\nunits = 1\n[storage]\nkeep = \"all\"\n"));
    lab.write("run.raw", file);
    let outcome = lab.run(THREADS).run();
    check_accounts(&outcome.record());
    (lab, outcome)
}

/// The word at this place of each fragment, event by event: an empty fragment has none.
fn words(lab: &Lab, at: usize) -> Vec<Vec<u32>> {
    let mut events = read_all(&lab.stored_files()).events;
    events.sort_by_key(|event| event.id);
    let word = |bytes: &[u8]| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let of = |event: &evb_events::Event| event.fragments.iter().filter_map(|fragment| word(&fragment.bytes)).collect();
    events.iter().map(of).collect()
}

/// The recorded events of a telescope plane and a trigger logic unit are built again.
#[test]
fn a_recorded_run_of_eudaq_is_built_again() {
    let Some(file) =
        recorded_data().map(|folder| folder.join("public/eudaq-mimosa_tlu.raw")).filter(|file| file.exists())
    else {
        eprintln!("skipped: the file is not there");
        return;
    };
    let (lab, outcome) = run(&fs::read(file).unwrap(), &["\"TluRawDataEvent\"", "\"AdeniumRawDataEvent\""]);
    assert_eq!((outcome.code(), outcome.record().events.built), (Some(0), 5), "{outcome}");
    // The event number is the sixth word of each event, the trigger number the seventh.
    assert_eq!(words(&lab, 20), [[0, 0], [1, 1], [2, 2], [3, 3], [4, 4]]);
    assert_eq!(words(&lab, 24), [[1, 1], [2, 2], [3, 3], [4, 4], [5, 5]]);
}

#[test]
fn both_versions_of_eudaq_are_read() {
    let (lab, outcome) = run(&VERSION_1[1..], &["\"NI\"", "\"EUDRB\"", "\"TLU\""]);
    assert_eq!((outcome.code(), words(&lab, 12)), (Some(0), vec![vec![1; 3], vec![2; 3]]), "{outcome}");
    let plane = |device: u32| format!("\"PlaneRawDataEvent\", device = {device}");
    let planes = [plane(0), plane(1)];
    let (lab, outcome) = run(&VERSION_2[1..], &[&planes[0], &planes[1], "\"TluRawDataEvent\""]);
    // The trigger logic unit lacks the second of four events.
    let triggers = [vec![1; 3], vec![2; 2], vec![3; 3], vec![4; 3]];
    assert_eq!((outcome.code(), words(&lab, 24)), (Some(1), triggers.to_vec()), "{outcome}");
}

/// What a run says about its files.
fn told(outcome: &Outcome, what: &str) -> bool {
    let findings = outcome.record().findings;
    findings.iter().any(|finding| {
        finding.message.contains(what) || finding.hint.as_deref().is_some_and(|hint| hint.contains(what))
    })
}

/// A damaged file yields every event before the damage, and the error names the place.
#[test]
fn damage_in_a_file_is_told_with_its_place() {
    let file = &VERSION_2[1..];
    let planes = ["\"PlaneRawDataEvent\", device = 0", "\"PlaneRawDataEvent\", device = 1"];
    let (_lab, cut) = run(&file[..file.len() - 100], &planes);
    let events = cut.record().events;
    assert_eq!((events.built, events.incomplete), (3, 1), "the last event lacks a device: {cut}");
    let place = format!(
        "data cut off within a frame; events of EUDAQ were expected, the first came from its file at byte {}",
        file.len() - 128
    );
    assert!(told(&cut, &place), "{cut}");
    let (_lab, behind) = run(&[file, b"noise and more noise"].concat(), &planes);
    assert_eq!(behind.record().events.built, 4, "{behind}");
    assert!(told(&behind, &format!("its file at byte {}, which began with \"noise", file.len())), "{behind}");
    assert!(told(&behind, "the rest of the file was not read"), "{behind}");
}

/// Producers that were recorded each for itself, with numbers of their own, are matched by their timestamps.
#[test]
fn events_of_producers_are_matched_by_their_timestamps() {
    let event = |name: &str, number: u32, time: u64| {
        let words = [0x8026_656d, 2, 0, 1, 7, number, 0, 99].map(u32::to_le_bytes).concat();
        let times = [time, time + 1].map(u64::to_le_bytes).concat();
        [&words, &times, &(name.len() as u32).to_le_bytes()[..], name.as_bytes(), &[0; 12]].concat()
    };
    // The plane is 1 us late, and has hits of its own.
    let pair = |n: u32| {
        let time = 40_000 * u64::from(n + 1) + u64::from(n * n);
        [event("Tlu", n, time), event("Plane", 7 + 2 * n, time + 40), event("Plane", 8 + 2 * n, time + 20_000)].concat()
    };
    let file = (0..30).map(pair).collect::<Vec<_>>().concat();
    let unit = |name: &str, offset: &str| {
        let keys = format!("producer = \"{name}\", frequency = \"40 MHz\", clock_offset = \"{offset}\"");
        format!("[[readout.unit]]\nsource = {{ type = \"eudaq\", file = \"run.raw\", {keys} }}\n")
    };
    let trigger = "[trigger]\ntype = \"time\"\nwindow = \"2 us\"\nsource = 0\n";
    let units = [unit("Tlu", "0 s"), unit("Plane", "0 s")].concat();
    let lab = Lab::with(&format!("{trigger}{units}[builder]\nunits = 1\n[storage]\nkeep = \"all\"\n"));
    lab.write("run.raw", file);
    let record = lab.run(THREADS).run().record();
    check_accounts(&record);
    let events: Vec<_> = (0..30).map(|n| vec![n, 7 + 2 * n]).collect();
    assert_eq!((words(&lab, 20), record.readouts[1].apart), (events, 30), "{record:#?}");
}

#[test]
fn a_trial_lists_the_producers() {
    let (lab, wrong) = run(&VERSION_2[1..], &["\"PlaneRawDataEvent\", device = 1", "\"TLU\""]);
    assert!(told(&wrong, "`evb sources try` lists the producers of its file"), "{wrong}");
    let attempt = |source: &str| lab.evb(&["sources", "try", "experiment.toml", "--source", source]).run();
    let (good, other) = (attempt("0"), attempt("1"));
    assert_eq!((good.code(), other.code()), (Some(0), Some(1)), "{good} {other}");
    for line in [
        "producer = \"TluRawDataEvent\", device = 9: 3 events of 93 bytes on average, numbers 0 to 3, marks 1 to 4\n",
        "producer = \"PlaneRawDataEvent\", device = 1: 4 events of 128 bytes on average, numbers 0 to 3, marks 1 to 4\n",
    ] {
        assert!(good.stdout.contains(line), "{good}");
    }
    assert!(other.stdout.contains("not good: the file has no events of producer \"TLU\"\n"), "{other}");
}
