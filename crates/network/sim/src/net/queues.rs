//! The output queues of switches that store packets: the memory that they share, the marks on packets that find them long,
//! and the headers of packets that find them full.

use crate::packet::{LaneId, Load, Packet, PacketId};
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
    /// Bytes of headers that wait for each link, in queues of their own; empty without trimming.
    headers: Vec<u64>,
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
        // Where senders pause, memory is that of the inputs.
        let shared = network.config.switch.memory.filter(|_| !network.config.flow.pauses());
        let (switches, links) = shared.map_or((0, 0), |_| (network.switches.len(), network.links.len()));
        let headers = vec![0; if network.config.switch.trimming { network.links.len() } else { 0 }];
        Self { markings, shared, memories: vec![Memory::default(); switches], held: vec![0; links], headers }
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

    /// True if packets are cut to their headers when they do not fit.
    #[inline]
    pub(super) fn trims(&self) -> bool {
        !self.headers.is_empty()
    }

    /// Takes a header into the queue of headers before a link, of at most `most` bytes; returns false if it does not fit.
    fn take_header(&mut self, link: LinkId, wire: u32, most: u64) -> bool {
        let held = &mut self.headers[link.0 as usize];
        let after = *held + u64::from(wire);
        let fits = after <= most;
        *held = if fits { after } else { *held };
        fits
    }

    /// A packet leaves the queue before a link; returns its bytes in the queue of whole packets.
    #[inline]
    pub(super) fn release(&mut self, link: LinkId, packet: &Packet) -> u64 {
        let wire = u64::from(packet.wire);
        match self.headers.get_mut(link.0 as usize).filter(|_| packet.is_header()) {
            None => wire,
            Some(headers) => {
                *headers = headers.saturating_sub(wire);
                0
            }
        }
    }

    /// Nothing waits for a link any more.
    pub(super) fn forget_headers(&mut self, link: LinkId) {
        if let Some(headers) = self.headers.get_mut(link.0 as usize) {
            *headers = 0;
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
    /// Takes a packet into the queue of an output. What does not fit is cut to its header, and headers have a queue of their
    /// own. Returns false if the packet is lost.
    pub(super) fn take_in_or_trim(&mut self, link: LinkId, id: PacketId) -> bool {
        if !self.packets[id].is_header() {
            if self.admit(link, id) {
                return true;
            }
            if !self.packets[id].load.is_of_connection() {
                self.counts[link].dropped += 1;
                return false;
            }
            self.cut_to_header(id);
            self.counts[link].trimmed += 1;
        }
        let (lane, wire) = (self.packets[id].lane, self.packets[id].wire);
        let most = if lane == LaneId::NONE { u64::MAX } else { self.flow.queue_size() };
        let fits = self.queues.take_header(link, wire, most);
        self.counts[link].dropped += u64::from(!fits);
        fits
    }

    /// Cuts a segment to its header, which goes before all others.
    fn cut_to_header(&mut self, id: PacketId) {
        let nic = &self.network.config.nic;
        let priority = self.flow.highest_priority();
        let packet = &mut self.packets[id];
        packet.wire = nic.header.0.max(nic.minimum.0) as u32;
        (packet.load, packet.payload, packet.priority) = (Load::Header, 0, priority);
    }

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
    pub(super) fn give_memory_back(&mut self, link: LinkId, id: PacketId, at: Time) {
        if !self.queues.are_shared() {
            return;
        }
        let packet = &self.packets[id];
        let &Packet { lane, wire, .. } = packet;
        // Headers of trimmed packets have queues of their own.
        if !(self.queues.trims() && packet.is_header()) {
            let switch = (lane != LaneId::NONE).then(|| usize::from(self.links.switch_of(lane).0));
            self.queues.give_back(switch, link, wire, at);
        }
    }
}
