//! What an inspection says about bytes that fit their framing, and about bytes that do not.

use crate::boards::{digitiser, frame_of, frames};
use evb_sources::{
    ByteOrder, ClockField, Field, FrameChecksum, FrameEnd, Framing, Inspection, InspectionInput, InspectionLimits,
    InspectionReport,
};
use std::{collections::BTreeMap, time::Duration};

fn inspect(framing: Framing, bytes: &[u8]) -> InspectionReport {
    let mut inspection = Inspection::new(framing, 4096, 3);
    inspection.push(bytes);
    inspection.finish()
}

fn guesses(framing: Framing) -> Vec<String> {
    inspect(framing, &frames(1..100)).guesses
}

#[test]
fn what_fits_is_counted_and_nothing_is_guessed() {
    let bytes = frames(1..100);
    let report = inspect(digitiser(), &bytes);
    assert!(report.fits(), "{report:?}");
    assert_eq!((report.frames, report.frame_bytes, report.counters), (99, bytes.len() as u64, Some((1, 99))));
    assert_eq!((report.steps, report.clocks), (BTreeMap::from([(1, 98)]), Some((1000, 99_000))));
    let first = &report.first[1];
    assert_eq!((first.offset, first.counter, first.step, first.ticks), (28, 2, Some(1), Some(1000)));
    assert_eq!((report.first.len(), report.guesses), (3, vec![]));
}

#[test]
fn the_first_thing_that_does_not_fit_is_shown() {
    let mut bytes = frames(1..10);
    let at = bytes.len() as u64;
    bytes.extend(b"oops");
    bytes.extend(frames(12..20));
    let report = inspect(digitiser(), &bytes);
    assert!(!report.fits());
    assert_eq!((report.skipped, report.first_skipped), ((4, 1), Some((at, b"oops".to_vec()))));
    assert_eq!(report.steps, BTreeMap::from([(1, 15), (3, 1)]));
}

#[test]
fn a_magic_in_the_other_order_is_guessed() {
    let framing = Framing { magic: vec![0xde, 0xad, 0xbe, 0xef], ..digitiser() };
    assert_eq!(guesses(framing), ["the bytes ef be ad de are there 99 times: magic = \"ef be ad de\"?"]);
}

#[test]
fn the_unit_of_a_length_is_guessed() {
    let field = Field::new(4, 16, ByteOrder::Little);
    let framing = Framing { end: FrameEnd::Length { field, unit: 1, adds: 8 }, ..digitiser() };
    assert_eq!(guesses(framing), ["the distances of the magic fit unit = \"4 B\", adds = 0 of `length`"]);
}

#[test]
fn a_checksum_is_guessed() {
    let wrong = FrameChecksum { kind: "crc-16/modbus".parse().unwrap(), ..digitiser().checksum.unwrap() };
    let expected = ["checksum = { type = \"crc-16/ibm-3740\", at = -2 } fits"];
    assert_eq!(guesses(Framing { checksum: Some(wrong), ..digitiser() }), expected);
    assert_eq!(guesses(Framing { checksum: None, ..digitiser() }), expected);
}

#[test]
fn the_order_of_a_field_is_guessed() {
    let counter = Some(Field::new(8, 32, ByteOrder::Big));
    let clock = Some(ClockField { field: Field::new(12, 48, ByteOrder::Big), ..digitiser().clock.unwrap() });
    let expected = |name: &str| format!("the {name} seems to have its bytes in the other order: order = \"little\"");
    assert_eq!(guesses(Framing { counter, clock, ..digitiser() }), [expected("counter"), expected("clock")]);
}

#[test]
fn a_narrow_counter_is_guessed() {
    let narrow: Vec<u8> = (4080..4110_u32).flat_map(|counter| crate::boards::board_frame(counter & 0xfff, 1)).collect();
    let report = inspect(digitiser(), &narrow);
    assert_eq!(report.guesses, ["the counter falls from 4095 to 0: it seems 12 bits wide"]);
}

#[test]
fn a_file_is_a_capture_or_a_stream() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, frames(1..10)).unwrap();
    let mut inspection = Inspection::new(digitiser(), 4096, 3);
    let limits = InspectionLimits { duration: Duration::from_secs(60), frames: u64::MAX };
    InspectionInput::new(&mut inspection, limits).read_file(file.path(), None).unwrap();
    assert_eq!(inspection.finish().frames, 9);
}

#[test]
fn frames_of_other_sources_of_the_link_fit() {
    let bytes: Vec<u8> = (1..10).flat_map(|n| [frame_of(7, n, 2), frame_of(9, n, 0)].concat()).collect();
    let report = |ids: &[u64]| {
        let mut inspection = Inspection::new(digitiser(), 4096, 3).beside(ids.to_vec());
        inspection.push(&bytes);
        inspection.finish()
    };
    let known = report(&[9, 11]);
    assert!(known.fits() && (known.frames, known.others, known.first[1].offset) == (9, 9, 56), "{known:?}");
    let unknown = report(&[11]);
    assert!(!unknown.fits() && (unknown.frames, unknown.others, unknown.foreign) == (18, 0, 9), "{unknown:?}");
}
