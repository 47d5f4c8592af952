//! Recorded fragments built into events again: what comes out is what went in, and damage is found where it is.

use crate::support::{HARDWARE, Lab, Numbers, PROCESSES, THREADS, good, is_there, not_good, recorded_data, shipped};
use evb_record::FindingKind;
use evb_sources::{FedEntry, FedFile, FedHeader, write_fragment};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

const FILES: [&str; 2] = ["cms-csc-run307511-fed841.raw", "cms-csc-run307511-fed843.raw"];
const MADE_EVENTS: u64 = 500;

/// The recordings of CMS: all 4685 events, and the files byte for byte.
#[test]
fn recorded_cms_fragments_come_back_byte_for_byte() {
    let Some(data) = recorded_data() else { return };
    [THREADS, PROCESSES].into_iter().for_each(|mode| replay_whole(&data, 4685, mode));
}

/// The same through simulated hardware.
#[test]
fn recorded_cms_fragments_come_through_simulated_hardware() {
    if let (Some(data), true) = (recorded_data(), is_there("verilator")) {
        replay_whole(&data, 4685, HARDWARE);
    }
}

/// One flipped byte anywhere in the recordings of CMS costs one event, and is counted by kind.
#[test]
fn one_flipped_byte_of_the_cms_recordings_costs_one_event() {
    let Some(data) = recorded_data() else { return };
    replay_flipped(&data, 4685);
}

/// The same with fragments in the format of CMS that this test makes, so that it runs everywhere.
#[test]
fn made_fragments_come_back_byte_for_byte() {
    let lab = made_recordings();
    [THREADS, PROCESSES].into_iter().for_each(|mode| replay_whole(&lab.path("."), MADE_EVENTS, mode));
}

/// See [`one_flipped_byte_of_the_cms_recordings_costs_one_event`].
#[test]
fn one_flipped_byte_of_made_recordings_costs_one_event() {
    let lab = made_recordings();
    replay_flipped(&lab.path("."), MADE_EVENTS);
}

/// An event without a fragment in one file is incomplete, and the others are whole.
#[test]
fn a_gap_in_the_level1_ids_is_a_missing_fragment() {
    let lab = made_recordings();
    let path = lab.path(FILES[1]);
    let entry = entries(&path)[122];
    let mut bytes = fs::read(&path).unwrap();
    bytes.drain(entry.offset as usize..entry.offset as usize + entry.length as usize);
    fs::write(&path, bytes).unwrap();
    let (_lab, record) = replay(&lab.path("."), THREADS, 1);
    assert_eq!((record.events.built, record.events.incomplete), (MADE_EVENTS - 1, 1));
    assert_eq!(record.faults, BTreeMap::from([("missing".to_owned(), 1)]));
}

/// A recording whose writer died is used up to its last whole fragment, and the cut is reported; so is padding.
#[test]
fn a_cut_or_padded_recording_is_used_and_reported() {
    let whole = made_recordings();
    let original = fs::read(whole.path(FILES[1])).unwrap();
    let last = entries(&whole.path(FILES[1]))[MADE_EVENTS as usize - 1];
    let padded = [&original[..], &[0; 512]].concat();
    let cut = (&original[..last.offset as usize + 12], 1, last.offset);
    for (bytes, incomplete, offset) in [cut, (&padded[..], 0, original.len() as u64)] {
        whole.write(FILES[1], bytes);
        let (_lab, record) = replay(&whole.path("."), THREADS, 1);
        assert_eq!((record.events.built, record.events.incomplete), (MADE_EVENTS - incomplete, incomplete));
        let found: Vec<_> = record.findings.iter().filter(|found| found.kind == FindingKind::Truncated).collect();
        assert!(matches!(found[..], [one] if one.message.contains(&format!("from byte {offset}"))), "{found:?}");
        let strict = ["--set", "readout.unit.1.source.damaged=refuse"];
        let experiment = shipped("cms-csc-replay.toml");
        let lab = Lab::new();
        let run = lab.evb(&["run", experiment.to_str().unwrap()]).args(&strict).env("EVB_DATA", whole.path("."));
        let outcome = run.run();
        assert_eq!(outcome.code(), Some(2), "{outcome}");
        assert!(outcome.stderr.contains(&format!("the file is damaged at byte {offset}")), "{outcome}");
    }
}

/// A builder that dies at once costs no event, and the export is still what went in.
#[test]
fn a_builder_that_dies_costs_no_recorded_event() {
    let data = made_recordings();
    let fault = "\n[[fault]]\nnode = \"bu1\"\naction = \"kill\"\nat = \"0 s\"\n";
    let text = fs::read_to_string(shipped("cms-csc-replay.toml")).unwrap();
    for mode in [THREADS, PROCESSES] {
        let lab = Lab::with(&format!("{text}{fault}"));
        let outcome = lab.run(mode).env("EVB_DATA", data.path(".")).run();
        let record = not_good(&outcome);
        assert_eq!((record.events.built, record.events.lost), (MADE_EVENTS, 0), "{outcome}");
        check_export(&lab, &data.path("."));
    }
}

/// Two files of fragments of many sizes, some of them with words that look like headers and trailers.
fn made_recordings() -> Lab {
    let (lab, mut numbers) = (Lab::new(), Numbers(841));
    for (file, source_id) in FILES.into_iter().zip([841, 843]) {
        let mut bytes = Vec::new();
        for event in 1..=MADE_EVENTS as u32 {
            let payload: Vec<u8> = (0..8 * numbers.below(60)).map(|_| numbers.below(256) as u8).collect();
            let bunch_crossing = (event * 7 % 3564) as u16;
            let header = FedHeader { event_type: 1, level1_id: event, bunch_crossing, source_id, version: 0 };
            write_fragment(&mut bytes, header, &payload);
        }
        lab.write(file, bytes);
    }
    lab
}

/// Runs the experiment that comes with evb, on the recordings in `data`.
fn replay(data: &Path, mode: &[&str], status: i32) -> (Lab, evb_record::Record) {
    let lab = Lab::new();
    let experiment = shipped("cms-csc-replay.toml");
    let run = lab.evb(&["run", "--json", experiment.to_str().unwrap()]).args(mode).env("EVB_DATA", data);
    let outcome = run.run();
    let record = if status == 0 { good(&outcome) } else { not_good(&outcome) };
    (lab, record)
}

fn replay_whole(data: &Path, events: u64, mode: &[&str]) {
    let (lab, record) = replay(data, mode, 0);
    assert_eq!((record.events.built, record.events.incomplete), (events, 0));
    assert!(record.faults.is_empty(), "{record:?}");
    assert_eq!(lab.verify(&lab.stored_files()).code(), Some(0));
    check_export(&lab, data);
}

/// What is exported is what was replayed.
fn check_export(lab: &Lab, data: &Path) {
    let export =
        lab.evb(&["events", "export", "--format", "payloads", "--output", "exported"]).paths(&lab.stored_files());
    let outcome = export.run();
    assert_eq!(outcome.code(), Some(0), "{outcome}");
    for (exported, file) in ["source-000.raw", "source-001.raw"].into_iter().zip(FILES) {
        let (out, original) = (fs::read(lab.path("exported").join(exported)), fs::read(data.join(file)));
        assert!(out.unwrap() == original.unwrap(), "{exported} is not {file}");
    }
}

fn replay_flipped(data: &Path, events: u64) {
    for (n, (file, place)) in places(data).into_iter().enumerate() {
        let copy = Lab::new();
        FILES.iter().for_each(|file| _ = fs::copy(data.join(file), copy.path(file)).unwrap());
        let mut bytes = fs::read(copy.path(FILES[file])).unwrap();
        bytes[place] ^= 1 << (n % 8);
        copy.write(FILES[file], bytes);
        for mode in [THREADS, PROCESSES] {
            let (lab, record) = replay(&copy.path("."), mode, 1);
            let found = (record.events.built, record.events.incomplete, record.events.lost);
            assert_eq!(found, (events - 1, 1, 0), "bit {} of byte {place} of {}: {record:?}", n % 8, FILES[file]);
            let kinds: Vec<_> = record.faults.iter().map(|(kind, &count)| (kind.as_str(), count)).collect();
            assert_eq!(kinds, [("corrupted", 1)], "byte {place} of {}", FILES[file]);
            // The damaged bytes are kept as they came.
            check_export(&lab, &copy.path("."));
        }
    }
}

/// Places to be damaged, as file and byte: three anywhere, and every part of the header and the trailer of one
/// fragment.
fn places(data: &Path) -> Vec<(usize, usize)> {
    let mut numbers = Numbers(4685);
    let mut places = Vec::new();
    for _ in 0..3 {
        let file = numbers.below(2);
        let size = fs::metadata(data.join(FILES[file])).unwrap().len() as usize;
        places.push((file, numbers.below(size)));
    }
    let entries = entries(&data.join(FILES[0]));
    let entry = entries[numbers.below(entries.len())];
    let (first, end) = (entry.offset as usize, entry.offset as usize + entry.length as usize);
    // Source id, level-1 id, tag and type; CRC, length, tag.
    places.extend([first + 1, first + 4, first + 7, end - 6, end - 4, end - 1].map(|place| (0, place)));
    eprintln!("flipped: {places:?}");
    places
}

fn entries(path: &Path) -> Vec<FedEntry> {
    FedFile::open(PathBuf::from(path), None).unwrap_or_else(|error| panic!("{error}")).entries().to_vec()
}
