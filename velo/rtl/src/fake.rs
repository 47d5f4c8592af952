//! Hardware for the tests: the model of the VELO engine behind the same wires, with a network that keeps order.

use crate::{
    RtlOptions,
    bus::POSTED,
    hardware::{Hardware, Inputs, Outputs},
};
use evb_velo::{
    AddressMap, Requester, bus, lanes, mailbox,
    registers::{TableEntry, Window},
};
use std::collections::VecDeque;

/// Cycles of a packet under way.
const LATENCY: u64 = 20;
/// Cycles in which the device takes one word from its buffer.
const PACE: u64 = 3;
/// Writes to memory without a credit.
const WRITES: usize = 16;

/// The device of a node.
struct Device {
    number: u64,
    /// Words that the host has posted, and those of the transaction that is read.
    posted: VecDeque<(u64, bool)>,
    begun: Vec<u64>,
    table: TableEntry,
    head: u64,
    tail: u64,
    writes: VecDeque<(u64, u64)>,
    credits: usize,
    /// Words read in the last two cycles.
    read: [u32; 2],
}

/// A set of devices.
pub(crate) struct Fake {
    map: AddressMap,
    cycle: u64,
    devices: Vec<Device>,
    /// Packets under way to each node, with their arrival times.
    ways: Vec<VecDeque<(u64, Vec<u64>)>>,
}

impl Fake {
    pub(crate) fn new(nodes: usize) -> Self {
        let device = || Device {
            number: 0,
            posted: VecDeque::new(),
            begun: Vec::new(),
            table: TableEntry::default(),
            head: 0,
            tail: 0,
            writes: VecDeque::new(),
            credits: WRITES,
            read: [0; 2],
        };
        Self {
            map: RtlOptions::map(),
            cycle: 0,
            devices: (0..nodes).map(|_| device()).collect(),
            ways: (0..nodes).map(|_| VecDeque::new()).collect(),
        }
    }

    fn send(&mut self, node: usize) {
        let device = &mut self.devices[node];
        let words = std::mem::take(&mut device.begun);
        let command = bus::Command::decode(words[0], self.map).expect("a command");
        let offset = command.address % evb_velo::LINE_BYTES;
        let data = lanes::unpack(offset, command.data, &words[1..]).expect("as many words as it says");
        let requester = Requester::new(self.map, device.number);
        let packet = requester.store(command.thread, command.address, &data[..command.data as usize]);
        let packet = packet.expect("a store that means something");
        let words = packet.words(self.map).expect("a packet of the map");
        self.ways[packet.header.target.node as usize].push_back((self.cycle + LATENCY, words));
    }

    fn deliver(&mut self, node: usize) {
        let (device, way) = (&mut self.devices[node], &mut self.ways[node]);
        let ring = device.table.ring;
        let has_room = device.table.enabled && mailbox::waiting(device.head, device.tail) < ring.slots();
        if has_room && way.front().is_some_and(|(at, _)| *at <= self.cycle) {
            let (_, words) = way.pop_front().expect("it is there");
            device.writes.extend(mailbox::writes(ring.slot(device.tail), &words));
            device.tail = mailbox::pointer(device.tail + 1);
        }
    }
}

impl Device {
    /// Takes the signals of the host; returns true if a transaction has posted its last word.
    fn take(&mut self, map: AddressMap, inputs: &Inputs) {
        if inputs.posted_valid {
            self.posted.push_back((inputs.posted_data, inputs.posted_last));
            assert!(self.posted.len() <= POSTED, "a word without a credit");
        }
        self.credits += usize::from(inputs.write_credit);
        assert!(self.credits <= WRITES, "a credit for nothing");
        let address = |window: Window| window.address(map, 0).expect("a thread") as u32;
        let is_at = |window: Window| inputs.reg_valid && inputs.reg_address == address(window);
        self.read = [self.read[1], if is_at(Window::Tail) { self.tail as u32 } else { 0 }];
        if inputs.reg_write && is_at(Window::Control) {
            self.number = inputs.reg_data;
        } else if inputs.reg_write && is_at(Window::Head) {
            self.head = inputs.reg_data;
        } else if inputs.reg_write && is_at(Window::Table) {
            self.table = TableEntry::decode(inputs.reg_data).expect("a table entry");
        }
    }
}

impl Hardware for Fake {
    fn step(&mut self, inputs: &[Inputs], outputs: &mut [Outputs]) {
        self.cycle += 1;
        for node in 0..self.devices.len() {
            self.devices[node].take(self.map, &inputs[node]);
            let mut output = Outputs { reg_read: self.devices[node].read[0], ..Outputs::default() };
            if self.cycle.is_multiple_of(PACE)
                && let Some((word, last)) = self.devices[node].posted.pop_front()
            {
                self.devices[node].begun.push(word);
                output.posted_credit = true;
                if last {
                    self.send(node);
                }
            }
            self.deliver(node);
            let device = &mut self.devices[node];
            if device.credits > 0
                && let Some((address, word)) = device.writes.pop_front()
            {
                device.credits -= 1;
                (output.write_valid, output.write_address, output.write_data) = (true, address, word);
            }
            outputs[node] = output;
        }
    }
}
