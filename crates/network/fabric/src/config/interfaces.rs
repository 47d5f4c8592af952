//! Network interfaces and hosts.

use super::is_default;
use evb_core::{Bandwidth, ByteCount, Span};
use serde::{Deserialize, Serialize};

/// A network interface.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NicConfig {
    /// Ports to the network; packets take any free one.
    pub ports: u8,
    /// Rate of the engine between the memory of the interface and the link, if it is below the rate of the link.
    pub rate: Option<Bandwidth>,
    /// Time that the interface needs for each packet before it sends it.
    pub overhead: Span,
    /// Largest payload of a packet: longer messages are cut.
    pub packet: ByteCount,
    /// Bytes of each packet on the wire beside its payload.
    pub header: ByteCount,
    /// Fewest bytes of a packet on the wire.
    pub minimum: ByteCount,
    /// Messages that are sent at once, their packets in turn.
    pub messages: u16,
    /// Fragments that wait in the interface beside the messages that are sent. Further ones wait in the readout unit, in
    /// the order in which they were requested.
    #[serde(default = "usual_queue", skip_serializing_if = "is_usual_queue")]
    pub queue: u16,
    /// The message of the next packet among the waiting messages.
    #[serde(default, skip_serializing_if = "is_default")]
    pub service: Service,
    /// True if the interface itself handles the messages by which a barrel shifter keeps step, and lets them overtake all
    /// others, as its firmware can. Otherwise the processor of the host does.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub keeps_step: bool,
    /// Access to the memory of the host; without it the interface never waits for memory.
    pub dma: Option<Dma>,
    /// Random time beside `overhead`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
}

/// A random time beside a fixed one: what interrupts, caches and schedulers add. Each host has a separate stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Jitter {
    /// The mean time.
    pub mean: Span,
    /// The distribution of the times.
    pub spread: JitterSpread,
    /// How often a time is drawn.
    pub per: JitterPer,
}

/// The distribution of random times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JitterSpread {
    /// Exponential: the rms is the mean.
    Exponential,
    /// Log-normal, with the tail that its rms gives.
    LogNormal {
        /// Root mean square deviation from the mean.
        rms: Span,
    },
}

/// How often a random time is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JitterPer {
    /// Once for each message, before its last packet.
    Message,
    /// For each packet.
    Packet,
}

/// The message of the next packet among the waiting messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// The messages that are sent at once take turns; the others wait in order.
    #[default]
    InTurn,
    /// Each peer has a queue. The peers take turns, and several are served at once, packet by packet.
    PeersInTurn,
}

/// Rates at which a network interface reads and writes the memory of its host; both share one bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dma {
    /// Rate of reading, for outgoing data.
    pub read: Bandwidth,
    /// Rate of writing, for incoming data.
    pub write: Bandwidth,
}

/// The cost of a message for the processor of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostConfig {
    /// Time to send one message.
    pub send: Span,
    /// Time to receive one message.
    pub receive: Span,
    /// Random time beside each of the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Jitter>,
}

const fn usual_queue() -> u16 {
    NicConfig::QUEUE
}

const fn is_usual_queue(queue: &u16) -> bool {
    *queue == NicConfig::QUEUE
}

impl NicConfig {
    /// The usual value of [`queue`](Self::queue).
    pub const QUEUE: u16 = 16;

    /// Bytes on the wire of a packet with this payload.
    pub fn wire_size(&self, payload: ByteCount) -> ByteCount {
        ByteCount(payload.0.saturating_add(self.header.0).max(self.minimum.0))
    }
}
