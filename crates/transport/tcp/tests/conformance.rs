//! TCP under the conformance suite.

mod support;

use evb_transport::{
    EndpointOptions, Token,
    conformance::{Subject, boxed, changed, run_all, run_life},
};
use evb_transport_tcp::TcpOptions;
use std::time::Duration;
use support::{multicast_nodes, tcp_nodes};

/// Longest silence in the tests that tell slow nodes from dead ones.
const SILENCE: Duration = Duration::from_millis(200);

#[test]
fn tcp_conforms() {
    let options = TcpOptions::new(changed(EndpointOptions::new(2, Token::new([5; Token::BYTES])), |endpoint| {
        endpoint.max_body = 1 << 20
    }));
    run_all(&Subject { connect: &|nodes| boxed(tcp_nodes(nodes, &options)), max_body: options.endpoint.max_body });
}

#[test]
fn encrypted_tcp_conforms() {
    let options = TcpOptions {
        encrypt: true,
        ..TcpOptions::new(changed(EndpointOptions::new(2, Token::new([5; Token::BYTES])), |endpoint| {
            endpoint.max_body = 1 << 20
        }))
    };
    run_all(&Subject { connect: &|nodes| boxed(tcp_nodes(nodes, &options)), max_body: options.endpoint.max_body });
}

/// Records are cut in many places, and wait for a socket that takes no more.
#[test]
fn encrypted_tcp_conforms_with_small_socket_buffers() {
    let options = TcpOptions {
        encrypt: true,
        socket_buffer_bytes: Some(64 << 10),
        send_queue_bytes: 200_000,
        ..TcpOptions::new(changed(EndpointOptions::new(2, Token::new([6; Token::BYTES])), |endpoint| {
            endpoint.max_body = 300_000
        }))
    };
    run_all(&Subject { connect: &|nodes| boxed(tcp_nodes(nodes, &options)), max_body: options.endpoint.max_body });
}

#[test]
fn encrypted_tcp_does_not_give_up_slow_nodes() {
    let options = TcpOptions {
        encrypt: true,
        ..TcpOptions::new(changed(EndpointOptions::new(2, Token::new([5; Token::BYTES])), |endpoint| {
            endpoint.peer_timeout = SILENCE
        }))
    };
    let subject = Subject { connect: &|nodes| boxed(tcp_nodes(nodes, &options)), max_body: options.endpoint.max_body };
    run_life(&subject, SILENCE);
}

#[test]
fn tcp_with_multicast_conforms() {
    let options = TcpOptions::new(changed(EndpointOptions::new(2, Token::new([5; Token::BYTES])), |endpoint| {
        endpoint.max_body = 1 << 20
    }));
    run_all(&Subject {
        connect: &|nodes| boxed(multicast_nodes(nodes, &options)),
        max_body: options.endpoint.max_body,
    });
}

#[test]
fn tcp_does_not_give_up_slow_nodes() {
    let options = TcpOptions::new(changed(EndpointOptions::new(2, Token::new([5; Token::BYTES])), |endpoint| {
        endpoint.peer_timeout = SILENCE
    }));
    let subject = Subject { connect: &|nodes| boxed(tcp_nodes(nodes, &options)), max_body: options.endpoint.max_body };
    run_life(&subject, SILENCE);
}

#[test]
fn tcp_with_multicast_does_not_give_up_slow_nodes() {
    let options = TcpOptions::new(changed(EndpointOptions::new(2, Token::new([5; Token::BYTES])), |endpoint| {
        endpoint.peer_timeout = SILENCE
    }));
    let subject =
        Subject { connect: &|nodes| boxed(multicast_nodes(nodes, &options)), max_body: options.endpoint.max_body };
    run_life(&subject, SILENCE);
}

/// Writes and reads are cut in many places.
#[test]
fn tcp_conforms_with_small_socket_buffers() {
    let options = TcpOptions {
        socket_buffer_bytes: Some(64 << 10),
        send_queue_bytes: 200_000,
        ..TcpOptions::new(changed(EndpointOptions::new(2, Token::new([6; Token::BYTES])), |endpoint| {
            endpoint.max_body = 300_000
        }))
    };
    run_all(&Subject { connect: &|nodes| boxed(tcp_nodes(nodes, &options)), max_body: options.endpoint.max_body });
}
