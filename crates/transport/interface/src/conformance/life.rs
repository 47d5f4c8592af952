//! Slow is not dead: nodes that are busy or away are not given up. All nodes are called from one thread, so that a pause of the
//! machine is a pause of all, and no case depends on it.

use super::{
    Subject,
    harness::{expect, message},
};
use crate::{Received, Transport};
use evb_core::NodeId;
use std::{
    thread,
    time::{Duration, Instant},
};

/// Receives messages and nothing else; returns their number.
fn receive(node: &mut dyn Transport, limit: usize) -> usize {
    let mut sink = Vec::new();
    let count = node.receive(limit, &mut sink);
    let lost = sink.iter().find(|item| matches!(item, Received::Lost { .. }));
    assert!(lost.is_none(), "{} gave up a slow node: {lost:?}", node.local());
    count
}

/// Takes one message at a time, and needs long for it, as if its disk were slow. There is always one more.
pub(super) fn busy_node(subject: &Subject<'_>, peer_timeout: Duration) {
    let mut nodes = (subject.connect)(3);
    let (start, mut sent, mut received) = (Instant::now(), 0, 0);
    while start.elapsed() < 4 * peer_timeout {
        while sent < received + 100 && nodes[0].send(NodeId(1), message(NodeId(0), sent, 500)).is_ok() {
            sent += 1;
        }
        nodes[0].flush();
        for observer in nodes.iter_mut().step_by(2) {
            observer.wait(Duration::ZERO);
            receive(&mut **observer, 10);
        }
        thread::sleep(peer_timeout / 20);
        let mut sink = Vec::new();
        nodes[1].receive(1, &mut sink);
        sink.iter().zip(received..).for_each(|(item, number)| expect(item, NodeId(0), number));
        received += sink.len() as u64;
    }
    assert!(received > 0, "nothing arrived");
}

/// Calls all nodes but one, for half of the timeout. So few calls are less than the timeout even if each takes long.
fn without(nodes: &mut [Box<dyn Transport>], absent: usize, peer_timeout: Duration) {
    for _ in 0..4 {
        thread::sleep(peer_timeout / 8);
        for (index, node) in nodes.iter_mut().enumerate().filter(|(index, _)| *index != absent) {
            node.wait(Duration::ZERO);
            assert_eq!(receive(&mut **node, 10), 0, "node {index}");
        }
    }
}

fn together(nodes: &mut [Box<dyn Transport>], time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        for node in &mut *nodes {
            node.wait(Duration::from_millis(1));
            receive(&mut **node, 10);
        }
    }
}

/// Stops one node after the other, whenever that is between two signs of life.
pub(super) fn absent_node(subject: &Subject<'_>, peer_timeout: Duration) {
    let mut nodes = (subject.connect)(3);
    for round in 0..6 {
        without(&mut nodes, round % 3, peer_timeout);
        together(&mut nodes, peer_timeout * (round as u32 + 1) / 16);
    }
}

/// Calls no node for longer than the timeout: each could blame all others.
pub(super) fn absent_observer(subject: &Subject<'_>, peer_timeout: Duration) {
    let mut nodes = (subject.connect)(3);
    for _ in 0..2 {
        thread::sleep(2 * peer_timeout);
        together(&mut nodes, peer_timeout / 4);
    }
}
