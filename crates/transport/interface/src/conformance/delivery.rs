//! Everything arrives, once, in order, unchanged.

use super::{
    Subject,
    harness::{Draws, expect, flush_all, message, pair, receive_exactly, send_through, until, verify},
};
use crate::{HEAD_BYTES, Message, Received, SendError, Transport};
use bytes::Bytes;
use evb_core::NodeId;

const SEEDS: [u64; 3] = [1, 2, 3];

pub(super) fn order_and_exactly_once(subject: &Subject<'_>) {
    const MESSAGES: u64 = 20_000;
    let mut nodes = (subject.connect)(2);
    let (mut sent, mut received) = ([0; 2], [0; 2]);
    until("both ways", || {
        for (node, other) in [(0, 1), (1, 0)] {
            let local = NodeId(node as u16);
            for _ in 0..100 {
                let wanted = message(local, sent[node], 16);
                if sent[node] == MESSAGES || nodes[node].send(NodeId(other as u16), wanted).is_err() {
                    break;
                }
                sent[node] += 1;
            }
            nodes[node].flush();
            let mut sink = Vec::new();
            nodes[node].receive(70, &mut sink);
            for item in sink {
                expect(&item, NodeId(other as u16), received[node]);
                received[node] += 1;
            }
        }
        (received == [MESSAGES; 2]).then_some(())
    });
    for node in &mut nodes {
        assert_eq!(node.receive(10, &mut Vec::new()), 0, "nothing comes twice");
    }
}

pub(super) fn every_size(subject: &Subject<'_>) {
    let powers = (3..=18).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]);
    let limits = [subject.max_body - 1, subject.max_body];
    let sizes: Vec<usize> = (0..=100).chain(powers).chain(limits).filter(|&size| size <= subject.max_body).collect();
    let mut nodes = (subject.connect)(2);
    let (sender, receiver) = pair(&mut nodes);
    for (number, &size) in sizes.iter().enumerate() {
        let mut sink = Vec::new();
        send_through(sender, NodeId(1), message(NodeId(0), number as u64, size), |_| {
            unreachable!("the queue is empty")
        });
        until(&format!("a body of {size} bytes"), || {
            sender.flush();
            (receiver.receive(2, &mut sink) > 0).then_some(())
        });
        expect(&sink[0], NodeId(0), number as u64);
        assert_eq!(sink.len(), 1, "one message of {size} bytes");
    }
}

pub(super) fn too_large(subject: &Subject<'_>) {
    let mut nodes = (subject.connect)(2);
    let (sender, receiver) = pair(&mut nodes);
    let (length, limit) = (subject.max_body + 1, subject.max_body);
    let large = Message { head: [0; HEAD_BYTES], body: Bytes::from(vec![0; length]) };
    assert_eq!(sender.send(NodeId(1), large), Err(SendError::TooLarge { length, limit }));
    assert_eq!(sender.send(NodeId(1), message(NodeId(0), 7, 3)), Ok(()), "others still go");
    flush_all(sender);
    expect(&receive_exactly(receiver, 1)[0], NodeId(0), 7);
}

pub(super) fn receive_keeps_its_limit(subject: &Subject<'_>) {
    let mut nodes = (subject.connect)(3);
    for sender in &mut nodes[1..] {
        let local = sender.local();
        (0..10).for_each(|number| sender.send(NodeId(0), message(local, number, 5)).expect("room"));
        flush_all(&mut **sender);
    }
    let (mut sink, mut last) = (vec![Received::Lost { peer: NodeId(9), reason: String::new() }], 1);
    until("twenty messages, three at a time", || {
        let count = nodes[0].receive(3, &mut sink);
        assert!(count <= 3 && sink.len() == last + count, "{count} messages");
        assert_eq!(nodes[0].receive(0, &mut sink), 0);
        last = sink.len();
        (last == 21).then_some(())
    });
}

pub(super) fn random_traffic(subject: &Subject<'_>) {
    for seed in SEEDS {
        println!("  seed {seed}");
        Traffic::new(subject, seed).run();
    }
}

/// Random messages between all nodes, each verified.
struct Traffic {
    nodes: Vec<Box<dyn Transport>>,
    draws: Draws,
    max_body: usize,
    /// Sent and received, by sender and receiver.
    sent: Vec<Vec<u64>>,
    received: Vec<Vec<u64>>,
}

impl Traffic {
    const NODES: usize = 5;
    const STEPS: usize = 6000;

    fn new(subject: &Subject<'_>, seed: u64) -> Self {
        let none = vec![vec![0; Self::NODES]; Self::NODES];
        Self {
            nodes: (subject.connect)(Self::NODES),
            draws: Draws::new(seed),
            max_body: subject.max_body,
            sent: none.clone(),
            received: none,
        }
    }

    fn run(&mut self) {
        for _ in 0..Self::STEPS {
            let node = self.draws.below(Self::NODES);
            match self.draws.below(4) {
                0 | 1 => self.send(node),
                2 => drop(self.nodes[node].flush()),
                _ => self.receive(node),
            }
        }
        until("the rest of the random traffic", || {
            for node in 0..Self::NODES {
                self.nodes[node].flush();
                self.receive(node);
            }
            (self.sent == self.received).then_some(())
        });
    }

    fn send(&mut self, from: usize) {
        let to = (from + 1 + self.draws.below(Self::NODES - 1)) % Self::NODES;
        for _ in 0..self.draws.below(12) {
            let largest = [8, 200, 3000, 3000, 100_000][self.draws.below(5)];
            let length = self.draws.below(largest.min(self.max_body) + 1);
            let next = message(NodeId(from as u16), self.sent[from][to], length);
            match self.nodes[from].send(NodeId(to as u16), next.clone()) {
                Ok(()) => self.sent[from][to] += 1,
                Err(SendError::Full(back)) => assert!(back == next, "another message came back"),
                Err(error) => panic!("node {to} refuses a message: {error}"),
            }
        }
    }

    fn receive(&mut self, node: usize) {
        let (limit, mut sink) = (self.draws.below(40), Vec::new());
        self.nodes[node].receive(limit, &mut sink);
        for item in sink {
            let Received::Message { from, message } = item else { panic!("no peer left, but {item:?}") };
            let next = &mut self.received[from.index()][node];
            assert_eq!(verify(from, &message), *next, "number of the message from {from} to node {node}");
            *next += 1;
        }
    }
}
