//! Files of version 1, as evb wrote them: they are read, verified and exported as before.
//!
//! The files are the corpus of version 1, byte for byte.

mod common;

use common::sample;
use evb_core::EventId;
use evb_events::{FORMAT_VERSION, Found, Reader, export_csv, export_payloads, fuzz_read, show, verify};
use std::{fs, path::PathBuf};

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/version-1").join(name)
}

/// The whole events of a file: id, and per fragment its source, status and payload.
fn whole(name: &str) -> Vec<common::Sample> {
    let mut reader = Reader::open(file(name)).unwrap();
    let mut samples = Vec::new();
    for found in reader.events() {
        if let Found::Event(event) = found.unwrap() {
            assert_eq!((event.triggered, event.source_time), (None, None), "version 1 has no times");
            let identities = event.fragments.iter().map(|fragment| (fragment.counter, fragment.mark, fragment.apart));
            assert!(identities.into_iter().all(|identity| identity == (None, None, None)));
            let fragments = event.fragments.iter().map(|f| (f.source.0, f.status, f.bytes.to_vec())).collect();
            samples.push(common::Sample { id: event.id.0, fragments });
        }
    }
    samples
}

#[test]
fn files_of_version_1_are_read() {
    assert_eq!(whole("valid.evb"), [1, 2, 3].map(sample));
    let mut reader = Reader::open(file("valid.evb")).unwrap();
    assert_eq!((reader.version(), FORMAT_VERSION), (Some(1), 2));
    assert!(reader.closed_cleanly() && reader.header_intact());
    let metadata = reader.metadata().unwrap();
    assert_eq!((metadata.run, metadata.start, metadata.experiment.as_str()), (42, 0, "sample"));
    assert!(matches!(reader.find(EventId(2)).unwrap(), Some(Found::Event(event)) if event.id == EventId(2)));
    assert_eq!(show(file("valid.evb")).unwrap().times, None);
}

/// Also without the file header, which has the version: each event shows its own.
#[test]
fn damaged_files_of_version_1_lose_no_more_than_before() {
    for (name, ids) in [
        ("no-events.evb", &[][..]),
        ("header-cut.evb", &[]),
        ("truncated.evb", &[1, 2]),
        ("unclosed.evb", &[1, 2, 3]),
        ("index-cut.evb", &[1, 2, 3]),
        ("payload-flipped.evb", &[2, 3]),
        ("head-flipped.evb", &[2, 3]),
        ("header-flipped.evb", &[1, 2, 3]),
        ("magic-flipped.evb", &[1, 2, 3]),
        ("index-flipped.evb", &[1, 2, 3]),
        ("footer-flipped.evb", &[1, 2, 3]),
        ("lying-record-length.evb", &[2, 3]),
        ("lying-index-count.evb", &[1, 2, 3]),
        ("lying-fragment-count.evb", &[2, 3]),
        ("lying-metadata-length.evb", &[1, 2, 3]),
    ] {
        let expected: Vec<_> = ids.iter().copied().map(sample).collect();
        assert_eq!(whole(name), expected, "{name}");
        let found = verify(&[file(name)]).unwrap();
        assert_eq!(found.events, expected.len() as u64, "{name}");
    }
    for entry in fs::read_dir(file("")).unwrap() {
        fuzz_read(&fs::read(entry.unwrap().path()).unwrap());
    }
}

#[test]
fn files_of_version_1_are_exported() {
    let out = tempfile::tempdir().unwrap();
    assert_eq!(export_payloads(&[file("valid.evb")], out.path()).unwrap().events, 3);
    let expected = [1, 2, 3].map(|id| sample(id).fragments[0].2.clone()).concat();
    assert_eq!(fs::read(out.path().join("source-000.raw")).unwrap(), expected);
    let mut table = Vec::new();
    export_csv(&[file("valid.evb")], &mut table).unwrap();
    let table = String::from_utf8(table).unwrap();
    let row: Vec<_> = table.lines().nth(1).unwrap().split(',').collect();
    let offset: usize = row[7].parse().unwrap();
    let payload = &sample(1).fragments[0].2;
    assert_eq!(&fs::read(row[6]).unwrap()[offset..][..payload.len()], payload);
    assert_eq!(row[8..], ["", "", "", "", ""], "version 1 has neither times nor numbers");
}
