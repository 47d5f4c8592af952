//! Formats of other systems that a description reads: MIDAS, evio 4 and 6, and the time slices of KM3NeT. The framings are those of
//! the guide to boards.

use crate::{boards::digitiser, support::data_folder};
use evb_core::Frequency;
use evb_sources::{
    ByteOrder, ClockField, Field, FrameEnd, Framing, Inspection, InspectionInput, InspectionLimits, InspectionReport,
};
use std::{collections::BTreeMap, path::Path, time::Duration};

const fn little(at: i32, bits: u8) -> Field {
    Field::new(at, bits, ByteOrder::Little)
}

/// Frames with a length field, and nothing else.
fn plain(length: Field, unit: u32, adds: i32) -> Framing {
    let end = FrameEnd::Length { field: length, unit, adds };
    Framing { magic: Vec::new(), end, counter: None, clock: None, source: None, checksum: None, ..digitiser() }
}

fn inspect(framing: Framing, bytes: &[u8]) -> InspectionReport {
    let mut inspection = Inspection::new(framing, 1 << 20, 3);
    inspection.push(bytes);
    inspection.finish()
}

/// Event id, trigger mask, serial number, time and size of the data, which the header does not count.
#[test]
fn midas_events_are_read() {
    let event = |id: u16, serial: u32, data: &[u8]| {
        let mut bytes = [id.to_le_bytes(), [1, 0]].concat();
        [serial, 1_700_000_000, data.len() as u32].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        [bytes, data.to_vec()].concat()
    };
    let file =
        [event(0x8000, 7, b"odb at begin"), event(1, 0, &[1; 40]), event(1, 1, &[2; 8]), event(0x8001, 7, b"end")];
    let framing =
        Framing { counter: Some(little(4, 32)), source: Some((little(0, 16), 1)), ..plain(little(12, 32), 1, 16) };
    let report = inspect(framing, &file.concat());
    assert_eq!((report.frames, report.foreign, report.damaged, report.unfinished), (4, 2, 0, 0));
    assert_eq!((report.first[1].length, report.first[1].counter), (56, 0));
}

/// Blocks of evio 4: their length in words, their number, and the magic in the eighth word.
#[test]
fn evio_blocks_are_read() {
    let block = |number: u32, data: &[u32]| {
        let header = [8 + data.len() as u32, number, 8, 1, 0, 4, 0, 0xc0da_0100];
        header.iter().chain(data).flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>()
    };
    let framing = Framing {
        magic: vec![0, 1, 0xda, 0xc0],
        magic_at: 28,
        counter: Some(little(4, 32)),
        ..plain(little(0, 32), 4, 0)
    };
    let mut file = [block(1, &[3, 5, 7]), block(2, &[]), block(3, &[9; 20])].concat();
    let report = inspect(framing.clone(), &file);
    assert!(report.fits() && report.frames == 3 && report.counters == Some((1, 3)), "{report:?}");
    // A damaged block costs itself: the next is found by its magic.
    file[44] = 3;
    let report = inspect(framing, &file);
    assert_eq!((report.frames, report.skipped), (2, (32, 1)), "{report:?}");
}

/// Records of evio 6, behind a header of the file with the same magic, and before a trailer of another type, however the bytes
/// are cut.
#[test]
fn evio_6_records_are_read() {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let record = |kind: u32, number: u32, compression: u32, data: &[u32]| {
        let length = 14 + data.len() as u32;
        let header = [length, number, 14, 1, 4, kind << 28 | 6, 0, 0xc0da_0100, 4, compression << 28 | 1, 0, 0, 0, 0];
        words(&[&header, data].concat())
    };
    // A dictionary of eight bytes follows the header of the file, which does not say its length in its first word.
    let header = words(&[0x4556_494f, 1, 14, 2, 0, 1 << 28 | 1 << 8 | 6, 8, 0xc0da_0100, 0, 0, 0, 0, 0, 0, 7, 7]);
    let records = [record(0, 1, 0, &[4, 5, 7]), record(0, 2, 0, &[4, 8]), record(0, 3, 1, &[9; 40])];
    let file = [&header[..], &records.concat(), &record(3, 4, 0, &[17 * 4, 1])].concat();
    let framing = Framing {
        magic: vec![0, 1, 0xda, 0xc0],
        magic_at: 28,
        counter: Some(little(4, 32)),
        source: Some((Field { shift: 28, ..little(20, 4) }, 0)),
        stream_header: header.len() as u32,
        ..plain(little(0, 32), 4, 0)
    };
    for size in [1, 13, file.len()] {
        let mut inspection = Inspection::new(framing.clone(), 1 << 20, 3).in_file();
        file.chunks(size).for_each(|piece| inspection.push(piece));
        let report = inspection.finish();
        assert!(report.fits() && (report.frames, report.others) == (3, 1), "{report:?}");
        let frames: Vec<_> = report.first.iter().map(|frame| (frame.offset, frame.counter, frame.length)).collect();
        assert_eq!(frames, [(64, 1, 68), (132, 2, 64), (196, 3, 216)], "a compressed record stays as it is");
    }
}

/// Each time slice begins with its length and type; the frame index, the second and the ticks of 16 ns follow.
#[test]
fn time_slices_of_km3net_are_read() {
    let Some(file) =
        data_folder().map(|folder| folder.join("public/km3net-IO_TSL1_1003.dat")).filter(|file| file.exists())
    else {
        println!("skipped: the file is not there");
        return;
    };
    let report = inspect_file(
        Framing {
            counter: Some(little(18, 32)),
            clock: Some(ClockField { field: little(22, 32), frequency: "1 Hz".parse::<Frequency>().unwrap() }),
            ..plain(little(0, 32), 1, 0)
        },
        &file,
    );
    assert!(report.fits(), "{report:?}");
    assert_eq!(
        (report.frames, report.steps, report.clocks.map(|(first, last)| last - first)),
        (10, BTreeMap::from([(10, 9)]), Some(9))
    );
}

fn inspect_file(framing: Framing, file: &Path) -> InspectionReport {
    let mut inspection = Inspection::new(framing, 1 << 20, 3);
    let limits = InspectionLimits { duration: Duration::from_secs(60), frames: u64::MAX };
    InspectionInput::new(&mut inspection, limits).read_file(file, None).unwrap();
    inspection.finish()
}
