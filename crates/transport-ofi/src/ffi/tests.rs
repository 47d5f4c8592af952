//! An endpoint that talks to itself.

use super::{endpoint::*, info::InfoList};
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
    let (body, room) = (Bytes::from(vec![7; 100_000]), vec![0; 100_000]);
    let (sending, receiving) = (endpoint.share(body.clone()).unwrap(), endpoint.own(room).unwrap());
    assert_eq!(endpoint.receive(receiving, 0x99, 0), Posted::Yes);
    assert_eq!(endpoint.send(sending, body.len(), me, 0x99), Posted::Yes);
    assert_eq!(completed(endpoint, receiving).bytes, body.len());
    let Some(super::Memory::Own(received)) = endpoint.take(receiving) else { panic!("another memory") };
    assert!(received == body);
    let unwanted = endpoint.own(vec![0; 10]).unwrap();
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
        let mut endpoint = match Endpoint::open(provider, interface, true) {
            Ok(endpoint) => endpoint,
            Err(error) => return eprintln!("skipped: {error}"),
        };
        talk_to_oneself(&mut endpoint);
        let mut endpoint = Endpoint::open(provider, interface, false).unwrap();
        // Neither provider asks for this; both can do it.
        endpoint.register_always();
        talk_to_oneself(&mut endpoint);
    }
}

#[test]
fn a_missing_provider_is_answered_with_those_that_are_there() {
    let Ok(names) = super::providers() else { return eprintln!("skipped: there is no libfabric") };
    let error = InfoList::find("no-such-provider", None).map(drop).expect_err("there is none").to_string();
    assert!(error.contains("no-such-provider") && names.iter().all(|name| error.contains(name)), "{error}");
}
