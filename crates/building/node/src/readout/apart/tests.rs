//! Fragments that belong to no event, in their file.

use super::*;
use evb_core::{Mark, Time};
use evb_events::{Found, Reader, verify};
use evb_protocol::FragmentStatus;
use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

fn options(directory: &Path, most: u64) -> FileOptions {
    let metadata = evb_events::Metadata { run: 7, readout: Some(1), ..evb_events::Metadata::default() };
    let (directory, name) = (directory.to_path_buf(), "lab-7".to_owned());
    FileOptions {
        writer: WriterOptions { directory, name, builder: 0, max_file_bytes: u64::MAX, compresses: false, metadata },
        most,
        queue: 100,
        queue_bytes: 1 << 20,
    }
}

fn arrival(number: u64, payload: &[u8]) -> Arrival<Bytes> {
    Arrival {
        clock: None,
        number,
        restarted: false,
        arrived: Time(number * 1_000_000),
        length: payload.len() as u32,
        checksum: evb_core::checksum(payload),
        mark: (number % 2 == 1).then(|| Mark::new(number as u32 + 100)),
        status: FragmentStatus::Good,
        payload: Bytes::copy_from_slice(payload),
    }
}

fn finish(stream: &mut ApartStream) {
    let end = Instant::now() + Duration::from_secs(60);
    while !stream.finish() {
        assert!(Instant::now() < end, "the file is not closed");
        thread::sleep(Duration::from_millis(1));
    }
}

fn records(path: &Path) -> Vec<evb_events::Event> {
    let mut reader = Reader::open(path).unwrap();
    assert!(reader.is_apart());
    let whole = |found| match found {
        Found::Event(event) => event,
        other => panic!("damaged: {other:?}"),
    };
    reader.events().map(|found| whole(found.unwrap())).collect()
}

#[test]
fn every_fragment_is_in_the_file_with_number_mark_time_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut stream = ApartStream::new(Some(options(folder.path(), 1 << 20)), HostClock::default());
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is created before the first fragment");
    stream.put(arrival(41, b"first"), Fault::OutOfStep);
    stream.put(arrival(6, b""), Fault::Duplicate);
    finish(&mut stream);
    let path = folder.path().join("lab-7-ru1.apart.evb");
    assert_eq!(stream.files(), [path.display().to_string()]);
    assert_eq!(stream.finding(), None);
    let records = records(&path);
    let row = |event: &evb_events::Event| {
        let [fragment] = &event.fragments[..] else { panic!("{event:?}") };
        let mark = fragment.mark.map(Mark::value);
        (event.id.0, event.triggered, fragment.counter, mark, fragment.apart, fragment.bytes.to_vec())
    };
    let expected = [
        (1, Some(41_000), Some(41), Some(141), Some(ApartReason::OutOfStep), b"first".to_vec()),
        (2, Some(6_000), Some(6), None, Some(ApartReason::Duplicate), Vec::new()),
    ];
    assert_eq!(records.iter().map(row).collect::<Vec<_>>(), expected);
    let found = verify(&[path]).unwrap();
    assert!(found.is_intact());
    assert_eq!((found.events, found.apart, found.apart_unstored), (0, 2, 0));
}

#[test]
fn beyond_its_bound_the_file_says_how_many_more_there_were() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = 2 * (evb_events::FRAGMENT_RECORD_BYTES as u64 + 5);
    let mut stream = ApartStream::new(Some(options(folder.path(), bytes)), HostClock::default());
    for number in 1..=10 {
        stream.put(arrival(number, b"bytes"), if number < 8 { Fault::Early } else { Fault::OutOfSequence });
    }
    finish(&mut stream);
    let records = records(&folder.path().join("lab-7-ru1.apart.evb"));
    let [_, _, counts] = &records[..] else { panic!("{records:?}") };
    let counts: Vec<_> = counts.fragments.iter().map(|f| (f.status, f.apart, f.counter)).collect();
    let missing = |reason, count| (Status::Missing, Some(reason), Some(count));
    assert_eq!(counts, [missing(ApartReason::OutOfSequence, 3), missing(ApartReason::Early, 5)]);
    let found = verify(&[folder.path().join("lab-7-ru1.apart.evb")]).unwrap();
    assert_eq!((found.apart, found.apart_unstored, found.incomplete), (2, 8, 0));
}

#[test]
fn a_file_that_cannot_be_written_is_a_finding() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("lab-7-ru1.apart.evb"), "precious").unwrap();
    let mut stream = ApartStream::new(Some(options(folder.path(), 1 << 20)), HostClock::default());
    stream.put(arrival(1, b"first"), Fault::Late);
    stream.put(arrival(2, b"second"), Fault::Late);
    finish(&mut stream);
    assert!(stream.files().is_empty());
    let finding = stream.finding().unwrap();
    assert_eq!((finding.kind, finding.subject.as_str()), (FindingKind::ApartLost, "ru1"));
    assert!(finding.message.ends_with("lab-7-ru1.apart.evb exists already and is not overwritten"), "{finding:?}");
    assert_eq!(fs::read(folder.path().join("lab-7-ru1.apart.evb")).unwrap(), b"precious");
}

#[test]
fn nothing_is_stored_where_no_file_is_wanted() {
    let mut stream = ApartStream::new(None, HostClock::default());
    stream.put(arrival(1, b"first"), Fault::Late);
    assert!(stream.finish() && stream.files().is_empty() && stream.finding().is_none());
}
