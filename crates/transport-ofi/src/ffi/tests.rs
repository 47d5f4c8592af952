//! An endpoint that talks to itself.

use super::{Place, endpoint::*, info::InfoList};
use bytes::Bytes;
use std::time::{Duration, Instant};

/// The completion of this operation; others are skipped.
fn completed(endpoint: &mut Endpoint, wanted: super::Operation) -> Completion {
    let start = Instant::now();
    loop {
        let count = endpoint.poll();
        let found = (0..count).map(|index| endpoint.completion(index)).find(|done| done.operation == Some(wanted));
        if let Some(done) = found.or_else(|| endpoint.failure()) {
            return done;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no completion");
    }
}

/// The completions of a room and of what was sent to it, in any order; returns that of the room.
fn both(endpoint: &mut Endpoint, room: super::Operation, sending: super::Operation) -> Completion {
    let (start, mut received, mut sent) = (Instant::now(), None, false);
    loop {
        let count = endpoint.poll();
        for index in 0..count {
            let done = endpoint.completion(index);
            sent |= done.operation == Some(sending);
            received = if done.operation == Some(room) { Some(done) } else { received };
        }
        if let Some(failure) = endpoint.failure() {
            return failure;
        }
        if let (Some(received), true) = (received, sent) {
            return received;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "no completions: {received:?}, {sent}");
    }
}

fn talk_to_oneself(endpoint: &mut Endpoint) {
    let address = endpoint.address().unwrap();
    let me = endpoint.insert(&address).unwrap();
    let slab = endpoint.add_slab(2, 4096).unwrap();
    endpoint.memory_mut(slab[1])[..4].copy_from_slice(b"word");
    assert_eq!(endpoint.receive(slab[0], 0x70, 0xf), Posted::Yes);
    let start = Instant::now();
    while endpoint.send(slab[1], 4, me, 0x75) == Posted::Again {
        assert!(start.elapsed() < Duration::from_secs(60), "no way to oneself");
        endpoint.poll();
    }
    let done = completed(endpoint, slab[0]);
    assert_eq!((done.tag, done.bytes, done.error), (0x75, 4, None));
    assert_eq!(&endpoint.memory(slab[0])[..4], b"word");
    let body = Bytes::from(vec![7; 100_000]);
    endpoint.memory_mut(slab[1])[..64].fill(6);
    // A tag, and where the provider can do it the address of a room. Each room is the one of before.
    let mut rooms = Vec::new();
    for writes in [false, endpoint.limits().writes, false] {
        let (room, sending) = (endpoint.room(110_000).unwrap(), endpoint.share(body.clone()).unwrap());
        let place = if writes {
            let (address, key) = endpoint.open_to_writes(room);
            Place::Memory { address, key, room: room.index() as u32 }
        } else {
            assert_eq!(endpoint.receive(room, 0x99, 0), Posted::Yes);
            Place::Tag(0x99)
        };
        assert!(endpoint.is_busy(room));
        assert_eq!(endpoint.put(&[(slab[1], 64), (sending, body.len())], me, place), Posted::Yes);
        assert!(endpoint.is_busy(slab[1]) && endpoint.is_busy(sending));
        let done = both(endpoint, room, sending);
        assert_eq!((done.error, endpoint.take_joined(sending)), (None, Some(slab[1])));
        assert!(!endpoint.is_busy(slab[1]) && !endpoint.is_busy(room));
        let (head, received) = (endpoint.memory(room)[..64].to_vec(), endpoint.lend(room, 64..64 + body.len()));
        assert!(head == [6; 64] && received == body);
        endpoint.take(sending);
        drop(received);
        rooms.push(room);
    }
    assert!(rooms.iter().all(|room| *room == rooms[0]), "{rooms:?}");
    let unwanted = endpoint.room(10).unwrap();
    assert_eq!(endpoint.receive(unwanted, 0x123, 0), Posted::Yes);
    endpoint.cancel(unwanted);
    assert_eq!(
        completed(endpoint, unwanted).error.map(|error| endpoint.describe(error)),
        Some("operation canceled".into())
    );
}

#[test]
fn an_endpoint_talks_to_itself_with_and_without_registration() {
    for (provider, interface) in [("tcp", Some("127.0.0.1")), ("shm", None)] {
        let mut endpoint = match Endpoint::open(provider, interface, true, true) {
            Ok(endpoint) => endpoint,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        talk_to_oneself(&mut endpoint);
        let mut endpoint = Endpoint::open(provider, interface, false, true).unwrap();
        // Neither provider asks for this; both can do it.
        endpoint.register_always();
        talk_to_oneself(&mut endpoint);
    }
}

#[test]
fn a_missing_provider_is_answered_with_those_that_are_there() {
    let Ok(names) = super::providers() else { return eprintln!("skipped: there is no libfabric") };
    let error = InfoList::find("no-such-provider", None, true).map(drop).expect_err("there is none").to_string();
    assert!(error.contains("no-such-provider") && names.iter().all(|name| error.contains(name)), "{error}");
}
