//! An endpoint that talks to itself.

use super::{RoomAddress, endpoint::*, info::InfoList};
use bytes::Bytes;
use evb_os::tools::skip_because;
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

/// A write with the number of no room is reported without an operation.
fn wrong_writes(endpoint: &mut Endpoint, me: u64, message: super::Operation, last: super::Operation) {
    let room = endpoint.room(110_000).unwrap();
    assert_eq!(room, last);
    let (address, key) = endpoint.open_to_writes(room);
    endpoint.release(room);
    let other = endpoint.share(Bytes::from(vec![9; 100])).unwrap();
    let place = RoomAddress { address, key, room: room.index() as u32 + 1000 };
    assert_eq!(endpoint.write([(message, 64), (other, 100)], me, place), Posted::Yes);
    let start = Instant::now();
    let (mut strays, mut sent) = (0, 0);
    while strays + sent < 2 {
        for index in 0..endpoint.poll() {
            match endpoint.completion(index).operation {
                None => strays += 1,
                operation => sent += usize::from(operation == Some(other)),
            }
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{strays} and {sent}");
    }
    endpoint.take(other);
    endpoint.keep(room);
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
    // Each room is the one of before.
    assert!(endpoint.limits().writes);
    let mut rooms = Vec::new();
    for _ in 0..3 {
        let (room, sending) = (endpoint.room(110_000).unwrap(), endpoint.share(body.clone()).unwrap());
        let (address, key) = endpoint.open_to_writes(room);
        let place = RoomAddress { address, key, room: room.index() as u32 };
        assert!(endpoint.is_busy(room));
        assert_eq!(endpoint.write([(slab[1], 64), (sending, body.len())], me, place), Posted::Yes);
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
    wrong_writes(endpoint, me, slab[1], rooms[0]);
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
            Err(error) => return skip_because(error),
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
    let Ok(names) = super::providers() else { return skip_because("libfabric is not installed") };
    let error = InfoList::find("no-such-provider", None, true).map(drop).expect_err("there is none").to_string();
    assert!(error.contains("no-such-provider") && names.iter().all(|name| error.contains(name)), "{error}");
}
