//! The seeds of the fuzz target `wire`, which also run as a plain test, and which pin the wire format byte by byte.

mod wire_check;

use evb_core::{Counter, EventId, Mark, NodeId, Sighting, SourceId, Time};
use evb_protocol::{
    Assigned, BlockSize, Completion, Ending, Fragment, FragmentStatus, Message, Outcome, Piece, Settled, Sighted,
    Times,
    wire::{Body, HEAD_BYTES, MessageKind, WireError, decode, encode},
};
use std::{env, fs, path::PathBuf, sync::Arc};
use wire_check::check;

/// Head and body in one buffer.
fn encoded(message: Message<Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, |head, body| {
        bytes.extend_from_slice(&head);
        match body {
            Body::Empty => {}
            Body::Payload(body) | Body::List(body) => bytes.extend_from_slice(&body),
        }
    });
    bytes
}

fn events(ids: &[u64]) -> Arc<[EventId]> {
    ids.iter().copied().map(EventId).collect()
}

/// One message of each kind, with extreme numbers where there is one.
fn good() -> Vec<(&'static str, Vec<u8>)> {
    let assigned = |event, builder| Assigned { event: EventId(event), builder: NodeId(builder) };
    let completion = |event, ending| Completion { event: EventId(event), ending };
    let fragment = |status, payload: &[u8]| {
        Message::Fragment(Fragment {
            event: EventId(0x0102_0304_0506_0708),
            source: SourceId(0x090a),
            length: payload.len() as u32,
            checksum: 0xe306_9283,
            mark: Some(Mark::new(3563)),
            counter: Some(Counter::new(0x1112_1314_1516_1718)),
            status,
            payload: payload.to_vec(),
        })
    };
    let piece = |payload: &[u8]| match fragment(FragmentStatus::Good, payload) {
        Message::Fragment(of) => {
            Message::Piece(Box::new(Piece { offset: 4, bytes: 5, of: Fragment { length: 9, ..of } }))
        }
        _ => unreachable!("a fragment"),
    };
    let messages = [
        ("request", Message::Request { slots: u32::MAX }),
        ("done", Message::Done([completion(1, Ending::Complete), completion(u64::MAX, Ending::Incomplete)].into())),
        ("done-rejected", Message::Done([completion(2, Ending::Rejected)].into())),
        ("available", Message::Available { through: EventId(17), claim: EventId(17), last: false }),
        ("available-last", Message::Available { through: EventId(u64::MAX), claim: EventId(u64::MAX), last: true }),
        ("busy", Message::Busy(true)),
        ("free", Message::Busy(false)),
        ("readout", Message::Readout { through: EventId(3) }),
        ("assign", Message::Assign([assigned(4, 9), assigned(5, u16::MAX)].into())),
        ("grant", Message::Grant(events(&[6, 7, 8]))),
        ("pull", Message::Pull(events(&[1 << 40]))),
        ("clear-nothing", Message::Clear(events(&[]))),
        ("ask", Message::Ask { number: 3, heard: 2, events: events(&[5, 1 << 33]) }),
        ("answer", Message::Answer { number: u32::MAX, pending: events(&[5]) }),
        ("piece", piece(&[0x5a; 5])),
        ("slot", Message::Slot { empty: true, round: 9 }),
        ("credit", Message::Credit { calm: true }),
        ("taken", Message::Taken { round: 1 << 33, empty: false }),
        ("round", Message::Round { number: 9, calm: true }),
        ("block-size", Message::BlockSize(BlockSize { from: EventId(1 << 33), first: EventId(1 << 39), events: 64 })),
        ("time-request", Message::TimeRequest { asked: Time(u64::MAX) }),
        ("time-answer", Message::TimeAnswer { asked: Time(0x0102_0304_0506_0708), manager: Time(9) }),
        ("away", Message::Away { number: 1 }),
        ("member", Message::Membership { number: 1, is_member: true }),
        ("not-member", Message::Membership { number: 2, is_member: false }),
        ("unit-gone", Message::Unit { node: NodeId(4), alive: false }),
        ("unit-back", Message::Unit { node: NodeId(u16::MAX), alive: true }),
        ("resume", Message::Resume { first: EventId(77) }),
        ("clear", Message::Clear(events(&[0, u64::MAX]))),
        ("fragment", fragment(FragmentStatus::Good, b"123456789")),
        ("fragment-corrupted", fragment(FragmentStatus::Corrupted, b"12345678")),
        ("fragment-missing", fragment(FragmentStatus::Missing, b"")),
        ("fragment-mismatched", fragment(FragmentStatus::Mismatched, b"1234")),
        ("sighted", Message::Sighted(sighted().into())),
        ("align", Message::Align { segment: 2, first: Some(-499) }),
        ("align-hopeless", Message::Align { segment: 3, first: None }),
        ("compare", Message::Compare(true)),
        ("marks", Message::Marks([(EventId(9), Mark::new(3563)), (EventId(u64::MAX), Mark::new(0))].into())),
        ("times", Message::Times(times(Some(0x0102_0304_0506_0708)).into())),
        ("times-without-frontier", Message::Times(times(None).into())),
        ("matched", matched()),
        ("fragment-oversized", fragment(FragmentStatus::Oversized, &[0xa5; 64])),
    ];
    messages.map(|(name, message)| (name, encoded(message))).into()
}

fn times(frontier: Option<u64>) -> Times {
    Times { first: 1 << 33, ticks: [0, 1 << 47, u64::MAX].into(), frontier, full: frontier.is_none(), last: true }
}

/// One outcome of each kind.
fn matched() -> Message<Vec<u8>> {
    let event = Outcome::Event(EventId(1 << 33));
    let others = [Outcome::Alone, Outcome::Ambiguous, Outcome::OutOfWindow, Outcome::Late, Outcome::NotSynchronised];
    let outcomes = (7..).zip([event].into_iter().chain(others));
    let outcomes = outcomes.map(|(serial, outcome)| Settled { serial, outcome }).collect();
    Message::Matched { through: EventId(u64::MAX), outcomes }
}

fn sighted() -> Sighted {
    let marks = [Some(Mark::new(17)), None];
    Sighted {
        segment: 1,
        declared: true,
        last: false,
        bits: 24,
        after: EventId(100),
        number: 0x00ff_fffe,
        ahead: 4501,
        fragments: (7..).zip(marks).map(|(position, mark)| Sighting { position, mark }).collect(),
    }
}

/// Malformed messages, each with the reason.
fn bad() -> Vec<(&'static str, Vec<u8>, WireError)> {
    let good = |name| good().into_iter().find(|seed| seed.0 == name).expect("a seed of this name").1;
    let with = |name, at: usize, patch: &[u8]| {
        let mut bytes = good(name);
        bytes[at..at + patch.len()].copy_from_slice(patch);
        bytes
    };
    let cut = |name| good(name).split_last().expect("not empty").1.to_vec();
    let wrong_length = |kind, announced, actual| WireError::WrongLength { kind, announced, actual };
    let bad_flag = |kind, flag| WireError::BadFlag { kind, flag };
    vec![
        ("no-kind", vec![0; HEAD_BYTES], WireError::UnknownKind(0)),
        ("unknown-kind", vec![0xff; HEAD_BYTES + 8], WireError::UnknownKind(0xff)),
        ("half-busy", with("busy", 1, &[2]), bad_flag(4, 2)),
        ("unknown-status", with("fragment", 1, &[5]), bad_flag(10, 5)),
        ("sighted-cut", cut("sighted"), wrong_length(11, 24, 23)),
        ("lying-marks", with("marks", 4, &[0xff; 4]), wrong_length(14, u64::from(u32::MAX) * 12, 24)),
        ("no-mark", with("marks", HEAD_BYTES + 8, &[0; 4]), bad_flag(14, 0)),
        ("fragment-cut", cut("fragment"), wrong_length(10, 9, 8)),
        ("lying-fragment", with("fragment", 4, &[0xff; 4]), wrong_length(10, u32::MAX.into(), 9)),
        ("grant-cut", cut("grant"), wrong_length(7, 24, 23)),
        ("lying-grant", with("grant", 4, &[0xff; 4]), wrong_length(7, u64::from(u32::MAX) * 8, 24)),
        ("lying-assign", with("assign", 4, &[1]), wrong_length(6, 10, 20)),
        ("unknown-ending", with("done", HEAD_BYTES + 17, &[3]), bad_flag(2, 3)),
        ("half-times", with("times", 1, &[8]), bad_flag(29, 8)),
        ("times-cut", cut("times"), wrong_length(29, 24, 23)),
        ("unknown-outcome", with("matched", HEAD_BYTES + 16, &[6]), bad_flag(30, 6)),
        ("lying-matched", with("matched", 4, &[0xff; 4]), wrong_length(30, u64::from(u32::MAX) * 17, 102)),
        ("lying-done", with("done", 4, &[0xff; 4]), wrong_length(2, u64::from(u32::MAX) * 9, 18)),
    ]
}

#[test]
fn every_kind_of_message_has_a_seed() {
    for &kind in MessageKind::ALL {
        assert!(good().iter().any(|(_, bytes)| bytes[0] == kind as u8), "{kind:?} has no seed in `good`");
    }
}

#[test]
fn malformed_messages_are_rejected_with_the_reason() {
    for (name, bytes, error) in bad() {
        let (head, body) = bytes.split_first_chunk().expect("a whole head");
        assert_eq!(decode(head, body), Err(error), "{name}");
    }
}

/// Set `EVB_BLESS=1` to rewrite the seeds after an intended change of the format.
#[test]
fn the_corpus_matches_this_version_and_is_read_without_a_panic() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/wire");
    let bad = bad().into_iter().map(|(name, bytes, _)| (name, bytes));
    let short = [("empty", Vec::new()), ("head-cut", vec![1; HEAD_BYTES - 1])];
    for (name, bytes) in good().into_iter().chain(bad).chain(short) {
        let path = folder.join(name);
        if env::var_os("EVB_BLESS").is_some() {
            fs::write(&path, &bytes).expect("a writable corpus");
        }
        let committed = fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(committed == bytes, "{name} differs: the wire format has changed");
    }
    // Seeds that fuzzing has added run, too.
    for entry in fs::read_dir(folder).expect("a corpus") {
        check(&fs::read(entry.expect("an entry").path()).expect("a seed"));
    }
}

#[test]
fn prefixes_and_flipped_bits_are_read_without_a_panic() {
    for (_, bytes) in good() {
        (0..bytes.len()).for_each(|length| check(&bytes[..length]));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            check(&bytes);
        }
    }
}
