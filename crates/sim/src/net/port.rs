//! The two ends of a link: the port that sends into it, and the buffers where it ends.

use crate::packet::{NO_LANE, PacketId};
use evb_fabric::{End, EndpointId, Link, SwitchId};
use smallvec::SmallVec;
use std::collections::VecDeque;

/// A time that is not known yet.
pub(crate) const UNKNOWN: u64 = u64::MAX;

/// Both ends of a link, together in two cache lines, since a packet needs both at once.
#[repr(C, align(128))]
pub(crate) struct LinkState {
    pub(crate) port: Port,
    /// The buffer of the first virtual channel.
    pub(crate) lane: Lane,
}

/// The sending end of a link: one cache line.
#[repr(C, align(64))]
pub(crate) struct Port {
    /// When the link is or was free; [`UNKNOWN`] while a stalled worm stands on it.
    pub(crate) free_at: u64,
    /// For when a wake is planned, or [`UNKNOWN`].
    pub(crate) wake_at: u64,
    /// Packets that ask for the link, in the order in which they came.
    pub(crate) waiting: SmallVec<[Waiting; 1]>,
    /// No packet that waits is smaller than this on the wire.
    pub(crate) least_wire: u32,
    /// The packet that has or had the link last.
    pub(crate) holder: PacketId,
    /// The lane of the packet that had the link last, for taking turns.
    pub(crate) turn: u32,
    /// The switch or endpoint that the link leads to.
    end: u16,
    /// Which rate and delay it has, in [`Port::classes`].
    class: u16,
    /// Priorities that the receiver has asked to pause, as bits.
    pub(crate) paused: u8,
    at_endpoint: bool,
    pub(crate) dimension: u8,
    pub(crate) dateline: bool,
    /// It carries nothing any more.
    pub(crate) failed: bool,
    /// It is marked for arbitration at the present time.
    pub(crate) dirty: bool,
    /// It is slower than configured, or corrupts: see [`Faults`].
    pub(crate) harmed: bool,
}

/// A packet that asks for a link, with what is needed to choose among several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) id: PacketId,
    pub(crate) lane: u32,
    pub(crate) wire: u32,
    pub(crate) priority: u8,
}

/// Rate and delay that some links have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) delay: u64,
    /// Time for one byte, rounded.
    pub(crate) byte_time: u64,
    /// Bits per second.
    pub(crate) rate: u64,
}

/// What is wrong with a link on purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Harm {
    /// One in this many packets is corrupted; 0 is none.
    pub(crate) corrupt_one_in: u64,
    /// How much slower than configured.
    pub(crate) slowness: f64,
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
    /// Most bytes that waited at once, or (cut-through) that lay in one buffer behind the link.
    pub(crate) most_bytes: u64,
    /// Packets dropped here because the queue was full.
    pub(crate) dropped: u64,
    /// Bytes of the packets that wait now (store and forward).
    pub(crate) queued: u64,
    /// Most packets that waited at once.
    pub(crate) most_waiting: u32,
    /// How often the receiver asked for a pause.
    pub(crate) pauses: u32,
}

impl Port {
    /// The port of a link, whose class is looked up among those known, or added to them.
    pub(crate) fn new(link: &Link, classes: &mut Vec<Class>) -> Self {
        let (delay, byte_time, rate) = (link.delay.0, link.byte_time().0, link.rate.0);
        let class = Class { delay, byte_time, rate };
        let known = classes.iter().position(|other| *other == class);
        let place = known.unwrap_or_else(|| {
            classes.push(class);
            classes.len() - 1
        });
        let (end, at_endpoint) = match link.to {
            End::Switch(switch) => (switch.0, false),
            End::Endpoint(endpoint) => (endpoint.0, true),
        };
        Self {
            free_at: 0,
            wake_at: UNKNOWN,
            waiting: SmallVec::new(),
            least_wire: u32::MAX,
            holder: PacketId::NONE,
            turn: NO_LANE,
            end,
            class: u16::try_from(place).expect("fewer kinds of links than 2^16"),
            paused: 0,
            at_endpoint,
            dimension: link.dimension,
            dateline: link.dateline,
            failed: false,
            dirty: false,
            harmed: false,
        }
    }

    /// Where the link leads.
    #[inline]
    pub(crate) fn to(&self) -> End {
        match self.at_endpoint {
            true => End::Endpoint(EndpointId(self.end)),
            false => End::Switch(SwitchId(self.end)),
        }
    }

    /// Rate and delay.
    #[inline]
    pub(crate) fn class(&self, classes: &[Class]) -> Class {
        classes[usize::from(self.class)]
    }
}

/// The buffer of one virtual channel, or priority, at the receiving end of a link: one cache line.
#[repr(C, align(64))]
pub(crate) struct Lane {
    /// When the packet in front has left or will have left; [`UNKNOWN`] while it stands or has not asked yet.
    pub(crate) left_at: u64,
    /// The packets behind the one in front: the first and the last of them.
    pub(crate) behind: (PacketId, PacketId),
    pub(crate) contents: Contents,
}

/// What is kept of the contents of a buffer.
pub(crate) enum Contents {
    /// Wormhole: when each of the two places for a worm can be taken.
    Places([u64; 2]),
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

/// Free bytes of a buffer as its sender knows them.
pub(crate) struct Credit {
    /// Bytes known to be free.
    pub(crate) free: u32,
    /// Of what the sender will learn to be free, the oldest: how many bytes (0 is none), and when.
    bytes: u32,
    time: u64,
    /// The others, in order. Mostly there are none.
    rest: Option<Box<Rest>>,
}

/// A queue of bytes and times, in a box of its own since mostly there is none.
#[derive(Default)]
struct Rest(VecDeque<(u64, u32)>);

impl Credit {
    pub(crate) fn new(free: u32) -> Self {
        Self { free, bytes: 0, time: 0, rest: None }
    }

    /// Bytes will be known to be free at `time`.
    #[inline]
    pub(crate) fn give_back(&mut self, time: u64, bytes: u32) {
        if self.bytes == 0 {
            (self.time, self.bytes) = (time, bytes);
        } else {
            self.rest.get_or_insert_default().0.push_back((time, bytes));
        }
    }

    /// Takes in what has come back by now.
    #[inline]
    pub(crate) fn settle(&mut self, now: u64) {
        while self.bytes > 0 && self.time <= now {
            self.free += self.bytes;
            (self.time, self.bytes) = self.rest.as_mut().and_then(|rest| rest.0.pop_front()).unwrap_or((0, 0));
        }
    }

    /// When `need` bytes will be known to be free, or [`UNKNOWN`]; at once is 0.
    #[inline]
    pub(crate) fn room_at(&self, need: u32) -> u64 {
        let mut free = self.free;
        if free >= need {
            return 0;
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

impl Lane {
    pub(crate) fn new(contents: Contents) -> Self {
        Self { left_at: 0, behind: (PacketId::NONE, PacketId::NONE), contents }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_ends_of_a_link_share_two_cache_lines() {
        assert_eq!(size_of::<super::LinkState>(), 128);
    }
}
