//! Messages for several nodes: they arrive once, in order with all others, and hold no other node up.

use super::{
    PATIENCE, Subject,
    harness::{Draws, expect, flush_all, message, until, verify, wait_for_one},
};
use crate::{Message, Received, SendError, Transport};
use evb_core::NodeId;
use std::{collections::VecDeque, time::Instant};

const SEEDS: [u64; 3] = [1, 2, 3];

/// Broadcasts to these nodes, and returns who refused and why.
fn broadcast(node: &mut dyn Transport, to: &[u16], message: Message) -> Vec<(NodeId, SendError)> {
    let to: Vec<_> = to.iter().map(|&node| NodeId(node)).collect();
    let mut refusals = Vec::new();
    node.broadcast(&to, message, &mut |node, error| refusals.push((node, error)));
    refusals
}

/// Nodes, and what they have received.
struct Group {
    nodes: Vec<Box<dyn Transport>>,
    sinks: Vec<Vec<Received>>,
}

impl Group {
    fn new(subject: &Subject<'_>, count: usize) -> Self {
        let sinks = (0..count).map(|_| Vec::new()).collect();
        Self { nodes: (subject.connect)(count), sinks }
    }

    fn remove(&mut self, place: usize) -> Box<dyn Transport> {
        self.sinks.remove(place);
        self.nodes.remove(place)
    }

    /// Lets a node receive; a node that misses a broadcast asks its sender, who must listen.
    fn step(&mut self, place: usize) {
        self.nodes[place].flush();
        self.nodes[place].receive(100, &mut self.sinks[place]);
    }

    /// Takes what one node has received when it is `count` messages and losses, which the nodes in `active` work for.
    fn take(&mut self, place: usize, count: usize, active: &[usize]) -> Vec<Received> {
        until("broadcasts arrive", || {
            active.iter().for_each(|&place| self.step(place));
            (self.sinks[place].len() >= count).then_some(())
        });
        self.sinks[place].drain(..).collect()
    }
}

pub(super) fn random_traffic(subject: &Subject<'_>) {
    for seed in SEEDS {
        println!("  seed {seed}");
        Traffic::new(subject, seed).run();
    }
}

/// Random messages and broadcasts between all nodes. Like a link, a sender keeps what a full queue gives back, and sends
/// nothing else to that receiver before it.
struct Traffic {
    nodes: Vec<Box<dyn Transport>>,
    draws: Draws,
    max_body: usize,
    /// Number of the next message, by sender.
    next: Vec<u64>,
    /// Messages that came back, by sender and receiver.
    waiting: Vec<Vec<VecDeque<Message>>>,
    /// Numbers of the messages that are to arrive, by sender and receiver.
    expected: Vec<Vec<VecDeque<u64>>>,
}

impl Traffic {
    const NODES: usize = 5;
    const STEPS: usize = 6000;

    fn new(subject: &Subject<'_>, seed: u64) -> Self {
        Self {
            nodes: (subject.connect)(Self::NODES),
            draws: Draws::new(seed),
            max_body: subject.max_body,
            next: vec![0; Self::NODES],
            waiting: vec![vec![VecDeque::new(); Self::NODES]; Self::NODES],
            expected: vec![vec![VecDeque::new(); Self::NODES]; Self::NODES],
        }
    }

    fn run(&mut self) {
        for _ in 0..Self::STEPS {
            let node = self.draws.below(Self::NODES);
            match self.draws.below(5) {
                0 | 1 => self.send(node),
                2 => self.retry(node),
                _ => self.receive(node),
            }
        }
        until("the rest of the random broadcasts", || {
            for node in 0..Self::NODES {
                self.retry(node);
                self.receive(node);
            }
            self.expected.iter().flatten().all(VecDeque::is_empty).then_some(())
        });
    }

    fn send(&mut self, from: usize) {
        for _ in 0..self.draws.below(8) {
            let largest = [8, 200, 3000, 3000, 100_000][self.draws.below(5)];
            let length = self.draws.below(largest.min(self.max_body) + 1);
            let mut to: Vec<_> = (0..Self::NODES).filter(|&to| to != from && self.draws.below(3) > 0).collect();
            if self.draws.below(3) == 0 {
                to.truncate(1);
            }
            let next = message(NodeId(from as u16), self.next[from], length);
            for &receiver in &to {
                self.expected[from][receiver].push_back(self.next[from]);
            }
            self.next[from] += 1;
            let waiting = &mut self.waiting[from];
            let (free, blocked): (Vec<_>, Vec<_>) = to.iter().partition(|&&to| waiting[to].is_empty());
            blocked.iter().for_each(|&&to| waiting[to].push_back(next.clone()));
            let free: Vec<_> = free.iter().map(|&&to| NodeId(to as u16)).collect();
            self.nodes[from].broadcast(&free, next.clone(), &mut |to, error| match error {
                SendError::Full(back) if back == next => waiting[to.index()].push_back(back),
                error => panic!("{to} refuses a broadcast: {error}"),
            });
        }
    }

    fn retry(&mut self, from: usize) {
        for (to, waiting) in self.waiting[from].iter_mut().enumerate() {
            while let Some(message) = waiting.pop_front() {
                if let Err(SendError::Full(back)) = self.nodes[from].send(NodeId(to as u16), message) {
                    waiting.push_front(back);
                    break;
                }
            }
        }
        self.nodes[from].flush();
    }

    fn receive(&mut self, node: usize) {
        let (limit, mut sink) = (self.draws.below(40), Vec::new());
        self.nodes[node].receive(limit, &mut sink);
        assert!(sink.len() <= limit, "receive gave more than was asked for");
        for item in sink {
            let Received::Message { from, message } = item else { panic!("no peer left, but {item:?}") };
            let number = verify(from, &message);
            assert_eq!(Some(number), self.expected[from.index()][node].pop_front(), "from {from} to node {node}");
        }
    }
}

pub(super) fn full_queue(subject: &Subject<'_>) {
    const ENDLESS: u64 = 1_000_000;
    let mut group = Group::new(subject, 3);
    let fill = |number| message(NodeId(0), number, 4096);
    let node = &mut group.nodes[0];
    let taken = (0..ENDLESS).find(|&number| node.send(NodeId(1), fill(number)).is_err()).expect("a bound");
    let mut waits: VecDeque<_> = broadcast(&mut **node, &[1, 2], fill(taken)).into();
    // A transport may have one queue for all.
    let is_shared = waits.iter().any(|(to, _)| *to == NodeId(2));
    if !is_shared {
        // Node 2 gets it although the messages of node 1 are not taken.
        expect(&group.take(2, 1, &[0, 2])[0], NodeId(0), taken);
    }
    until("a broadcast behind a full queue", || {
        while let Some((to, error)) = waits.pop_front() {
            let SendError::Full(message) = error else { panic!("{to} refuses a broadcast: {error}") };
            if let Err(error) = group.nodes[0].send(to, message) {
                waits.push_front((to, error));
                break;
            }
        }
        (0..3).for_each(|place| group.step(place));
        let at_second = group.sinks[2].len() == usize::from(is_shared);
        (waits.is_empty() && at_second && group.sinks[1].len() as u64 > taken).then_some(())
    });
    (0..=taken).zip(&group.sinks[1]).for_each(|(number, item)| expect(item, NodeId(0), number));
    group.sinks[2].iter().for_each(|item| expect(item, NodeId(0), taken));
}

pub(super) fn lost_receiver(subject: &Subject<'_>) {
    const BROADCASTS: u64 = 300;
    let is_loss = |item: &Received| matches!(item, Received::Lost { peer: NodeId(1), .. });
    let mut group = Group::new(subject, 3);
    let mut leaving = Some(group.remove(1));
    for number in 0..BROADCASTS {
        if number == BROADCASTS / 3 {
            drop(leaving.take());
        }
        let refusals = broadcast(&mut *group.nodes[0], &[1, 2], message(NodeId(0), number, 300));
        assert!(refusals.iter().all(|(node, _)| *node == NodeId(1)), "{refusals:?}");
        [0, 1].into_iter().for_each(|place| group.step(place));
    }
    let mut all = group.take(1, BROADCASTS as usize + 1, &[0, 1]);
    all.retain(|item| !is_loss(item));
    assert_eq!(all.len() as u64, BROADCASTS);
    (0..BROADCASTS).zip(&all).for_each(|(number, item)| expect(item, NodeId(0), number));
    let lost = group.take(0, 1, &[0, 1]);
    assert!(lost.len() == 1 && is_loss(&lost[0]), "{lost:?}");
    let refusals = broadcast(&mut *group.nodes[0], &[1, 2], message(NodeId(0), 7, 10));
    assert_eq!(refusals, [(NodeId(1), SendError::Lost)]);
    expect(&group.take(1, 1, &[0, 1])[0], NodeId(0), 7);
}

pub(super) fn lost_sender(subject: &Subject<'_>) {
    const BROADCASTS: u64 = 100;
    let mut group = Group::new(subject, 3);
    let mut leaving = group.remove(0);
    for number in 0..BROADCASTS {
        assert_eq!(broadcast(&mut *leaving, &[1, 2], message(NodeId(0), number, 300)), []);
    }
    flush_all(&mut *leaving);
    drop(leaving);
    for place in [0, 1] {
        let all = group.take(place, BROADCASTS as usize + 1, &[0, 1]);
        (0..BROADCASTS).zip(&all).for_each(|(number, item)| expect(item, NodeId(0), number));
        assert!(matches!(all.last(), Some(Received::Lost { peer: NodeId(0), .. })), "the loss comes last");
    }
}

pub(super) fn no_receivers(subject: &Subject<'_>) {
    let mut group = Group::new(subject, 2);
    assert_eq!(broadcast(&mut *group.nodes[0], &[], message(NodeId(0), 0, 1)), []);
    let refusals = broadcast(&mut *group.nodes[0], &[0, 1, 2, 1000], message(NodeId(0), 0, 1));
    assert_eq!(refusals, [0, 2, 1000].map(|node| (NodeId(node), SendError::Lost)));
    expect(&group.take(1, 1, &[0, 1])[0], NodeId(0), 0);
    let (length, limit) = (subject.max_body + 1, subject.max_body);
    let refusals = broadcast(&mut *group.nodes[1], &[0], message(NodeId(1), 0, length));
    assert_eq!(refusals, [(NodeId(0), SendError::TooLarge { length, limit })]);
}

pub(super) fn ends_wait(subject: &Subject<'_>) {
    const BROADCASTS: u64 = 100;
    let mut nodes = (subject.connect)(3).into_iter();
    let mut sender = nodes.next().expect("three nodes");
    let start = Instant::now();
    let receivers: Vec<_> = nodes
        .map(|mut node| {
            std::thread::spawn(move || {
                for number in 0..BROADCASTS {
                    expect(&wait_for_one(&mut *node), NodeId(0), number);
                    node.send(NodeId(0), message(node.local(), number, 8)).expect("the queue is empty");
                    flush_all(&mut *node);
                }
                node
            })
        })
        .collect();
    for number in 0..BROADCASTS {
        assert_eq!(broadcast(&mut *sender, &[1, 2], message(NodeId(0), number, 64)), []);
        for _ in &receivers {
            let Received::Message { from, message } = wait_for_one(&mut *sender) else { panic!("no peer left") };
            assert_eq!(verify(from, &message), number);
        }
    }
    let _nodes: Vec<_> = receivers.into_iter().map(|node| node.join().expect("a receiver does not fail")).collect();
    assert!(start.elapsed() < PATIENCE, "no broadcast ended a wait");
}
