//! Compressed files: the same events, cut off or damaged at any byte.

mod common;

use common::{Sample, append, options, sample, whole};
use evb_core::EventId;
use evb_events::{EventFile, FindingKind, Found, Reader, Writer, WriterOptions, read_columns, verify};
use std::{env, fs, io::Read as _, path::Path};
use tempfile::tempdir;

const EVENTS: u64 = 6;

fn samples(events: u64) -> Vec<Sample> {
    (1..=events).map(sample).collect()
}

fn compressed(directory: &Path) -> WriterOptions {
    WriterOptions { compresses: true, ..options(directory, 0, u64::MAX) }
}

/// The bytes of a compressed file, with every event in a block of its own.
fn file_of_blocks() -> Vec<u8> {
    let directory = tempdir().unwrap();
    let mut writer = Writer::create(compressed(directory.path())).unwrap();
    let path = writer.path();
    for sample in samples(EVENTS) {
        append(&mut writer, &sample);
        writer.flush().unwrap();
    }
    writer.finish().unwrap();
    fs::read(path).unwrap()
}

/// The bytes up to the end of each block.
fn ends(bytes: &[u8]) -> Vec<usize> {
    let begins = |at: &usize| bytes[*at..].starts_with(&[0x5e, 0x2a, 0x4d, 0x18]);
    let mut ends: Vec<_> = (1..bytes.len()).filter(begins).collect();
    ends.push(bytes.len());
    ends
}

/// What a file with these bytes has, and whether `verify` finds nothing. The reader and `verify` agree about it.
fn found_in(bytes: &[u8]) -> (Vec<Sample>, bool) {
    let directory = tempdir().unwrap();
    let path = directory.path().join("file.evb");
    fs::write(&path, bytes).unwrap();
    let report = verify(&[&path]).unwrap();
    let found: Vec<_> = Reader::open(&path).unwrap().events().map(|found| found.unwrap()).collect();
    assert_eq!(report.events, whole(&found).len() as u64);
    (whole(&found), report.findings.is_empty())
}

#[test]
fn a_compressed_file_has_the_events_of_one_that_is_not() {
    let (directory, other) = (tempdir().unwrap(), tempdir().unwrap());
    let mut writer = Writer::create(compressed(directory.path())).unwrap();
    let path = writer.path();
    samples(2000).iter().for_each(|sample| append(&mut writer, sample));
    let summary = writer.finish().unwrap();
    let (plain, plain_summary) = common::write(other.path(), 0, u64::MAX, &samples(2000));
    assert_eq!(summary, plain_summary);

    let mut read = Vec::new();
    EventFile::open(&path).unwrap().read_to_end(&mut read).unwrap();
    assert_eq!(read.len() as u64, summary.bytes);
    assert!(fs::metadata(&path).unwrap().len() < summary.bytes / 2, "it is smaller");
    let by_others = zstd::stream::decode_all(fs::File::open(&path).unwrap()).unwrap();
    assert!(by_others == read, "programs for Zstandard read the same");

    let mut reader = Reader::open(&path).unwrap();
    assert!(reader.closed_cleanly());
    assert!(matches!(reader.find(EventId(777)).unwrap(), Some(Found::Event(event)) if event.id.0 == 777));
    let (columns, expected) = (read_columns(&[&path]).unwrap().events, read_columns(&plain).unwrap().events);
    assert_eq!((&columns.event, &columns.offset), (&expected.event, &expected.offset));
    assert_eq!(columns.changed(0..columns.source.len()).unwrap(), Vec::<usize>::new());
    assert_eq!(found_in(&fs::read(&path).unwrap()), (samples(2000), true));
}

#[test]
fn a_crash_at_any_byte_keeps_the_events_of_whole_blocks() {
    let bytes = file_of_blocks();
    let ends = ends(&bytes);
    assert_eq!(ends.len(), 1 + EVENTS as usize + 1, "the header, the events, and the index");
    for length in ends[0]..bytes.len() {
        let complete = ends.iter().filter(|end| **end <= length).count() - 1;
        assert_eq!(found_in(&bytes[..length]), (samples(complete as u64), false), "cut at {length}");
    }
}

#[test]
fn any_flipped_byte_is_noticed_and_costs_at_most_its_own_block() {
    let good = file_of_blocks();
    let ends = ends(&good);
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 0x41;
        let block = ends.iter().filter(|end| **end <= at).count() as u64;
        let expected: Vec<_> = samples(EVENTS).into_iter().filter(|sample| sample.id != block).collect();
        assert_eq!(found_in(&bytes), (expected, false), "byte {at}");
    }
}

#[test]
fn what_lies_between_blocks_is_skipped() {
    let mut bytes = file_of_blocks();
    let end = ends(&bytes)[2];
    bytes.splice(end..end, [7; 100]);
    assert_eq!(found_in(&bytes).0, samples(EVENTS));
}

/// A file that an earlier version of evb and of Zstandard compressed. `EVB_BLESS=1` writes it anew.
#[test]
fn a_compressed_file_stays_readable() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/event-file/compressed.evb");
    if env::var_os("EVB_BLESS").is_some() {
        fs::write(&path, file_of_blocks()).unwrap();
    }
    assert_eq!(found_in(&fs::read(path).unwrap()), (samples(EVENTS), true));
}

/// The index is in a block of its own: without it, the file is one that was not closed.
#[test]
fn a_compressed_file_that_was_not_closed_says_so() {
    let bytes = file_of_blocks();
    let ends = ends(&bytes);
    let directory = tempdir().unwrap();
    let path = directory.path().join("file.evb");
    fs::write(&path, &bytes[..ends[ends.len() - 2]]).unwrap();
    let kinds: Vec<_> = verify(&[path]).unwrap().findings.iter().map(|finding| finding.kind).collect();
    assert_eq!(kinds, [FindingKind::Unclosed]);
}
