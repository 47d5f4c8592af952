//! Writing and reading whole files, one or many, and what is made of them.

mod common;

use common::{Sample, append, metadata, options, read, sample, whole, write};
use evb_core::EventId;
use evb_events::{
    ExportError, FindingKind, Found, MAX_FINDINGS, Metadata, RAW_HEADER_BYTES, Reader, Status, WriteError, Writer,
    export_csv, export_json, export_payloads, export_raw, show, verify,
};
use proptest::prelude::*;
use std::{fs, path::PathBuf};
use tempfile::tempdir;

fn samples(ids: impl IntoIterator<Item = u64>) -> Vec<Sample> {
    ids.into_iter().map(sample).collect()
}

#[test]
fn a_file_tells_its_run_and_gives_its_events_back() {
    let directory = tempdir().unwrap();
    let (files, summary) = write(directory.path(), 3, u64::MAX, &samples(1..=20));
    assert_eq!((summary.files, summary.events), (1, 20));
    assert_eq!(summary.bytes, fs::metadata(&files[0]).unwrap().len());
    let mut reader = Reader::open(&files[0]).unwrap();
    assert_eq!(reader.metadata(), Some(&Metadata { builder: 3, ..metadata() }));
    assert!(reader.closed_cleanly() && reader.header_intact());
    let found: Vec<_> = reader.events().map(|found| found.unwrap()).collect();
    assert_eq!(whole(&found), samples(1..=20));
    for id in [1, 13, 20] {
        assert!(matches!(reader.find(EventId(id)).unwrap(), Some(Found::Event(event)) if event.id.0 == id));
    }
    assert_eq!(reader.find(EventId(21)).unwrap(), None);
}

#[test]
fn files_roll_over_at_their_size_and_no_event_is_split() {
    let directory = tempdir().unwrap();
    let (files, summary) = write(directory.path(), 0, 1000, &samples(1..=50));
    assert!(files.len() > 5);
    let lengths: Vec<_> = files.iter().map(|file| fs::metadata(file).unwrap().len()).collect();
    assert!(lengths.iter().all(|&length| length <= 1000), "{lengths:?}");
    assert_eq!(lengths.iter().sum::<u64>(), summary.bytes);
    let read: Vec<_> = files.iter().flat_map(|file| whole(&read(&fs::read(file).unwrap()))).collect();
    assert_eq!(read, samples(1..=50));
    let numbers = files.iter().map(|file| Reader::open(file).unwrap().metadata().unwrap().file);
    assert!(numbers.eq(0..files.len() as u32));
}

#[test]
fn an_event_above_the_file_size_gets_a_file_of_its_own() {
    let directory = tempdir().unwrap();
    let large = Sample { id: 2, fragments: vec![(0, Status::Good, vec![1; 5000])] };
    let all = [sample(1), large, sample(3)];
    let (files, _) = write(directory.path(), 0, 1000, &all);
    assert_eq!(files.len(), 3);
    let read: Vec<_> = files.iter().flat_map(|file| whole(&read(&fs::read(file).unwrap()))).collect();
    assert_eq!(read, all);
}

#[test]
fn nothing_is_ever_overwritten() {
    let directory = tempdir().unwrap();
    fs::write(directory.path().join("sample-b0-0001.evb"), "precious").unwrap();
    let mut writer = Writer::create(options(directory.path(), 0, 1)).unwrap();
    append(&mut writer, &sample(1));
    let error = writer.append(EventId(2), &[]).unwrap_err();
    assert!(error.to_string().ends_with("sample-b0-0001.evb exists already and is not overwritten"), "{error}");
    assert_eq!(writer.finish().unwrap().events, 1);
    assert!(matches!(Writer::create(options(directory.path(), 0, 1)), Err(WriteError::Exists { .. })));
    let bad = evb_events::WriterOptions { name: "../x".into(), ..options(directory.path(), 0, 1) };
    assert!(matches!(Writer::create(bad), Err(WriteError::Name { .. })));
    assert_eq!(fs::read(directory.path().join("sample-b0-0001.evb")).unwrap(), b"precious");
}

#[test]
fn a_writer_that_is_dropped_leaves_what_was_flushed() {
    let directory = tempdir().unwrap();
    let mut writer = Writer::create(options(directory.path(), 0, u64::MAX)).unwrap();
    append(&mut writer, &sample(1));
    writer.flush().unwrap();
    append(&mut writer, &sample(2));
    drop(writer);
    let path = directory.path().join("sample-b0-0000.evb");
    let report = verify(&[&path]).unwrap();
    assert_eq!((report.events, report.unclosed, report.tail_bytes), (1, 1, 0));
    assert!(report.is_intact());
    let summary = show(&path).unwrap();
    assert_eq!((summary.events, summary.closed_cleanly), (1, false));
}

/// Two builders with several files each: odd and even events.
fn two_builders(directory: &std::path::Path, last: u64) -> Vec<PathBuf> {
    let (mut files, _) = write(directory, 0, 900, &samples((1..=last).step_by(2)));
    files.extend(write(directory, 1, 1100, &samples((2..=last).step_by(2))).0);
    // The order in which files are given does not matter.
    files.reverse();
    files
}

#[test]
fn verify_counts_across_the_files_of_several_builders() {
    let directory = tempdir().unwrap();
    let files = two_builders(directory.path(), 60);
    let report = verify(&files).unwrap();
    assert!(report.is_intact(), "{:?}", report.findings);
    assert_eq!((report.files, report.events, report.damaged), (files.len() as u64, 60, 0));
    let complete = samples(1..=60).iter().filter(|s| s.fragments.iter().all(|f| f.1 == Status::Good)).count() as u64;
    assert_eq!((report.complete, report.incomplete), (complete, 60 - complete));
    assert_eq!(report.fragments.iter().sum::<u64>(), 120);
    assert_eq!((report.range, report.absent), (Some((EventId(1), EventId(60))), 0));

    let (more, _) = write(&directory.path().join("more"), 2, u64::MAX, &samples([7, 100, 8, 70]));
    let report = verify(&[files, more].concat()).unwrap();
    assert_eq!((report.duplicates, report.total_findings), (2, 2));
    assert!(report.findings.iter().all(|finding| finding.kind == FindingKind::Duplicate));
    assert_eq!(report.gaps, [(EventId(61), EventId(69)), (EventId(71), EventId(99))]);
    assert_eq!(report.absent, 9 + 29);
}

#[test]
fn findings_are_kept_up_to_a_limit_and_counted_beyond() {
    let directory = tempdir().unwrap();
    let events = vec![Sample { id: 1, fragments: vec![] }; MAX_FINDINGS + 50];
    let (files, _) = write(directory.path(), 0, u64::MAX, &events);
    let report = verify(&files).unwrap();
    assert_eq!((report.findings.len(), report.total_findings), (MAX_FINDINGS, MAX_FINDINGS as u64 + 49));
}

#[test]
fn an_export_of_payloads_gives_them_in_event_order() {
    let directory = tempdir().unwrap();
    let files = two_builders(directory.path(), 60);
    let out = directory.path().join("out");
    let summary = export_payloads(&files, &out).unwrap();
    assert_eq!((summary.events, summary.duplicates, summary.lost, summary.damaged), (60, 0, 0, 0));
    for source in 0..2 {
        let payloads = samples(1..=60).into_iter().map(|s| s.fragments[source].2.clone());
        let expected = payloads.collect::<Vec<_>>().concat();
        assert_eq!(fs::read(out.join(format!("source-{source:03}.raw"))).unwrap(), expected);
    }
    assert!(matches!(export_payloads(&files, &out), Err(ExportError::Exists { .. })));
    assert!(matches!(export_raw(&files, &out), Err(ExportError::Exists { .. })));
}

/// A record of a raw file: event, time, counter, mark, source, status and payload.
type RawRecord = (u64, Option<u64>, Option<u64>, Option<u32>, u16, u8, Vec<u8>);

fn raw_records(bytes: &[u8]) -> Vec<RawRecord> {
    let (mut records, mut at) = (Vec::new(), 0);
    let number = |at: usize, length: usize| {
        bytes[at..at + length].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    while at < bytes.len() {
        let (length, flags) = (number(at + 28, 4) as usize, bytes[at + 35]);
        let payload = at + RAW_HEADER_BYTES;
        records.push((
            number(at, 8),
            Some(number(at + 8, 8)).filter(|time| *time > 0),
            (flags & 1 > 0).then(|| number(at + 16, 8)),
            (flags & 2 > 0).then(|| number(at + 24, 4) as u32),
            number(at + 32, 2) as u16,
            bytes[at + 34],
            bytes[payload..payload + length].to_vec(),
        ));
        at = payload + length;
    }
    records
}

/// Event 4 was not asked of source 1, and event 13 has no fragment of it.
#[test]
fn a_raw_export_has_a_record_for_each_event_and_source() {
    let directory = tempdir().unwrap();
    let mut events = samples(1..=20);
    events[3].fragments.pop();
    assert_eq!(events[12].fragments[1].1, Status::Corrupted);
    events[12].fragments[1] = (1, Status::Missing, Vec::new());
    let (files, _) = write(directory.path(), 0, 900, &events);
    let out = directory.path().join("out");
    let summary = export_raw(&files, &out).unwrap();
    assert_eq!((summary.events, summary.fragments), (20, 39));
    for source in 0..2_u16 {
        let records = raw_records(&fs::read(out.join(format!("source-{source:03}.raw"))).unwrap());
        let expected = events.iter().map(|sample| {
            let (id, fragment) = (sample.id, sample.fragments.get(usize::from(source)));
            let (status, bytes) = fragment.map_or((255, &[][..]), |one| (one.1 as u8, &one.2[..]));
            let counter = fragment.and_then(|_| common::counter(id, source));
            let mark = fragment.and_then(|_| common::mark(id, source)).map(|mark| mark.value());
            (id, common::triggered(id), counter, mark, source, status, bytes.to_vec())
        });
        assert_eq!(records, expected.collect::<Vec<_>>());
    }
}

#[test]
fn of_two_copies_an_export_takes_the_better() {
    let directory = tempdir().unwrap();
    let cut = Sample { id: 2, fragments: vec![(0, Status::Oversized, vec![9; 4])] };
    let (mut files, _) = write(directory.path(), 0, u64::MAX, &[sample(1), cut]);
    files.extend(write(directory.path(), 1, u64::MAX, &samples([2, 4])).0);
    let mut bytes = fs::read(&files[1]).unwrap();
    let whole_copy = directory.path().join("out");
    assert_eq!(export_payloads(&files, &whole_copy).unwrap().duplicates, 1);
    let expected = [1, 2, 4].map(|id| sample(id).fragments[0].2.clone()).concat();
    assert_eq!(fs::read(whole_copy.join("source-000.raw")).unwrap(), expected);

    // A damaged header costs that copy only.
    let at = bytes.windows(4).position(|window| window == b"\xE5EVT").unwrap();
    bytes[at + 8] ^= 1;
    fs::write(&files[1], bytes).unwrap();
    let other_copy = directory.path().join("again");
    assert_eq!(export_payloads(&files, &other_copy).unwrap().lost, 0);
    let expected = [sample(1).fragments[0].2.clone(), vec![9; 4], sample(4).fragments[0].2.clone()].concat();
    assert_eq!(fs::read(other_copy.join("source-000.raw")).unwrap(), expected);
}

#[test]
fn the_table_has_a_row_for_every_fragment_and_its_offsets_lead_to_the_payloads() {
    let directory = tempdir().unwrap();
    let files = two_builders(directory.path(), 13);
    let mut table = Vec::new();
    let summary = export_csv(&files, &mut table).unwrap();
    assert_eq!((summary.events, summary.fragments), (13, 26));
    let table = String::from_utf8(table).unwrap();
    let mut lines = table.lines();
    let columns = "event,builder,source,status,bytes,checksum,file,offset,triggered,source_time,counter,mark,apart";
    assert_eq!(lines.next(), Some(columns));
    let rows: Vec<Vec<_>> = lines.map(|line| line.split(',').collect()).collect();
    for (i, row) in rows.iter().enumerate() {
        let (id, source) = (i as u64 / 2 + 1, i % 2);
        let (_, status, bytes) = &sample(id).fragments[source];
        assert_eq!(row[..2], [id.to_string(), ((id + 1) % 2).to_string()]);
        assert_eq!(row[2..5], [source.to_string(), status.to_string(), bytes.len().to_string()]);
        assert_eq!(row[5], format!("{:08x}", common::handed_in(*status, bytes)));
        let text = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
        let (number, mark) = (source as u16, common::mark(id, source as u16));
        assert_eq!(row[8..10], [text(common::triggered(id)), text(common::source_time(id))]);
        assert_eq!(row[10], text(common::counter(id, number)));
        assert_eq!(row[11..], [text(mark.map(|mark| mark.value().into())), String::new()]);
        let offset: usize = row[7].parse().unwrap();
        assert_eq!(&fs::read(row[6]).unwrap()[offset..][..bytes.len()], bytes);
    }
    assert_eq!(rows.len(), 26);
}

#[test]
fn the_lines_of_an_export_as_json_have_what_the_table_has() {
    let directory = tempdir().unwrap();
    let files = two_builders(directory.path(), 13);
    let mut lines = Vec::new();
    let summary = export_json(&files, &mut lines).unwrap();
    assert_eq!((summary.events, summary.fragments), (13, 26));
    let lines = String::from_utf8(lines).unwrap();
    let events: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 13);
    let event = &events[3];
    assert_eq!((event["event"].as_u64(), event["builder"].as_u64()), (Some(4), Some(1)));
    assert_eq!((event["complete"].as_bool(), event["triggered"].as_u64()), (Some(true), common::triggered(4)));
    assert_eq!(event["source_time"].as_u64(), common::source_time(4));
    let fragment = &event["fragments"][1];
    assert_eq!((fragment["source"].as_u64(), fragment["status"].as_str()), (Some(1), Some("good")));
    assert_eq!((fragment["counter"].as_u64(), fragment["mark"].as_u64()), (Some(7), Some(4)));
    assert_eq!(events[2].get("triggered"), None, "it is not known");
    assert_eq!(event["fragments"][0].get("mark"), None);
}

#[test]
fn show_tells_what_a_file_holds() {
    let directory = tempdir().unwrap();
    let (files, _) = write(directory.path(), 2, u64::MAX, &samples([5, 4, 3, 10]));
    let summary = show(&files[0]).unwrap();
    assert_eq!((summary.events, summary.range), (4, Some((EventId(3), EventId(10)))));
    assert!(summary.closed_cleanly);
    assert_eq!((summary.version, summary.times), (Some(2), common::triggered(5).zip(common::triggered(10))));
    let bytes = fs::read(&files[0]).unwrap();
    fs::write(&files[0], &bytes[..bytes.len() - 200]).unwrap();
    let cut = show(&files[0]).unwrap();
    assert!(!cut.closed_cleanly && cut.tail_bytes > 0 && cut.events < 4);
    assert_eq!(cut.metadata, summary.metadata);
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let payload = prop_oneof![
        9 => prop::collection::vec(any::<u8>(), 0..200),
        1 => (0..300_000_usize, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]),
    ];
    let fragment = (any::<u16>(), prop::sample::select(&Status::ALL[..]), payload);
    (any::<u64>(), prop::collection::vec(fragment, 0..8)).prop_map(|(id, fragments)| Sample { id, fragments })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_written_is_read(events in prop::collection::vec(any_sample(), 0..20), limit in 200..2_000_000_u64) {
        let directory = tempdir().unwrap();
        let (files, summary) = write(directory.path(), 0, limit, &events);
        let read: Vec<_> = files.iter().flat_map(|file| whole(&read(&fs::read(file).unwrap()))).collect();
        prop_assert_eq!(&read, &events);
        let report = verify(&files).unwrap();
        prop_assert_eq!(report.events, events.len() as u64);
        prop_assert_eq!(report.bytes, summary.bytes);
        prop_assert_eq!(report.total_findings, report.duplicates);
    }
}
