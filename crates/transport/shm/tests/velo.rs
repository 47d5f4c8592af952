//! The traffic of the hardware tests, through shared memory: the same stores give the same messages.
//!
//! Each thread of the vectors is an endpoint and a thread of this process. A store becomes a packet as in the hardware,
//! its words go through the lane to its target, and the receiver assembles the messages.
#![cfg(target_os = "linux")]

mod support;

use evb_core::NodeId;
use evb_transport::{EndpointOptions, MessageLayer, Refused, Token, conformance::PATIENCE};
use evb_transport_shm::{Shm, ShmOptions};
use evb_velo::{AddressMap, Packet, Recombiner, Requester};
use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};
use support::shm_nodes;

/// A node and a thread there.
type MailboxId = (u64, u64);

/// Messages as hexadecimal digits, in order, by sender.
type Messages = BTreeMap<MailboxId, Vec<String>>;

/// Sends of a thread, and the messages that it must receive.
#[derive(Default)]
struct ThreadTraffic {
    /// Receivers and the bytes of packets.
    packets: Vec<(MailboxId, Vec<u8>)>,
    messages: Messages,
    /// Packets of these messages.
    slots: usize,
}

/// The map and the parts of all threads.
fn parse(text: &str) -> (AddressMap, BTreeMap<MailboxId, ThreadTraffic>) {
    let (mut map, mut parts) = (AddressMap::new(28, 20).unwrap(), BTreeMap::<MailboxId, ThreadTraffic>::new());
    for line in text.lines() {
        let words: Vec<_> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let number = |at: usize| u64::from_str_radix(words[at], 16).unwrap_or_else(|error| panic!("{line}: {error}"));
        let place = || (number(1), number(2));
        match words.first().copied() {
            None => {}
            Some("map") => map = AddressMap::new(number(1) as u32, number(2) as u32).unwrap(),
            Some("open") => drop(parts.insert(place(), ThreadTraffic::default())),
            Some("store") => {
                let store: Vec<_> = (2..words.len()).map(number).collect();
                let packet = Requester::new(map, number(1)).post(&store).unwrap();
                let (source, target) = (packet.header.source, packet.header.target);
                let bytes = packet.words(map).unwrap().iter().flat_map(|word| word.to_le_bytes()).collect();
                let part = parts.get_mut(&(source.node, source.thread)).unwrap_or_else(|| panic!("{line}: not open"));
                part.packets.push(((target.node, target.thread), bytes));
            }
            Some("slot") => parts.get_mut(&place()).unwrap().slots += 1,
            Some("take") => {
                let source = (number(3) >> map.thread_bits(), number(3) & (map.threads_per_node() - 1));
                parts.get_mut(&place()).unwrap().messages.entry(source).or_default().push(words[4].to_owned());
            }
            Some(_) => panic!("{line}: no such statement"),
        }
    }
    (map, parts)
}

/// One thread with its endpoint.
struct Worker {
    layer: Shm,
    map: AddressMap,
    places: Vec<MailboxId>,
    recombiner: Recombiner,
    received: usize,
    messages: Messages,
}

impl Worker {
    /// Sends all packets, and receives until all expected ones have arrived.
    fn run(&mut self, packets: &[(MailboxId, Vec<u8>)], slots: usize) {
        let (start, mut packets) = (Instant::now(), packets.iter().peekable());
        loop {
            while let Some((to, bytes)) = packets.peek() {
                match self.layer.send(node(&self.places, *to), bytes) {
                    Ok(()) => drop(packets.next()),
                    Err(Refused::Full) => break,
                    Err(error) => panic!("{error}"),
                }
            }
            let is_sent = self.layer.flush() && packets.peek().is_none();
            let count = self.receive();
            if is_sent && self.received == slots {
                return;
            }
            if count == 0 {
                self.layer.wait(Duration::from_millis(1));
            }
            assert!(start.elapsed() < PATIENCE, "{} of {slots} packets", self.received);
        }
    }

    fn receive(&mut self) -> usize {
        let Self { layer, map, places, recombiner, received, messages } = self;
        layer.receive(usize::MAX, &mut |from, bytes| {
            let words: Vec<_> =
                bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
            let packet = Packet::from_words(&words, *map).expect("the words of a packet");
            let source = (packet.header.source.node, packet.header.source.thread);
            assert_eq!(node(places, source), from, "the lane of another thread");
            *received += 1;
            if let Some(entry) = recombiner.accept(&packet) {
                let digits = entry.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
                messages.entry(source).or_default().push(digits);
            }
        })
    }
}

/// The endpoint of a thread.
fn node(places: &[MailboxId], place: MailboxId) -> NodeId {
    let index = places.iter().position(|other| *other == place).unwrap_or_else(|| panic!("{place:?} is not open"));
    NodeId(index as u16)
}

#[test]
fn shared_memory_gives_the_messages_of_the_vectors() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../velo/hardware/vectors/traffic.vec");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (map, parts) = parse(&text);
    for (place, part) in &parts {
        let sent = parts.values().flat_map(|other| &other.packets).filter(|packet| packet.0 == *place);
        assert_eq!(sent.count(), part.slots, "stores and slots for node and thread {place:?}");
    }
    let places: Vec<_> = parts.keys().copied().collect();
    // The smallest rings: they are often full.
    let options =
        ShmOptions { ring_bytes: 4 << 10, ..ShmOptions::new(EndpointOptions::new(2, Token::new([9; Token::BYTES]))) };
    let nodes = shm_nodes(places.len(), &options).into_iter();
    let started: Vec<_> = nodes
        .zip(parts)
        .map(|(layer, (place, part))| {
            let (places, recombiner, messages) = (places.clone(), Recombiner::new(), Messages::new());
            let mut worker = Worker { layer, map, places, recombiner, received: 0, messages };
            let run = move || {
                worker.run(&part.packets, part.slots);
                (worker, part.messages)
            };
            (place, thread::spawn(run))
        })
        .collect();
    // No node leaves before all are done.
    let done: Vec<_> = started.into_iter().map(|(place, worker)| (place, worker.join().expect("a worker"))).collect();
    for (place, (worker, messages)) in &done {
        assert_eq!(&worker.messages, messages, "at node and thread {place:?}");
    }
    assert!(done.iter().map(|(_, (worker, _))| worker.received).sum::<usize>() > 500);
}
