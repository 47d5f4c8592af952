//! Messages between nodes, on their way.

use evb_core::{NodeId, NodeRange};
use evb_patterns::TrafficMessage;
use evb_protocol::Message as ProtocolMessage;

/// What a message says.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// A machine of the event builder says it.
    Protocol(ProtocolMessage<()>),
    /// A machine of a traffic pattern says it.
    Traffic(TrafficMessage),
    /// A time slot of the barrel shifter: parts of other messages, with their bytes; empty in an empty slot.
    Bucket(Vec<(u32, u64)>),
}

/// A message on its way.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) from: NodeId,
    pub(crate) to: NodeRange,
    pub(crate) body: Body,
    /// Bytes that are not yet cut into packets.
    pub(crate) unsent: u64,
    /// Bytes that have not arrived.
    pub(crate) missing: u64,
    /// Payload that counts as throughput: that of fragments and data.
    pub(crate) payload: u64,
    pub(crate) priority: u8,
}

/// All messages on their way, by place; a place is used again.
#[derive(Default)]
pub(crate) struct Messages {
    messages: Vec<Option<Message>>,
    spare: Vec<u32>,
}

impl Messages {
    pub(crate) fn insert(&mut self, message: Message) -> u32 {
        if let Some(place) = self.spare.pop() {
            self.messages[place as usize] = Some(message);
            return place;
        }
        self.messages.push(Some(message));
        u32::try_from(self.messages.len() - 1).expect("fewer messages than 2^32 are under way at once")
    }

    pub(crate) fn remove(&mut self, place: u32) -> Message {
        self.spare.push(place);
        self.messages[place as usize].take().expect("a message is taken once")
    }

    pub(crate) fn get(&self, place: u32) -> &Message {
        self.messages[place as usize].as_ref().expect("a message that is under way")
    }

    pub(crate) fn get_mut(&mut self, place: u32) -> &mut Message {
        self.messages[place as usize].as_mut().expect("a message that is under way")
    }

    /// Messages on their way now.
    pub(crate) fn len(&self) -> usize {
        self.messages.len() - self.spare.len()
    }
}
