//! The receiving side: mailboxes, the register file that opens them, and the buffer in which cut messages are put
//! together.
//!
//! Nothing is dropped for want of room: a packet that finds none is [refused](Answer::Full), stays in the network, and
//! stops what is behind it, as HyperTransport and the network do it by credits (VELO 2008, section 3, flow control). What
//! cannot be delivered rightly is counted by [`Fault`] and goes.

extern crate alloc;

use crate::{Endpoint, LINE_BYTES, Packet};
use alloc::{collections::VecDeque, vec::Vec};

/// A message in a mailbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Who sent it.
    pub source: Endpoint,
    /// Length in bytes.
    pub length: u64,
    /// The bytes; what is behind them is 0.
    pub data: [u8; LINE_BYTES as usize],
}

impl Entry {
    /// The bytes of the message.
    pub fn bytes(&self) -> &[u8] {
        &self.data[..self.length as usize]
    }
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A message is in the mailbox.
    Delivered,
    /// A part is in the recombination buffer.
    Kept,
    /// There is no room for it now: it comes again, unchanged.
    Full,
    /// It cannot be delivered: it is gone, and counted.
    Dropped(Fault),
}

/// Why a packet cannot be delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is for another node.
    Node,
    /// There is no such thread, or its mailbox is closed.
    Closed,
    /// Its data are empty or end behind the message.
    Data,
    /// It does not go on where the message of this sender stopped. What was there of that message is gone too. Also
    /// counted for a message that was begun and never ended, when the next of its sender comes.
    Fragment,
}

/// How often each [`Fault`] came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// [`Fault::Node`].
    pub node: u64,
    /// [`Fault::Closed`].
    pub closed: u64,
    /// [`Fault::Data`].
    pub data: u64,
    /// [`Fault::Fragment`].
    pub fragment: u64,
}

/// The registers of one thread, and the ring that they describe. Head and tail count entries and never wrap.
#[derive(Clone, Debug, Default)]
struct Mailbox {
    enabled: bool,
    ring: Vec<Option<Entry>>,
    head: u64,
    tail: u64,
}

impl Mailbox {
    fn has_room(&self) -> bool {
        self.tail - self.head < self.ring.len() as u64
    }

    fn slot(&mut self, count: u64) -> &mut Option<Entry> {
        let entries = self.ring.len() as u64;
        &mut self.ring[(count % entries) as usize]
    }

    fn put(&mut self, entry: Entry) {
        *self.slot(self.tail) = Some(entry);
        self.tail += 1;
    }

    fn take(&mut self) -> Option<Entry> {
        if self.head == self.tail {
            return None;
        }
        let entry = self.slot(self.head).take();
        self.head += 1;
        entry
    }
}

/// A message of which parts are there, from its beginning on: a thread stores in ascending order.
#[derive(Clone, Copy, Debug)]
struct Partial {
    thread: u64,
    entry: Entry,
    filled: u64,
}

/// The completer of one node.
#[derive(Clone, Debug)]
pub struct Completer {
    node: u64,
    mailboxes: Vec<Mailbox>,
    /// Parts of cut messages; at most `most_partials`.
    partials: VecDeque<Partial>,
    most_partials: usize,
    faults: Faults,
}

impl Completer {
    /// The completer of a node with so many threads, all mailboxes closed, and room for `most_partials` cut messages.
    pub fn new(node: u64, threads: usize, most_partials: usize) -> Self {
        let mailboxes = (0..threads).map(|_| Mailbox::default()).collect();
        Self { node, mailboxes, partials: VecDeque::new(), most_partials, faults: Faults::default() }
    }

    /// Opens the mailbox of a thread with room for so many messages, at least 1; what was in it is gone. False if there is
    /// no such thread, or no room.
    pub fn open(&mut self, thread: u64, entries: usize) -> bool {
        let Some(mailbox) = self.mailbox(thread).filter(|_| entries > 0) else { return false };
        *mailbox = Mailbox { enabled: true, ring: alloc::vec![None; entries], head: 0, tail: 0 };
        self.partials.retain(|partial| partial.thread != thread);
        true
    }

    /// Closes the mailbox of a thread: nothing is written there any more. What is in it can still be read.
    pub fn close(&mut self, thread: u64) {
        if let Some(mailbox) = self.mailbox(thread) {
            mailbox.enabled = false;
        }
        self.partials.retain(|partial| partial.thread != thread);
    }

    /// Takes a packet from the network.
    pub fn accept(&mut self, packet: &Packet) -> Answer {
        let answer = self.judge(packet);
        if let Answer::Dropped(fault) = answer {
            *match fault {
                Fault::Node => &mut self.faults.node,
                Fault::Closed => &mut self.faults.closed,
                Fault::Data => &mut self.faults.data,
                Fault::Fragment => &mut self.faults.fragment,
            } += 1;
        }
        answer
    }

    /// The next message in the mailbox of a thread. Its place is a credit for the network.
    pub fn take(&mut self, thread: u64) -> Option<Entry> {
        self.mailbox(thread)?.take()
    }

    /// Messages in the mailbox of a thread.
    pub fn waiting(&self, thread: u64) -> u64 {
        self.mailboxes.get(thread as usize).map_or(0, |mailbox| mailbox.tail - mailbox.head)
    }

    /// Cut messages of which parts are here.
    pub fn partials(&self) -> usize {
        self.partials.len()
    }

    /// What was dropped.
    pub fn faults(&self) -> Faults {
        self.faults
    }

    fn mailbox(&mut self, thread: u64) -> Option<&mut Mailbox> {
        self.mailboxes.get_mut(usize::try_from(thread).ok()?)
    }

    fn judge(&mut self, packet: &Packet) -> Answer {
        let header = packet.header;
        let (thread, length, end) = (header.target.thread, header.length, header.offset.saturating_add(header.data));
        if header.target.node != self.node {
            return Answer::Dropped(Fault::Node);
        }
        if !self.mailbox(thread).is_some_and(|mailbox| mailbox.enabled) {
            return Answer::Dropped(Fault::Closed);
        }
        if header.data == 0 || end > length || length > LINE_BYTES {
            return Answer::Dropped(Fault::Data);
        }
        let open =
            self.partials.iter().position(|partial| partial.thread == thread && partial.entry.source == header.source);
        match open {
            Some(index) if header.offset > 0 => return self.go_on(index, packet),
            Some(index) => self.forget(index),
            None => {}
        }
        if header.offset > 0 {
            Answer::Dropped(Fault::Fragment)
        } else if header.is_fragment() {
            self.begin(packet)
        } else {
            self.deliver(thread, entry(packet))
        }
    }

    /// A sender that begins anew never ended the message before.
    fn forget(&mut self, index: usize) {
        self.partials.remove(index);
        self.faults.fragment += 1;
    }

    fn begin(&mut self, packet: &Packet) -> Answer {
        if self.partials.len() == self.most_partials {
            return Answer::Full;
        }
        let partial = Partial { thread: packet.header.target.thread, entry: entry(packet), filled: packet.header.data };
        self.partials.push_back(partial);
        Answer::Kept
    }

    /// A part of a message that was begun. Whatever does not fit exactly ends that message: it would never be whole.
    fn go_on(&mut self, index: usize, packet: &Packet) -> Answer {
        let (header, partial) = (packet.header, self.partials[index]);
        if header.length != partial.entry.length || header.offset != partial.filled {
            self.partials.remove(index);
            return Answer::Dropped(Fault::Fragment);
        }
        let mut partial = partial;
        let (start, end) = (header.offset as usize, (header.offset + header.data) as usize);
        partial.entry.data[start..end].copy_from_slice(packet.bytes());
        partial.filled += header.data;
        if partial.filled < header.length {
            self.partials[index] = partial;
            return Answer::Kept;
        }
        let answer = self.deliver(partial.thread, partial.entry);
        if answer == Answer::Delivered {
            self.partials.remove(index);
        }
        answer
    }

    fn deliver(&mut self, thread: u64, entry: Entry) -> Answer {
        match self.mailbox(thread) {
            Some(mailbox) if mailbox.has_room() => {
                mailbox.put(entry);
                Answer::Delivered
            }
            _ => Answer::Full,
        }
    }
}

fn entry(packet: &Packet) -> Entry {
    Entry { source: packet.header.source, length: packet.header.length, data: packet.data }
}
