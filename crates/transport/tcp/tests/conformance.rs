//! TCP under the conformance suite.

mod support;

use evb_transport::{
    Token,
    conformance::{Subject, boxed, run_all, run_life},
};
use evb_transport_tcp::TcpOptions;
use std::time::Duration;
use support::{multicast_nodes, tcp_nodes};

/// Longest silence in the tests that tell slow nodes from dead ones.
const SILENCE: Duration = Duration::from_millis(200);

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
