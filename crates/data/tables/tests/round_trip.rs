//! Tables of event files, read again by the libraries.

mod common;

use common::{KINDS, Row, append, fragments, metadata, read, row, rows, write, writer};
use evb_events::{ApartReason, ExportSummary, Metadata, Status};
use evb_tables::{BATCH_BYTES, BATCH_ROWS, TableError, export_table};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::tempdir;

/// Writes every kind of table of the files and checks that each has these rows.
fn check(files: &[PathBuf], expected: &[Row]) -> ExportSummary {
    let out = tempdir().unwrap();
    let summary = KINDS.map(|options| {
        let path = out.path().join(format!("{options:?}"));
        let summary = export_table(files, &path, options).unwrap();
        let (found, _) = read(&path, options.format);
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found, expected, "{options:?}");
        }
        assert_eq!(found.len(), expected.len(), "{options:?}");
        summary
    });
    assert!(summary.iter().all(|other| *other == summary[0]), "{summary:?}");
    summary[0]
}

/// The files of two builders, which have odd and even events, and the rows of the events.
fn two_builders(directory: &Path, events: u64) -> (Vec<PathBuf>, Vec<Row>) {
    let odd = write(directory, 0, (1..=events).filter(|id| id % 2 == 1));
    let even = write(directory, 1, (1..=events).filter(|id| id % 2 == 0));
    ([even, odd].concat(), (1..=events).flat_map(|id| rows(id, ((id + 1) % 2) as u16)).collect())
}

/// Missing, corrupted, oversized and mismatched fragments, and payloads without a byte.
#[test]
fn every_fragment_is_a_row_in_the_order_of_events_and_sources() {
    let directory = tempdir().unwrap();
    let (files, expected) = two_builders(directory.path(), 500);
    assert!(files.len() > 4, "{files:?}");
    for status in Status::ALL {
        assert!(expected.iter().any(|row| row.status == status.name()), "{status}");
    }
    assert!(expected.iter().any(|row| row.payload.as_ref().is_some_and(Vec::is_empty)));
    let summary = check(&files, &expected);
    let payload_bytes: usize = expected.iter().flat_map(|row| &row.payload).map(Vec::len).sum();
    let counts = ExportSummary { events: 500, fragments: 2000, payload_bytes: payload_bytes as u64, ..summary };
    assert_eq!(summary, counts);
    assert_eq!((summary.apart, summary.left_out, summary.duplicates, summary.damaged, summary.lost), (0, 0, 0, 0, 0));
}

#[test]
fn a_table_says_of_which_run_it_is() {
    let directory = tempdir().unwrap();
    let files = write(directory.path(), 0, [1]);
    for options in KINDS {
        let path = directory.path().join(format!("{options:?}"));
        export_table(&files, &path, options).unwrap();
        let (_, said) = read(&path, options.format);
        let said = |name: &str| said[name].as_str();
        assert_eq!((said("evb.run"), said("evb.experiment"), said("evb.version")), ("42", "sample", "0.1.0"));
        assert_eq!((said("evb.start"), said("evb.comment")), ("1700000000000000000", "lights, \"camera\""));
        assert_eq!((said("evb.text"), said("evb.seed")), ("name = \"sample\"\n", "7"));
    }
}

#[test]
fn fragments_that_were_set_apart_follow_the_events() {
    let directory = tempdir().unwrap();
    let (events, mut expected) = two_builders(directory.path(), 20);
    let mut files = Vec::new();
    for unit in 0..2 {
        let folder = directory.path().join(format!("unit-{unit}"));
        let mut apart = writer(&folder, unit, Metadata { readout: Some(unit), ..metadata() });
        for (id, reason) in (1..).zip(ApartReason::ALL) {
            let bytes = fragments(id)[0].3.clone();
            let status = if reason == ApartReason::Other { Status::Missing } else { Status::Good };
            let bytes = if status == Status::Missing { Vec::new() } else { bytes };
            let written = (unit, status, Some(reason), bytes);
            append(&mut apart, id, std::slice::from_ref(&written));
            expected.push(row(id, 0, false, &written));
        }
        assert_eq!(apart.finish().unwrap().files, 1);
        files.push(folder.join(format!("sample-ru{unit}.apart.evb")));
    }
    let summary = check(&[files, events].concat(), &expected);
    assert_eq!((summary.events, summary.fragments, summary.apart), (20, 80, 2 * ApartReason::ALL.len() as u64));
}

/// Where the payload of a source of the event begins in the bytes of its file, in the order of writing.
fn place(bytes: &[u8], id: u64) -> (usize, usize) {
    let mut reader = evb_events::Reader::new(std::io::Cursor::new(bytes), "memory").unwrap();
    let events = reader.events().map(Result::unwrap);
    let event = |found| match found {
        evb_events::Found::Event(event) => Some(event),
        _ => None,
    };
    let event = events.filter_map(event).find(|event| event.id.0 == id).unwrap();
    (event.offset as usize, event.payload_offset as usize)
}

#[test]
fn a_payload_that_changed_is_marked_and_an_event_without_headers_is_counted() {
    let directory = tempdir().unwrap();
    let files = write(directory.path(), 0, 1..=8);
    assert_eq!(files.len(), 1);
    let mut bytes = fs::read(&files[0]).unwrap();
    let (payload, header) = (place(&bytes, 4).1, place(&bytes, 6).0);
    bytes[payload] ^= 1;
    bytes[header + 9] ^= 1;
    fs::write(&files[0], bytes).unwrap();
    let mut expected: Vec<_> = (1..=8).filter(|id| *id != 6).flat_map(|id| rows(id, 0)).collect();
    let changed = expected.iter_mut().find(|row| (row.event, row.source) == (Some(4), 3)).unwrap();
    changed.changed = true;
    changed.payload.as_mut().unwrap()[0] ^= 1;
    let summary = check(&files, &expected);
    assert_eq!((summary.events, summary.damaged, summary.lost), (7, 1, 1));
}

/// A file that ends within an event, and one whose header is damaged: its builder is unknown.
#[test]
fn files_that_are_not_whole_give_what_they_have() {
    let directory = tempdir().unwrap();
    let files = [write(directory.path(), 0, 1..=4), write(directory.path(), 1, 5..=8)].concat();
    let bytes = fs::read(&files[0]).unwrap();
    fs::write(&files[0], &bytes[..place(&bytes, 4).1]).unwrap();
    let mut bytes = fs::read(&files[1]).unwrap();
    bytes[30] ^= 1;
    fs::write(&files[1], bytes).unwrap();
    let unknown = |row: Row| Row { builder: None, ..row };
    let expected: Vec<_> =
        (1..=3).flat_map(|id| rows(id, 0)).chain((5..=8).flat_map(|id| rows(id, 1)).map(unknown)).collect();
    let summary = check(&files, &expected);
    assert_eq!((summary.events, summary.damaged), (7, 0));
}

/// No file knows its run: the names of sources are unknown, too.
#[test]
fn files_without_metadata_have_no_names() {
    let directory = tempdir().unwrap();
    let files = write(directory.path(), 0, 1..=4);
    let mut bytes = fs::read(&files[0]).unwrap();
    bytes[30] ^= 1;
    fs::write(&files[0], bytes).unwrap();
    let unknown = |row: Row| Row { builder: None, source_name: None, ..row };
    check(&files, &(1..=4).flat_map(|id| rows(id, 0)).map(unknown).collect::<Vec<_>>());
}

#[test]
fn files_without_events_give_a_table_without_rows() {
    let directory = tempdir().unwrap();
    let files = write(directory.path(), 0, []);
    assert_eq!(check(&files, &[]).events, 0);
}

#[test]
fn of_two_copies_the_better_is_a_row() {
    let directory = tempdir().unwrap();
    let files = [write(directory.path(), 0, 1..=3), write(directory.path(), 1, 2..=2)].concat();
    let expected: Vec<_> = (1..=3).flat_map(|id| rows(id, 0)).collect();
    assert_eq!(check(&files, &expected).duplicates, 1);
}

/// More rows and more bytes than a batch has, and a fragment that is larger than a batch.
#[test]
fn rows_are_written_in_batches() {
    let directory = tempdir().unwrap();
    let mut writer = writer(directory.path(), 0, metadata());
    let large = |id: u64, bytes: usize| (id, (0, Status::Good, None, vec![id as u8; bytes]));
    let mut events: Vec<_> =
        [3 << 20, BATCH_BYTES + 1, 0, BATCH_BYTES - 1, 1, 1, 5 << 20].into_iter().zip(1..).collect();
    events.extend((100..100 + BATCH_ROWS as u64 + 10).map(|id| (0, id)));
    let mut expected = Vec::new();
    for (bytes, id) in events {
        let (id, written) = large(id, bytes);
        append(&mut writer, id, std::slice::from_ref(&written));
        expected.push(row(id, 0, true, &written));
    }
    let count = writer.finish().unwrap().files;
    let files: Vec<_> = (0..count).map(|file| directory.path().join(format!("sample-b0-{file:04}.evb"))).collect();
    check(&files, &expected);
}

#[test]
fn nothing_is_overwritten_and_nothing_is_left_behind() {
    let directory = tempdir().unwrap();
    let files = write(directory.path(), 0, 1..=3);
    let other = {
        let folder = directory.path().join("other");
        drop(writer(&folder, 0, Metadata { run: 43, ..metadata() }).finish());
        folder.join("sample-b0-0000.evb")
    };
    let out = directory.path().join("table");
    for options in KINDS {
        let export = |files: &[PathBuf]| export_table(files, &out, options);
        fs::write(&out, "mine").unwrap();
        assert!(matches!(export(&files), Err(TableError::Exists { .. })));
        assert_eq!(fs::read(&out).unwrap(), b"mine");
        fs::remove_file(&out).unwrap();
        let error = export(&[files.clone(), vec![other.clone()]].concat()).unwrap_err();
        assert!(matches!(error, TableError::Runs { .. }) && error.hint().is_some(), "{error}");
        assert!(matches!(export(&[directory.path().join("absent.evb")]), Err(TableError::Read(_))));
        assert!(!out.exists());
        let folder = directory.path().join("no/table");
        let error = export_table(&files, &folder, options).unwrap_err();
        assert!(error.to_string().contains("no/table"), "{error}");
    }
}
