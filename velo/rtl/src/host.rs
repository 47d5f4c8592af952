//! The host of a node: its side of the bus, its memory, and one mailbox in it.
//!
//! A processor does not wait for its stores: they stay in write-combining buffers until the bus takes them. Here that
//! is a queue of words, one of which goes in each cycle for which the device has given a credit.

use crate::{
    RtlOptions,
    bus::{Bus, RECEIVER},
    hardware::{Inputs, Outputs},
    peers::Peers,
};
use evb_velo::{Packet, Target, bus, mailbox};
use std::collections::VecDeque;

/// The host of one node.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) bus: Bus,
    /// Words of posted writes that the bus has not taken; the flag marks the last word of its transaction. At most
    /// [`RtlOptions::queue_words`] and one message.
    posted: VecDeque<(u64, bool)>,
    queue_words: usize,
    memory: Vec<u64>,
    /// Messages taken from the ring.
    head: u64,
    /// True if a message found no room since the last wait.
    pub(crate) starved: bool,
    pub(crate) peers: Peers,
}

impl Host {
    /// The host of a device after a reset, one of `nodes`.
    pub(crate) fn new(nodes: usize, options: &RtlOptions) -> Self {
        let bus = Bus::new(options.pages);
        Self {
            posted: VecDeque::new(),
            queue_words: options.queue_words,
            memory: vec![0; bus.words()],
            bus,
            head: 0,
            starved: false,
            peers: Peers::new(nodes),
        }
    }

    /// Requests the node number to be set and the mailbox to be opened, whose tail is `tail`.
    pub(crate) fn open(&mut self, node: u64, tail: u64) {
        self.head = tail;
        self.bus.open(node, tail);
    }

    /// Returns true if a message may be stored.
    pub(crate) fn has_room(&self) -> bool {
        self.posted.len() < self.queue_words
    }

    /// Stores a message of 1 to 64 B as one transaction, in the window of a thread.
    pub(crate) fn store(&mut self, thread: u64, node: usize, bytes: &[u8]) {
        self.peers.note_sent(node);
        let (map, length) = (self.bus.map, bytes.len() as u64);
        let target = Target { node: node as u64, thread: RECEIVER, length, offset: 0 };
        let address = map.encode(target).expect("a node of the map, and a line at most");
        let words = bus::store(map, thread, address, bytes).expect("a thread of the map, and a line at most");
        let last = words.len() - 1;
        self.posted.extend(words.into_iter().enumerate().map(|(index, word)| (word, index == last)));
    }

    /// Returns true if a waiting node has news: a message, a loss, or room for what was refused.
    pub(crate) fn has_news(&self) -> bool {
        self.memory[self.bus.slot(self.head)] != 0 || self.peers.has_news() || (self.starved && self.has_room())
    }

    /// Takes the next packet out of the mailbox.
    pub(crate) fn take(&mut self) -> Option<Packet> {
        let at = self.bus.slot(self.head);
        let slot = self.memory[at..].first_chunk().expect("slots have this many words");
        let packet = mailbox::read(slot, self.bus.map).expect("the device writes headers of the map");
        if let Some(packet) = &packet {
            self.peers.note_taken(packet.header.source.node as usize);
            self.memory[at] = 0;
            self.head = mailbox::pointer(self.head + 1);
            self.bus.give_back(self.head);
        }
        packet
    }

    /// The signals of the host in this cycle.
    pub(crate) fn inputs(&mut self) -> Inputs {
        let posted = &mut self.posted;
        self.bus.inputs(|| posted.pop_front())
    }

    /// Takes the signals of the device after the edge.
    ///
    /// # Panics
    /// If the device writes to memory outside of the mailbox.
    pub(crate) fn outputs(&mut self, outputs: &Outputs) {
        if let Some(write) = self.bus.outputs(outputs) {
            self.memory[write.index] = write.word;
        }
    }
}
