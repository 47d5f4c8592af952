//! The host of a node: its side of the bus, its memory, and one mailbox in it.
//!
//! A processor does not wait for its stores: they stay in write-combining buffers until the bus takes them. Here that
//! is a queue of words, one of which goes in each cycle for which the device has given a credit.

use crate::{
    RtlOptions,
    hardware::{Inputs, Outputs},
    peers::Peers,
};
use evb_velo::{
    AddressMap, Packet, Target, bus,
    mailbox::{self, Ring, SLOT_BYTES, SLOT_WORDS},
    registers::{Control, TableEntry, Window},
};
use std::collections::VecDeque;

/// Words that the device takes before it gives the first credit (parameter `POSTED` of `velo_node`).
pub(crate) const POSTED: usize = 32;
/// The thread whose mailbox gets the messages; see [`crate::layer`] for the threads that send.
pub(crate) const RECEIVER: u64 = 0;
/// Address of the mailbox in the memory of the host, in bytes: any address aligned to the largest ring.
const RING_BASE: u64 = 1 << 20;
/// Number of parts of a ring whose slots are freed one by one.
const PARTS: u64 = 4;

/// A request to a register.
#[derive(Clone, Copy, Debug)]
enum Request {
    Read { address: u64 },
    Write { address: u64, data: u64 },
}

/// The host of one node.
#[derive(Debug)]
pub(crate) struct Host {
    map: AddressMap,
    /// Words of posted writes that the bus has not taken; the flag marks the last word of its transaction. At most
    /// [`RtlOptions::queue_words`] and one message.
    posted: VecDeque<(u64, bool)>,
    queue_words: usize,
    credits: usize,
    ring: Ring,
    memory: Vec<u64>,
    /// Messages taken from the ring, and how many of their slots were freed.
    head: u64,
    freed: u64,
    /// Writes that the memory has taken and not returned a credit for.
    owed: usize,
    /// Requests to registers: at most one for each message of a ring, and those of the beginning.
    requests: VecDeque<Request>,
    /// The last value of the register output.
    pub(crate) read: u32,
    /// True if a message found no room since the last wait.
    pub(crate) starved: bool,
    pub(crate) peers: Peers,
}

impl Host {
    /// The host of a device after a reset, one of `nodes`.
    pub(crate) fn new(nodes: usize, options: &RtlOptions) -> Self {
        let ring = Ring::new(RING_BASE, options.pages).expect("the options have been checked");
        Self {
            map: RtlOptions::map(),
            posted: VecDeque::new(),
            queue_words: options.queue_words,
            credits: POSTED,
            ring,
            memory: vec![0; ring.slots() as usize * SLOT_WORDS],
            head: 0,
            freed: 0,
            owed: 0,
            requests: VecDeque::new(),
            read: 0,
            starved: false,
            peers: Peers::new(nodes),
        }
    }

    /// Requests the node number to be set and the mailbox to be opened, whose tail is `tail`.
    pub(crate) fn open(&mut self, node: u64, tail: u64) {
        (self.head, self.freed) = (tail, tail);
        let entry = TableEntry { ring: self.ring, enabled: true };
        let address = |window: Window| window.address(self.map, RECEIVER).expect("every map has a thread");
        self.requests.extend([
            Request::Write { address: control(self.map, Control::Node), data: node },
            Request::Write { address: address(Window::Head), data: tail },
            Request::Write { address: address(Window::Table), data: entry.encode() },
        ]);
    }

    /// Requests the tail of the mailbox: it is in `read` two cycles after the cycle that takes the request.
    pub(crate) fn ask_tail(&mut self) {
        let address = Window::Tail.address(self.map, RECEIVER).expect("every map has a thread");
        self.requests.push_back(Request::Read { address });
    }

    /// Requests a register of the unit: it is in `read` two cycles after the cycle that takes the request.
    pub(crate) fn ask(&mut self, register: Control) {
        self.requests.push_back(Request::Read { address: control(self.map, register) });
    }

    /// Returns true if no request to a register is left.
    pub(crate) fn is_settled(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns true if a message may be stored.
    pub(crate) fn has_room(&self) -> bool {
        self.posted.len() < self.queue_words
    }

    /// Stores a message of 1 to 64 B as one transaction, in the window of a thread.
    pub(crate) fn store(&mut self, thread: u64, node: usize, bytes: &[u8]) {
        self.peers.note_sent(node);
        let target = Target { node: node as u64, thread: RECEIVER, length: bytes.len() as u64, offset: 0 };
        let address = self.map.encode(target).expect("a node of the map, and a line at most");
        let words = bus::store(self.map, thread, address, bytes).expect("a thread of the map, and a line at most");
        let last = words.len() - 1;
        self.posted.extend(words.into_iter().enumerate().map(|(index, word)| (word, index == last)));
    }

    /// Returns true if a waiting node has news: a message, a loss, or room for what was refused.
    pub(crate) fn has_news(&self) -> bool {
        self.memory[self.slot()] != 0 || self.peers.has_news() || (self.starved && self.has_room())
    }

    /// Takes the next packet out of the mailbox.
    pub(crate) fn take(&mut self) -> Option<Packet> {
        let at = self.slot();
        let slot = self.memory[at..].first_chunk().expect("slots have so many words");
        let packet = mailbox::read(slot, self.map).expect("the device writes headers of the map");
        if let Some(packet) = &packet {
            self.peers.note_taken(packet.header.source.node as usize);
            self.memory[at] = 0;
            self.head = mailbox::pointer(self.head + 1);
            self.give_back();
        }
        packet
    }

    /// The signals of the host in this cycle.
    pub(crate) fn inputs(&mut self) -> Inputs {
        let mut inputs = Inputs::default();
        if self.credits > 0
            && let Some((word, last)) = self.posted.pop_front()
        {
            self.credits -= 1;
            (inputs.posted_valid, inputs.posted_data, inputs.posted_last) = (true, word, last);
        }
        if self.owed > 0 {
            (self.owed, inputs.write_credit) = (self.owed - 1, true);
        }
        match self.requests.pop_front() {
            Some(Request::Read { address }) => (inputs.reg_valid, inputs.reg_address) = (true, address as u32),
            Some(Request::Write { address, data }) => {
                (inputs.reg_valid, inputs.reg_write) = (true, true);
                (inputs.reg_address, inputs.reg_data) = (address as u32, data);
            }
            None => {}
        }
        inputs
    }

    /// Takes the signals of the device after the edge.
    ///
    /// # Panics
    /// If the device writes to memory outside of the mailbox.
    pub(crate) fn outputs(&mut self, outputs: &Outputs) {
        self.credits += usize::from(outputs.posted_credit);
        self.read = outputs.reg_read;
        if outputs.write_valid {
            let address = outputs.write_address;
            let word = address.checked_sub(RING_BASE).and_then(|at| self.memory.get_mut((at / 8) as usize));
            *word.unwrap_or_else(|| panic!("a write to {address:#x}, outside of the mailbox")) = outputs.write_data;
            self.owed += 1;
        }
    }

    /// Index of the first word of the next slot.
    fn slot(&self) -> usize {
        ((self.ring.slot(self.head) - RING_BASE) / SLOT_BYTES) as usize * SLOT_WORDS
    }

    /// Frees the taken slots at the device, when there are enough of them.
    fn give_back(&mut self) {
        if mailbox::waiting(self.freed, self.head) >= self.ring.slots() / PARTS {
            let address = Window::Head.address(self.map, RECEIVER).expect("every map has a thread");
            self.requests.push_back(Request::Write { address, data: self.head });
            self.freed = self.head;
        }
    }
}

fn control(map: AddressMap, register: Control) -> u64 {
    register.address(map).expect("the map has room for the registers")
}
