//! Two bonds over links in memory, in virtual time: links that are slow, full, silent and dead at any moment.

use super::{BondOptions, Stripe, machine::Machine};
use evb_core::{NodeId, Span, Time};
use evb_transport::{DeadLink, HEAD_BYTES, Message, Received, SendError};
use proptest::prelude::*;
use std::collections::VecDeque;

const WINDOW: usize = 256 << 10;
/// Messages that a link holds in each direction.
const LINK_MESSAGES: usize = 40;

/// One link: what is under way in each direction, and when it died.
#[derive(Default)]
struct Wire {
    under_way: [VecDeque<Message>; 2],
    /// It delivers nothing, which is not known yet.
    is_silent: bool,
    is_lost: bool,
}

/// Two nodes, and the user of each.
struct Lab {
    now: Time,
    nodes: [Machine; 2],
    wires: Vec<Wire>,
    sent: [u64; 2],
    received: [u64; 2],
    draw: u64,
}

impl Lab {
    fn new(links: usize, stripe: Stripe, seed: u64) -> Self {
        Self::with_window(links, stripe, seed, WINDOW)
    }

    fn with_window(links: usize, stripe: Stripe, seed: u64, window_bytes: usize) -> Self {
        let names = (0..links).map(|link| format!("link {link}")).collect();
        let options = BondOptions { stripe, window_bytes, ..BondOptions::new(names, 1 << 20) };
        let nodes = [0, 1].map(|node| {
            let mut machine = Machine::new(NodeId(node), options.clone());
            machine.join(Time::ZERO, NodeId(1 - node));
            machine
        });
        let wires = (0..links).map(|_| Wire::default()).collect();
        Self { now: Time::ZERO, nodes, wires, sent: [0; 2], received: [0; 2], draw: seed }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.draw = self.draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.draw >> 33) as usize % bound
    }

    fn peer(node: usize) -> NodeId {
        NodeId(1 - node as u16)
    }

    /// A message whose bytes follow from its number.
    fn message(number: u64) -> Message {
        let length = [0, 10, 2000, 100, 150_000, 64 << 10, 1][number as usize % 7] + number as usize % 5;
        let mut head = [number as u8; HEAD_BYTES];
        head[..8].copy_from_slice(&number.to_le_bytes());
        Message { head, body: (0..length).map(|at| (at as u64 * 7 + number) as u8).collect::<Vec<_>>().into() }
    }

    fn send(&mut self, node: usize) {
        match self.nodes[node].send(Self::peer(node), Self::message(self.sent[node])) {
            Ok(()) => self.sent[node] += 1,
            Err(error) => assert!(matches!(error, SendError::Full(_)), "{error}"),
        }
    }

    fn pump(&mut self, node: usize) {
        let wires = &mut self.wires;
        self.nodes[node].on_time(self.now);
        self.nodes[node].pump(self.now, &mut |link, _, message| {
            let wire = &mut wires[link];
            if wire.is_lost {
                return Err(SendError::Lost);
            } else if wire.under_way[node].len() >= LINK_MESSAGES {
                return Err(SendError::Full(message));
            }
            wire.under_way[node].push_back(message);
            Ok(())
        });
    }

    /// Delivers some messages of a link.
    fn deliver(&mut self, link: usize, from: usize, count: usize) {
        for _ in 0..count {
            let wire = &mut self.wires[link];
            let Some(message) = wire.under_way[from].pop_front().filter(|_| !wire.is_silent) else { return };
            let received = Received::Message { from: NodeId(from as u16), message };
            self.nodes[1 - from].hear(self.now, link, received);
        }
    }

    fn receive(&mut self, node: usize, limit: usize) {
        let mut sink = Vec::new();
        self.nodes[node].receive(self.now, limit, &mut sink);
        for item in sink {
            let Received::Message { from, message } = item else { panic!("no peer is lost, but {item:?}") };
            assert_eq!(from, Self::peer(node));
            assert!(message == Self::message(self.received[node]), "message {} to node {node}", self.received[node]);
            self.received[node] += 1;
        }
    }

    /// Both members of a link report its loss.
    fn lose(&mut self, link: usize) {
        self.wires[link].is_lost = true;
        for node in 0..2 {
            // What had arrived before may be given first, or not.
            let given = self.below(3);
            if !self.wires[link].is_silent {
                self.deliver(link, 1 - node, given);
            }
            let lost = Received::Lost { peer: Self::peer(node), reason: "cut".into() };
            self.nodes[node].hear(self.now, link, lost);
        }
        self.wires[link].under_way = Default::default();
    }

    fn step(&mut self) {
        let (node, link) = (self.below(2), self.below(self.wires.len()));
        match self.below(6) {
            0 | 1 => (0..self.below(8)).for_each(|_| self.send(node)),
            2 => self.pump(node),
            3 | 4 => {
                let count = self.below(30);
                self.deliver(link, node, count);
            }
            _ => {
                let limit = self.below(20);
                self.receive(node, limit);
            }
        }
        self.now = self.now + Span::from_micros(self.below(2000) as u64);
    }

    /// Lets everything arrive.
    fn settle(&mut self) {
        for _ in 0..20_000 {
            for node in 0..2 {
                self.pump(node);
                (0..self.wires.len()).for_each(|link| self.deliver(link, node, 100));
                self.receive(node, 100);
            }
            self.now = self.now + Span::from_millis(5);
            if self.received[1] == self.sent[0] && self.received[0] == self.sent[1] {
                return;
            }
        }
        panic!("not all arrives: sent {:?}, received {:?}", self.sent, self.received);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    /// Links fall silent and are lost at any moment; one lives.
    #[test]
    fn nothing_is_lost_with_a_link(seed: u64, links in 2..4_usize, stripe in 0..3_usize, silent_for in 0..400_usize) {
        let mut lab = Lab::new(links, Stripe::ALL[stripe], seed);
        let (dies, moment) = (1 + lab.below(links - 1), 50 + lab.below(400));
        for step in 0..800 {
            if step == moment {
                (0..dies).for_each(|link| lab.wires[link].is_silent = lab.draw & 1 == 0);
            } else if step == moment + silent_for {
                (0..dies).for_each(|link| lab.lose(link));
            }
            lab.step();
        }
        lab.settle();
    }

    /// A link is much slower than the other, and everything arrives over both.
    #[test]
    fn slow_nodes_are_not_given_up(seed: u64, stripe in 0..3_usize) {
        let mut lab = Lab::new(2, Stripe::ALL[stripe], seed);
        for step in 0..600 {
            lab.wires[0].is_silent = false;
            for node in 0..2 {
                lab.send(node);
                lab.pump(node);
                lab.deliver(1, node, 50);
                if step % 150 == 149 {
                    lab.deliver(0, node, 5);
                }
                lab.receive(node, 50);
            }
            lab.now = lab.now + Span::from_millis(5);
        }
        lab.settle();
        lab.now = lab.now + Span::from_secs(5);
        (0..2).for_each(|node| lab.pump(node));
        prop_assert!(lab.nodes.iter().all(|node| node.dead.is_empty()));
    }
}

/// A silent link holds messages up for the time of a doubt, not until it is lost.
#[test]
fn a_silent_link_is_passed_after_a_doubt() {
    let mut lab = Lab::new(2, Stripe::Message, 1);
    lab.wires[0].is_silent = true;
    let start = lab.now;
    (0..30).for_each(|_| lab.send(0));
    while lab.received[1] < lab.sent[0] {
        for node in 0..2 {
            lab.pump(node);
            (0..2).for_each(|link| lab.deliver(link, node, 100));
            lab.receive(node, 100);
        }
        lab.now = lab.now + Span::from_millis(1);
        assert!(lab.now.since(start) < Span::from_millis(700), "the doubt comes too late");
    }
}

#[test]
fn a_dead_link_is_reported_once_if_the_peer_lives() {
    let mut lab = Lab::new(2, Stripe::Message, 1);
    lab.lose(1);
    for _ in 0..3 {
        lab.now = lab.now + Span::from_secs(2);
        (0..2).for_each(|node| lab.pump(node));
    }
    let dead = |peer| vec![DeadLink { link: "link 1".into(), peer: NodeId(peer), reason: "cut".into() }];
    assert_eq!([&lab.nodes[0].dead, &lab.nodes[1].dead], [&dead(1), &dead(0)]);
    lab.lose(0);
    let mut sink = Vec::new();
    lab.nodes[0].receive(lab.now, 9, &mut sink);
    assert_eq!(sink, [Received::Lost { peer: NodeId(1), reason: "cut".into() }]);
    assert_eq!(lab.nodes[0].send(NodeId(1), Lab::message(0)), Err(SendError::Lost));
}

/// A user that takes nothing bounds what the sender may send, and no link is doubted.
#[test]
fn memory_is_bounded() {
    for stripe in Stripe::ALL {
        let mut lab = Lab::new(2, stripe, 1);
        for _ in 0..2000 {
            lab.send(0);
            lab.pump(0);
            (0..2).for_each(|link| lab.deliver(link, 0, 1000));
            lab.pump(1);
            (0..2).for_each(|link| lab.deliver(link, 1, 1000));
            lab.now = lab.now + Span::from_millis(1);
        }
        let bytes = (0..lab.sent[0]).map(|number| Lab::message(number).body.len()).sum::<usize>();
        assert!(bytes <= WINDOW, "{bytes} bytes");
        lab.settle();
    }
}

#[test]
fn links_share_by_their_rates() {
    let mut lab = Lab::with_window(2, Stripe::Message, 1, 8 << 20);
    let (mut carried, mut credit) = ([0, 0], [0, 0]);
    for _ in 0..4000 {
        (0..9).for_each(|_| lab.send(0));
        lab.pump(0);
        for (link, rate) in [(0, 10_000), (1, 30_000)] {
            credit[link] += rate;
            while let Some(bytes) = lab.wires[link].under_way[0].front().map(|message| message.body.len())
                && bytes <= credit[link]
            {
                credit[link] -= bytes;
                carried[link] += bytes;
                lab.deliver(link, 0, 1);
            }
        }
        lab.receive(1, 100);
        lab.pump(1);
        (0..2).for_each(|link| lab.deliver(link, 1, 100));
        lab.now = lab.now + Span::from_millis(1);
    }
    // The links could carry 40 MB and 120 MB.
    assert!(carried[0] > 30_000_000 && carried[1] > 90_000_000, "{carried:?}");
    lab.settle();
}
