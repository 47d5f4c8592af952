//! The engine under random stores, interruptions and interleavings: the received messages are those that were sent.

use evb_velo::{
    AddressMap, Answer, Endpoint, Engine, EngineOptions, Fault, Faults, Header, HeaderError, LINE_BYTES, StoreError,
    Target,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// 2 nodes with 4 threads each.
fn map() -> AddressMap {
    AddressMap::new(15, 14).unwrap()
}

fn engine() -> Engine {
    Engine::new(EngineOptions { map: map(), credits: 3 })
}

fn endpoint(index: usize) -> Endpoint {
    Endpoint { node: index as u64 / 4, thread: index as u64 % 4 }
}

/// A message whose bytes show its sender and number.
fn message(from: usize, number: u8, length: usize) -> Vec<u8> {
    (0..length).map(|at| (from as u8) << 5 ^ number.wrapping_mul(31) ^ at as u8).collect()
}

/// A thread that sends to one thread, and the rest of its message.
#[derive(Default)]
struct Sender {
    number: u8,
    rest: VecDeque<(u64, Vec<u8>)>,
}

/// A step of the test.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A thread continues its message to a thread, or begins one of `length` bytes that is cut.
    Store {
        from: usize,
        to: usize,
        length: usize,
        cut: usize,
    },
    Move {
        way: usize,
    },
    Take {
        to: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let line = LINE_BYTES as usize;
    prop_oneof![
        (0..8usize, 0..8usize, 1..=line, 1..=2 * line).prop_map(|(from, to, length, cut)| Step::Store {
            from,
            to,
            length,
            cut
        }),
        (0..64usize).prop_map(|way| Step::Move { way }),
        (0..8usize).prop_map(|to| Step::Take { to }),
    ]
}

struct Case {
    engine: Engine,
    senders: BTreeMap<(usize, usize), Sender>,
    /// Messages stored in full, by sender and receiver.
    sent: BTreeMap<(usize, usize), VecDeque<Vec<u8>>>,
}

impl Case {
    fn new() -> Self {
        let mut engine = engine();
        // Thread 3 of each node stays closed.
        (0..8).filter(|to| to % 4 != 3).for_each(|to| {
            assert!(engine.open(to / 4, endpoint(to).thread, 2));
        });
        Self { engine, senders: BTreeMap::new(), sent: BTreeMap::new() }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Store { from, to, length, cut } => self.store(from, to, length, cut),
            Step::Move { way } => _ = self.engine.step(way),
            Step::Take { to } => _ = self.take(to),
        }
    }

    fn store(&mut self, from: usize, to: usize, length: usize, cut: usize) {
        let sender = self.senders.entry((from, to)).or_default();
        if sender.rest.is_empty() {
            let bytes = message(from, sender.number, length);
            self.sent.entry((from, to)).or_default().push_back(bytes.clone());
            let parts = bytes.chunks(cut).scan(0, |at, part| {
                let offset = *at;
                *at += part.len() as u64;
                Some((length as u64, offset, part.to_vec()))
            });
            sender.rest = parts.map(|(length, offset, part)| (length << 32 | offset, part)).collect();
            sender.number = sender.number.wrapping_add(1);
        }
        self.go_on(from, to);
    }

    fn go_on(&mut self, from: usize, to: usize) {
        let sender = self.senders.get_mut(&(from, to)).unwrap();
        let Some((place, part)) = sender.rest.front() else { return };
        let Endpoint { node, thread } = endpoint(to);
        let target = Target { node, thread, length: place >> 32, offset: place & 0xffff_ffff };
        let address = map().encode(target).unwrap();
        match self.engine.store(from / 4, endpoint(from).thread, address, part) {
            Ok(()) => drop(sender.rest.pop_front()),
            Err(error) => assert_eq!(error, StoreError::Full),
        }
    }

    /// Reads one message and compares it with the next of its sender.
    fn take(&mut self, to: usize) -> bool {
        let Some(entry) = self.engine.take(to / 4, endpoint(to).thread) else { return false };
        assert_ne!(to % 4, 3, "a closed mailbox");
        let from = (entry.source.node * 4 + entry.source.thread) as usize;
        let wanted = self.sent.get_mut(&(from, to)).and_then(VecDeque::pop_front);
        assert_eq!(wanted.as_deref(), Some(entry.bytes()), "from {from} to {to}");
        assert!(entry.data[entry.length as usize..].iter().all(|&byte| byte == 0));
        true
    }

    /// Completes all messages and reads them: there is progress after any back-pressure.
    fn finish(&mut self) {
        let pairs: Vec<_> = self.senders.keys().copied().collect();
        for _ in 0..10_000 {
            pairs.iter().for_each(|&(from, to)| self.go_on(from, to));
            (0..self.engine.ways()).for_each(|way| _ = self.engine.step(way));
            (0..8).for_each(|to| _ = self.take(to));
            if self.engine.is_idle() && self.senders.values().all(|sender| sender.rest.is_empty()) {
                while (0..8).any(|to| self.take(to)) {}
                return;
            }
        }
        panic!("no end");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn messages_arrive_once_whole_and_in_order(steps in prop::collection::vec(step(), 1..400)) {
        let mut case = Case::new();
        steps.into_iter().for_each(|step| case.run(step));
        case.finish();
        for ((from, to), left) in &case.sent {
            prop_assert!(to % 4 == 3 || left.is_empty(), "from {} to {}: {} are missing", from, to, left.len());
        }
        for node in 0..2 {
            let faults = case.engine.completer(node).faults();
            prop_assert_eq!(Faults { closed: 0, ..faults }, Faults::default());
        }
        for to in 0..8 {
            let recombiner = case.engine.recombiner(to / 4, endpoint(to).thread);
            prop_assert_eq!((recombiner.partials(), recombiner.faults()), (0, 0));
        }
    }

    /// Any word is a header or an error, and a header comes back as it was.
    #[test]
    fn headers_are_one_to_one(word in any::<u64>(), n in 12..=34u32, below in 0..=22u32) {
        let map = AddressMap::new(n, (n - below.min(n - 12)).max(12)).unwrap();
        let plausible = word & !(1 << 62) | 1 << 63;
        for word in [word, plausible] {
            if let Ok(header) = Header::decode(word, map) {
                prop_assert_eq!(header.encode(map), Ok(word));
            }
        }
    }
}

fn header(length: u64, offset: u64, data: u64) -> Header {
    Header { source: endpoint(5), target: endpoint(2), length, offset, data }
}

#[test]
fn a_header_has_its_bits_where_they_are_said_to_be() {
    let word = header(64, 8, 56).encode(map()).unwrap();
    assert_eq!(word, 1 << 63 | 5 << 40 | 2 << 18 | 55 << 12 | 63 << 6 | 8);
    assert_eq!(Header::decode(word, map()), Ok(header(64, 8, 56)));
    assert_eq!(Header::decode(0, map()), Err(HeaderError::Fixed { word: 0 }));
    assert_eq!(header(8, 4, 5).encode(map()), Err(HeaderError::Data { data: 5, offset: 4, length: 8 }));
    let large = AddressMap::new(35, 20).unwrap();
    assert_eq!(header(8, 0, 8).encode(large), Err(HeaderError::Map { threads: 1 << 23 }));
}

/// A completer with one open mailbox, and a way to send it any packet.
fn send(engine: &mut Engine, thread: u64, length: u64, offset: u64, data: &[u8]) -> Answer {
    let address = map().encode(Target { node: 1, thread: 0, length, offset }).unwrap();
    engine.store(0, thread, address, data).unwrap();
    let way = (0..engine.ways()).find_map(|way| engine.step(way));
    way.expect("a packet is under way")
}

#[test]
fn inconsistent_fragments_are_counted_and_harm_no_other() {
    let mut engine = engine();
    assert_eq!(send(&mut engine, 0, 8, 0, &[1; 8]), Answer::Dropped(Fault::Closed));
    assert!(engine.open(1, 0, 16));
    let mut put = |thread, length, offset, data: &[u8]| {
        assert_eq!(
            send(&mut engine, thread, length, offset, data),
            Answer::Delivered,
            "the completer puts in any part"
        );
    };
    put(1, 8, 0, &[1; 4]);
    put(0, 8, 4, &[1; 4]);
    for (length, offset) in [(16, 2), (16, 6), (12, 4)] {
        put(0, 16, 0, &[1; 4]);
        put(0, length, offset, &[1; 2]);
    }
    put(0, 16, 0, &[1; 4]);
    put(0, 3, 0, &[7; 3]);
    put(1, 8, 4, &[2; 4]);
    assert_eq!(engine.take(1, 0).unwrap().bytes(), [7; 3], "a new message after one that never ended");
    assert_eq!(engine.take(1, 0).unwrap().bytes(), [1, 1, 1, 1, 2, 2, 2, 2], "of the other thread");
    assert_eq!(engine.take(1, 0), None);
    let recombiner = engine.recombiner(1, 0);
    assert_eq!((recombiner.partials(), recombiner.faults()), (0, 5), "nothing begun; overlap, hole, length; no end");
    assert_eq!(engine.completer(1).faults(), Faults { closed: 1, ..Faults::default() });
    assert_eq!(engine.completer(1).received(), 11);
}

#[test]
fn a_full_mailbox_refuses_and_loses_nothing() {
    let mut engine = engine();
    assert!(engine.open(1, 0, 1));
    assert_eq!(send(&mut engine, 0, 8, 0, &[1; 4]), Answer::Delivered);
    assert_eq!(send(&mut engine, 1, 8, 0, &[2; 8]), Answer::Full, "the mailbox has room for one");
    assert_eq!(engine.take(1, 0), None, "half a message");
    assert_eq!(engine.recombiner(1, 0).partials(), 1);
    assert!((0..engine.ways()).any(|way| engine.step(way) == Some(Answer::Delivered)), "it came again");
    assert_eq!(engine.take(1, 0).unwrap().bytes(), [2; 8], "others pass a message that is not whole");
    assert_eq!(send(&mut engine, 0, 8, 4, &[1; 4]), Answer::Delivered);
    assert_eq!(engine.take(1, 0).unwrap().bytes(), [1; 8]);
}

/// Parts of two messages could form one if the buffer survived: the part between them was in the old mailbox.
#[test]
fn a_mailbox_that_is_opened_again_has_parts_of_nothing() {
    let mut engine = engine();
    assert!(engine.open(1, 0, 4));
    send(&mut engine, 0, 8, 0, &[1; 4]);
    assert_eq!(engine.take(1, 0), None);
    engine.close(1, 0);
    assert_eq!(send(&mut engine, 0, 8, 4, &[1; 4]), Answer::Dropped(Fault::Closed));
    assert!(engine.open(1, 0, 4));
    send(&mut engine, 0, 8, 4, &[2; 4]);
    assert_eq!(engine.take(1, 0), None);
    assert_eq!(engine.recombiner(1, 0).faults(), 1);
}
