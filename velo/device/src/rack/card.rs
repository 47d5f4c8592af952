//! A card: one node of a rack, opened by a process.

use super::{
    CardState, Shared,
    frame::{self, Begun, CARD_BYTES, HEAD_BYTES, Step},
    free,
    layout::{self as at, MAGIC},
    read_layout, slot, state,
    watch::Watch,
};
use crate::{
    Address, Body, DeviceError, Envelope, Incoming, LINE_BYTES, Peer, Span, directory, fetch, layout::MAGIC_AT,
};
use evb_velo::{
    AddressMap, Packet, Recombiner, Target, bus,
    mailbox::{self, Ring, SLOT_WORDS},
};
use std::{collections::VecDeque, sync::atomic::Ordering, time::Instant};

/// The thread of each node that sends and receives.
const THREAD: u64 = 0;
/// Empty polls between two looks at the process of the rack.
const DOUBT_POLLS: u32 = 1 << 12;
/// Messages to the own node that wait to be received.
const MOST_OWN: usize = 1024;

/// One node of a rack. Messages have up to [`CARD_BYTES`]; one to the own node does not leave the process.
#[derive(Debug)]
pub struct Card {
    shared: Shared,
    rack: Address,
    node: usize,
    nodes: usize,
    map: AddressMap,
    ring: Ring,
    put: u64,
    head: u64,
    quiet: u32,
    recombiner: Recombiner,
    /// The message of each sender whose first lines have arrived.
    begun: Vec<Begun>,
    own: VecDeque<(Envelope, Vec<u8>)>,
    /// The bytes of the last message that did not fit a line.
    block: Vec<u8>,
    is_lost: bool,
    watch: Watch,
}

impl Card {
    /// Opens the first unused node of the rack with this name.
    ///
    /// # Errors
    /// No rack has this name, or all of its nodes have been opened.
    pub fn open(name: &str) -> Result<Self, DeviceError> {
        let unknown = || DeviceError::Unknown(name.to_owned());
        let rack = directory::find(name)?.ok_or_else(unknown)?;
        let shared: Shared = rack.map(MAGIC)?;
        let (nodes, map, ring) = read_layout(&shared).ok_or_else(unknown)?;
        let node = (0..nodes).find(|&node| claim(&shared, node)).ok_or(DeviceError::Taken(nodes))?;
        let head = shared.word(at::of(node, at::HEAD_AT)).load(Ordering::Acquire);
        let (put, quiet, recombiner, begun) = (0, 0, Recombiner::new(), vec![Begun::default(); nodes]);
        let (own, block, is_lost, watch) =
            (VecDeque::new(), Vec::new(), false, Watch::new(beat(&shared), Instant::now()));
        Ok(Self {
            shared,
            rack,
            node,
            nodes,
            map,
            ring,
            put,
            head,
            quiet,
            recombiner,
            begun,
            own,
            block,
            is_lost,
            watch,
        })
    }

    /// The address: that of the rack, with the number of the node instead of a file.
    pub fn address(&self) -> Address {
        Address { file: self.node as u32, ..self.rack }
    }

    /// The peer with this address, a node of the same rack.
    ///
    /// # Errors
    /// The address is that of another rack, or of a device.
    pub fn connect(&self, address: Address) -> Result<Peer, DeviceError> {
        let node = address.file as usize;
        let is_here = Address { file: self.rack.file, ..address } == self.rack && node < self.nodes;
        if is_here { Ok(node) } else { Err(DeviceError::Gone) }
    }

    /// Address of a sender.
    pub fn sender(&self, number: u16) -> Option<Address> {
        (usize::from(number) < self.nodes).then_some(Address { file: number.into(), ..self.rack })
    }

    /// Posts a message.
    ///
    /// # Errors
    /// [`DeviceError::Full`] if there is no room at the moment, [`DeviceError::TooLong`], or [`DeviceError::Gone`] if the
    /// peer or the rack has ended.
    #[inline(never)]
    pub fn send(&mut self, peer: Peer, envelope: &Envelope, spans: &[Span]) -> Result<(), DeviceError> {
        if envelope.length > CARD_BYTES as u64 {
            return Err(DeviceError::TooLong { limit: CARD_BYTES });
        }
        if self.is_lost || !self.is_alive(peer) {
            return Err(DeviceError::Gone);
        }
        if peer == self.node {
            return self.send_own(envelope, spans);
        }
        let words = frame::bus_words(HEAD_BYTES + envelope.length as usize) as u64;
        let taken = self.shared.word(at::of(self.node, at::TAKEN_AT)).load(Ordering::Acquire);
        if self.put - taken + words > at::POSTED as u64 {
            return Err(DeviceError::Full);
        }
        frame::encode(envelope, spans).chunks(LINE_BYTES).for_each(|line| self.post(peer, line));
        self.shared.word(at::of(self.node, at::PUT_AT)).store(self.put, Ordering::Release);
        Ok(())
    }

    /// The next message, if one is complete. One that is longer than a line is a block until the next call: see
    /// [`block`](Self::block).
    #[inline(never)]
    pub fn poll(&mut self) -> Option<Incoming> {
        if let Some((envelope, bytes)) = self.own.pop_front() {
            return Some(self.incoming(self.node, envelope, bytes));
        }
        while let Some(packet) = self.packet() {
            self.quiet = 0;
            let Some(entry) = self.recombiner.accept(&packet) else { continue };
            let sender = entry.source.node as usize;
            match self.begun.get_mut(sender).map_or(Step::Broken, |begun| begun.take(entry.bytes())) {
                Step::More => {}
                Step::Complete(envelope, bytes) => return Some(self.incoming(sender, envelope, bytes)),
                Step::Broken => self.is_lost = true,
            }
        }
        self.quiet += 1;
        if self.quiet >= DOUBT_POLLS {
            self.quiet = 0;
            self.doubt();
        }
        None
    }

    /// Takes the bytes of the block of the last message.
    pub fn block(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.block)
    }

    /// Returns true if the card of a peer may still receive: it has not been closed, and its process has not ended.
    pub fn is_alive(&self, peer: Peer) -> bool {
        peer < self.nodes && state(&self.shared, peer) != CardState::Left
    }

    /// Returns true if nothing comes any more: the program of the rack has ended or stalls, or the hardware has
    /// delivered what no card has sent. [`poll`](Self::poll) finds out, after some empty polls.
    pub fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn send_own(&mut self, envelope: &Envelope, spans: &[Span]) -> Result<(), DeviceError> {
        if self.own.len() >= MOST_OWN {
            return Err(DeviceError::Full);
        }
        let mut bytes = vec![0; envelope.length as usize];
        fetch::copy_in(spans, 0, &mut bytes);
        self.own.push_back((*envelope, bytes));
        Ok(())
    }

    /// Posts a line as one transaction; there is room for it.
    fn post(&mut self, peer: Peer, line: &[u8]) {
        let target = Target { node: peer as u64, thread: THREAD, length: line.len() as u64, offset: 0 };
        let address = self.map.encode(target).expect("a node of the map, and a line at most");
        let words = bus::store(self.map, THREAD, address, line).expect("a thread of the map, and a line at most");
        for (index, word) in words.iter().enumerate() {
            let place = at::posted(self.node, self.put);
            self.shared.word(place).store(*word, Ordering::Relaxed);
            self.shared.word(place + 8).store(u64::from(index + 1 == words.len()), Ordering::Relaxed);
            self.put += 1;
        }
    }

    /// Takes the next packet out of the mailbox.
    fn packet(&mut self) -> Option<Packet> {
        let place = slot(self.node, self.ring, self.head);
        let header = self.shared.word(place).load(Ordering::Acquire);
        if header == 0 || self.is_lost {
            return None;
        }
        let word = |index| self.shared.word(place + 8 * index).load(Ordering::Relaxed);
        let words: [u64; SLOT_WORDS] = std::array::from_fn(word);
        self.head = free(&self.shared, self.node, self.ring, self.head);
        let packet = mailbox::read(&words, self.map);
        self.is_lost |= packet.is_err();
        packet.ok().flatten()
    }

    fn incoming(&mut self, sender: usize, envelope: Envelope, bytes: Vec<u8>) -> Incoming {
        let mut line = [0; LINE_BYTES];
        let body = match line.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(&bytes);
                Body::Line(line)
            }
            None => {
                self.block = bytes;
                Body::Block(0)
            }
        };
        Incoming { sender: sender as u16, envelope, body }
    }

    /// Finds out whether the rack still runs.
    fn doubt(&mut self) {
        let is_open = self.shared.word(MAGIC_AT).load(Ordering::Relaxed) == MAGIC;
        let is_silent = self.watch.is_silent(beat(&self.shared), Instant::now());
        self.is_lost |= !is_open || !self.rack.is_alive() || is_silent;
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        self.shared.word(at::of(self.node, at::STATE_AT)).store(CardState::Left.encode(), Ordering::Release);
    }
}

/// The last beat of the program of a rack.
fn beat(shared: &Shared) -> u64 {
    shared.word(at::BEAT_AT).load(Ordering::Relaxed)
}

/// Takes a node, if no other card has.
fn claim(shared: &Shared, node: usize) -> bool {
    let mine = CardState::Open(std::process::id()).encode();
    let word = shared.word(at::of(node, at::STATE_AT));
    word.compare_exchange(CardState::Unused.encode(), mine, Ordering::AcqRel, Ordering::Acquire).is_ok()
}
