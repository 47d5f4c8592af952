//! What a builder writes a program reads, in any sizes; a program refuses places where there is no event.

use super::*;
use crate::wire::{HEAD, Hello, decode_event, encode_hello};
use evb_core::{EventId, SourceId};
use evb_protocol::{Fragment, FragmentStatus, Region as Asked};
use proptest::prelude::*;

fn event(number: u64, lengths: &[usize]) -> Built<Bytes> {
    let event = EventId(number);
    let fragment = |(source, &length): (u16, &usize)| {
        Some(Fragment {
            event,
            source: SourceId(source),
            length: length as u32,
            checksum: 0,
            mark: None,
            status: FragmentStatus::Good,
            payload: vec![number as u8; length].into(),
        })
    };
    Built { event, complete: true, asked: Asked::ALL, fragments: (0..).zip(lengths).map(fragment).collect() }
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

    /// The area that is calculated has room for so many of the largest events.
    #[test]
    fn the_largest_events_fit(fragments in 1_usize..9, size in 1_usize..300, count in 1_usize..9) {
        let (mut area, _) = area(size_for(count as u64 * largest_room(fragments as u64, size as u64)));
        let event = event(1, &vec![size; fragments]);
        prop_assert!(area.write(std::iter::repeat_n(&event, count)).is_some());
    }

    /// Places that a builder would never name are no bytes, or bytes that are refused or read within the area.
    #[test]
    fn nonsense_is_no_event(
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
fn nobody_but_the_builder_can_write() {
    let (area, _) = area(4096);
    assert!(Region::map(area.file(), 4096, true).is_err() && rustix::io::write(area.file(), &[1]).is_err());
    assert!(rustix::fs::ftruncate(area.file(), 0).is_err());
}

#[test]
fn an_area_that_cannot_be_had_is_an_error() {
    assert!(Area::create(u64::MAX).is_err());
}
