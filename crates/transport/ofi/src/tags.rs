//! The fields of a tag: kind, sender and number of a message, so that the message itself has the user's bytes only.
//!
//! From the highest bit that the provider allows: 1 bit for messages that need a large buffer, 2 bits for the kind, 16
//! for the sender's id, and the rest, at most 45, for the number. A receiver gives each of its peers another secret
//! key, which is added to the number. A sender without the key produces messages that are out of place, and are
//! dropped.

use evb_core::NodeId;

const KIND_BITS: u32 = 2;
const SENDER_BITS: u32 = 16;
/// Fewest bits of a number. Numbers must be longer than all messages under way, and keys too long to be guessed.
const LEAST_NUMBER_BITS: u32 = 24;

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TagKind {
    /// A numbered message of the user.
    Data,
    /// The progress of the sender: see [`Status`](crate::control::Status).
    Status,
    /// Rooms for long messages: see [`RoomNote`](crate::control::RoomNote).
    Room,
    /// The identity of the sender, with the token; the only kind without a key.
    Hello,
}

/// A decoded tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) kind: TagKind,
    pub(crate) large: bool,
    pub(crate) from: NodeId,
    /// Key and number.
    pub(crate) low: u64,
}

/// The layout of tags for a provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tags {
    bits: u32,
    number_bits: u32,
}

impl Tags {
    /// The layout for a provider whose highest bit is the highest of `format`. `None` if that is too few bits.
    pub(crate) fn new(format: u64) -> Option<Self> {
        let bits = u64::BITS - format.leading_zeros();
        let number_bits = bits.checked_sub(1 + KIND_BITS + SENDER_BITS)?;
        (number_bits >= LEAST_NUMBER_BITS).then_some(Self { bits, number_bits })
    }

    /// The tag as libfabric takes it.
    #[inline]
    pub(crate) fn encode(self, tag: Tag) -> u64 {
        let high = u64::from(tag.large) << KIND_BITS | tag.kind as u64;
        (high << SENDER_BITS | u64::from(tag.from.0)) << self.number_bits | self.low(tag.low)
    }

    /// The parts of a tag.
    #[inline]
    pub(crate) fn decode(self, tag: u64) -> Tag {
        let high = tag >> self.number_bits >> SENDER_BITS;
        let kind = match high & 3 {
            0 => TagKind::Data,
            1 => TagKind::Status,
            2 => TagKind::Room,
            _ => TagKind::Hello,
        };
        let from = NodeId((tag >> self.number_bits) as u16);
        Tag { kind, large: high >> KIND_BITS & 1 == 1, from, low: self.low(tag) }
    }

    /// The bits of a number.
    #[inline]
    pub(crate) fn low(self, value: u64) -> u64 {
        value & ((1 << self.number_bits) - 1)
    }

    /// The tag to receive messages for small or for large buffers from any peer, and its ignored bits.
    pub(crate) fn any(self, large: bool) -> (u64, u64) {
        let bit = 1 << (self.bits - 1);
        (if large { bit } else { 0 }, bit - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_come_back_in_as_many_bits_as_there_are() {
        for format in [u64::MAX, 0xaaaa_aaaa_aaaa_aaaa, (1 << 48) - 1] {
            let tags = Tags::new(format).unwrap();
            for kind in [TagKind::Data, TagKind::Status, TagKind::Room, TagKind::Hello] {
                for (large, from) in [(false, 0), (true, 0xffff), (true, 0x8001)] {
                    let tag = Tag { kind, large, from: NodeId(from), low: tags.low(0x1234_5678_9abc_def0) };
                    let bits = tags.encode(tag);
                    assert_eq!(tags.decode(bits), tag);
                    assert!(bits <= format | format >> 1);
                    let (value, ignore) = tags.any(large);
                    assert_eq!((bits & !ignore, value & ignore), (value, 0));
                }
            }
        }
        assert!(Tags::new((1 << 40) - 1).is_none());
    }
}
