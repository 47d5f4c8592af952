//! Slow peers and silent peers: who is given up, and which bodies both sides may still read then.
//!
//! Only a stopped process is silent. An endpoint whose pulse was stopped replaces it here.

use super::{PATIENCE, body_of, nodes};
use crate::Shm;
use bytes::Bytes;
use evb_core::NodeId;
use evb_transport::{HEAD_BYTES, Message, Received, Transport};
use std::{
    thread,
    time::{Duration, Instant},
};

/// Longest silence in these tests.
const SILENCE: Duration = Duration::from_millis(200);
const POOL_BYTES: usize = 64 << 10;

fn three() -> Vec<Shm> {
    nodes(SILENCE)
}

fn large(value: u8) -> Message {
    Message { head: [value; HEAD_BYTES], body: vec![value; 10_000].into() }
}

fn send(from: &mut Shm, to: u16, message: Message) {
    Transport::send(from, NodeId(to), message).unwrap();
    Transport::flush(from);
}

/// Receives until one item is there.
fn one(node: &mut Shm) -> Received {
    let (start, mut sink) = (Instant::now(), Vec::new());
    while Transport::receive(node, 1, &mut sink) == 0 {
        Transport::wait(node, Duration::from_millis(5));
        assert!(start.elapsed() < PATIENCE, "nothing comes");
    }
    sink.remove(0)
}

/// Receives until the loss of a peer is reported, and returns the reason.
fn loss(node: &mut Shm, of: u16) -> String {
    loop {
        match one(node) {
            Received::Lost { peer, reason } if peer == NodeId(of) => return reason,
            Received::Lost { peer, reason } => panic!("{peer} is lost: {reason}"),
            Received::Message { .. } => {}
        }
    }
}

/// Node 0 lends two bodies to node 1, which holds them, falls silent and is given up.
fn lend_and_lose(nodes: &mut [Shm]) -> Vec<Bytes> {
    (1..3).for_each(|value| send(&mut nodes[0], 1, large(value)));
    let held: Vec<_> = (0..2).map(|_| body_of(one(&mut nodes[1]))).collect();
    nodes[1].heartbeat.stop();
    let reason = loss(&mut nodes[0], 1);
    assert!(reason.starts_with("nothing was heard of it for"), "{reason}");
    held
}

/// Fills the pool of node 0 again and again, for node 2.
fn churn(nodes: &mut [Shm]) {
    let (start, mut sink) = (Instant::now(), Vec::new());
    for value in 100..200 {
        send(&mut nodes[0], 2, large(value));
        while !sink.iter().any(|item| matches!(item, Received::Message { .. })) {
            sink.clear();
            Transport::flush(&mut nodes[0]);
            Transport::receive(&mut nodes[2], 1, &mut sink);
            assert!(start.elapsed() < PATIENCE, "message {value}");
        }
        assert!(sink.drain(..).all(|item| body_of(item).iter().all(|&byte| byte == value)), "message {value}");
    }
}

/// Returns true if nothing is lent any more.
fn whole_pool(node: &mut Shm) -> bool {
    Transport::flush(node);
    node.collect_from_leaving();
    node.buffers().unwrap().take(POOL_BYTES).is_some()
}

#[test]
fn what_a_silent_peer_holds_stays_as_it_is() {
    let mut nodes = three();
    let held = lend_and_lose(&mut nodes);
    churn(&mut nodes);
    for (value, body) in (1..).zip(&held) {
        assert!(body.len() == 10_000 && body.iter().all(|&byte| byte == value), "body {value} was written to");
    }
    assert!(!whole_pool(&mut nodes[0]), "they are still lent");
    let reason = loss(&mut nodes[1], 0);
    assert_eq!(reason, "it gave this node up");
    assert!(!whole_pool(&mut nodes[0]), "the peer has no part any more, and still holds them");
    drop(held);
    assert!(whole_pool(&mut nodes[0]) && nodes[0].leaving.is_empty());
}

/// Some lent bodies were never received, so they are not returned: the end of the peer frees them.
#[test]
fn the_end_of_a_silent_peer_frees_what_it_was_lent() {
    let mut nodes = three();
    send(&mut nodes[0], 1, large(1));
    let held = lend_and_lose(&mut nodes);
    assert_eq!(nodes[0].leaving.len(), 1);
    drop(nodes.remove(1));
    assert!(!whole_pool(&mut nodes[0]), "the bodies outlive the endpoint, and its socket lives with them");
    drop(held);
    assert!(whole_pool(&mut nodes[0]) && nodes[0].leaving.is_empty());
}

#[test]
fn a_new_process_takes_the_place_of_one_that_still_reads() {
    let mut nodes = three();
    let held = lend_and_lose(&mut nodes);
    let mut new = Shm::bind(NodeId(1), nodes[1].options.clone()).unwrap();
    let name = nodes[0].name.clone();
    let joining = thread::spawn(move || new.connect(&[(NodeId(0), name)]).map(|()| new).unwrap());
    nodes[0].connect(&[(NodeId(1), "-".into())]).unwrap();
    let mut new = joining.join().unwrap();
    send(&mut nodes[0], 1, large(50));
    assert!(body_of(one(&mut new)).iter().all(|&byte| byte == 50));
    assert!((1..).zip(&held).all(|(value, body)| body.iter().all(|&byte| byte == value)));
    assert_eq!(nodes[0].leaving.len(), 1);
    assert_eq!(loss(&mut nodes[1], 0), "it gave this node up");
}

/// The lender may be alive, so both sides keep its bodies.
#[test]
fn what_came_from_a_silent_peer_stays_as_it_is() {
    let mut nodes = three();
    send(&mut nodes[0], 1, large(7));
    let body = body_of(one(&mut nodes[1]));
    nodes[0].heartbeat.stop();
    loss(&mut nodes[1], 0);
    assert_eq!(loss(&mut nodes[0], 1), "it gave this node up");
    churn(&mut nodes);
    assert!(body.iter().all(|&byte| byte == 7), "the body was written to");
    assert!(!whole_pool(&mut nodes[0]));
    drop(body);
    assert!(whole_pool(&mut nodes[0]));
}

/// Handles of a pool may outlive its endpoint. The readers are unknown then.
#[test]
fn nothing_is_taken_of_a_pool_without_its_endpoint() {
    let mut nodes = three();
    send(&mut nodes[0], 1, large(9));
    let (body, buffers) = (body_of(one(&mut nodes[1])), nodes[0].buffers().unwrap());
    drop(nodes.remove(0));
    assert!(buffers.take(POOL_BYTES / 2).is_none());
    assert!(body.iter().all(|&byte| byte == 9));
}

/// The user of the node is away, but its process runs.
#[test]
fn a_node_in_a_long_turn_is_not_given_up() {
    let mut nodes = three();
    let (start, mut sink) = (Instant::now(), Vec::new());
    while start.elapsed() < 4 * SILENCE {
        Transport::wait(&mut nodes[0], SILENCE / 16);
        Transport::receive(&mut nodes[0], 10, &mut sink);
    }
    // And it blames no peer for its own absence.
    Transport::wait(&mut nodes[1], Duration::ZERO);
    Transport::receive(&mut nodes[1], 10, &mut sink);
    assert_eq!(sink, []);
}

/// The peer has been silent for long, but this node has not read all its messages.
#[test]
fn a_peer_is_not_given_up_before_its_lane_is_empty() {
    let mut nodes = three();
    (0..3).for_each(|value| send(&mut nodes[1], 0, large(value)));
    nodes[1].heartbeat.stop();
    let (beats, start) = (nodes[0].heartbeat.beats(), Instant::now());
    while nodes[0].heartbeat.beats() < beats + 20 {
        nodes[0].poll_events(Some(Duration::from_millis(5)));
        assert!(start.elapsed() < PATIENCE, "the heartbeat has stopped");
    }
    assert!(nodes[0].peers[1].as_ref().unwrap().takes_messages(), "there is something unread");
    for value in 0..3 {
        assert!(body_of(one(&mut nodes[0])).iter().all(|&byte| byte == value));
    }
    loss(&mut nodes[0], 1);
}

/// A node that is never idle still finds silent peers, and collects free bodies.
#[test]
fn a_busy_node_sees_silence() {
    let mut nodes = three();
    send(&mut nodes[0], 1, large(1));
    let held = body_of(one(&mut nodes[1]));
    nodes[1].heartbeat.stop();
    let (start, mut sink) = (Instant::now(), Vec::new());
    while !sink.iter().any(|item| matches!(item, Received::Lost { peer: NodeId(1), .. })) {
        sink.clear();
        send(&mut nodes[2], 0, Message { head: [0; HEAD_BYTES], body: Bytes::new() });
        Transport::receive(&mut nodes[0], 1, &mut sink);
        // So few calls say nothing of the time.
        thread::sleep(Duration::from_millis(1));
        assert!(start.elapsed() < PATIENCE, "the silence is not noticed");
    }
    drop(held);
    while !nodes[0].leaving.is_empty() {
        send(&mut nodes[2], 0, Message { head: [0; HEAD_BYTES], body: Bytes::new() });
        Transport::receive(&mut nodes[0], 1, &mut sink);
        thread::sleep(Duration::from_millis(1));
        assert!(start.elapsed() < PATIENCE, "what came back is not taken");
    }
}
