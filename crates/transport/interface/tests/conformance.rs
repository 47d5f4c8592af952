//! The transports under the conformance suite.

mod support;

use evb_transport::{
    DEFAULT_MAX_BODY, HEAD_BYTES, OverLayer, OverTransport,
    bond::Stripe,
    conformance::{Subject, bonds, run_all, run_life},
    doorbell::Doorbell,
    in_process,
    tcp::{TcpOptions, Token},
};
use std::{sync::Arc, time::Duration};
use support::{boxed, multicast_nodes, tcp_bonds, tcp_nodes};

/// Longest silence in the tests that tell slow nodes from dead ones.
const SILENCE: Duration = Duration::from_millis(200);

#[test]
fn in_process_conforms() {
    let connect = |nodes| boxed(in_process::connect(nodes, 512));
    run_all(&Subject { connect: &connect, max_body: DEFAULT_MAX_BODY });
}

/// A transport over a layer over a transport.
#[test]
fn a_transport_over_a_layer_conforms() {
    let max_body = 1 << 20;
    let over = |end| OverLayer::new(OverTransport::new(end, max_body + HEAD_BYTES));
    let connect = |nodes| boxed(in_process::connect(nodes, 512).into_iter().map(over).collect());
    run_all(&Subject { connect: &connect, max_body });
}

#[test]
fn tcp_conforms() {
    let options = TcpOptions { max_body: 1 << 20, ..TcpOptions::new(2, Token::new([5; Token::BYTES])) };
    run_all(&Subject { connect: &|nodes| boxed(tcp_nodes(nodes, &options)), max_body: options.max_body });
}

#[test]
fn encrypted_tcp_conforms() {
    let options = TcpOptions { max_body: 1 << 20, encrypt: true, ..TcpOptions::new(2, Token::new([5; Token::BYTES])) };
    run_all(&Subject { connect: &|nodes| boxed(tcp_nodes(nodes, &options)), max_body: options.max_body });
}

/// Records are cut in many places, and wait for a socket that takes no more.
#[test]
fn encrypted_tcp_conforms_with_small_socket_buffers() {
    let options = TcpOptions {
        max_body: 300_000,
        encrypt: true,
        socket_buffer_bytes: Some(64 << 10),
        send_queue_bytes: 200_000,
        ..TcpOptions::new(2, Token::new([6; Token::BYTES]))
    };
    run_all(&Subject { connect: &|nodes| boxed(tcp_nodes(nodes, &options)), max_body: options.max_body });
}

#[test]
fn encrypted_tcp_tells_slow_from_dead() {
    let options =
        TcpOptions { peer_timeout: SILENCE, encrypt: true, ..TcpOptions::new(2, Token::new([5; Token::BYTES])) };
    let subject = Subject { connect: &|nodes| boxed(tcp_nodes(nodes, &options)), max_body: options.max_body };
    run_life(&subject, SILENCE);
}

#[test]
fn tcp_with_multicast_conforms() {
    let options = TcpOptions { max_body: 1 << 20, ..TcpOptions::new(2, Token::new([5; Token::BYTES])) };
    run_all(&Subject { connect: &|nodes| boxed(multicast_nodes(nodes, &options)), max_body: options.max_body });
}

#[test]
fn tcp_tells_slow_from_dead() {
    let options = TcpOptions { peer_timeout: SILENCE, ..TcpOptions::new(2, Token::new([5; Token::BYTES])) };
    let subject = Subject { connect: &|nodes| boxed(tcp_nodes(nodes, &options)), max_body: options.max_body };
    run_life(&subject, SILENCE);
}

#[test]
fn tcp_with_multicast_tells_slow_from_dead() {
    let options = TcpOptions { peer_timeout: SILENCE, ..TcpOptions::new(2, Token::new([5; Token::BYTES])) };
    let subject = Subject { connect: &|nodes| boxed(multicast_nodes(nodes, &options)), max_body: options.max_body };
    run_life(&subject, SILENCE);
}

/// Writes and reads are cut in many places.
#[test]
fn tcp_conforms_with_small_socket_buffers() {
    let options = TcpOptions {
        max_body: 300_000,
        socket_buffer_bytes: Some(64 << 10),
        send_queue_bytes: 200_000,
        ..TcpOptions::new(2, Token::new([6; Token::BYTES]))
    };
    run_all(&Subject { connect: &|nodes| boxed(tcp_nodes(nodes, &options)), max_body: options.max_body });
}

#[test]
fn bonds_of_threads_conform() {
    for (stripe, links) in Stripe::ALL.into_iter().zip([2, 3, 1]) {
        let connect =
            |nodes| boxed(bonds((0..links).map(|_| in_process::connect(nodes, 512)).collect(), stripe, 1 << 20));
        run_all(&Subject { connect: &connect, max_body: 1 << 20 });
    }
}

#[test]
fn bonds_of_tcp_conform() {
    let options = TcpOptions { max_body: 1 << 20, ..TcpOptions::new(2, Token::new([5; Token::BYTES])) };
    for stripe in Stripe::ALL {
        let connect = |nodes| boxed(tcp_bonds(nodes, stripe, &options));
        run_all(&Subject { connect: &connect, max_body: options.max_body });
    }
}

#[test]
fn bonds_of_tcp_tell_slow_from_dead() {
    let options = TcpOptions { peer_timeout: SILENCE, ..TcpOptions::new(2, Token::new([5; Token::BYTES])) };
    for stripe in Stripe::ALL {
        let connect = |nodes| boxed(tcp_bonds(nodes, stripe, &options));
        run_life(&Subject { connect: &connect, max_body: options.max_body }, SILENCE);
    }
}

#[test]
fn workers_share_one_doorbell() {
    let bells = [Arc::new(Doorbell::new()), Arc::new(Doorbell::new())];
    let hosts: Vec<_> = (0..6).map(|node| Arc::clone(&bells[node % 2])).collect();
    let nodes = in_process::connect_workers(8, &hosts);
    assert!(nodes.iter().enumerate().all(|(node, end)| Arc::ptr_eq(end.doorbell(), &bells[node % 2])));
}

#[cfg(target_os = "linux")]
mod shm {
    use super::*;
    use evb_core::NodeId;
    use evb_transport::{Message, Received, Transport, shm::ShmOptions};
    use support::shm_nodes;

    #[test]
    fn shared_memory_conforms() {
        let options = ShmOptions { max_body: 1 << 20, ..ShmOptions::new(2, Token::new([7; Token::BYTES])) };
        run_all(&Subject { connect: &|nodes| boxed(shm_nodes(nodes, &options)), max_body: options.max_body });
    }

    #[test]
    fn shared_memory_tells_slow_from_dead() {
        let options = ShmOptions { peer_timeout: SILENCE, ..ShmOptions::new(2, Token::new([7; Token::BYTES])) };
        let subject = Subject { connect: &|nodes| boxed(shm_nodes(nodes, &options)), max_body: options.max_body };
        run_life(&subject, SILENCE);
    }

    /// Small rings are often full, and with a pool that is too small for them large bodies go in pieces.
    #[test]
    fn shared_memory_conforms_with_small_rings_and_pools() {
        for (ring_bytes, pool_bytes) in [(64 << 10, 256 << 10), (256 << 10, 4096)] {
            let options = ShmOptions {
                max_body: 300_000,
                ring_bytes,
                pool_bytes,
                inline_bytes: 64,
                ..ShmOptions::new(2, Token::new([8; Token::BYTES]))
            };
            run_all(&Subject { connect: &|nodes| boxed(shm_nodes(nodes, &options)), max_body: options.max_body });
        }
    }

    /// A pool with room for one body: four receivers have it at the same time.
    #[test]
    fn a_broadcast_lies_in_the_pool_once() {
        let options = ShmOptions { pool_bytes: 4096, ..ShmOptions::new(2, Token::new([9; Token::BYTES])) };
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
}
