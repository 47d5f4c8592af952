//! The machines of two nodes in virtual time, through losses, doubles, swaps and harm.

use super::*;
use evb_transport::{EndpointOptions, HEAD_BYTES, Message, Received, Token};
use std::collections::BTreeMap;

const SEEDS: u64 = 60;
/// Time of a frame on the wire.
const WAY: Span = Span::from_micros(20);
/// No schedule takes longer.
const LONGEST: Span = Span::from_secs(60);

fn draw(state: &mut u64, bound: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (value ^ value >> 31) % bound
}

/// Two nodes and the wire between them.
struct Pair {
    nodes: [Machine; 2],
    now: Time,
    draws: u64,
    /// Thousandths of the frames that suffer from each fault.
    faults: u64,
    /// Frames under way by the time of their arrival; a counter keeps those of one time apart.
    wire: BTreeMap<(Time, u64), (usize, Vec<u8>)>,
    count: u64,
}

impl Pair {
    fn new(seed: u64, faults: u64) -> Self {
        let node = |node: u16| {
            let options = EthernetOptions::new(EndpointOptions::new(2, Token::new([3; Token::BYTES])));
            let port = Port { mac: Mac([2, 0, 0, 0, 0, node as u8]), mtu: 500, frames: 64 };
            let mut machine = Machine::new(NodeId(node), options, port, false);
            machine.expect(Time::ZERO, NodeId(1 - node), [node as u8 + 1; 16]);
            machine
        };
        Self { nodes: [node(0), node(1)], now: Time::ZERO, draws: seed, faults, wire: BTreeMap::new(), count: 0 }
    }

    /// Puts the frames of a node on the wire.
    fn push_out(&mut self, node: usize) {
        self.nodes[node].pump(self.now);
        let frames: Vec<_> = self.nodes[node].frames().filter(|frame| !frame.is_empty()).map(<[u8]>::to_vec).collect();
        let queued = self.nodes[node].queued();
        self.nodes[node].sent(queued);
        for mut frame in frames {
            let (fault, mut late) = (draw(&mut self.draws, 1000) / self.faults.max(1), 0);
            match fault {
                _ if self.faults == 0 => {}
                0 => continue,
                1 => self.put(node, frame.clone(), 0),
                2 => late = draw(&mut self.draws, 300),
                3 => {
                    let bit = draw(&mut self.draws, 8 * frame.len() as u64);
                    frame[bit as usize / 8] ^= 1 << (bit % 8);
                }
                _ => {}
            }
            self.put(node, frame, late);
        }
    }

    fn put(&mut self, from: usize, frame: Vec<u8>, late_us: u64) {
        self.count += 1;
        let at = Time(self.now.0 + WAY.0 + Span::from_micros(late_us).0);
        self.wire.insert((at, self.count), (1 - from, frame));
    }

    /// Goes on to the next arrival or timer.
    fn step(&mut self) {
        let timer = self.nodes.iter().map(Machine::next_time).min().expect("two nodes");
        let arrival = self.wire.first_key_value().map_or(Time::MAX, |((time, _), _)| *time);
        self.now = self.now.max(timer.min(arrival));
        assert!(self.now < Time(LONGEST.0), "no end");
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (to, frame) = entry.remove();
            self.nodes[to].hear(self.now, &frame);
        }
        for node in 0..2 {
            self.nodes[node].on_time(self.now);
            self.push_out(node);
        }
    }

    fn join(&mut self) {
        while !(0..2).all(|node| self.nodes[node].has_joined(NodeId(1 - node as u16)).unwrap()) {
            self.step();
        }
    }
}

fn message(number: u64, seed: u64) -> Message {
    let mut head = [seed as u8; HEAD_BYTES];
    head[..8].copy_from_slice(&number.to_le_bytes());
    let length = match number % 7 {
        0 => 0,
        1..5 => 40 + number as usize % 60,
        _ => 3000,
    };
    Message { head, body: vec![number as u8; length].into() }
}

/// Messages go both ways; each node takes some of them at a time.
fn exchange(seed: u64, faults: u64) -> Pair {
    const MESSAGES: u64 = 400;
    let mut pair = Pair::new(seed, faults);
    pair.join();
    let (mut sent, mut got) = ([0; 2], [0; 2]);
    while got != [MESSAGES; 2] {
        for node in 0..2 {
            let peer = NodeId(1 - node as u16);
            while sent[node] < MESSAGES && draw(&mut pair.draws, 4) > 0 {
                pair.nodes[node].send(peer, message(sent[node], seed)).expect("room");
                sent[node] += 1;
            }
            let (mut sink, most) = (Vec::new(), draw(&mut pair.draws, 20) as usize);
            pair.nodes[node].receive(pair.now, most, &mut sink);
            for item in sink {
                let Received::Message { from, message: got_message } = item else { panic!("seed {seed}: {item:?}") };
                assert!(
                    from == peer && got_message == message(got[node], seed),
                    "seed {seed}: {} of {from}",
                    got[node]
                );
                got[node] += 1;
            }
            pair.push_out(node);
        }
        pair.step();
    }
    pair
}

#[test]
fn every_message_arrives_once_and_in_order_whatever_happens_on_the_wire() {
    for seed in 0..SEEDS {
        let faults = [10, 50, 150][seed as usize % 3];
        let pair = exchange(seed, faults);
        let counts = pair.nodes.each_ref().map(Machine::counts);
        assert!(counts.iter().any(|counts| counts.sent_again > 0), "seed {seed}: nothing was lost, {counts:?}");
    }
}

#[test]
fn nothing_is_sent_twice_over_a_good_wire() {
    for seed in 0..SEEDS {
        let pair = exchange(seed, 0);
        for counts in pair.nodes.each_ref().map(Machine::counts) {
            assert_eq!((counts.sent_again, counts.came_again, counts.harmed), (0, 0, 0), "seed {seed}");
        }
    }
}

/// A receiver that takes nothing is sent no more than it has granted, and nothing is lost.
#[test]
fn a_full_receiver_stops_its_sender_and_loses_nothing() {
    let mut pair = Pair::new(1, 0);
    pair.join();
    for number in 0..2000 {
        pair.nodes[0].send(NodeId(1), message(number, 1)).expect("room");
    }
    pair.push_out(0);
    let end = Time(pair.now.0 + Span::from_secs(2).0);
    while pair.now < end {
        pair.step();
    }
    assert!(!pair.nodes[0].is_sent() && pair.nodes[0].counts().sent_again == 0, "{:?}", pair.nodes[0].counts());
    let (mut next, mut sink) = (0, Vec::new());
    while next < 2000 {
        pair.nodes[1].receive(pair.now, 100, &mut sink);
        for item in sink.drain(..) {
            assert_eq!(item, Received::Message { from: NodeId(0), message: message(next, 1) });
            next += 1;
        }
        pair.push_out(1);
        pair.step();
    }
}

/// What was sent before the goodbye comes before the loss.
#[test]
fn a_goodbye_comes_last() {
    for seed in 0..SEEDS {
        let mut pair = Pair::new(seed, 100);
        pair.join();
        (0..50).for_each(|number| pair.nodes[0].send(NodeId(1), message(number, seed)).expect("room"));
        let now = pair.now;
        pair.nodes[0].say_goodbye(now);
        let mut sink = Vec::new();
        while !matches!(sink.last(), Some(Received::Lost { .. })) {
            pair.push_out(0);
            pair.step();
            pair.nodes[1].receive(pair.now, 7, &mut sink);
        }
        assert_eq!(sink.len(), 51, "seed {seed}");
        assert_eq!(sink[50], Received::Lost { peer: NodeId(0), reason: "it left".into() });
        while !pair.nodes[0].is_settled() {
            pair.step();
        }
    }
}

/// A peer is given up after its silence, not before.
#[test]
fn only_silence_makes_a_peer_lost() {
    let mut pair = Pair::new(5, 0);
    pair.join();
    let begin = pair.now;
    while pair.now < Time(begin.0 + Span::from_secs(30).0) {
        pair.step();
        assert!(!pair.nodes[0].is_readable(), "an idle peer was given up");
    }
    let (stop, mut sink) = (pair.now, Vec::new());
    while pair.nodes[0].receive(pair.now, 1, &mut sink) == 0 {
        pair.wire.clear();
        pair.now = pair.nodes[0].next_time();
        pair.nodes[0].on_time(pair.now);
        let queued = pair.nodes[0].queued();
        pair.nodes[0].sent(queued);
    }
    let silence = pair.now.since(stop).as_secs_f64();
    assert!((9.9..12.6).contains(&silence), "{silence} s: {sink:?}");
}

#[test]
fn frames_of_another_session_or_run_change_nothing() {
    let mut pair = Pair::new(9, 0);
    pair.join();
    pair.nodes[0].send(NodeId(1), message(1, 9)).expect("room");
    pair.nodes[0].pump(pair.now);
    let frame = pair.nodes[0].frames().next().expect("a frame").to_vec();
    for (at, run) in [(16, 0), (4, 1)] {
        let mut strange = frame.clone();
        let (mut header, _) = Header::parse(&frame[14..]).expect("a frame");
        header.session ^= u64::from(at == 16);
        header.run ^= run;
        header.seal(&mut strange[14..]);
        let before = pair.nodes[1].counts().foreign;
        pair.nodes[1].hear(pair.now, &strange);
        assert_eq!(pair.nodes[1].counts().foreign, before + 1);
        assert!(!pair.nodes[1].is_readable());
    }
    pair.nodes[1].hear(pair.now, &frame);
    pair.nodes[1].hear(pair.now, &frame);
    let mut sink = Vec::new();
    assert_eq!(pair.nodes[1].receive(pair.now, 10, &mut sink), 1, "a frame counts once");
}

/// Nodes with another token do not join, and the token is in no frame.
#[test]
fn a_stranger_does_not_join() {
    let mut pair = Pair::new(2, 0);
    let options = EthernetOptions::new(EndpointOptions::new(2, Token::new([4; Token::BYTES])));
    let mut stranger = Machine::new(NodeId(1), options, Port { mac: Mac([9; 6]), mtu: 500, frames: 64 }, false);
    stranger.expect(Time::ZERO, NodeId(0), [7; 16]);
    pair.nodes[1] = stranger;
    while pair.now < Time(Span::from_secs(1).0) {
        pair.step();
        assert!(pair.wire.values().all(|(_, frame)| !frame.windows(8).any(|bytes| bytes == [3; 8] || bytes == [4; 8])));
    }
    assert!(!pair.nodes[0].has_joined(NodeId(1)).unwrap() && pair.nodes[0].counts().foreign > 0);
}
