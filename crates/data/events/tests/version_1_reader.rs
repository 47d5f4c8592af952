//! A reader of version 1, written after its description alone, reads the files of this version.

mod common;

use bytes::Bytes;
use common::{Sample, closed_file, handed_in, sample};
use evb_core::{SourceId, checksum};
use evb_events::{ApartReason, EventInfo, FragmentRef, Reader, Status, Writer};
use std::{fs, io::Cursor};

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(number)
}

/// The events of a file with the flag for complete ones. Headers, checksums and padding are those of version 1; the next
/// event is found by the length of the record.
fn events_of_version_1(file: &[u8]) -> Vec<(Sample, bool)> {
    let (mut events, mut at) = (Vec::new(), 24 + number::<4>(file, 12).next_multiple_of(8) as usize);
    while file[at..].starts_with(b"\xE5EVT") {
        let fragments = number::<2>(file, at + 28) as usize;
        let (first, mut payload) = (at + 32, at + 32 + 16 * fragments);
        assert_eq!(number::<4>(file, at + 4), u64::from(checksum(&file[at + 8..payload])), "checksum of the event");
        assert_eq!(number::<4>(file, at + 24), number::<4>(file, 20), "tag");
        assert!(file[at + 30] <= 1 && file[at + 31] == 0, "flags");
        let mut sample = Sample { id: number::<8>(file, at + 8), fragments: Vec::new() };
        for header in (first..payload).step_by(16) {
            let (source, status) = (number::<2>(file, header) as u16, Status::from_byte(file[header + 2]).unwrap());
            assert_eq!(file[header + 3], 0, "no flags");
            let end = payload + number::<4>(file, header + 4) as usize;
            let bytes = file[payload..end].to_vec();
            assert_eq!(number::<4>(file, header + 8), u64::from(handed_in(status, &bytes)));
            assert_eq!(number::<4>(file, header + 12), u64::from(checksum(&bytes)), "stored checksum");
            payload = end.next_multiple_of(8);
            assert!(file[end..payload].iter().all(|byte| *byte == 0), "padding");
            sample.fragments.push((source, status, bytes));
        }
        events.push((sample, file[at + 30] == 1));
        at += number::<8>(file, at + 16) as usize;
    }
    assert!(file[at..].starts_with(b"\xE5IDX"), "the index follows the last event");
    events
}

#[test]
fn a_reader_of_version_1_reads_every_event() {
    let file = closed_file(20);
    assert_eq!(number::<4>(&file, 8), 2, "version of the file");
    let is_complete = |sample: &Sample| sample.fragments.iter().all(|fragment| fragment.1 == Status::Good);
    let expected: Vec<_> = (1..=20).map(sample).map(|sample| (sample.clone(), is_complete(&sample))).collect();
    assert_eq!(events_of_version_1(&file), expected);
}

#[test]
fn a_reader_of_version_1_reads_fragments_that_belong_to_no_event() {
    let directory = tempfile::tempdir().unwrap();
    let mut options = common::options(directory.path(), 0, u64::MAX);
    options.metadata.readout = Some(3);
    let mut writer = Writer::create(options).unwrap();
    for reason in ApartReason::ALL {
        let payload = Bytes::copy_from_slice(reason.name().as_bytes());
        let fragment = FragmentRef::new(SourceId(5), Status::Good, checksum(&payload), &payload);
        let fragment = FragmentRef { counter: Some(9), apart: Some(reason), ..fragment };
        let id = evb_core::EventId(reason as u64);
        writer.append(EventInfo { id, triggered: Some(1), source_time: None }, &[fragment]).unwrap();
    }
    let path = writer.path();
    writer.finish().unwrap();
    let record = |reason: ApartReason| Sample {
        id: reason as u64,
        fragments: vec![(5, Status::Good, reason.name().as_bytes().to_vec())],
    };
    let expected: Vec<_> = ApartReason::ALL.into_iter().map(|reason| (record(reason), false)).collect();
    assert_eq!(events_of_version_1(&fs::read(path).unwrap()), expected);
}

/// The version of an event is its length, so that a file with a damaged header is read too.
#[test]
fn an_event_without_trailer_is_one_of_version_1() {
    let mut file = closed_file(1);
    let first = 24 + number::<4>(&file, 12).next_multiple_of(8) as usize;
    let record = number::<8>(&file, first + 16) as usize;
    let trailer = 24 + 2 * 16;
    file.truncate(first + record);
    file.drain(first + record - trailer..);
    file[first + 16..first + 24].copy_from_slice(&((record - trailer) as u64).to_le_bytes());
    let head = checksum(&file[first + 8..first + 64]);
    file[first + 4..first + 8].copy_from_slice(&head.to_le_bytes());
    let mut reader = Reader::new(Cursor::new(&file), "memory").unwrap();
    let found: Vec<_> = reader.events().map(|found| found.unwrap()).collect();
    let [evb_events::Found::Event(event)] = &found[..] else { panic!("{found:?}") };
    assert_eq!((event.id.0, event.triggered, event.fragments[0].counter), (1, None, None));
    assert_eq!(event.fragments[1].bytes, sample(1).fragments[1].2);
}
