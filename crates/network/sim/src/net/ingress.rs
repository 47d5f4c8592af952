//! The inputs of switches that ask their senders to pause: the memory that they share, and the headroom for what is still under
//! way then.

use super::lane::Stored;
use evb_core::ByteCount;
use evb_fabric::{Flow, LinkId, Network, SharedMemory};

/// Memory and headroom of all inputs; empty where nothing pauses.
pub(super) struct Ingress {
    /// Bytes that an input holds at most before it asks for a pause.
    queue: u64,
    shared: Option<SharedMemory>,
    /// Bytes that the inputs of each switch take of the shared memory.
    taken: Vec<u64>,
    /// Bytes of headroom at the end of each link.
    headroom: Vec<u64>,
}

impl Ingress {
    pub(super) fn new(network: &Network) -> Self {
        let config = &network.config;
        let (queue, own) = match config.flow {
            Flow::StoreAndForward { queue, headroom, .. } if config.flow.pauses() => (queue.0, headroom),
            _ => return Self { queue: 0, shared: None, taken: Vec::new(), headroom: Vec::new() },
        };
        let headroom = network.links.iter().map(|link| own.unwrap_or(config.headroom_for(link.rate, link.delay)).0);
        let shared = config.switch.memory;
        Self { queue, shared, taken: vec![0; network.switches.len()], headroom: headroom.collect() }
    }

    /// True if the inputs of a switch share its memory.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Takes a packet that has come over a link into a switch. Returns whether the input needs a pause, and its bytes in the
    /// headroom; `None` if there is no room.
    pub(super) fn take(&mut self, stored: &mut Stored, switch: usize, link: LinkId, wire: u64) -> Option<(bool, u64)> {
        let headroom = self.headroom[link.0 as usize];
        let after = stored.held + wire;
        let Some(shared) = self.shared else {
            let beyond = after.saturating_sub(self.queue);
            stored.held = if beyond <= headroom { after } else { return None };
            return Some((after >= self.queue, beyond));
        };
        let (most, free) = self.threshold(&shared, switch);
        let more = beyond(&shared, after) - beyond(&shared, stored.held);
        if after <= most && more <= free {
            stored.held = after;
            self.taken[switch] += more;
        } else if stored.headroom + wire <= headroom {
            stored.headroom += wire;
        } else {
            return None;
        }
        Some((stored.headroom > 0, stored.headroom))
    }

    /// Bytes of a packet have left a switch, those of the headroom first. Returns true if the input needs no pause any more.
    pub(super) fn give_back(&mut self, stored: &mut Stored, switch: usize, wire: u64) -> bool {
        let Some(shared) = self.shared else {
            stored.held -= wire;
            return stored.held <= self.queue / 2;
        };
        let of_headroom = stored.headroom.min(wire);
        stored.headroom -= of_headroom;
        let before = beyond(&shared, stored.held);
        stored.held -= wire - of_headroom;
        self.taken[switch] -= before - beyond(&shared, stored.held);
        let (most, _) = self.threshold(&shared, switch);
        let ByteCount(offset) = shared.xon_offset.unwrap_or(SharedMemory::XON_OFFSET);
        stored.headroom == 0 && (stored.held <= shared.least.0 || stored.held + offset <= most)
    }

    /// Bytes up to which an input of a switch takes packets without a pause, and the free bytes of its shared memory.
    fn threshold(&self, shared: &SharedMemory, switch: usize) -> (u64, u64) {
        let free = shared.size.0 - self.taken[switch];
        let dynamic = (shared.alpha * free as f64) as u64;
        (self.queue.min(shared.least.0.saturating_add(dynamic)), free)
    }
}

/// The part of some bytes that is in the shared memory.
fn beyond(shared: &SharedMemory, held: u64) -> u64 {
    held.saturating_sub(shared.least.0)
}
