//! Messages that are encoded are decoded again, in any pieces. Arbitrary bytes are an error at most.

use super::*;
use evb_protocol::{Fragment, Region};
use proptest::prelude::*;

fn body(message: &[u8]) -> &[u8] {
    &message[HEAD..]
}

fn built() -> impl Strategy<Value = Built<Bytes>> {
    let payload = proptest::collection::vec(any::<u8>(), 0..40);
    let fragments = proptest::collection::vec(proptest::option::of(payload), 0..5);
    (any::<u64>(), any::<bool>(), fragments).prop_map(|(number, complete, payloads)| {
        let event = EventId(number);
        let fragment = |(source, payload): (u16, Option<Vec<u8>>)| {
            payload.map(|payload| Fragment {
                event,
                source: evb_core::SourceId(source),
                length: payload.len() as u32,
                checksum: 0,
                mark: None,
                counter: None,
                status: FragmentStatus::Oversized,
                payload: payload.into(),
            })
        };
        Built {
            event,
            opened: evb_core::Time::ZERO,
            complete,
            asked: Region::ALL,
            fragments: (0..).zip(payloads).map(fragment).collect(),
        }
    })
}

proptest! {
    #[test]
    fn events_come_back(events in proptest::collection::vec(built(), 0..4)) {
        let mut bytes = Vec::new();
        encode_events(events.iter(), &mut bytes);
        prop_assert!(bytes.len().is_multiple_of(8));
        prop_assert_eq!(bytes.len(), HEAD + 8 + events.iter().map(event_length).sum::<usize>());
        let found = decode_events(body(&bytes)).unwrap();
        prop_assert_eq!(found.len(), events.len());
        for (found, event) in found.iter().zip(&events) {
            prop_assert_eq!((found.number, found.complete), (event.event.0, event.complete));
            prop_assert_eq!(found.fragments.len(), event.fragments.len());
            for (index, (found, fragment)) in found.fragments.iter().zip(&event.fragments).enumerate() {
                let status = if fragment.is_some() { FragmentStatus::Oversized } else { FragmentStatus::Missing };
                let payload = fragment.as_ref().map_or(&[][..], |fragment| &fragment.payload[..]);
                prop_assert_eq!((usize::from(found.source), found.status, found.bytes), (index, status as u8, payload));
            }
        }
    }

    #[test]
    fn verdicts_come_back_in_any_pieces(
        verdicts in proptest::collection::vec((any::<u64>().prop_map(EventId), proptest::option::of(any::<u16>())), 0..9),
        piece in 1_usize..40,
    ) {
        let mut bytes = Vec::new();
        encode_ready(true, &mut bytes);
        encode_verdicts(&verdicts, &mut bytes);
        let (mut incoming, mut found) = (Incoming::default(), Vec::new());
        for piece in bytes.chunks(piece) {
            incoming.push(piece);
            while let Some(message) = incoming.next_message().unwrap() {
                found.push(message);
            }
        }
        prop_assert_eq!(found, [Received::Ready { in_memory: true }, Received::Verdicts(verdicts)]);
    }

    #[test]
    fn places_come_back(places in proptest::collection::vec((any::<u32>(), any::<u32>()), 0..9)) {
        let places: Vec<_> = places.into_iter().map(|(start, length)| start as usize..start as usize + length as usize).collect();
        let mut bytes = Vec::new();
        encode_places(&places, &mut bytes);
        prop_assert_eq!(decode_places(body(&bytes)), Ok(places));
    }

    #[test]
    fn a_hello_comes_back(run in any::<u64>(), builder in any::<u16>(), streams in proptest::collection::vec(".{0,9}", 0..4)) {
        let hello = Hello { run, builder, unit: 3, streams };
        let mut bytes = Vec::new();
        encode_hello(&hello, 9, &mut bytes);
        prop_assert_eq!(descriptor(body(&bytes)), 9);
        prop_assert_eq!(decode_hello(body(&bytes)).unwrap(), hello);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0_u32..20, length in 0_u32..64) {
        let _any = (decode_hello(&bytes), decode_events(&bytes), decode_places(&bytes), decode_event(&bytes), descriptor(&bytes));
        let heads = [vec![], [length.to_le_bytes(), kind.to_le_bytes()].concat()];
        for head in heads {
            let mut incoming = Incoming::default();
            incoming.push(&head);
            incoming.push(&bytes);
            while let Ok(Some(_)) = incoming.next_message() {}
        }
    }

    /// One changed byte in the head of a message never makes a program wait for more than there can be.
    #[test]
    fn impossible_heads_are_refused_at_once(length in any::<u32>(), kind in any::<u32>()) {
        let mut incoming = Incoming::default();
        incoming.push(&[length.to_le_bytes(), kind.to_le_bytes()].concat());
        let possible = (kind == READY && length == 8) || (kind == VERDICTS && length as usize <= 8 + MOST_VERDICTS * VERDICT);
        prop_assert!(possible || incoming.next_message().is_err());
    }
}
