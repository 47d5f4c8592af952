//! The bytes of datagrams, and of the messages beside them. All numbers are little-endian.
//!
//! A datagram is: tag, sender, the number of runs of receivers, these runs as first and last node, a place for each
//! receiver in ascending order, the head and the body of the message. A place is the low half of the message's number for
//! this receiver, and the distance to the last broadcast to it before, 0 if there was none.
//!
//! A message beside the datagrams goes over the connection. Its head begins with the tag, as no head of a user does: the
//! tag is random.

use bytes::Bytes;
use evb_core::NodeId;
use evb_transport::{HEAD_BYTES, Message};
use std::{fmt, str::FromStr};

/// Random bytes that distinguish the group from others on the same port, and its messages from those of users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub(super) [u8; Tag::BYTES]);

impl Tag {
    const BYTES: usize = 12;

    /// The tag with these bytes, which must be random.
    #[must_use]
    pub const fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Tag {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let value = u128::from_str_radix(text, 16)?.to_be_bytes();
        let mut bytes = [0; Self::BYTES];
        bytes.copy_from_slice(&value[16 - Self::BYTES..]);
        Ok(Self(bytes))
    }
}

/// The place of a broadcast among the messages to one receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BroadcastPosition {
    /// The low half of the number of the message.
    pub(super) number: u32,
    /// Distance to the last broadcast before; 0 if there was none, or it is very long ago.
    pub(super) behind: u32,
}

const PLACE_BYTES: usize = 8;
const FRONT_BYTES: usize = Tag::BYTES + 4;
const RUN_BYTES: usize = 4;

/// Longest front of a datagram for this number of receivers, in bytes, with the head of the message.
pub(super) const fn most_front(receivers: usize) -> usize {
    FRONT_BYTES + receivers * (RUN_BYTES + PLACE_BYTES) + HEAD_BYTES
}

/// Writes a datagram for the receivers, in ascending order.
pub(super) fn write_datagram(
    bytes: &mut Vec<u8>,
    (tag, from): (Tag, NodeId),
    receivers: &[(NodeId, BroadcastPosition)],
    message: &Message,
) {
    let runs = receivers.chunk_by(|(one, _), (next, _)| one.0 + 1 == next.0);
    bytes.clear();
    bytes.extend_from_slice(&tag.0);
    bytes.extend_from_slice(&from.0.to_le_bytes());
    bytes.extend_from_slice(&(runs.clone().count() as u16).to_le_bytes());
    for run in runs {
        bytes.extend_from_slice(&run[0].0.0.to_le_bytes());
        bytes.extend_from_slice(&run[run.len() - 1].0.0.to_le_bytes());
    }
    for (_, place) in receivers {
        bytes.extend_from_slice(&place.number.to_le_bytes());
        bytes.extend_from_slice(&place.behind.to_le_bytes());
    }
    bytes.extend_from_slice(&message.head);
    bytes.extend_from_slice(&message.body);
}

/// A datagram for this node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Datagram<'a> {
    pub(super) from: NodeId,
    pub(super) place: BroadcastPosition,
    head: [u8; HEAD_BYTES],
    body: &'a [u8],
}

impl Datagram<'_> {
    /// The message, with a copy of its body.
    pub(super) fn message(&self) -> Message {
        Message { head: self.head, body: Bytes::copy_from_slice(self.body) }
    }
}

/// Reads a datagram; `None` if it is a stranger's, for other nodes, or broken.
pub(super) fn read_datagram(bytes: &[u8], tag: Tag, local: NodeId) -> Option<Datagram<'_>> {
    let rest = bytes.strip_prefix(&tag.0)?;
    let (from, rest) = take_u16(rest)?;
    let (runs, mut rest) = take_u16(rest)?;
    let (mut before, mut mine) = (0, None);
    for _ in 0..runs {
        let (first, behind) = take_u16(rest)?;
        let (last, behind) = take_u16(behind)?;
        if (first..=last).contains(&local.0) {
            mine = Some(before + usize::from(local.0 - first));
        }
        before += 1 + usize::from(last.checked_sub(first)?);
        rest = behind;
    }
    let (places, rest) = rest.split_at_checked(before * PLACE_BYTES)?;
    let place = &places[mine? * PLACE_BYTES..][..PLACE_BYTES];
    let word = |at: usize| u32::from_le_bytes([place[at], place[at + 1], place[at + 2], place[at + 3]]);
    let (&head, body) = rest.split_first_chunk()?;
    Some(Datagram { from: NodeId(from), place: BroadcastPosition { number: word(0), behind: word(4) }, head, body })
}

fn take_u16(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (&number, rest) = bytes.split_first_chunk()?;
    Some((u16::from_le_bytes(number), rest))
}

/// A message beside the datagrams. Numbers are those of the messages of one pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    /// The sender's next message over this connection has this number; those between were broadcast.
    Mark(u64),
    /// The receiver has all messages below this number.
    Have(u64),
    /// The receiver misses broadcasts from the first number up to below the second.
    Miss(u64, u64),
    /// The broadcast of this number again. The body is its head and its body.
    Again(u64),
}

impl Beside {
    /// The head of the message.
    pub(super) fn head(self, tag: Tag) -> [u8; HEAD_BYTES] {
        let (kind, one, two) = match self {
            Self::Mark(number) => (0, number, 0),
            Self::Have(number) => (1, number, 0),
            Self::Miss(from, to) => (2, from, to),
            Self::Again(number) => (3, number, 0),
        };
        let mut head = [0; HEAD_BYTES];
        head[..Tag::BYTES].copy_from_slice(&tag.0);
        head[Tag::BYTES] = kind;
        head[16..24].copy_from_slice(&one.to_le_bytes());
        head[24..].copy_from_slice(&two.to_le_bytes());
        head
    }

    /// The message without a body.
    pub(super) fn message(self, tag: Tag) -> Message {
        Message { head: self.head(tag), body: Bytes::new() }
    }

    /// Reads a head; none if it is that of a user's message.
    #[inline]
    pub(super) fn read(head: &[u8; HEAD_BYTES], tag: Tag) -> Option<Self> {
        if !head.starts_with(&tag.0) {
            return None;
        }
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| head[at + index]));
        match head[Tag::BYTES] {
            0 => Some(Self::Mark(word(16))),
            1 => Some(Self::Have(word(16))),
            2 => Some(Self::Miss(word(16), word(24))),
            3 => Some(Self::Again(word(16))),
            _ => None,
        }
    }
}

/// The broadcast of this number, to be sent again.
pub(super) fn again(tag: Tag, number: u64, message: &Message) -> Message {
    let body = [&message.head[..], &message.body].concat();
    Message { head: Beside::Again(number).head(tag), body: body.into() }
}

/// The broadcast in the body of a message that brings it again.
pub(super) fn read_again(mut body: Bytes) -> Option<Message> {
    let &head = body.first_chunk()?;
    Some(Message { head, body: body.split_off(HEAD_BYTES) })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: Tag = Tag::new([9; Tag::BYTES]);

    fn message() -> Message {
        Message { head: [7; HEAD_BYTES], body: "body".into() }
    }

    #[test]
    fn each_receiver_finds_its_own_position_only() {
        let nodes = [1, 2, 3, 7, 9, 10];
        let place = |node| BroadcastPosition { number: 100 + u32::from(node), behind: u32::from(node) };
        let receivers: Vec<_> = nodes.iter().map(|&node| (NodeId(node), place(node))).collect();
        let mut bytes = Vec::new();
        write_datagram(&mut bytes, (TAG, NodeId(5)), &receivers, &message());
        for node in 0..12 {
            let read = read_datagram(&bytes, TAG, NodeId(node));
            assert_eq!(read.as_ref().map(|read| read.place), nodes.contains(&node).then(|| place(node)), "{node}");
            assert!(read.is_none_or(|read| read.from == NodeId(5) && read.message() == message()));
        }
        assert!(bytes.len() <= most_front(nodes.len()) + message().body.len());
        assert_eq!(read_datagram(&bytes, Tag::new([8; Tag::BYTES]), NodeId(1)), None);
        for cut in 0..bytes.len() - 4 {
            assert_eq!(read_datagram(&bytes[..cut], TAG, NodeId(1)), None, "cut at {cut}");
        }
    }

    #[test]
    fn heads_and_tags_come_back() {
        for beside in [Beside::Mark(1), Beside::Have(u64::MAX), Beside::Miss(3, 1 << 40), Beside::Again(4)] {
            assert_eq!(Beside::read(&beside.head(TAG), TAG), Some(beside));
        }
        assert_eq!(Beside::read(&message().head, TAG), None);
        assert_eq!(read_again(again(TAG, 4, &message()).body), Some(message()));
        assert_eq!(read_again(Bytes::from_static(b"short")), None);
        let tag = Tag::new(std::array::from_fn(|index| 0xf0 + index as u8));
        assert_eq!(tag.to_string().parse::<Tag>(), Ok(tag));
    }
}
