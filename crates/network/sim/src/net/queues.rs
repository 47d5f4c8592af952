//! The output queues of switches that store packets: the memory that they share, and the marks on packets that find them
//! long.

use crate::packet::LaneId;
use evb_core::{Stream, Time};
use evb_fabric::{LinkId, Marking, Network, SharedMemory};
use rand::RngExt;
use std::{cmp::Reverse, collections::BinaryHeap};

/// Marks and shared memory of all queues.
pub(super) struct Queues {
    /// The marks of each link; empty without any.
    markings: Vec<Option<Marking>>,
    shared: Option<SharedMemory>,
    /// The memory of each switch, if it is shared.
    memories: Vec<Memory>,
    /// Bytes of each queue in shared memory, with those that are being sent.
    held: Vec<u64>,
}

/// The shared memory of a switch.
#[derive(Clone, Default)]
struct Memory {
    /// Bytes that are taken, beside those that each queue has for itself.
    taken: u64,
    /// The ends of the packets that are being sent: then their bytes are free.
    leaving: BinaryHeap<Reverse<(Time, LinkId, u32)>>,
}

impl Queues {
    pub(super) fn new(network: &Network) -> Self {
        let has_marks = network.links.iter().any(|link| link.marking.is_some());
        let markings = network.links.iter().filter(|_| has_marks).map(|link| link.marking).collect();
        let shared = network.config.switch.memory;
        let (switches, links) = shared.map_or((0, 0), |_| (network.switches.len(), network.links.len()));
        Self { markings, shared, memories: vec![Memory::default(); switches], held: vec![0; links] }
    }

    /// True if a packet that comes into a queue of this many bytes is marked.
    #[inline]
    pub(super) fn marks(&self, link: LinkId, queued: u64, random: &mut Stream) -> bool {
        let Some(&Some(Marking { low, high, most })) = self.markings.get(link.0 as usize) else { return false };
        if queued <= low.0 || queued > high.0 {
            return queued > high.0;
        }
        random.random_bool((most * (queued - low.0) as f64 / (high.0 - low.0) as f64).clamp(0.0, 1.0))
    }

    /// Takes memory for a packet; returns false if there is none for it.
    #[inline]
    pub(super) fn take(&mut self, now: Time, switch: usize, link: LinkId, wire: u32) -> bool {
        let Some(shared) = self.shared else { return true };
        self.free(now, switch);
        let (memory, held) = (&mut self.memories[switch], &mut self.held[link.0 as usize]);
        let after = *held + u64::from(wire);
        let beyond = |held: u64| held.saturating_sub(shared.least.0);
        let more = beyond(after) - beyond(*held);
        let free = shared.size.0 - memory.taken;
        if more > 0 && (more > free || beyond(after) as f64 > shared.alpha * free as f64) {
            return false;
        }
        *held = after;
        memory.taken += more;
        true
    }

    /// A packet from the buffer of a lane is sent until `at`: then its memory is free.
    #[inline]
    pub(super) fn give_back(&mut self, switch: Option<usize>, link: LinkId, wire: u32, at: Time) {
        if let (Some(switch), Some(_)) = (switch, self.shared) {
            self.memories[switch].leaving.push(Reverse((at, link, wire)));
        }
    }

    /// True if the memory is shared.
    #[inline]
    pub(super) fn are_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Frees the memory of packets that have been sent.
    fn free(&mut self, now: Time, switch: usize) {
        let least = self.shared.map_or(0, |shared| shared.least.0);
        let memory = &mut self.memories[switch];
        while let Some(Reverse((_, link, wire))) = memory.leaving.peek().copied().filter(|Reverse((at, ..))| *at <= now)
        {
            memory.leaving.pop();
            let held = &mut self.held[link.0 as usize];
            let before = held.saturating_sub(least);
            *held -= u64::from(wire);
            memory.taken -= before - held.saturating_sub(least);
        }
    }
}

impl super::Net {
    /// Takes room in the queue of an output for a packet of `wire` bytes; returns false if there is none.
    pub(super) fn take_memory(&mut self, link: LinkId, lane: LaneId, wire: u32) -> bool {
        if !self.queues.are_shared() {
            return true;
        }
        let switch = usize::from(self.links.switch_of(lane).0);
        self.queues.take(self.queue.now(), switch, link, wire)
    }

    /// A packet leaves the queue of an output, and its memory is free from `at` on.
    #[inline]
    pub(super) fn give_memory_back(&mut self, link: LinkId, lane: LaneId, wire: u32, at: Time) {
        if self.queues.are_shared() {
            let switch = (lane != LaneId::NONE).then(|| usize::from(self.links.switch_of(lane).0));
            self.queues.give_back(switch, link, wire, at);
        }
    }
}
