//! Switches and the flow control between them.

use super::is_default;
use crate::{LaneWeights, NetworkConfig, Topology};
use evb_core::{ByteCount, Span};
use serde::{Deserialize, Serialize};

/// A switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SwitchConfig {
    /// Time from the arrival of a packet's head at the front of its input buffer to its request for an output.
    pub delay: Span,
    /// The order of packets at an output.
    pub arbitration: Arbitration,
    /// Marks on packets that find a long queue; none without it (store and forward).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marking: Option<Marking>,
    /// The memory that all queues of the switch share; each has its own without it (store and forward).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<SharedMemory>,
    /// A packet of a connection that does not fit into a queue is cut to its header, which goes on with the highest priority
    /// (Handley et al., Re-architecting datacenter networks and stacks for low latency and high performance, SIGCOMM 2017;
    /// Ultra Ethernet Specification 1.0). Otherwise it is dropped.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub trimming: bool,
    /// Names of the switches that cut through, a `*` at the end for any ending; the others store whole packets. Without it all
    /// do as the flow says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_through: Option<Vec<String>>,
    /// The arbitration of each link between virtual channels, before that between inputs. Without it higher priorities go first
    /// where channels are those of priorities, and otherwise all channels count as inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lanes: Option<LaneWeights>,
}

/// Explicit congestion notification: the probability of a mark on a packet that comes into a queue (RFC 3168), which grows
/// from 0 at `low` to `most` at `high` bytes, and is 1 above (RED: Floyd and Jacobson, IEEE/ACM Transactions on
/// Networking 1, 1993, without averaging). With `low` and `high` equal it is a step (DCTCP).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marking {
    /// Bytes of the queue up to which no packet is marked.
    pub low: ByteCount,
    /// Bytes of the queue above which all are.
    pub high: ByteCount,
    /// Probability of a mark at `high` bytes.
    pub most: f64,
}

/// Memory that the queues of a switch share by a dynamic threshold: a queue takes a packet if it stays within `alpha` times
/// the free memory (Choudhury and Hahne, Dynamic queue length thresholds for shared-memory packet switches, IEEE/ACM
/// Transactions on Networking 6, 1998), or within `least`.
///
/// Where full queues drop, these are the queues of outputs. Where senders pause, memory is counted for each input, and for each
/// priority in pauses by priority: what is beyond the threshold goes into the headroom, and the input asks for a pause (XOFF).
/// That ends (XON) when the headroom is empty, and the rest `xon_offset` below the threshold, or within `least` (the switch of
/// the simulator of HPCC: Li et al., SIGCOMM 2019; pool, profile and headroom of SONiC).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SharedMemory {
    /// Bytes that all queues of a switch share, or with pauses all its inputs; the headroom is beside them.
    pub size: ByteCount,
    /// The part of the free memory that one queue, or input, may take, a factor.
    pub alpha: f64,
    /// Bytes that each queue, or input, has for itself, beside the shared ones.
    pub least: ByteCount,
    /// Bytes below the threshold at which a pause ends; [`XON_OFFSET`](Self::XON_OFFSET) without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xon_offset: Option<ByteCount>,
}

/// The order of packets at an output for which several inputs wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arbitration {
    /// The inputs in turn.
    RoundRobin,
    /// One of the waiting inputs, drawn at random.
    Random,
    /// The input that has waited longest.
    Oldest,
    /// The input that got any output of the switch the longest time ago.
    LeastRecent,
    /// Each input has a queue for each output, and sends one packet at a time. Free outputs grant one input each, in turn, and
    /// each input accepts one of them, in turn, until nothing can be matched any more (McKeown, The iSLIP Scheduling Algorithm
    /// for Input-Queued Switches, IEEE/ACM Transactions on Networking 7, 1999).
    Islip,
}

/// The flow control: the fate of a packet that cannot move.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Flow {
    /// Wormhole with STOP/GO or byte credits: a stalled packet occupies all the links behind its head, with a few bytes
    /// in the slack buffer of each input.
    Wormhole {
        /// Bytes of one worm that an input can buffer.
        slack: ByteCount,
        /// Time from a byte leaving the buffer to the sender knowing it.
        reaction: Span,
    },
    /// Virtual cut-through with credits: a packet moves on only when the next buffer has room for all of it, and its
    /// head does not wait for its tail.
    CutThrough {
        /// Bytes of each input buffer, for each virtual channel.
        buffer: ByteCount,
        /// Time from a packet having left the buffer to the sender knowing it.
        reaction: Span,
        /// Virtual channels of each link.
        virtual_channels: u8,
        /// The virtual channel that a packet takes on a link.
        #[serde(default, skip_serializing_if = "is_default")]
        channel: ChannelRule,
    },
    /// Store and forward: a switch receives a whole packet, then puts it into the queue of its output.
    StoreAndForward {
        /// Bytes of each output queue (`drop`), or of the packets from one input that a switch holds before it asks the
        /// sender to pause.
        queue: ByteCount,
        /// The behaviour of a full queue.
        full: WhenFull,
        /// Time from the queue filling or emptying to the sender obeying.
        reaction: Span,
        /// Priorities, each with its own queues; control messages have the highest.
        priorities: u8,
        /// Bytes that an input, of each priority in pauses by priority, has room for after it has asked its sender to pause;
        /// [`NetworkConfig::headroom_for`] its cable without it. What finds no room is lost.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        headroom: Option<ByteCount>,
        /// The watchdog of each output of a switch, against receivers that pause without end; none without it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        watchdog: Option<Watchdog>,
    },
}

/// A watchdog against pause storms, as the PFC watchdog of SONiC (sonic-mgmt, docs/pfcwd): it looks after each output of a
/// switch, and each priority in pauses by priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watchdog {
    /// Length of a pause after which it acts.
    pub detection: Span,
    /// Time without a pause after which all is as before.
    pub restoration: Span,
    /// What it does meanwhile.
    pub action: WatchdogAction,
}

/// What a watchdog does with an output that is paused for too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WatchdogAction {
    /// What waits for the output is lost, and what comes for it, or from its receiver.
    Drop,
    /// The output does not obey pauses.
    Forward,
}

/// The rule by which a packet takes a virtual channel of a link. Numbers beyond the last channel mean the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelRule {
    /// [`Dateline`](Self::Dateline) in a torus, [`Hop`](Self::Hop) in a dragonfly, a dragonfly+, a HyperX or a listed network,
    /// and [`Destination`](Self::Destination) in the others, which have no rings to break.
    #[default]
    Topology,
    /// The first channel in each dimension, and the next one from the link on that closes a ring.
    Dateline,
    /// The first channel on the first link between switches, and the next one on each further link. With a channel for
    /// each of these links no packets wait for each other in a ring, whatever the topology (Günther, IEEE Transactions on
    /// Communications 29, 1981).
    Hop,
    /// The channel with the number of the destination's port, modulo the number of channels, on the whole route.
    Destination,
    /// The channel with the number of the priority.
    Priority,
}

/// The behaviour of a store-and-forward switch whose queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// Packets that do not fit are lost, and counted.
    Drop,
    /// The sender of the link pauses (IEEE 802.3x).
    Pause,
    /// The sender pauses traffic of the same priority (IEEE 802.1Qbb).
    PriorityPause,
}

impl SharedMemory {
    /// The usual [`xon_offset`](Self::xon_offset): SONiC, Arista-7060X6-64PE, pg_profile_lookup.ini.
    pub const XON_OFFSET: ByteCount = ByteCount(3556);
}

impl Flow {
    /// Virtual channels of each link; one if the flow has none.
    #[inline]
    pub fn virtual_channels(&self) -> u8 {
        match *self {
            Self::CutThrough { virtual_channels, .. } => virtual_channels,
            Self::Wormhole { .. } | Self::StoreAndForward { .. } => 1,
        }
    }

    /// True if senders pause instead of losing packets.
    pub fn pauses(&self) -> bool {
        matches!(self, Self::StoreAndForward { full: WhenFull::Pause | WhenFull::PriorityPause, .. })
    }

    /// True if a switch may lose a packet: in queues that drop, in a headroom that the file sets, or by a watchdog.
    pub fn may_lose(&self) -> bool {
        match self {
            Self::StoreAndForward { full, headroom, watchdog, .. } => {
                *full == WhenFull::Drop || headroom.is_some() || watchdog.is_some()
            }
            Self::Wormhole { .. } | Self::CutThrough { .. } => false,
        }
    }

    /// The watchdog of each output of a switch.
    pub fn watchdog(&self) -> Option<Watchdog> {
        match *self {
            Self::StoreAndForward { watchdog, .. } => watchdog,
            Self::Wormhole { .. } | Self::CutThrough { .. } => None,
        }
    }
}

impl NetworkConfig {
    /// The rule for virtual channels; never [`ChannelRule::Topology`].
    pub fn channel_rule(&self) -> ChannelRule {
        match (&self.flow, &self.topology) {
            (Flow::CutThrough { channel, .. }, _) if *channel != ChannelRule::Topology => *channel,
            (_, Topology::Torus { .. }) => ChannelRule::Dateline,
            (
                _,
                Topology::Dragonfly { .. }
                | Topology::DragonflyPlus { .. }
                | Topology::HyperX { .. }
                | Topology::Explicit { .. },
            ) => ChannelRule::Hop,
            _ => ChannelRule::Destination,
        }
    }
}
