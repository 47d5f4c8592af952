//! Cards over hardware that hands every store on at once.

use super::*;
use crate::{Body, CARD_BYTES, Envelope, Incoming, Span};
use evb_velo::{Requester, bus, lanes};

const BITS: (u32, u32) = (28, 20);
/// A tail from which the count of a small ring wraps soon.
const TAIL: u64 = 8190;

/// A rack with hardware that knows no time.
struct Machine {
    rack: Rack,
    name: String,
    tails: Vec<u64>,
}

impl Machine {
    fn open(test: &str, nodes: usize) -> Self {
        let name = format!("{test}-{}", std::process::id());
        let tails = vec![TAIL; nodes];
        let rack = Rack::open(&name, &RackShape { bits: BITS, pages: 1, tails: tails.clone() }).unwrap();
        Self { rack, name, tails }
    }

    fn card(&self) -> Card {
        Card::open(&self.name).unwrap()
    }

    /// Sends what was posted, as long as mailboxes have room; the number of packets.
    fn run(&mut self) -> usize {
        let mut packets = 0;
        for node in 0..self.rack.nodes() {
            let mut words = Vec::new();
            while let Some(posted) = self.rack.take_posted(node) {
                words.push(posted.word);
                if posted.is_last {
                    self.deliver(node, &std::mem::take(&mut words));
                    packets += 1;
                }
            }
        }
        packets
    }

    fn deliver(&mut self, node: usize, words: &[u64]) {
        let map = AddressMap::new(BITS.0, BITS.1).unwrap();
        let command = bus::Command::decode(words[0], map).unwrap();
        let data = lanes::unpack(command.address % 64, command.data, &words[1..]).unwrap();
        let store =
            Requester::new(map, node as u64).store(command.thread, command.address, &data[..command.data as usize]);
        let packet = store.unwrap();
        let target = packet.header.target.node as usize;
        let ring = Ring::new(0, 1).unwrap();
        assert!(mailbox::waiting(self.rack.head(target), self.tails[target]) < ring.slots(), "no room");
        let words = packet.words(map).unwrap();
        let writes = mailbox::writes(ring.slot(self.tails[target]), &words);
        writes.for_each(|(byte, word)| self.rack.write(target, byte, word));
        self.tails[target] = mailbox::pointer(self.tails[target] + 1);
    }
}

fn message(length: usize) -> Vec<u8> {
    (0..length).map(|byte| (byte * 7) as u8).collect()
}

fn send(card: &mut Card, peer: usize, bytes: &[u8], tag: u64) -> Result<(), DeviceError> {
    card.send(peer, &Envelope { length: bytes.len() as u64, tag, ..Envelope::default() }, &[Span::of(bytes)])
}

fn receive(card: &mut Card) -> Option<(Address, u64, Vec<u8>)> {
    let Incoming { sender, envelope, body } = card.poll()?;
    let bytes = match body {
        Body::Line(line) => line[..envelope.length as usize].to_vec(),
        Body::Block(_) => card.block(),
        Body::Note(_) => panic!("no card has notes"),
    };
    Some((card.sender(sender)?, envelope.tag, bytes))
}

#[test]
fn cards_exchange_messages_through_the_hardware() {
    let mut machine = Machine::open("exchange", 3);
    let (mut first, mut second) = (machine.card(), machine.card());
    for length in [0, 1, 40, 41, 64, 65, 1000] {
        for _ in 0..2 {
            let peer = first.connect(second.address()).unwrap();
            send(&mut first, peer, &message(length), length as u64).unwrap();
            assert_eq!(receive(&mut second), None, "nothing comes without the hardware");
            assert_eq!(machine.run(), (frame::HEAD_BYTES + length).div_ceil(64), "packets");
            assert_eq!(receive(&mut second), Some((first.address(), length as u64, message(length))));
            std::mem::swap(&mut first, &mut second);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut machine = Machine::open("fit", 2);
    let (mut first, second) = (machine.card(), machine.card());
    let too_long = send(&mut first, 1, &message(CARD_BYTES + 1), 0);
    assert!(matches!(too_long, Err(DeviceError::TooLong { limit: CARD_BYTES })));
    let sent = (0..100).take_while(|_| send(&mut first, 1, &message(CARD_BYTES), 0).is_ok()).count();
    assert_eq!(sent, at::POSTED / frame::bus_words(frame::HEAD_BYTES + CARD_BYTES));
    assert!(matches!(send(&mut first, 1, &message(CARD_BYTES), 0), Err(DeviceError::Full)));
    assert!(matches!(Card::open(&machine.name), Err(DeviceError::Taken(2))));
    assert!(matches!(first.connect(Address { nonce: 1, ..second.address() }), Err(DeviceError::Gone)));
    while machine.rack.take_posted(0).is_some() {}
    send(&mut first, 1, &message(CARD_BYTES), 0).unwrap();
}

#[test]
fn messages_to_the_own_node_stay_in_the_process() {
    let mut machine = Machine::open("own", 2);
    let mut card = machine.card();
    for length in [0, 64, 65, CARD_BYTES] {
        send(&mut card, 0, &message(length), 3).unwrap();
    }
    assert_eq!(machine.run(), 0);
    for length in [0, 64, 65, CARD_BYTES] {
        assert_eq!(receive(&mut card), Some((card.address(), 3, message(length))));
    }
}

#[test]
fn a_card_that_has_left_is_gone_and_its_last_messages_arrive() {
    let mut machine = Machine::open("left", 2);
    let (mut first, mut second) = (machine.card(), machine.card());
    send(&mut first, 1, &message(10), 1).unwrap();
    send(&mut second, 0, &message(10), 2).unwrap();
    drop(first);
    assert_eq!(machine.rack.state(0), CardState::Left);
    machine.run();
    assert!(receive(&mut second).is_some());
    assert!(matches!(send(&mut second, 0, &message(10), 1), Err(DeviceError::Gone)));
    let before = machine.rack.head(0);
    machine.rack.discard(0);
    assert_eq!(mailbox::waiting(before, machine.rack.head(0)), 1);
}

#[test]
fn a_rack_that_has_ended_or_brings_nonsense_is_lost() {
    let machine = Machine::open("ended", 2);
    let (mut first, mut second) = (machine.card(), machine.card());
    // A header without its fixed bits.
    machine.rack.write(0, Ring::new(0, 1).unwrap().slot(TAIL), 1);
    assert!(receive(&mut first).is_none() && first.is_lost());
    drop(machine);
    assert!(!second.is_lost());
    assert!((0..1 << 20).any(|_| second.poll().is_none() && second.is_lost()), "the end is not seen");
    assert!(matches!(send(&mut second, 0, &[1], 0), Err(DeviceError::Gone)));
}

#[test]
fn names_are_checked_and_of_racks_only() {
    let shape = RackShape { bits: BITS, pages: 1, tails: vec![0; 2] };
    assert!(matches!(Rack::open("no name", &shape), Err(DeviceError::Name(_))));
    assert!(matches!(Card::open("nobody-has-this-rack"), Err(DeviceError::Unknown(_))));
    let name = format!("device-{}", std::process::id());
    let _device = crate::Device::open(Some(&name)).unwrap();
    assert!(Card::open(&name).is_err() && Rack::open(&name, &shape).is_err());
}
