//! Shared memory under the conformance suite.
#![cfg(target_os = "linux")]

mod support;

use evb_core::NodeId;
use evb_transport::{
    EndpointOptions, HEAD_BYTES, Message, Received, Token, Transport,
    conformance::{Subject, boxed, changed, run_all, run_life},
};
use evb_transport_shm::ShmOptions;
use std::time::Duration;
use support::shm_nodes;

/// Longest silence in the tests that tell slow nodes from dead ones.
const SILENCE: Duration = Duration::from_millis(200);

#[test]
fn shared_memory_conforms() {
    let options = ShmOptions::new(changed(EndpointOptions::new(2, Token::new([7; Token::BYTES])), |endpoint| {
        endpoint.max_body = 1 << 20
    }));
    run_all(&Subject { connect: &|nodes| boxed(shm_nodes(nodes, &options)), max_body: options.endpoint.max_body });
}

#[test]
fn shared_memory_does_not_give_up_slow_nodes() {
    let options = ShmOptions::new(changed(EndpointOptions::new(2, Token::new([7; Token::BYTES])), |endpoint| {
        endpoint.peer_timeout = SILENCE
    }));
    let subject = Subject { connect: &|nodes| boxed(shm_nodes(nodes, &options)), max_body: options.endpoint.max_body };
    run_life(&subject, SILENCE);
}

/// Small rings are often full, and with a pool that is too small for them large bodies go in pieces.
#[test]
fn shared_memory_conforms_with_small_rings_and_pools() {
    for (ring_bytes, pool_bytes) in [(64 << 10, 256 << 10), (256 << 10, 4096)] {
        let options = ShmOptions {
            ring_bytes,
            pool_bytes,
            inline_bytes: 64,
            ..ShmOptions::new(changed(EndpointOptions::new(2, Token::new([8; Token::BYTES])), |endpoint| {
                endpoint.max_body = 300_000
            }))
        };
        run_all(&Subject { connect: &|nodes| boxed(shm_nodes(nodes, &options)), max_body: options.endpoint.max_body });
    }
}

/// A pool with room for one body: four receivers have it at the same time.
#[test]
fn a_broadcast_lies_in_the_pool_once() {
    let options =
        ShmOptions { pool_bytes: 4096, ..ShmOptions::new(EndpointOptions::new(2, Token::new([9; Token::BYTES]))) };
    let mut nodes = shm_nodes(5, &options);
    let to: Vec<_> = (1..5).map(NodeId).collect();
    for (length, saved) in [(512, 0), (513, 3), (4000, 6)] {
        let message = Message { head: [1; HEAD_BYTES], body: vec![7; length].into() };
        nodes[0].broadcast(&to, message.clone(), &mut |node, error| panic!("{node}: {error}"));
        nodes[0].flush();
        assert_eq!(nodes[0].broadcasts().saved, saved, "{length} bytes");
        let mut held = Vec::new();
        for node in &mut nodes[1..] {
            while node.receive(1, &mut held) == 0 {}
        }
        assert!(held.iter().all(|item| matches!(item, Received::Message { message: got, .. } if *got == message)));
        drop(held);
        nodes[0].flush();
    }
}
