//! Lanes against a plain queue and against the model of the engine, and faults that an accepted sender can cause on
//! purpose.

use super::{
    Shm, ShmOptions,
    lane::{CONTROL_WORDS, Consumer, Producer, longest},
    link::SharedLink,
    record::{Record, RecordKind},
};
use bytes::Bytes;
use evb_core::NodeId;
use evb_transport::{EndpointOptions, HEAD_BYTES, Message, Received, Token, Transport};
use evb_velo::{AddressMap, Answer, Completer, LINE_BYTES, Requester, Target};
use proptest::prelude::*;
use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

mod life;

const PATIENCE: Duration = Duration::from_secs(60);

/// One node with one thread.
fn map() -> AddressMap {
    AddressMap::new(12, 12).unwrap()
}

#[derive(Clone)]
struct Memory(Arc<[AtomicU64]>);

impl AsRef<[AtomicU64]> for Memory {
    fn as_ref(&self) -> &[AtomicU64] {
        &self.0
    }
}

/// Both sides of a lane, a queue with the expected content, and the completer of the engine for messages of a line.
struct Case {
    producer: Producer<Memory>,
    consumer: Consumer<Memory>,
    credit: AtomicU64,
    queue: VecDeque<Vec<u8>>,
    completer: Completer,
    number: u8,
}

impl Case {
    fn new(ring: usize, first: u64) -> Self {
        let memory = Memory((0..CONTROL_WORDS + ring).map(|_| AtomicU64::new(0)).collect());
        let mut completer = Completer::new(map(), 0);
        assert!(completer.open(0, ring));
        Self {
            producer: Producer::new(memory.clone(), first),
            consumer: Consumer::new(memory, first),
            credit: AtomicU64::new(first),
            queue: VecDeque::new(),
            completer,
            number: 0,
        }
    }

    fn send(&mut self, length: usize) -> bool {
        self.number = self.number.wrapping_add(1);
        let bytes: Vec<_> = (0..length).map(|at| self.number ^ at as u8).collect();
        let head = length.min(8) / 8 * 8;
        let sent = self.producer.push(RecordKind::Whole, &bytes[..head], &bytes[head..], &self.credit);
        if sent {
            if length as u64 <= LINE_BYTES {
                let address = map().encode(Target { node: 0, thread: 0, length: length as u64, offset: 0 }).unwrap();
                let packet = Requester::new(map(), 0).store(0, address, &bytes).unwrap();
                assert_eq!(self.completer.accept(&packet), Answer::Delivered);
            }
            self.queue.push_back(bytes);
        }
        sent
    }

    /// All that was sent since the last time is one batch.
    fn receive(&mut self) -> bool {
        self.producer.publish();
        let record = self.consumer.next().expect("the sender is honest");
        assert_eq!(record.map(|record| record.length), self.queue.front().map(Vec::len));
        let Some(record) = record else { return false };
        let mut bytes = vec![0; record.length];
        self.consumer.read(record, 0, &mut bytes);
        self.consumer.advance(record, &self.credit);
        if record.length as u64 <= LINE_BYTES {
            assert_eq!(self.completer.take(0).expect("the engine has it too").bytes(), bytes);
        }
        assert_eq!(self.queue.pop_front(), Some(bytes));
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_lane_is_a_bounded_queue(
        power in 4..8u32,
        first in 0..256u64,
        steps in prop::collection::vec((any::<bool>(), 1..2000usize), 1..400),
    ) {
        let ring = 1 << power;
        let mut case = Case::new(ring, first % ring as u64);
        for (send, value) in steps {
            _ = if send { case.send(1 + value % longest(ring)) } else { case.receive() };
        }
        while case.receive() {}
        prop_assert!(case.send(longest(ring)), "an empty ring takes any record");
    }
}

#[test]
fn a_full_ring_has_room_for_the_largest_record_once_it_is_read() {
    for first in 0..64 {
        let mut case = Case::new(64, first);
        while case.send(8) {}
        while case.receive() {}
        assert!(case.send(longest(64)), "from {first}");
    }
}

fn three() -> Vec<Shm> {
    nodes(Duration::from_secs(10))
}

/// Three nodes that are joined.
fn nodes(peer_timeout: Duration) -> Vec<Shm> {
    let token = Token::new([4; Token::BYTES]);
    let endpoint = EndpointOptions { peer_timeout, max_body: 100_000, ..EndpointOptions::new(3, token) };
    let options = ShmOptions { ring_bytes: 64 << 10, pool_bytes: 64 << 10, ..ShmOptions::new(endpoint) };
    let nodes: Vec<_> = (0..3).map(|node| Shm::bind(NodeId(node), options.clone()).unwrap()).collect();
    let names: Vec<_> = nodes.iter().map(|node| (Transport::local(node), node.name.clone())).collect();
    let join = |mut node: Shm| {
        let peers: Vec<_> = names.iter().filter(|peer| peer.0 != Transport::local(&node)).cloned().collect();
        std::thread::spawn(move || node.connect(&peers).map(|()| node).unwrap())
    };
    let joining: Vec<_> = nodes.into_iter().map(join).collect();
    joining.into_iter().map(|node| node.join().unwrap()).collect()
}

fn mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value ^ value >> 27
}

/// Writes arbitrary words, or headers of any kind followed by arbitrary words.
fn write_garbage(words: &[AtomicU64], seed: u64) {
    let mut state = seed;
    let kinds = [RecordKind::Pad, RecordKind::Whole, RecordKind::Lent, RecordKind::Begin, RecordKind::Piece];
    for word in words {
        let draw = mix(&mut state);
        let length = 1 + mix(&mut state) as usize % [8, 60, 3000, 1 << 30][draw as usize % 4];
        let header = Record { kind: kinds[(draw >> 8) as usize % 5], length }.encode();
        let value = match (draw >> 16) % 4 {
            _ if seed.is_multiple_of(3) => draw,
            0 | 1 => header,
            2 => draw % 70_000,
            _ => draw,
        };
        word.store(value, Ordering::Relaxed);
    }
}

/// Messages at node 0: the numbers from the honest node, and the reason for the loss of the malicious one.
#[derive(Default)]
struct Heard {
    numbers: Vec<u8>,
    lost: Vec<String>,
}

impl Heard {
    fn listen(&mut self, receiver: &mut Shm, seed: u64) {
        let mut sink = Vec::new();
        receiver.receive(100, &mut sink);
        for item in sink {
            match item {
                Received::Message { from: NodeId(2), message } => {
                    assert!(message.body.iter().all(|&byte| byte == message.head[0]));
                    self.numbers.push(message.head[0]);
                }
                Received::Message { from, .. } => assert_eq!(from, NodeId(1), "seed {seed}"),
                Received::Lost { peer, reason } => {
                    assert_eq!(peer, NodeId(1), "seed {seed}");
                    self.lost.push(reason);
                }
            }
        }
    }
}

/// Words that look like messages are messages. All others must be noticed, and none may cause harm.
#[test]
fn garbage_in_a_lane_costs_only_its_sender_the_connection() {
    let mut broken = 0;
    for seed in 0..30 {
        let mut nodes = three();
        let (mut honest, villain, mut receiver) = (nodes.remove(2), nodes.remove(1), nodes.remove(0));
        write_garbage(villain.peers[0].as_ref().unwrap().lane().all_words(), seed);
        for number in 0..20 {
            let message = Message { head: [number; HEAD_BYTES], body: Bytes::from(vec![number; 3000]) };
            honest.send(NodeId(0), message).unwrap();
        }
        let (mut heard, start) = (Heard::default(), Instant::now());
        let mut villain = Some(villain);
        for round in 0.. {
            honest.flush();
            heard.listen(&mut receiver, seed);
            if round == 500 {
                villain = None;
            } else if round > 500 {
                receiver.wait(Duration::from_millis(1));
            }
            if villain.is_none() && heard.numbers.len() == 20 && !heard.lost.is_empty() {
                break;
            }
            assert!(start.elapsed() < PATIENCE, "seed {seed}: no end; {:?}", heard.lost);
        }
        assert_eq!(heard.numbers, (0..20).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(heard.lost.len(), 1, "seed {seed}");
        broken += u32::from(heard.lost[0].starts_with("its lane is broken"));
    }
    assert!(broken >= 20, "only {broken} of 30 were noticed");
}

#[test]
fn the_socket_of_a_link_lives_as_long_as_bodies() {
    let mut nodes = three();
    let body = nodes[1].buffers().unwrap().take(5000).map(|mut buffer| {
        buffer.as_mut().fill(9);
        buffer.freeze(4000)
    });
    let body = body.expect("the pool is empty");
    let place = body.as_ptr();
    nodes[1].send(NodeId(0), Message { head: [0; HEAD_BYTES], body }).unwrap();
    Transport::flush(&mut nodes[1]);
    let sent = nodes[1].peers[0].as_ref().unwrap();
    assert!(!sent.lending.is_empty(), "it went by reference");
    let mut sink = Vec::new();
    while nodes[0].receive(1, &mut sink) == 0 {}
    let Some(Received::Message { message, .. }) = sink.pop() else { panic!("a message") };
    assert!(message.body.len() == 4000 && message.body.iter().all(|&byte| byte == 9));
    assert_ne!(message.body.as_ptr(), place, "the other mapping of the same memory");
    drop(nodes.remove(0));
    let start = Instant::now();
    while nodes[0].receive(1, &mut sink) == 0 {
        nodes[0].wait(PATIENCE);
        assert!(start.elapsed() < PATIENCE);
    }
    assert!(matches!(&sink[0], Received::Lost { peer: NodeId(0), reason } if reason == "it left"), "{sink:?}");
    assert_eq!(nodes[0].leaving.len(), 1, "the body is still read");
    assert!(nodes[0].buffers().unwrap().take(64 << 10).is_none());
    drop(message);
    nodes[0].collect_from_leaving();
    assert!(nodes[0].leaving.is_empty() && nodes[0].buffers().unwrap().take(64 << 10).is_some());
}

fn body_of(received: Received) -> Bytes {
    let Received::Message { message, .. } = received else { panic!("a message, not {received:?}") };
    message.body
}

/// A link can be dropped and used by any thread, because bodies can.
#[test]
fn links_may_be_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<SharedLink>();
}
