//! The two ends of a link: the port that sends into it, and the buffers where it ends.

use crate::packet::{PacketId, NO_LANE};
use std::collections::VecDeque;

/// A time that is not known yet.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// The sending end of a link.
pub(crate) struct Port {
    /// When the link is or was free; [`UNKNOWN`] while a stalled worm stands on it.
    pub(crate) free_at: u64,
    /// For when a wake is planned, or [`UNKNOWN`].
    pub(crate) wake_at: u64,
    /// Packets that ask for the link, in the order in which they came.
    pub(crate) waiting: VecDeque<PacketId>,
    /// The packet that has or had the link last.
    pub(crate) holder: Option<PacketId>,
    /// The lane of the packet that had the link last, for taking turns.
    pub(crate) turn: u32,
    /// Priorities that the receiver has asked to pause, as bits.
    pub(crate) paused: u8,
    /// It carries nothing any more.
    pub(crate) failed: bool,
    /// It is marked for arbitration at the present time.
    pub(crate) dirty: bool,
    /// Bytes of the packets that wait (store and forward).
    pub(crate) queued: u64,
    /// One in this many packets is corrupted; 0 is none.
    pub(crate) corrupt_one_in: u64,
    /// How much slower than configured.
    pub(crate) slowness: f64,
    pub(crate) counts: LinkCounts,
}

/// What is counted at a link, since the measurement began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkCounts {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Time in which bytes were moved.
    pub(crate) busy: u64,
    /// Time in which a packet had the link.
    pub(crate) held: u64,
    /// Time that packets waited for the link, added up over packets.
    pub(crate) waited: u64,
    /// Most packets that waited at once.
    pub(crate) most_waiting: u32,
    /// Most bytes that waited at once, or (cut-through) that lay in one buffer behind the link.
    pub(crate) most_bytes: u64,
    /// Packets dropped here because the queue was full.
    pub(crate) dropped: u64,
    /// How often the receiver asked for a pause.
    pub(crate) pauses: u64,
}

impl Port {
    pub(crate) fn new() -> Self {
        Self {
            free_at: 0,
            wake_at: UNKNOWN,
            waiting: VecDeque::new(),
            holder: None,
            turn: NO_LANE,
            paused: 0,
            failed: false,
            dirty: false,
            queued: 0,
            corrupt_one_in: 0,
            slowness: 1.0,
            counts: LinkCounts::default(),
        }
    }
}

/// The buffer of one virtual channel, or priority, at the receiving end of a link.
pub(crate) struct Lane {
    /// When the packet in front has left or will have left; [`UNKNOWN`] while it stands or has not asked yet.
    pub(crate) left_at: u64,
    /// Packets behind the one in front, whose leaving is not known yet.
    pub(crate) behind: VecDeque<PacketId>,
    /// Wormhole: when each of the two places for a worm can be taken.
    pub(crate) places: [u64; 2],
    /// Cut-through: free bytes, as the sender knows them.
    pub(crate) free: u64,
    /// Cut-through: bytes that the sender will learn to be free, and when, in order.
    pub(crate) returns: VecDeque<(u64, u64)>,
    /// Store and forward: bytes that came through here and are still in the switch.
    pub(crate) held: u64,
    /// Store and forward: the sender has been asked to pause.
    pub(crate) pausing: bool,
}

impl Lane {
    pub(crate) fn new(buffer: u64) -> Self {
        Self {
            left_at: 0,
            behind: VecDeque::new(),
            places: [0, 0],
            free: buffer,
            returns: VecDeque::new(),
            held: 0,
            pausing: false,
        }
    }

    /// Takes in the credits that have come back by now.
    #[inline]
    pub(crate) fn settle(&mut self, now: u64) {
        while let Some(&(time, bytes)) = self.returns.front() {
            if time > now {
                return;
            }
            self.free += bytes;
            self.returns.pop_front();
        }
    }
}
