//! The receiving side of the hardware: the register file that opens mailboxes, and the completer that puts packets into
//! them.
//!
//! Every packet takes a slot, whether whole message or part; a [`Recombiner`](crate::Recombiner) of the receiver makes
//! messages of them. Nothing is dropped for lack of room. A packet without room is [refused](Answer::Full), stays in
//! the network, and stops the packets behind it, as the credits of HyperTransport and of the network do (VELO 2008,
//! section 3, flow control). A packet that cannot be delivered correctly is counted by [`Fault`] and dropped.

extern crate alloc;

use crate::{
    AddressMap, Header, Packet, lanes,
    mailbox::{MOST_SLOTS, pointer, waiting},
};
use alloc::vec::Vec;

/// The completer's answer to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The packet is in the mailbox.
    Delivered,
    /// There is no room for the packet now. It is offered again unchanged.
    Full,
    /// The packet cannot be delivered: it is dropped and counted.
    Dropped(Fault),
}

/// The reason why a packet cannot be delivered. The first reason that applies counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The packet is for another node.
    Node,
    /// The thread does not exist, or its mailbox is closed.
    Closed,
    /// The header is invalid, or the data are empty or end behind the message.
    Data,
}

/// Number of packets with each [`Fault`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Packets with [`Fault::Node`].
    pub node: u64,
    /// Packets with [`Fault::Closed`].
    pub closed: u64,
    /// Packets with [`Fault::Data`].
    pub data: u64,
}

/// The registers of one thread, and the ring that they describe.
#[derive(Clone, Debug, Default)]
struct Mailbox {
    enabled: bool,
    slots: Vec<Option<Packet>>,
    head: u64,
    tail: u64,
}

impl Mailbox {
    fn has_room(&self) -> bool {
        waiting(self.head, self.tail) < self.slots.len() as u64
    }

    fn put(&mut self, packet: Packet) {
        let slots = self.slots.len() as u64;
        self.slots[(self.tail % slots) as usize] = Some(packet);
        self.tail = pointer(self.tail + 1);
    }

    fn take(&mut self) -> Option<Packet> {
        if waiting(self.head, self.tail) == 0 {
            return None;
        }
        let index = self.head.checked_rem(self.slots.len() as u64)?;
        let packet = self.slots[index as usize].take()?;
        self.head = pointer(self.head + 1);
        Some(packet)
    }
}

/// The completer of one node.
#[derive(Clone, Debug)]
pub struct Completer {
    map: AddressMap,
    node: u64,
    mailboxes: Vec<Mailbox>,
    received: u64,
    faults: Faults,
}

impl Completer {
    /// The completer of a node, with all mailboxes closed.
    pub fn new(map: AddressMap, node: u64) -> Self {
        let mailboxes = (0..map.threads_per_node()).map(|_| Mailbox::default()).collect();
        Self { map, node, mailboxes, received: 0, faults: Faults::default() }
    }

    /// Opens the mailbox of a thread with `slots` slots, a power of two up to 4096; its former content is lost. Head
    /// and tail continue at the tail. Returns false if the thread does not exist or the number of slots is invalid. The
    /// hardware has 32 slots in a page; fewer are for models.
    pub fn open(&mut self, thread: u64, slots: usize) -> bool {
        let is_size = slots.is_power_of_two() && slots as u64 <= MOST_SLOTS;
        let Some(mailbox) = self.mailbox_mut(thread).filter(|_| is_size) else { return false };
        *mailbox = Mailbox { enabled: true, slots: alloc::vec![None; slots], head: mailbox.tail, tail: mailbox.tail };
        true
    }

    /// Closes the mailbox of a thread to new packets. Its content can still be read.
    pub fn close(&mut self, thread: u64) {
        if let Some(mailbox) = self.mailbox_mut(thread) {
            mailbox.enabled = false;
        }
    }

    /// Takes a packet from the network.
    pub fn accept(&mut self, packet: &Packet) -> Answer {
        let fault = self.fault(packet.header).or_else(|| (!packet.header.is_consistent()).then_some(Fault::Data));
        self.deliver(*packet, fault)
    }

    /// Takes the words of a packet from the network, whose header may be invalid. A packet without data is dropped.
    /// Data words beyond those of the header are ignored, and missing ones are 0: a network delivers neither.
    pub fn accept_words(&mut self, words: &[u64]) -> Answer {
        let (&word, data) = words.split_first().unwrap_or((&0, &[]));
        let header = Header::split(word, self.map);
        let is_good = Header::has_fixed_bits(word) && header.is_consistent() && !data.is_empty();
        let fault = self.fault(header).or_else(|| (!is_good).then_some(Fault::Data));
        let count = lanes::words(header.offset, header.data) as usize;
        let data: Vec<_> = data.iter().copied().chain(core::iter::repeat(0)).take(count).collect();
        let data = lanes::unpack(header.offset, header.data, &data).expect("as many words as it has");
        self.deliver(Packet { header, data }, fault)
    }

    /// Reads and frees the first slot of the mailbox of a thread. Its place is a credit for the network.
    pub fn take(&mut self, thread: u64) -> Option<Packet> {
        self.mailbox_mut(thread)?.take()
    }

    /// Writes the head of a thread, modulo 2^13: the messages before it have been taken.
    pub fn set_head(&mut self, thread: u64, head: u64) {
        if let Some(mailbox) = self.mailbox_mut(thread) {
            mailbox.head = pointer(head);
        }
    }

    /// Packets put into the mailbox of a thread since the beginning, modulo 2^13.
    pub fn tail(&self, thread: u64) -> u64 {
        self.mailbox(thread).map_or(0, |mailbox| mailbox.tail)
    }

    /// Packets in the mailbox of a thread.
    pub fn waiting(&self, thread: u64) -> u64 {
        self.mailbox(thread).map_or(0, |mailbox| waiting(mailbox.head, mailbox.tail))
    }

    /// Packets put into mailboxes.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// The dropped packets.
    pub fn faults(&self) -> Faults {
        self.faults
    }

    fn mailbox(&self, thread: u64) -> Option<&Mailbox> {
        self.mailboxes.get(usize::try_from(thread).ok()?)
    }

    fn mailbox_mut(&mut self, thread: u64) -> Option<&mut Mailbox> {
        self.mailboxes.get_mut(usize::try_from(thread).ok()?)
    }

    /// The fault of a packet's target, if any.
    fn fault(&self, header: Header) -> Option<Fault> {
        if header.target.node != self.node {
            return Some(Fault::Node);
        }
        let is_open = self.mailbox(header.target.thread).is_some_and(|mailbox| mailbox.enabled);
        (!is_open).then_some(Fault::Closed)
    }

    fn deliver(&mut self, packet: Packet, fault: Option<Fault>) -> Answer {
        if let Some(fault) = fault {
            *match fault {
                Fault::Node => &mut self.faults.node,
                Fault::Closed => &mut self.faults.closed,
                Fault::Data => &mut self.faults.data,
            } += 1;
            return Answer::Dropped(fault);
        }
        match self.mailbox_mut(packet.header.target.thread) {
            Some(mailbox) if mailbox.has_room() => mailbox.put(packet),
            _ => return Answer::Full,
        }
        self.received += 1;
        Answer::Delivered
    }
}
