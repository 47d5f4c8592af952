//! Files of EUDAQ: both versions by hand, and the recorded one when it is there.

use crate::{
    live::{Listening, live},
    support::data_folder,
};
use evb_sources::{
    EudaqContents, EudaqError, EudaqEvent, EudaqFault, EudaqProducer, EudaqReader, FrontEndLink, LiveItem, RejectKind,
};
use proptest::prelude::*;
use std::{
    collections::BTreeSet,
    io::{BufReader, Cursor, Write as _},
};

/// An event of version 1.
#[derive(Clone, Copy, Default)]
struct First<'a> {
    id: [u8; 4],
    flags: u32,
    number: u32,
    timestamp: u64,
    tags: &'a [(&'a str, &'a str)],
}

impl First<'_> {
    /// Its bytes, with what follows the tags.
    fn with(self, rest: &[&[u8]]) -> Vec<u8> {
        let mut bytes = self.id.to_vec();
        [self.flags, 7, self.number].iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(self.timestamp.to_le_bytes());
        [bytes, tags(self.tags), rest.concat()].concat()
    }
}

/// An event of version 2.
fn second(device: u32, number: u32, trigger: Option<u32>, description: &str, rest: &[&[u8]]) -> Vec<u8> {
    let flags = u32::from(number == 0) | if trigger.is_some() { 0x10 } else { 0 };
    let words = [0x8026_656d, 2, flags, device, 7, number, trigger.unwrap_or(0), 99];
    let mut bytes: Vec<u8> = words.iter().flat_map(|word: &u32| word.to_le_bytes()).collect();
    [u64::from(number) * 1000, 0].iter().for_each(|time| bytes.extend(time.to_le_bytes()));
    [bytes, text(description), tags(&[("FINE", "30")]), rest.concat()].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes(), text.as_bytes()].concat()
}

fn tags(tags: &[(&str, &str)]) -> Vec<u8> {
    let tags = tags.iter().map(|(name, value)| [text(name), text(value)].concat());
    list(&tags.collect::<Vec<_>>())
}

fn list<B: AsRef<[u8]>>(items: &[B]) -> Vec<u8> {
    items.iter().fold((items.len() as u32).to_le_bytes().to_vec(), |list, item| [&list, item.as_ref()].concat())
}

/// One block.
fn block(id: u32, data: &[u8]) -> Vec<u8> {
    [&id.to_le_bytes(), &(data.len() as u32).to_le_bytes(), data].concat()
}

/// Begin of run, two events with a telescope and a trigger logic unit, end of run.
pub(crate) fn version_1() -> Vec<u8> {
    let event = |flags: u32, number: u32| {
        let time = if flags == 0 { u64::from(number) * 100 } else { u64::MAX };
        let of = |id: &[u8; 4], tags| First { id: *id, flags, number, timestamp: time, tags };
        let plane = |id: u32| block(id, &[number as u8; 12]);
        let telescope = of(b"_RAW", &[("DET", "MIMOSA26")]).with(&[&text("NI"), &list(&[plane(0), plane(1)])]);
        let boards = of(b"_DRB", &[]).with(&[&list(&[plane(5)])]);
        let trigger = of(b"_TLU", &[]).with(&[&list(&[8_u64.to_le_bytes(), 9_u64.to_le_bytes()])]);
        of(b"_DET", &[("PRODUCERS", "3")]).with(&[&list(&[telescope, boards, trigger])])
    };
    [event(1, 0), event(0, 1), event(0, 2), event(2, 3)].concat()
}

/// Events of two planes of one description and a trigger logic unit, which the second event lacks.
pub(crate) fn version_2() -> Vec<u8> {
    let none = &list::<&[u8]>(&[])[..];
    let event = |number: u32| {
        let trigger = number + 1;
        let plane = |device: u32| {
            let blocks = list(&[block(0, &vec![number as u8; 20 + 5 * device as usize])]);
            second(device, 40 + number, Some(trigger), "PlaneRawDataEvent", &[&blocks, none])
        };
        let tlu = second(9, number, Some(trigger), "TluRawDataEvent", &[none, none]);
        let inner = if number == 1 { vec![plane(0), plane(1)] } else { vec![tlu, plane(0), plane(1)] };
        second(100, number, Some(trigger), "TriggerIDSyncOnline", &[none, &list(&inner)])
    };
    (0..4).map(event).collect::<Vec<_>>().concat()
}

fn producer(name: &str, device: Option<u32>) -> EudaqProducer {
    EudaqProducer { name: name.to_owned(), device }
}

/// The events of a producer, and the error that ended them.
fn read(file: &[u8], producer: EudaqProducer) -> (Vec<EudaqEvent>, Option<EudaqError>) {
    read_in_pieces(file, producer, 1 << 16)
}

fn read_in_pieces(file: &[u8], producer: EudaqProducer, size: usize) -> (Vec<EudaqEvent>, Option<EudaqError>) {
    let mut reader = EudaqReader::new(BufReader::with_capacity(size, Cursor::new(file)), producer, 1 << 20);
    let mut events = Vec::new();
    loop {
        match reader.next(|event| events.push(event)) {
            Ok(true) => {}
            Ok(false) => return (events, None),
            Err(error) => return (events, Some(error)),
        }
    }
}

fn numbers(events: &[EudaqEvent]) -> Vec<(u32, Option<u32>, Option<u64>)> {
    events.iter().map(|event| (event.number, event.mark, event.clock)).collect()
}

#[test]
fn version_1_has_begin_and_end_of_run_beside_its_data() {
    let file = version_1();
    for (name, length) in [("NI", 97), ("EUDRB", 52), ("TLU", 48)] {
        let (events, error) = read(&file, producer(name, None));
        assert!(error.is_none(), "{error:?}");
        assert_eq!(numbers(&events), [(1, Some(1), Some(100)), (2, Some(2), Some(200))], "{name}");
        assert!(events.iter().all(|event| event.length == length && event.bytes.len() as u64 == length), "{events:?}");
    }
    let (events, _) = read(&file, producer("NI", None));
    assert!(events[1].bytes.starts_with(b"_RAW") && events[1].bytes.ends_with(&[2; 12]));
}

#[test]
fn version_2_has_the_number_of_the_whole_event_and_the_trigger_as_mark() {
    let file = version_2();
    let (tlu, error) = read(&file, producer("TluRawDataEvent", None));
    assert!(error.is_none(), "{error:?}");
    assert_eq!(numbers(&tlu), [(0, Some(1), None), (2, Some(3), Some(2000)), (3, Some(4), Some(3000))]);
    let (both, _) = read(&file, producer("PlaneRawDataEvent", None));
    assert_eq!(both.len(), 8, "two devices have this description");
    let (plane, _) = read(&file, producer("PlaneRawDataEvent", Some(1)));
    let planes: Vec<_> = (0..4).map(|n| (n, Some(n + 1), Some(u64::from(40 + n) * 1000))).collect();
    assert_eq!(numbers(&plane), planes);
    // What is within an event of the producer belongs to it.
    let (whole, _) = read(&file, producer("TriggerIDSyncOnline", None));
    assert_eq!(whole.iter().flat_map(|event| event.bytes.to_vec()).collect::<Vec<_>>(), file);
}

/// A reader keeps no more of an event than the largest fragment, and knows how long it is.
#[test]
fn what_is_kept_of_an_event_is_bounded() {
    let file = version_2();
    let mut reader = EudaqReader::new(Cursor::new(&file), producer("TriggerIDSyncOnline", None), 100);
    let mut kept = Vec::new();
    while reader.next(|event| kept.push((event.length, event.bytes.len()))).unwrap() {}
    assert_eq!(kept, [(441, 100), (348, 100), (441, 100), (441, 100)]);
    // A length beyond the end of the file takes no memory.
    let (events, error) = read(
        &[&file[..], &second(0, 9, None, "X", &[&list(&[[0, u32::MAX].map(u32::to_le_bytes).concat()])])].concat(),
        producer("X", None),
    );
    assert!(events.is_empty() && error.is_some_and(|error| matches!(error.fault, EudaqFault::CutOff)));
}

#[test]
fn the_producers_of_a_file_are_listed() {
    let contents = |file: &[u8]| EudaqContents::read(Cursor::new(file));
    let lines = |contents: &EudaqContents| {
        let of = |n: usize| &contents.producers[n];
        let line = |n| (of(n).producer.clone(), of(n).events, of(n).bytes, of(n).numbers, of(n).marks);
        (0..contents.producers.len()).map(line).collect::<Vec<_>>()
    };
    let (first, second) = (contents(&version_1()), contents(&version_2()));
    let of_first = |name, bytes| (producer(name, None), 2, bytes, (1, 2), Some((1, 2)));
    assert_eq!(lines(&first), [of_first("NI", 194), of_first("EUDRB", 104), of_first("TLU", 96)]);
    let plane = |device, bytes| (producer("PlaneRawDataEvent", Some(device)), 4, bytes, (0, 3), Some((1, 4)));
    let tlu = (producer("TluRawDataEvent", Some(9)), 3, 279, (0, 3), Some((1, 4)));
    assert_eq!(lines(&second), [tlu, plane(0, 492), plane(1, 512)]);
    assert_eq!((first.error, second.error), (None, None));
    let cut = contents(&version_2()[..1200]);
    assert_eq!(cut.error, Some(String::from("the file ends at byte 1200, in the event that begins at byte 1102")));
}

#[test]
fn a_file_that_ends_within_an_event_gives_all_before_it() {
    for (file, name) in [(version_1(), "NI"), (version_2(), "PlaneRawDataEvent")] {
        let (whole, _) = read(&file, producer(name, None));
        let mut good_cuts = 0;
        for cut in 0..file.len() {
            let (events, error) = read(&file[..cut], producer(name, None));
            let before = whole.iter().filter(|event| event.offset + event.length <= cut as u64).count();
            assert_eq!(events, whole[..before], "cut at {cut}");
            good_cuts += usize::from(error.is_none());
            if let Some(error) = error {
                assert!(matches!(error.fault, EudaqFault::CutOff), "{error}");
                assert!(error.at as usize == cut && error.event <= error.at, "{error}");
            }
        }
        assert_eq!(good_cuts, 4, "only a cut between two events is none");
    }
}

#[test]
fn what_is_no_event_is_told_with_its_place() {
    let file = version_2();
    let told = |bytes: &[u8]| read(bytes, producer("TluRawDataEvent", None)).1.expect("an error").to_string();
    let noise = [&file[..], b"noise and more noise"].concat();
    let end = file.len();
    assert_eq!(
        told(&noise),
        format!("no known event of EUDAQ at byte {}, in the event that begins at byte {end}", end + 8)
    );
    // A standard event of version 1 has another layout.
    let standard = First { id: *b"_STD", ..First::default() }.with(&[]);
    assert!(told(&standard).starts_with("no known event of EUDAQ at byte 4"));
    let with = |at: usize, value: u32| [&file[..at], &value.to_le_bytes(), &file[at + 4..]].concat();
    assert_eq!(told(&with(48, u32::MAX)), "too many letters at byte 52, in the event that begins at byte 0");
    let tags = 52 + "TriggerIDSyncOnline".len();
    assert_eq!(
        told(&with(tags, 70_000)),
        format!("too many tags at byte {}, in the event that begins at byte 0", tags + 4)
    );
    // Events within each other without end.
    let none = list::<&[u8]>(&[]);
    let nested = |inner: Vec<u8>, _| second(0, 1, None, "X", &[&none, &list(&[inner])]);
    let deep = (0..9).fold(second(0, 1, None, "X", &[&none, &none]), nested);
    assert!(told(&deep).starts_with("too many events within each other"), "{}", told(&deep));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is in a file, events are stretches of it, one behind the other, and the pieces in which it is read do not matter.
    #[test]
    fn damaged_files_give_stretches_of_themselves(
        is_first in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let (mut file, name) = if is_first { (version_1(), "NI") } else { (version_2(), "PlaneRawDataEvent") };
        let length = file.len();
        changes.iter().for_each(|(at, byte)| file[at.index(length)] = *byte);
        file.truncate(length - cut.index(length) / 4);
        let (events, error) = read(&file, producer(name, None));
        let (again, other) = read_in_pieces(&file, producer(name, None), 3);
        prop_assert_eq!(&events, &again);
        prop_assert_eq!(error.as_ref().map(ToString::to_string), other.map(|error| error.to_string()));
        let mut end = 0;
        for event in &events {
            let stretch = event.offset as usize..(event.offset + event.length) as usize;
            prop_assert!(stretch.start >= end);
            prop_assert_eq!(&file[stretch.clone()], &event.bytes[..]);
            end = stretch.end;
        }
        prop_assert!(error.is_none_or(|error| error.event <= error.at && error.at <= file.len() as u64));
    }
}

/// A source reads the file like any other: fragments, what is too large, and what is refused with its place.
#[test]
fn a_source_delivers_the_events_of_a_producer() {
    let whole = version_2();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&whole[..whole.len() - 5]).unwrap();
    let link =
        |name: &str, device| FrontEndLink::Eudaq { file: file.path().into(), producer: producer(name, device).into() };
    let source = |name: &str, device, most| Listening::start(&live(link(name, device), 32), most);
    let (fragments, rejected) = source("PlaneRawDataEvent", Some(0), 1 << 20).run();
    let counters = fragments.iter().map(|item| match item {
        LiveItem::Fragment { counter, good: true, .. } => *counter,
        other => panic!("{other:?}"),
    });
    assert_eq!((counters.collect::<Vec<_>>(), rejected.get(&RejectKind::CutOff)), (vec![0, 1, 2, 3], Some(&1)));
    // The last event of the other device is cut off.
    let other = source("PlaneRawDataEvent", Some(1), 1 << 20);
    let last = whole.len() - 128;
    let first = loop {
        match other.next() {
            LiveItem::Rejected { first, .. } => break first,
            LiveItem::EndOfRun { .. } => panic!("nothing was refused"),
            _ => {}
        }
    };
    assert!(first.offset == Some(last as u64) && whole[last..].starts_with(first.bytes()), "{first}");
    assert!(first.to_string().starts_with(&format!("from its file at byte {last}, which began with \"me&")), "{first}");
    let (fragments, rejected) = source("PlaneRawDataEvent", None, 125).run();
    assert_eq!((fragments.len(), rejected.get(&RejectKind::Oversized)), (4, Some(&3)), "those of device 1 are larger");
}

/// Five events of a telescope plane and a trigger logic unit. Its own flag of the begin of run is at an event with data.
#[test]
fn the_recorded_file_is_read_to_its_end() {
    let Some(file) =
        data_folder().map(|folder| folder.join("public/eudaq-mimosa_tlu.raw")).filter(|file| file.exists())
    else {
        println!("skipped: the file is not there");
        return;
    };
    let file = std::fs::read(file).unwrap();
    let of = |name: &str| {
        let (events, error) = read(&file, producer(name, None));
        assert!(error.is_none(), "{error:?}");
        events
    };
    let (tlu, plane) = (of("TluRawDataEvent"), of("AdeniumRawDataEvent"));
    let clocks = [21_990_775, 23_042_625, 24_342_550, 24_395_300, 24_623_825];
    let expected: Vec<_> = (0..5).map(|n| (n, Some(n + 1), Some(clocks[n as usize]))).collect();
    assert_eq!(numbers(&tlu), expected);
    assert!(plane.iter().zip(&tlu).all(|(plane, tlu)| (plane.number, plane.mark) == (tlu.number, tlu.mark)));
    assert_eq!(plane.iter().map(|event| event.length).collect::<Vec<_>>(), [145, 160, 148, 142, 145]);
    assert_eq!(tlu.iter().map(|event| event.bytes.len()).collect::<BTreeSet<_>>(), [224, 226, 339, 2343].into());
    assert_eq!(of("TriggerIDSyncOnline").iter().map(|event| event.length).sum::<u64>(), file.len() as u64);
}
