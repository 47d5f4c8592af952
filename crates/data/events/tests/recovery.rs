//! Files that are cut off, damaged at any byte, or lie.

mod common;

use common::{Sample, closed_file, read, sample, whole};
use evb_core::{EventId, SourceId};
use evb_events::{FindingKind, Found, ReadError, Reader, verify};
use std::{fs, io::Cursor, path::PathBuf};

const EVENTS: u64 = 6;

/// Offsets of the events of a file, and the end of the last one.
fn boundaries(bytes: &[u8]) -> Vec<usize> {
    let mut reader = Reader::new(Cursor::new(bytes), "memory").unwrap();
    let (mut events, mut boundaries) = (reader.events(), vec![]);
    boundaries.push(events.offset() as usize);
    while events.next().is_some() {
        boundaries.push(events.offset() as usize);
    }
    boundaries
}

fn samples() -> Vec<Sample> {
    (1..=EVENTS).map(sample).collect()
}

#[test]
fn a_crash_at_any_byte_keeps_exactly_the_complete_events() {
    let bytes = closed_file(EVENTS);
    let boundaries = boundaries(&bytes);
    for length in 0..bytes.len() {
        let found = read(&bytes[..length]);
        let complete = boundaries.iter().filter(|&&end| end <= length).count().saturating_sub(1);
        assert_eq!(whole(&found), samples()[..complete], "cut at {length}");
        let dropped: u64 =
            found.iter().map(|found| if let Found::Lost(range) = found { range.length } else { 0 }).sum();
        let last = boundaries[complete].min(length);
        let is_events = length < boundaries[EVENTS as usize];
        if is_events {
            assert_eq!(dropped, (length - last) as u64, "cut at {length}");
        }
        assert!(found.iter().all(|found| !matches!(found, Found::Lost(range) if !range.tail)), "cut at {length}");
    }
}

#[test]
fn a_file_that_ends_in_its_header_is_not_damaged() {
    let bytes = closed_file(EVENTS);
    let header = boundaries(&bytes)[0];
    for length in 0..header {
        let found = verified(&bytes[..length]);
        let kinds: Vec<_> = found.findings.iter().map(|finding| finding.kind).collect();
        let expected = vec![FindingKind::Start, FindingKind::Unclosed];
        assert_eq!((kinds, found.events, found.is_intact()), (expected, 0, false), "cut at {length} of {header}");
    }
}

/// Verifies `bytes` as a file.
fn verified(bytes: &[u8]) -> evb_events::Verification {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file.evb");
    fs::write(&path, bytes).unwrap();
    verify(&[path]).unwrap()
}

#[test]
fn any_flipped_byte_is_noticed_and_costs_at_most_its_own_event() {
    let good = closed_file(EVENTS);
    let boundaries = boundaries(&good);
    for at in 0..good.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[at] ^= flip;
            let touched = boundaries.windows(2).position(|pair| (pair[0]..pair[1]).contains(&at));
            let expected: Vec<_> =
                samples().into_iter().filter(|s| Some(s.id) != touched.map(|i| i as u64 + 1)).collect();
            assert_eq!(whole(&read(&bytes)), expected, "byte {at} flipped by {flip:#x}");
            let report = verified(&bytes);
            assert_eq!(report.events, expected.len() as u64);
            assert_eq!(report.damaged, u64::from(touched.is_some()), "byte {at}");
            assert!(!report.is_intact(), "byte {at} flipped by {flip:#x} is not noticed");
            assert!(report.findings.iter().all(|finding| finding.event.map(|id| id.0 as usize - 1) == touched));
            assert_eq!(report.absent, 0);
        }
    }
}

#[test]
fn a_flipped_payload_byte_names_event_and_source() {
    let mut bytes = closed_file(EVENTS);
    let third = boundaries(&bytes)[2];
    // Behind the event's header and the headers of its two fragments is the payload of source 0.
    bytes[third + 32 + 2 * 16] ^= 0x10;
    let report = verified(&bytes);
    let [finding] = &report.findings[..] else { panic!("{report:?}") };
    assert_eq!((finding.event, finding.source), (Some(EventId(3)), Some(SourceId(0))));
    assert_eq!((finding.kind, finding.offset), (FindingKind::Payload, third as u64 + 64));
    let text = format!("file.evb: event 3: source 0: payload damaged at byte {} (6 bytes)", third + 64);
    assert!(finding.to_string().ends_with(&text), "{finding}");
    assert_eq!((report.events, report.damaged, report.total_findings), (EVENTS - 1, 1, 1));
    assert!(
        matches!(&read(&bytes)[2], Found::Damaged { event, sources } if event.id.0 == 3 && sources == &[SourceId(0)])
    );
}

#[test]
fn a_damaged_stretch_is_stepped_over_and_its_events_are_known_by_the_index() {
    let mut bytes = closed_file(EVENTS);
    let boundaries = boundaries(&bytes);
    bytes[boundaries[1] + 3..boundaries[4] - 1].fill(0xaa);
    let found = read(&bytes);
    let lost: Vec<_> = found.iter().filter(|found| !matches!(found, Found::Event(_))).collect();
    let [Found::Lost(range)] = lost[..] else { panic!("{lost:?}") };
    assert_eq!((range.offset as usize, (range.offset + range.length) as usize), (boundaries[1], boundaries[4]));
    assert_eq!(range.events, [EventId(2), EventId(3), EventId(4)]);
    assert_eq!(whole(&found), [sample(1), sample(5), sample(6)]);
    assert_eq!(verified(&bytes).damaged, 3);
}

#[test]
fn an_event_of_another_file_inside_a_payload_is_not_taken_for_an_event() {
    let inner = closed_file(3);
    let outer = Sample { id: 1, fragments: vec![(0, evb_events::Status::Good, inner)] };
    let directory = tempfile::tempdir().unwrap();
    let mut options = common::options(directory.path(), 0, u64::MAX);
    options.metadata.run += 1;
    let mut writer = evb_events::Writer::create(options).unwrap();
    common::append(&mut writer, &outer);
    common::append(&mut writer, &sample(2));
    writer.finish().unwrap();
    let path = directory.path().join("sample-b0-0000.evb");
    let mut bytes = fs::read(path).unwrap();
    assert_eq!(whole(&read(&bytes)), [outer, sample(2)]);
    let first = boundaries(&bytes)[0];
    bytes[first + 9] ^= 1;
    assert_eq!(whole(&read(&bytes)), [sample(2)]);
}

/// Puts right checksums on a changed index.
fn seal_index(bytes: &mut [u8], index: usize) {
    let footer = bytes.len() - 24;
    let entries = evb_core::checksum(&bytes[index + 24..footer]);
    bytes[index + 20..index + 24].copy_from_slice(&entries.to_le_bytes());
    let head = evb_core::checksum(&bytes[index + 8..index + 24]);
    bytes[index + 4..index + 8].copy_from_slice(&head.to_le_bytes());
}

#[test]
fn an_index_that_lies_is_noticed_and_the_events_are_found_by_scanning() {
    let good = closed_file(EVENTS);
    let index = *boundaries(&good).last().unwrap();
    // A wrong id, a wrong offset within bounds, an offset out of bounds.
    for (at, value) in [(0, 77_u8), (16 + 8, good[index + 24 + 24] + 8), (16 + 15, 0x40)] {
        let mut bytes = good.clone();
        bytes[index + 24 + at] = value;
        for sealed in [false, true] {
            if sealed {
                seal_index(&mut bytes, index);
            }
            assert_eq!(whole(&read(&bytes)), samples());
            let report = verified(&bytes);
            assert_eq!((report.events, report.damaged, report.duplicates, report.absent), (EVENTS, 0, 0, 0));
            assert!(matches!(&report.findings[..], [f] if f.kind == FindingKind::Index), "{:?}", report.findings);
            let mut reader = Reader::new(Cursor::new(&bytes), "memory").unwrap();
            let found = reader.find(EventId(2)).unwrap();
            assert!(matches!(&found, Some(Found::Event(event)) if event.id.0 == 2), "{found:?}");
        }
    }
}

#[test]
fn lengths_that_lie_do_not_allocate() {
    let good = closed_file(EVENTS);
    let first = boundaries(&good)[0];
    for length in [0, 31, 63, 64, 1 << 29, 1 << 30, u64::MAX] {
        let mut bytes = good.clone();
        bytes[first + 16..first + 24].copy_from_slice(&u64::to_le_bytes(length));
        let head = evb_core::checksum(&bytes[first + 8..first + 64]);
        bytes[first + 4..first + 8].copy_from_slice(&head.to_le_bytes());
        assert_eq!(whole(&read(&bytes)), samples()[1..], "length {length}");
    }
}

#[test]
fn other_files_are_refused_in_words() {
    let text = |bytes: &[u8]| match Reader::new(Cursor::new(bytes), "some.evb") {
        Err(error) => error.to_string(),
        Ok(_) => "opened".into(),
    };
    assert_eq!(text(b"PNG or whatever this is, it is longer than a header"), "some.evb is not an event file");
    let mut newer = closed_file(1);
    newer[8] = 3;
    let header = evb_core::checksum(&newer[..20]);
    newer[20..24].copy_from_slice(&header.to_le_bytes());
    assert_eq!(text(&newer), "some.evb has format version 3, and this program reads versions 1 to 2");
    assert!(matches!(Reader::open(PathBuf::from("no/such.evb")), Err(ReadError::Io { .. })));
}
