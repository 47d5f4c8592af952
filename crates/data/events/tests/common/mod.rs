//! Events that the tests write and expect to read again.
#![allow(dead_code, reason = "each test file uses its own part")]

use bytes::Bytes;
use evb_core::checksum;
use evb_core::{EventId, Mark, SourceId};
use evb_events::{Event, EventInfo, Found, FragmentRef, Metadata, Reader, Status, WriteSummary, Writer, WriterOptions};
use std::{
    fs,
    io::Cursor,
    path::{Path, PathBuf},
};

/// One event as a test describes it: id, and per fragment source, status and payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) id: u64,
    pub(crate) fragments: Vec<(u16, Status, Vec<u8>)>,
}

/// A small event: source 0 always good, source 1 of a status that depends on the id, with lengths that need padding.
pub(crate) fn sample(id: u64) -> Sample {
    let status = if id % 5 == 3 { Status::ALL[id as usize % 4] } else { Status::Good };
    let bytes = |source: u64, length: u64| (0..length).map(|i| (id * 31 + source * 7 + i) as u8).collect::<Vec<_>>();
    let second = if status == Status::Missing { Vec::new() } else { bytes(1, 11 * id % 23) };
    Sample { id, fragments: vec![(0, Status::Good, bytes(0, 3 + id % 6)), (1, status, second)] }
}

/// Time of the trigger of an event: known for two of three events.
pub(crate) fn triggered(id: u64) -> Option<u64> {
    (!id.is_multiple_of(3)).then_some(1_700_000_000_000_000_000 + id % 1000 * 1_000_003)
}

/// Time of the sources: known for one of four events.
pub(crate) fn source_time(id: u64) -> Option<u64> {
    id.is_multiple_of(4).then_some(id % 1000 * 40 + 7)
}

/// The number that a source gives its fragment: the first two sources number theirs.
pub(crate) fn counter(id: u64, source: u16) -> Option<u64> {
    (source < 2).then(|| id.wrapping_mul(u64::from(source) + 1).wrapping_sub(1))
}

/// The mark of a fragment: odd sources have one.
pub(crate) fn mark(id: u64, source: u16) -> Option<Mark> {
    (source % 2 == 1).then(|| Mark::new(id as u32 % 3564))
}

/// The checksum that comes with a fragment: for a corrupted one it does not fit the bytes.
pub(crate) fn handed_in(status: Status, bytes: &[u8]) -> u32 {
    checksum(bytes) ^ u32::from(status == Status::Corrupted)
}

pub(crate) fn metadata() -> Metadata {
    Metadata {
        run: 42,
        seed: 7,
        version: "0.1.0".into(),
        experiment: "sample".into(),
        sources: vec!["fixed 2 kB".into(), "fixed 3 kB".into()],
        text: "name = \"sample\"\n".into(),
        start: 1_700_000_000_000_000_000,
        run_type: "physics".into(),
        comment: "lights, \"camera\"".into(),
        clock: "host".into(),
        ..Metadata::default()
    }
}

pub(crate) fn options(directory: &Path, builder: u16, max_file_bytes: u64) -> WriterOptions {
    WriterOptions {
        directory: directory.to_path_buf(),
        name: "sample".into(),
        builder,
        max_file_bytes,
        compresses: false,
        metadata: metadata(),
    }
}

pub(crate) fn append(writer: &mut Writer, sample: &Sample) {
    let bytes: Vec<_> = sample.fragments.iter().map(|(_, _, bytes)| Bytes::copy_from_slice(bytes)).collect();
    let fragments: Vec<_> = sample
        .fragments
        .iter()
        .zip(&bytes)
        .map(|((source, status, _), bytes)| FragmentRef {
            source: SourceId(*source),
            status: *status,
            checksum: handed_in(*status, bytes),
            counter: counter(sample.id, *source),
            mark: mark(sample.id, *source),
            apart: None,
            bytes,
        })
        .collect();
    let (id, triggered, source_time) = (EventId(sample.id), triggered(sample.id), source_time(sample.id));
    writer.append(EventInfo { id, triggered, source_time }, &fragments).unwrap();
}

/// Writes one builder's events and gives its files in order.
pub(crate) fn write(
    directory: &Path,
    builder: u16,
    max_file_bytes: u64,
    samples: &[Sample],
) -> (Vec<PathBuf>, WriteSummary) {
    let mut writer = Writer::create(options(directory, builder, max_file_bytes)).unwrap();
    samples.iter().for_each(|sample| append(&mut writer, sample));
    let summary = writer.finish().unwrap();
    let file = |number| directory.join(format!("sample-b{builder}-{number:04}.evb"));
    ((0..summary.files).map(file).collect(), summary)
}

/// The bytes of one closed file with the samples 1 to `events`.
pub(crate) fn closed_file(events: u64) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let samples: Vec<_> = (1..=events).map(sample).collect();
    let (files, _) = write(directory.path(), 0, u64::MAX, &samples);
    fs::read(&files[0]).unwrap()
}

/// The event as a test describes it. Times, identity, checksum and completeness must follow from that.
pub(crate) fn described(event: &Event) -> Sample {
    let id = event.id.0;
    assert_eq!((event.triggered, event.source_time), (triggered(id), source_time(id)), "event {id}");
    for fragment in &event.fragments {
        let source = fragment.source.0;
        assert_eq!((fragment.counter, fragment.mark), (counter(id, source), mark(id, source)), "event {id}");
        assert_eq!(fragment.apart, None);
        assert_eq!(fragment.checksum, handed_in(fragment.status, &fragment.bytes), "event {}", event.id);
    }
    assert_eq!(event.complete, event.fragments.iter().all(|fragment| fragment.status == Status::Good));
    let fragments = event.fragments.iter().map(|f| (f.source.0, f.status, f.bytes.to_vec())).collect();
    Sample { id: event.id.0, fragments }
}

/// Everything in a file, in memory.
pub(crate) fn read(bytes: &[u8]) -> Vec<Found> {
    let mut reader = Reader::new(Cursor::new(bytes), "memory").unwrap();
    reader.events().map(|found| found.unwrap()).collect()
}

/// The whole events in `found`.
pub(crate) fn whole(found: &[Found]) -> Vec<Sample> {
    let event = |found: &Found| match found {
        Found::Event(event) => Some(described(event)),
        _ => None,
    };
    found.iter().filter_map(event).collect()
}
