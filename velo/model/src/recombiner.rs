//! Recombination: the receiving thread makes whole messages of the packets in its mailbox.
//!
//! It is software, as in VELO 2008, section 3, statelessness: one message of 30,000 is cut, and hardware that looked
//! for its parts would cost more than it saves. Parts are kept outside of the mailbox, so that a message that is never
//! completed occupies no slot.
//!
//! The receiver keeps one open message for each sender. A smaller limit could only drop messages, because the packets
//! that complete a message are behind others in the ring.

extern crate alloc;

use crate::{Endpoint, LINE_BYTES, Packet};
use alloc::collections::BTreeMap;

/// A whole message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The sender.
    pub source: Endpoint,
    /// Length in bytes.
    pub length: u64,
    /// The bytes, filled up with 0.
    pub data: [u8; LINE_BYTES as usize],
}

impl Entry {
    /// The bytes of the message.
    pub fn bytes(&self) -> &[u8] {
        &self.data[..self.length as usize]
    }
}

/// A message whose first parts have arrived. A thread stores in ascending order.
#[derive(Clone, Copy, Debug)]
struct Partial {
    entry: Entry,
    filled: u64,
}

/// The recombination buffer of one receiving thread. Its limit is one open message for each sender, so at most as many
/// as the map has threads. A smaller limit would have to drop messages, since the part that completes a message waits
/// behind others.
#[derive(Clone, Debug, Default)]
pub struct Recombiner {
    partials: BTreeMap<Endpoint, Partial>,
    faults: u64,
}

impl Recombiner {
    /// An empty buffer. A mailbox that is opened again gets a new one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next packet of the mailbox, and returns the message that it completes.
    ///
    /// A part that does not continue the message of its sender is a fault, and is dropped with the earlier parts of
    /// that message, which can never be complete. A message that was begun is a fault, too, when its sender begins
    /// another one.
    pub fn accept(&mut self, packet: &Packet) -> Option<Entry> {
        let header = packet.header;
        let begun = self.partials.remove(&header.source);
        let partial = match begun {
            Some(partial) if header.offset > 0 => go_on(partial, packet),
            _ => {
                self.faults += u64::from(begun.is_some());
                begin(packet)
            }
        };
        let Some(partial) = partial else {
            self.faults += 1;
            return None;
        };
        if partial.filled == partial.entry.length {
            return Some(partial.entry);
        }
        self.partials.insert(header.source, partial);
        None
    }

    /// Number of messages of which only parts have arrived.
    pub fn partials(&self) -> usize {
        self.partials.len()
    }

    /// Parts that did not continue their message, and messages that were begun and never completed.
    pub fn faults(&self) -> u64 {
        self.faults
    }
}

fn begin(packet: &Packet) -> Option<Partial> {
    let header = packet.header;
    let entry = Entry { source: header.source, length: header.length, data: packet.data };
    (header.offset == 0 && header.is_consistent()).then_some(Partial { entry, filled: header.data })
}

fn go_on(mut partial: Partial, packet: &Packet) -> Option<Partial> {
    let header = packet.header;
    if header.length != partial.entry.length || header.offset != partial.filled || !header.is_consistent() {
        return None;
    }
    partial.filled += header.data;
    partial.entry.data[header.offset as usize..partial.filled as usize].copy_from_slice(packet.bytes());
    Some(partial)
}
