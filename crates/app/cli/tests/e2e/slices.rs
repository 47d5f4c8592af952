//! Slices of the time from sources without a trigger, down to the bytes of the event files.

use crate::support::{Lab, PROCESSES, THREADS, good, read_all};
use std::collections::{BTreeMap, BTreeSet};

const HITS: &str = r#"
[trigger]
events = 400
block = 4
[readout]
units = 2
sources = 3
slice = "100 us"
overlap = "30 us"
source = { type = "hits", rate = "20 kHz" }
[builder]
units = 2
"#;

/// Bytes of the hits of `files`, and the start of the first slice, in nanoseconds.
const HIT: usize = 24;
const FROM: u64 = 1_764_000_000_000_000_000;

const FILES: &str = r#"
[readout]
slice = "100 us"
overlap = "30 us"
slices_from = 1764000000000000000
[[readout.unit]]
source = { type = "hit-file", file = "0.hits", size = "24 B" }
[[readout.unit]]
source = { type = "hit-file", file = "1.hits", size = "24 B" }
[builder]
units = 2
"#;

/// The hits of a source by slice: their times, and their bytes.
type Slices = BTreeMap<u64, Vec<(u64, Vec<u8>)>>;

fn slices(lab: &Lab, source: usize, size: usize) -> Slices {
    let stored = read_all(&lab.stored_files());
    let time = |hit: &[u8]| u64::from_le_bytes(*hit.first_chunk().expect("a time"));
    let hits = |bytes: &[u8]| bytes.chunks(size).map(|hit| (time(hit), hit.to_vec())).collect();
    let of_source = |event: &evb_events::Event| (event.id.0, hits(&event.fragments[source].bytes));
    stored.events.iter().map(of_source).collect()
}

/// Every hit is in all slices that it belongs to, with the same bytes. Returns the different hits.
fn check(slices: &Slices, from: u64) -> BTreeSet<(u64, Vec<u8>)> {
    let all: BTreeSet<_> = slices.values().flatten().cloned().collect();
    for (event, hits) in slices {
        let start = from + (event - 1) * 100_000;
        let wanted = all.range((start, Vec::new())..(start + 130_000, Vec::new()));
        assert!(hits.iter().eq(wanted), "slice {event}");
    }
    all
}

#[test]
fn hits_in_an_overlap_are_in_both_slices() {
    for mode in [THREADS, PROCESSES] {
        let lab = Lab::with(HITS);
        let record = good(&lab.run(mode).run());
        assert_eq!(record.events.built, 400);
        let empty = (0..3).map(|source| {
            let slices = slices(&lab, source, 16);
            let count = check(&slices, 0).len() as i64;
            // 40 ms at 20 kHz.
            assert!((count - 800).abs() < 5 * 28, "{count}");
            slices.values().filter(|hits| hits.is_empty()).count()
        });
        assert!(empty.sum::<usize>() > 0, "slices of two hits in the mean may be empty");
        assert_eq!(lab.verify(&lab.stored_files()).code(), Some(0));
        assert_eq!(good(&lab.simulate(&[]).run()).events, record.events);
    }
}

#[test]
fn recorded_hits_are_cut_into_slices_until_their_files_end() {
    let lab = Lab::with(FILES);
    let recorded: Vec<BTreeSet<_>> =
        (0..2_u64).map(|file| (0..3000).map(|hit| recorded(file, hit)).collect()).collect();
    for (file, hits) in recorded.iter().enumerate() {
        lab.write(&format!("{file}.hits"), hits.iter().flat_map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>());
    }
    let record = good(&lab.run(THREADS).run());
    for (source, hits) in recorded.iter().enumerate() {
        let slices = slices(&lab, source, HIT);
        assert_eq!(slices.len() as u64, record.events.built);
        assert_eq!(&check(&slices, FROM), hits);
    }
    assert_eq!(good(&lab.simulate(&[]).run()).events, record.events);
    // A file that is not in order is refused by name and place.
    let hits = [recorded[0].last(), recorded[0].first()].map(|hit| hit.expect("a hit").1.clone());
    lab.write("1.hits", hits.concat());
    let outcome = lab.run(THREADS).run();
    assert_eq!(outcome.code(), Some(2), "{outcome}");
    assert!(outcome.stderr.contains("1.hits: hit 1 at"), "{outcome}");
}

/// Both files end in the same slice.
fn recorded(file: u64, hit: u64) -> (u64, Vec<u8>) {
    let time = FROM + hit * 9_973 + file * 17;
    (time, [time.to_le_bytes(), hit.to_le_bytes(), file.to_le_bytes()].concat())
}

#[test]
fn hits_need_slices_and_nothing_else_has_them() {
    let lab = Lab::with(HITS);
    let outcome = lab.run(THREADS).set("readout.source={type=\"fixed\",size=\"1 kB\"}").run();
    assert!(outcome.stderr.contains("not by slices of time"), "{outcome}");
    let outcome = lab.run(THREADS).set("trigger.type=rate").set("trigger.rate=\"1 kHz\"").run();
    assert!(outcome.stderr.contains("does not fit slices of 100 us"), "{outcome}");
}
