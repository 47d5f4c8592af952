//! Hardware beside the devices of a machine: a rack of nodes, each of which a process opens as a [`Card`].
//!
//! The process that simulates or drives the hardware owns the [`Rack`]: a segment with a part for each node. A card posts
//! words there, as a processor posts its writes to the device, and the owner gives them to the bus. The owner puts the
//! writes of the device into the mailbox in the same part, and the card reads it there. So a message is copied only by the
//! hardware.
//!
//! A node serves one card in the life of its rack. What the process of a killed card has posted is still sent, and what
//! comes for it is thrown away.

mod card;
mod frame;
mod layout;
#[cfg(test)]
mod tests;
mod watch;

pub use card::Card;
pub use frame::CARD_BYTES;
pub use layout::RACK_NODES;

use crate::{
    Address, DeviceError,
    directory::{self, Name},
    layout::{MAGIC_AT, NONCE_AT},
    segment::Segment,
};
use evb_velo::{
    AddressMap,
    mailbox::{self, HEADER_AT, Ring, SLOT_BYTES},
};
use layout::{self as at, RACK_BYTES};
use std::{
    os::fd::{AsRawFd, OwnedFd},
    sync::atomic::Ordering,
};

/// A segment of a rack.
type Shared = Segment<RACK_BYTES>;

/// What a rack tells its cards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RackShape {
    /// Bits `n` and `t` of the addresses.
    pub bits: (u32, u32),
    /// Pages of 4 KiB of a mailbox, a power of two up to 128.
    pub pages: u64,
    /// The tail of each mailbox when it was opened. There are as many as nodes, at most [`RACK_NODES`].
    pub tails: Vec<u64>,
}

/// A word of a posted write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The word.
    pub word: u64,
    /// True if it is the last of its transaction.
    pub is_last: bool,
}

/// The state of a node for its cards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CardState {
    /// No card has opened it.
    Unused,
    /// A card of this process has opened it.
    Open(u32),
    /// Its card is closed, or its process has ended.
    Left,
}

impl CardState {
    fn encode(self) -> u64 {
        match self {
            Self::Unused => 0,
            Self::Open(process) => 1 << 32 | u64::from(process),
            Self::Left => 2 << 32,
        }
    }

    fn decode(word: u64) -> Self {
        match word >> 32 {
            0 => Self::Unused,
            1 => Self::Open(word as u32),
            _ => Self::Left,
        }
    }
}

fn state(shared: &Shared, node: usize) -> CardState {
    CardState::decode(shared.word(at::of(node, at::STATE_AT)).load(Ordering::Acquire))
}

/// Place of the slot of the message with this number.
fn slot(node: usize, ring: Ring, number: u64) -> usize {
    at::of(node, at::MEMORY_AT + ring.slot(number) as usize)
}

/// Frees the slot of message `head`: first its header is 0, then the head tells so. Returns the next head.
fn free(shared: &Shared, node: usize, ring: Ring, head: u64) -> u64 {
    shared.word(slot(node, ring, head) + HEADER_AT as usize).store(0, Ordering::Relaxed);
    let next = mailbox::pointer(head + 1);
    shared.word(at::of(node, at::HEAD_AT)).store(next, Ordering::Release);
    next
}

/// The nodes of some hardware, for cards of other processes.
#[derive(Debug)]
pub struct Rack {
    shared: Shared,
    _file: OwnedFd,
    _name: Name,
    ring: Ring,
    /// Words of each node that the bus has taken.
    taken: Vec<u64>,
}

impl Rack {
    /// A rack with a name, by which processes of the same user open its cards.
    ///
    /// # Errors
    /// An invalid name or one that is taken, or no memory.
    ///
    /// # Panics
    /// If the shape is that of no hardware.
    pub fn open(name: &str, shape: &RackShape) -> Result<Self, DeviceError> {
        if !directory::is_valid(name) {
            return Err(DeviceError::Name(name.to_owned()));
        }
        assert!((1..=RACK_NODES).contains(&shape.tails.len()), "{} nodes", shape.tails.len());
        let ring = Ring::new(0, shape.pages).expect("pages of a mailbox");
        let file = evb_os::memory::create("evbvelo-rack", RACK_BYTES)?;
        let shared = Shared::map(&file)?;
        let nonce = getrandom::u64().map_err(std::io::Error::other)?;
        describe(&shared, shape, nonce);
        let address = Address { process: std::process::id(), file: file.as_raw_fd() as u32, nonce };
        let name = directory::publish(name, address)?;
        Ok(Self { shared, _file: file, _name: name, ring, taken: vec![0; shape.tails.len()] })
    }

    /// The number of nodes.
    pub fn nodes(&self) -> usize {
        self.taken.len()
    }

    /// Returns true if a card has posted words that the bus has not taken.
    #[inline]
    pub fn has_posted(&self, node: usize) -> bool {
        self.shared.word(at::of(node, at::PUT_AT)).load(Ordering::Acquire) != self.taken[node]
    }

    /// Takes the next posted word of a node.
    #[inline]
    pub fn take_posted(&mut self, node: usize) -> Option<Posted> {
        if !self.has_posted(node) {
            return None;
        }
        let place = at::posted(node, self.taken[node]);
        let [word, last] = [0, 8].map(|offset| self.shared.word(place + offset).load(Ordering::Relaxed));
        self.taken[node] += 1;
        self.shared.word(at::of(node, at::TAKEN_AT)).store(self.taken[node], Ordering::Release);
        Some(Posted { word, is_last: last != 0 })
    }

    /// Puts a write of the device into the mailbox of a node, at a byte from the beginning of its ring.
    ///
    /// # Panics
    /// If the byte lies outside of the ring.
    #[inline]
    pub fn write(&self, node: usize, byte: u64, word: u64) {
        assert!(byte < self.ring.slots() * SLOT_BYTES, "a write to byte {byte:#x}, outside of the mailbox");
        self.shared.word(at::of(node, at::MEMORY_AT + byte as usize)).store(word, Ordering::Release);
    }

    /// Messages taken from the mailbox of a node, counted as the hardware does.
    #[inline]
    pub fn head(&self, node: usize) -> u64 {
        self.shared.word(at::of(node, at::HEAD_AT)).load(Ordering::Acquire)
    }

    /// Throws away what lies in the mailbox of a node whose card has left.
    pub fn discard(&self, node: usize) {
        let mut head = self.head(node);
        let header = |head| self.shared.word(slot(node, self.ring, head) + HEADER_AT as usize).load(Ordering::Acquire);
        while header(head) != 0 {
            head = free(&self.shared, node, self.ring, head);
        }
    }

    /// The state of a node.
    #[inline]
    pub fn state(&self, node: usize) -> CardState {
        state(&self.shared, node)
    }

    /// Looks at the processes of all cards: a card whose process has ended has left. The cards see by these looks that the
    /// program goes on, so there is at least one in each second.
    pub fn look(&self) {
        self.shared.word(at::BEAT_AT).fetch_add(1, Ordering::Relaxed);
        for node in 0..self.nodes() {
            let CardState::Open(process) = self.state(node) else { continue };
            if !(Address { process, file: 0, nonce: 0 }).is_alive() {
                self.shared.word(at::of(node, at::STATE_AT)).store(CardState::Left.encode(), Ordering::Release);
            }
        }
    }
}

impl Drop for Rack {
    fn drop(&mut self) {
        self.shared.word(MAGIC_AT).store(0, Ordering::Release);
    }
}

/// Writes what cards need to know; the first word last.
fn describe(shared: &Shared, shape: &RackShape, nonce: u64) {
    let set = |at, value| shared.word(at).store(value, Ordering::Relaxed);
    set(NONCE_AT, nonce);
    set(at::NODES_AT, shape.tails.len() as u64);
    set(at::BITS_AT[0], shape.bits.0.into());
    set(at::BITS_AT[1], shape.bits.1.into());
    set(at::PAGES_AT, shape.pages);
    (0..).zip(&shape.tails).for_each(|(node, tail)| set(at::of(node, at::HEAD_AT), *tail));
    shared.word(MAGIC_AT).store(at::MAGIC, Ordering::Release);
}

/// What a rack reports: nodes, map and mailboxes; `None` if it is not a rack of this version.
fn read_layout(shared: &Shared) -> Option<(usize, AddressMap, Ring)> {
    let word = |at| shared.word(at).load(Ordering::Relaxed);
    let nodes = usize::try_from(word(at::NODES_AT)).ok().filter(|nodes| (1..=RACK_NODES).contains(nodes))?;
    let [n, t] = at::BITS_AT.map(|at| u32::try_from(word(at)).ok());
    Some((nodes, AddressMap::new(n?, t?).ok()?, Ring::new(0, word(at::PAGES_AT)).ok()?))
}
