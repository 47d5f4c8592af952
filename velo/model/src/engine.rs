//! Nodes and a network between them that keeps order, has bounded queues and moves a packet on command.

extern crate alloc;

use crate::{AddressMap, Answer, Completer, Endpoint, Entry, HeaderError, Packet, Recombiner, Requester};
use alloc::{collections::VecDeque, vec::Vec};

/// The reason why a store was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The store is invalid.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The network takes no more packets from this thread to that node now: the processor waits.
    #[error("the network is full: move a packet, then store again")]
    Full,
}

/// The size of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// The address map, which gives the number of nodes and threads; all of them are created.
    pub map: AddressMap,
    /// Most packets under way from one thread to one thread.
    pub credits: usize,
}

/// The nodes and the packets between them. A way is its own channel, with end-to-end credits, so that a full
/// mailbox stops its own senders only.
#[derive(Clone, Debug)]
pub struct Engine {
    options: EngineOptions,
    requesters: Vec<Requester>,
    completers: Vec<Completer>,
    /// The software of each thread.
    recombiners: Vec<Recombiner>,
    /// Packets by sending and receiving thread.
    ways: Vec<VecDeque<Packet>>,
}

impl Engine {
    /// An idle engine with all mailboxes closed.
    pub fn new(options: EngineOptions) -> Self {
        let map = options.map;
        let all = map.threads() as usize;
        Self {
            options,
            requesters: (0..map.nodes()).map(|node| Requester::new(map, node)).collect(),
            completers: (0..map.nodes()).map(|node| Completer::new(map, node)).collect(),
            recombiners: alloc::vec![Recombiner::new(); all],
            ways: (0..all * all).map(|_| VecDeque::new()).collect(),
        }
    }

    /// Takes a store of a thread.
    ///
    /// # Errors
    /// [`StoreError`]; nothing is sent in this case.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn store(&mut self, node: usize, thread: u64, address: u64, data: &[u8]) -> Result<(), StoreError> {
        let packet = self.requesters[node].store(thread, address, data)?;
        let (credits, way) = (self.options.credits, self.way(&packet));
        if self.ways[way].len() >= credits {
            return Err(StoreError::Full);
        }
        self.ways[way].push_back(packet);
        Ok(())
    }

    /// Number of ways between two threads, counted by sender and then by receiver.
    pub fn ways(&self) -> usize {
        self.ways.len()
    }

    /// Brings the first packet of a way to its completer; `None` if there is none. A refused packet stays the first.
    ///
    /// # Panics
    /// If the way does not exist.
    pub fn step(&mut self, way: usize) -> Option<Answer> {
        let packet = self.ways[way].front()?;
        let answer = self.completers[packet.header.target.node as usize].accept(packet);
        if answer != Answer::Full {
            self.ways[way].pop_front();
        }
        Some(answer)
    }

    /// Opens the mailbox of a thread as [`Completer::open`] does, with an empty recombination buffer behind it.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn open(&mut self, node: usize, thread: u64, slots: usize) -> bool {
        let is_open = self.completers[node].open(thread, slots);
        if is_open {
            let index = self.index(Endpoint { node: node as u64, thread });
            self.recombiners[index] = Recombiner::new();
        }
        is_open
    }

    /// Closes the mailbox of a thread. Its content can still be taken.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn close(&mut self, node: usize, thread: u64) {
        self.completers[node].close(thread);
    }

    /// The next whole message of a thread. The mailbox is emptied up to it; parts stay in the recombination buffer.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn take(&mut self, node: usize, thread: u64) -> Option<Entry> {
        while let Some(packet) = self.completers[node].take(thread) {
            let index = self.index(packet.header.target);
            let entry = self.recombiners[index].accept(&packet);
            if entry.is_some() {
                return entry;
            }
        }
        None
    }

    /// The completer of a node.
    ///
    /// # Panics
    /// If the node does not exist.
    pub fn completer(&self, node: usize) -> &Completer {
        &self.completers[node]
    }

    /// The recombination buffer of a thread.
    ///
    /// # Panics
    /// If the node or the thread does not exist.
    pub fn recombiner(&self, node: usize, thread: u64) -> &Recombiner {
        &self.recombiners[self.index(Endpoint { node: node as u64, thread })]
    }

    /// Returns true if nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.ways.iter().all(VecDeque::is_empty)
    }

    fn way(&self, packet: &Packet) -> usize {
        self.index(packet.header.source) * self.recombiners.len() + self.index(packet.header.target)
    }

    fn index(&self, endpoint: Endpoint) -> usize {
        endpoint.bits(self.options.map) as usize
    }
}
