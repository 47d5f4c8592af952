//! Messages between nodes.

use crate::slab::Slab;
use evb_core::{NodeId, NodeRange, Span};
use evb_patterns::TrafficMessage;
use evb_protocol::Message as ProtocolMessage;
use evb_unit::SimulatedPayload;
use std::ops::{Deref, DerefMut};

/// A message, by its place in the [`Messages`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessageId(pub(crate) u32);

impl From<u32> for MessageId {
    fn from(place: u32) -> Self {
        Self(place)
    }
}

impl From<MessageId> for u32 {
    fn from(MessageId(place): MessageId) -> Self {
        place
    }
}

/// The content of a message.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// A message of a machine of the event builder.
    Protocol(ProtocolMessage<SimulatedPayload>),
    /// A message of a machine of a traffic pattern.
    Traffic(TrafficMessage),
    /// A message of background traffic.
    Background(TrafficMessage),
    /// A time slot of the barrel shifter.
    Bucket(Box<Bucket>),
    /// The partition with the receiver has it.
    Exported,
}

/// A bucket of the barrel shifter.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bucket {
    /// Parts of other messages, with their bytes; empty in an empty slot.
    pub(crate) parts: Vec<(MessageId, u32)>,
    /// Bytes of the bucket, filled or not.
    pub(crate) size: u32,
    /// Bytes that may be missing when the builder regards the slot as ended; `None` where that is not needed.
    pub(crate) lead: Option<u32>,
    /// The round of a barrier; else 0.
    pub(crate) round: u64,
    /// Time by which its first packet is late; zero when that has gone.
    pub(crate) late: Span,
}

impl Body {
    /// True for messages that travel as fragments and data do; all others are control messages.
    pub(crate) const fn is_data(&self) -> bool {
        match self {
            Self::Protocol(message) => message.is_data(),
            Self::Traffic(message) | Self::Background(message) => matches!(message, TrafficMessage::Data { .. }),
            Self::Bucket(_) | Self::Exported => true,
        }
    }

    /// True for messages that no unit of the workload knows of.
    #[inline]
    pub(crate) const fn is_background(&self) -> bool {
        matches!(self, Self::Background(_))
    }

    /// True for messages by which readout units keep step.
    pub(crate) const fn is_step(&self) -> bool {
        use ProtocolMessage::{Credit, Round, Taken, TimeAnswer, TimeRequest};
        matches!(
            self,
            Self::Protocol(Credit { .. } | Round { .. } | Taken { .. } | TimeRequest { .. } | TimeAnswer { .. })
        )
    }

    /// Number of events that have ended when it has arrived.
    pub(crate) fn ends(&self) -> u64 {
        match self {
            Self::Protocol(ProtocolMessage::Done(completions)) => completions.len() as u64,
            _ => 0,
        }
    }

    /// True if the sender sends it again after a loss, as every transport does with control messages. Builders request
    /// lost fragments and lost answers again.
    pub(crate) const fn is_reliable(&self) -> bool {
        matches!(self, Self::Protocol(message) if !message.is_data() && !matches!(message, ProtocolMessage::Ask { .. }))
    }
}

/// A message under way: one cache line, since millions may be under way.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) from: NodeId,
    pub(crate) to: NodeRange,
    pub(crate) body: Body,
    /// Bytes that are not yet cut into packets.
    pub(crate) unsent: u32,
    /// Bytes that have not arrived.
    pub(crate) missing: u32,
    /// Payload that counts as throughput: that of fragments and data.
    pub(crate) payload: u32,
    pub(crate) priority: u8,
    /// True if both the partition with its sender and that with its receiver have it.
    pub(crate) is_exported: bool,
    /// Place among the messages from its sender to its receiver, from 0, when messages can overtake each other. Of a
    /// message from another partition, its place there.
    pub(crate) order: u32,
}

impl Message {
    /// A message of no bytes.
    pub(crate) const fn new(from: NodeId, to: NodeRange, body: Body) -> Self {
        Self { from, to, body, unsent: 0, missing: 0, payload: 0, priority: 0, is_exported: false, order: 0 }
    }

    /// The message for the partition with its receiver. A bucket leaves its content to it.
    pub(crate) fn export(&mut self) -> Self {
        self.is_exported = true;
        let body = match &mut self.body {
            body @ Body::Bucket(_) => std::mem::replace(body, Body::Exported),
            body => body.clone(),
        };
        Self { body, ..*self }
    }
}

/// Buckets that are kept, at most.
const MOST_SPARE: usize = 4096;

/// All messages under way.
#[derive(Default)]
pub(crate) struct Messages {
    all: Slab<MessageId, Message>,
    /// Buckets that have arrived, to be used again. One from another partition would go back to its memory only with
    /// the help of that partition's thread.
    #[expect(clippy::vec_box, reason = "a message takes it as it is")]
    buckets: Vec<Box<Bucket>>,
}

impl Messages {
    /// A bucket without parts.
    pub(crate) fn new_bucket(&mut self) -> Box<Bucket> {
        self.buckets.pop().unwrap_or_default()
    }

    /// The time by which the next packet of a message is late: of a bucket, the first one.
    pub(crate) fn take_lateness(&mut self, id: MessageId) -> Span {
        match &mut self.get_mut(id).body {
            Body::Bucket(bucket) => std::mem::take(&mut bucket.late),
            _ => Span::ZERO,
        }
    }

    /// Keeps a bucket for the next one.
    pub(crate) fn keep_bucket(&mut self, mut bucket: Box<Bucket>) {
        if self.buckets.len() < MOST_SPARE {
            bucket.parts.clear();
            self.buckets.push(bucket);
        }
    }
}

impl Deref for Messages {
    type Target = Slab<MessageId, Message>;

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl DerefMut for Messages {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.all
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_message_fits_into_a_cache_line() {
        assert!(size_of::<Option<super::Message>>() <= 64, "{}", size_of::<Option<super::Message>>());
    }
}
