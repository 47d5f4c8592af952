//! The buffer of one virtual channel, or priority, at the receiving end of a link: its packets, and the one in front.
//!
//! Virtual channels need virtual cut-through. Two worms that shared a link byte by byte would slow each other down, and
//! their times would be unknown without following bytes.

use super::{PacketId, UNKNOWN, credit::Credit};
use evb_core::Time;

/// A buffer: one cache line.
#[repr(C, align(64))]
pub(super) struct Lane {
    /// Time at which the packet in front makes way for the next one; [`UNKNOWN`] while it is held up or has not requested a
    /// link yet.
    pub(super) left_at: Time,
    /// The packets behind the one in front: the first and the last of them.
    pub(super) behind: (PacketId, PacketId),
    pub(super) contents: Contents,
}

/// The occupation of a buffer.
pub(super) enum Contents {
    /// Wormhole: when each of the two places for a worm can be taken.
    Places([Time; 2]),
    /// Cut-through.
    Bytes(Credit),
    /// Store and forward.
    Store(Stored),
}

/// The packets that came through a buffer and are still in the switch (store and forward with pauses).
#[derive(Clone, Copy, Default)]
pub(super) struct Stored {
    /// Their bytes, but for those in the headroom of shared memory.
    pub(super) held: u64,
    /// Their bytes in the headroom of shared memory.
    pub(super) headroom: u64,
    /// The sender has been asked to pause.
    pub(super) pausing: bool,
}

impl Lane {
    pub(super) fn new(contents: Contents) -> Self {
        Self { left_at: Time::ZERO, behind: (PacketId::NONE, PacketId::NONE), contents }
    }

    /// Takes the place for a worm that is free for longest.
    pub(super) fn take_place(&mut self) {
        if let Contents::Places(places) = &mut self.contents {
            let free = usize::from(places[1] < places[0]);
            places[free] = UNKNOWN;
        }
    }

    /// The place of the worm in front can be taken again at `time`.
    pub(super) fn free_place(&mut self, time: Time) {
        if let Contents::Places(places) = &mut self.contents {
            let taken = usize::from(places[0] != UNKNOWN);
            places[taken] = time;
        }
    }
}
