//! Programs read what builders write, in any sizes; places without an event are rejected.

use super::*;
use crate::units::spawn;
use crate::wire::{HEAD, Hello, decode_event, encode_hello};
use evb_core::{EventId, SourceId, Time};
use evb_protocol::{Fragment, FragmentStatus, Region as Asked};
use proptest::prelude::*;
use std::{
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

/// An event with a fragment of each length, whose bytes are all the last digits of its number.
pub(crate) fn event(number: u64, lengths: &[usize]) -> Built<Bytes> {
    let event = EventId(number);
    let fragment = |(source, &length): (u16, &usize)| {
        Some(Fragment {
            event,
            source: SourceId(source),
            length: length as u32,
            checksum: 0,
            mark: None,
            counter: None,
            status: FragmentStatus::Good,
            payload: vec![number as u8; length].into(),
        })
    };
    Built {
        event,
        opened: Time::ZERO,
        complete: true,
        asked: Asked::ALL,
        fragments: (0..).zip(lengths).map(fragment).collect(),
    }
}

/// An area of this size, marked, and the body of its hello.
fn area(bytes: u64) -> (Area, Vec<u8>) {
    let mut area = Area::create(bytes).unwrap();
    let (hello, mut message) = (Hello { run: 7, builder: 1, unit: 2, streams: vec![] }, Vec::new());
    encode_hello(&hello, area.descriptor(), &mut message);
    area.mark(message[HEAD..].first_chunk().unwrap());
    (area, message.split_off(HEAD))
}

proptest! {
    /// Each message begins at the beginning of the area again, and is full or has all its events there.
    #[test]
    fn events_are_read_as_they_were_written(
        messages in proptest::collection::vec(
            proptest::collection::vec(proptest::collection::vec(0_usize..200, 0..4), 1..6), 1..6),
    ) {
        let (mut area, hello) = area(2000);
        let read = Events::open(area.descriptor(), &hello).unwrap();
        for (message, events) in messages.into_iter().enumerate() {
            let events: Vec<_> = events.iter().map(|lengths| event(message as u64, lengths)).collect();
            let room: usize = events.iter().map(room_of).sum();
            let Some(places) = area.write(events.iter()) else {
                prop_assert!(FIRST + room > 2000);
                continue;
            };
            prop_assert!(places.windows(2).all(|pair| pair[0].end <= pair[1].start));
            for (place, event) in places.into_iter().zip(&events) {
                let (found, rest) = decode_event(read.at(place).unwrap()).unwrap();
                prop_assert!(found.number == event.event.0 && rest.is_empty());
                prop_assert_eq!(found.fragments.len(), event.fragments.len());
                for (found, one) in found.fragments.iter().zip(event.fragments.iter().flatten()) {
                    prop_assert_eq!(found.bytes, &one.payload[..]);
                }
            }
        }
    }

    /// The area that is calculated has room for this number of the largest events.
    #[test]
    fn the_largest_events_fit(fragments in 1_usize..9, size in 1_usize..300, count in 1_usize..9) {
        let (mut area, _) = area(size_for(count as u64 * largest_room(fragments as u64, size as u64)));
        let event = event(1, &vec![size; fragments]);
        prop_assert!(area.write(std::iter::repeat_n(&event, count)).is_some());
    }

    /// Places that a builder never names are rejected, or read within the area.
    #[test]
    fn nonsense_is_rejected(
        start in prop_oneof![0_usize..3000, any::<usize>()],
        length in prop_oneof![0_usize..3000, any::<usize>()],
        bytes in proptest::collection::vec(any::<u8>(), 1900),
    ) {
        let (mut area, hello) = area(2000);
        let read = Events::open(area.descriptor(), &hello).unwrap();
        area.range(FIRST..FIRST + bytes.len()).copy_from_slice(&bytes);
        let place = start..start.wrapping_add(length);
        match read.at(place.clone()) {
            Some(found) => {
                prop_assert!(start >= FIRST && place.end <= 2000 && found.len() == length);
                let _any = decode_event(found);
            }
            None => prop_assert!(start < FIRST || !start.is_multiple_of(8) || place.end > 2000 || place.end < start),
        }
    }
}

#[test]
fn only_the_area_of_the_hello_is_mapped() {
    let (one, hello) = area(4096);
    let (mut other, _) = area(4096);
    assert!(Events::open(one.descriptor(), &hello).is_some());
    assert!(Events::open(other.descriptor(), &hello).is_none(), "the area of another descriptor");
    other.mark(hello.first_chunk().unwrap());
    assert!(Events::open(other.descriptor(), &hello).is_some(), "its mark alone tells them apart");
    let file = File::open("/dev/null").unwrap();
    assert!(Events::open(file.as_raw_fd() as u32, &hello).is_none(), "no area at all");
    assert!(Events::open(0, &hello).is_none() && Events::open(u32::MAX, &hello).is_none());
}

#[test]
fn only_the_builder_can_write() {
    let (area, _) = area(4096);
    assert!(Region::map(area.file(), 4096, true).is_err() && rustix::io::write(area.file(), &[1]).is_err());
    assert!(rustix::fs::ftruncate(area.file(), 0).is_err());
}

#[test]
fn an_area_that_cannot_be_had_is_an_error() {
    assert!(Area::create(u64::MAX).is_err());
}

/// A filter in C and one in Python that read every byte they are given.
const READS: [&str; 2] = [
    r#"#include "evb_filter.h"
    static int state;
    void *evb_filter_open(const evb_run *run) { (void)run; return &state; }
    void evb_filter_close(void *self) { (void)self; }
    int evb_filter_decide(void *self, const evb_event *event) {
        volatile unsigned sum = self == NULL;
        for (int i = 0; i < event->fragments; i++)
            for (uint32_t at = 0; at < event->fragment[i].length; at++) sum += event->fragment[i].bytes[at];
        return EVB_ACCEPT;
    }
    "#,
    "import evb_filter; evb_filter.run(lambda event: sum(sum(fragment.bytes) for fragment in event.fragments) >= 0)",
];

/// The bytes of a page with an event at its end, which is changed by each of these: offset and value of a byte.
fn page(changes: &[(usize, u8)]) -> Vec<u8> {
    let (mut page, event) = (vec![0; 4096 - FIRST], event(9, &[4096 - FIRST - 16 - 8 - 8, 0]));
    write_event(&event, event_length(&event), &mut &mut page[..]).unwrap();
    changes.iter().for_each(|&(at, value)| page[at] = value);
    page
}

/// Runs a program on one message with these places in a page; returns its exit code, none if a signal has ended it.
fn exit_code(program: &[String], page: &[u8], body: &[u8]) -> Option<i32> {
    let (mut area, hello) = area(4096);
    area.range(FIRST..4096).copy_from_slice(page);
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = spawn(&mut command, Some(area.file())).unwrap();
    let head = |kind: u32, body: &[u8]| [(body.len() as u32).to_le_bytes(), kind.to_le_bytes()].concat();
    let messages = [head(1, &hello), hello, head(3, body), body.to_vec()].concat();
    // A program that has ended does not read all of it.
    let _sent = child.stdin.take().unwrap().write_all(&messages);
    child.wait().unwrap().code()
}

/// Both programs of [`READS`], in this folder: the arguments that start them.
fn programs(folder: &Path) -> [Vec<String>; 2] {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../filters");
    let [c, python, binary] = ["reads.c", "reads.py", "reads"].map(|name| folder.join(name));
    std::fs::write(&c, READS[0]).unwrap();
    std::fs::write(&python, format!("import sys; sys.path.insert(0, {root:?} + '/python')\n{}", READS[1])).unwrap();
    let mut compiler = Command::new("gcc");
    compiler.args(["-DEVB_FILTER_PROGRAM", "-Wall", "-Wextra", "-Werror", "-O1", "-I"]).arg(format!("{root}/c"));
    assert!(compiler.arg("-o").args([&binary, &c]).status().expect("gcc").success());
    [vec![binary.display().to_string()], vec!["python3".to_owned(), python.display().to_string()]]
}

/// A message that announces events at these offsets, with these lengths.
fn places(count: u32, places: &[u64]) -> Vec<u8> {
    let head = [count, 0].map(u32::to_le_bytes).concat();
    places.iter().fold(head, |body, number| [body, number.to_le_bytes().to_vec()].concat())
}

/// Programs check every place and every length, and end by themselves where one is nonsense.
#[test]
fn programs_refuse_nonsense() {
    let (good, whole) = (page(&[]), 4096 - FIRST as u64);
    let bad_places = [
        places(1, &[0, 64]),
        places(1, &[68, 64]),
        places(1, &[64, whole + 1]),
        places(1, &[64, whole - 8]),
        places(1, &[64, 8]),
        places(1, &[4096, 16]),
        places(1, &[1 << 40, 64]),
        places(1, &[64, u64::MAX - 32]),
        places(1, &[u64::MAX - 63, 64]),
        places(2, &[64, whole]),
        places(1, &[64]),
    ];
    // The length of the event, the number of its fragments, and the lengths of its fragments.
    let bad_pages = [
        &[(14, 1)][..],
        &[(12, 0), (13, 0)],
        &[(8, 255), (9, 255)],
        &[(8, 3)],
        &[(23, 255)],
        &[(22, 1)],
        &[(4028, 16)],
    ];
    let folder = tempfile::tempdir().unwrap();
    for program in programs(folder.path()) {
        assert_eq!(exit_code(&program, &good, &places(1, &[64, whole])), Some(0), "an event is read");
        for place in &bad_places {
            assert_eq!(exit_code(&program, &good, place), Some(1), "{program:?} {place:?}");
        }
        for changes in bad_pages {
            assert_eq!(
                exit_code(&program, &page(changes), &places(1, &[64, whole])),
                Some(1),
                "{program:?} {changes:?}"
            );
        }
    }
}
