//! The buffer of one virtual channel, or priority, at the receiving end of a link: its packets, and the one in front.

use super::{PacketId, UNKNOWN};
use evb_core::Time;
use std::collections::VecDeque;

/// A buffer: one cache line.
#[repr(C, align(64))]
pub(super) struct Lane {
    /// Time at which the packet in front has left or will leave; [`UNKNOWN`] while it stands or has not asked yet.
    pub(super) left_at: Time,
    /// The packets behind the one in front: the first and the last of them.
    pub(super) behind: (PacketId, PacketId),
    pub(super) contents: Contents,
}

/// The account of what is in a buffer.
pub(super) enum Contents {
    /// Wormhole: when each of the two places for a worm can be taken.
    Places([Time; 2]),
    /// Cut-through.
    Bytes(Credit),
    /// Store and forward.
    Store {
        /// Bytes that came through here and are still in the switch.
        held: u64,
        /// The sender has been asked to pause.
        pausing: bool,
    },
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

/// Free bytes of a buffer as its sender knows them.
pub(super) struct Credit {
    /// Bytes known to be free.
    pub(super) free: u32,
    /// The oldest bytes that the sender will learn to be free: how many (0 is none), and when.
    bytes: u32,
    time: Time,
    /// The others, in order. Mostly there are none.
    rest: Option<Box<Rest>>,
}

/// A queue of bytes and times, in a box of its own since mostly there is none.
#[derive(Default)]
struct Rest(VecDeque<(Time, u32)>);

impl Credit {
    pub(super) fn new(free: u32) -> Self {
        Self { free, bytes: 0, time: Time::ZERO, rest: None }
    }

    /// Bytes will be known to be free at `time`.
    #[inline]
    pub(super) fn give_back(&mut self, time: Time, bytes: u32) {
        if self.bytes == 0 {
            (self.time, self.bytes) = (time, bytes);
        } else {
            self.rest.get_or_insert_default().0.push_back((time, bytes));
        }
    }

    /// Takes in what has come back by now.
    #[inline]
    pub(super) fn settle(&mut self, now: Time) {
        while self.bytes > 0 && self.time <= now {
            self.free += self.bytes;
            (self.time, self.bytes) = self.rest.as_mut().and_then(|rest| rest.0.pop_front()).unwrap_or((Time::ZERO, 0));
        }
    }

    /// Time at which `need` bytes will be known to be free, or [`UNKNOWN`]; at once is 0.
    #[inline]
    pub(super) fn room_at(&self, need: u32) -> Time {
        let mut free = self.free;
        if free >= need {
            return Time::ZERO;
        }
        let rest = self.rest.iter().flat_map(|rest| rest.0.iter().copied());
        for (time, bytes) in std::iter::once((self.time, self.bytes)).chain(rest) {
            free += bytes;
            if free >= need {
                return time;
            }
        }
        UNKNOWN
    }
}
