//! The wire format: every [`Message`] as a 32-byte head and a body.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | kind, see [`MessageKind`], in the lower five bits; [`RunMark`] in the upper three |
//! | 1 | status of a fragment, or a flag |
//! | 2..4 | source |
//! | 4..8 | length of the payload, or number of list entries, or of slots |
//! | 8..16 | event |
//! | 16..20 | CRC-32C of the payload |
//! | 20..24 | mark of a fragment, 0 for none |
//! | 24..32 | counter of a fragment plus 1, 0 for none; for a piece, the bytes before it; else a second event: a claim, or the last one before a segment |
//!
//! The first piece of a fragment has no bytes before it. It has the counter instead, if there is one, and its flag has
//! bit 7 set then.
//!
//! All numbers are little-endian. The body of a fragment is its payload. The body of a list is its entries: events
//! and times as 8 bytes each, assignments as 8 bytes of event and 2 of builder, completions as 8 bytes of event and 1 of
//! [`Ending`](crate::Ending), outcomes as 8 bytes of serial number, 8 of event and 1 of outcome. The fragments of a [`Message::Packet`] travel one after another.
//!
//! The table of all messages in `message.rs` says which value is in which field.

mod field;
mod fragment;
mod list;
mod times;

use crate::Message;
pub use crate::message::MessageKind;
use alloc::vec::Vec;
pub(crate) use field::Field;
use zerocopy::{FromBytes, FromZeros as _, Immutable, IntoBytes, KnownLayout, little_endian as le};

/// Bytes of a head.
pub const HEAD_BYTES: usize = 32;

/// A mark of the run in the upper three bits of a head's first byte, which [`encode`] leaves free.
///
/// Nodes stay connected from one run to the next, and a message of the run before may still be on its way. Runs that
/// follow each other have different marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunMark(u8);

impl RunMark {
    const SHIFT: u32 = 5;
    const KIND_BITS: u8 = (1 << Self::SHIFT) - 1;

    /// Returns the mark of the next run.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1 << Self::SHIFT))
    }

    /// Marks a head.
    pub const fn put_into(self, head: &mut [u8; HEAD_BYTES]) {
        head[0] |= self.0;
    }

    /// Takes the mark out of a head; returns false if it is that of another run.
    pub const fn take_from(self, head: &mut [u8; HEAD_BYTES]) -> bool {
        let is_of_run = head[0] & !Self::KIND_BITS == self.0;
        head[0] &= Self::KIND_BITS;
        is_of_run
    }
}

const _: () = {
    let mut at = 0;
    while at < MessageKind::ALL.len() {
        assert!(MessageKind::ALL[at] as u8 <= RunMark::KIND_BITS, "the kind does not fit into its bits");
        at += 1;
    }
};

/// The reason why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The first byte is not a [`MessageKind`].
    #[error("message kind {0} is unknown")]
    UnknownKind(u8),
    /// A flag or status byte has no meaning.
    #[error("flag {flag} has no meaning in a message of kind {kind}")]
    BadFlag {
        /// The message kind.
        kind: u8,
        /// The byte.
        flag: u8,
    },
    /// The body is not as long as the head says.
    #[error("a message of kind {kind} announces {announced} bytes and has {actual}")]
    WrongLength {
        /// The message kind.
        kind: u8,
        /// Bytes that the head announces.
        announced: u64,
        /// Bytes of the body.
        actual: usize,
    },
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub(crate) struct Head {
    pub(crate) kind: u8,
    pub(crate) flag: u8,
    pub(crate) source: le::U16,
    pub(crate) length: le::U32,
    pub(crate) event: le::U64,
    pub(crate) checksum: le::U32,
    pub(crate) mark: le::U32,
    pub(crate) second: le::U64,
}

/// The body of an encoded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<B> {
    /// No body.
    Empty,
    /// The payload of a fragment.
    Payload(B),
    /// The entries of a list.
    List(Vec<u8>),
}

impl Head {
    #[inline]
    pub(crate) fn new(kind: MessageKind) -> Self {
        Self { kind: kind as u8, ..Self::new_zeroed() }
    }

    pub(crate) const fn bad_flag(&self) -> WireError {
        WireError::BadFlag { kind: self.kind, flag: self.flag }
    }
}

/// A value of a message with a body: a list, or a type with its own use of the head.
pub(crate) trait Layout<B>: Sized {
    /// Fills the fields of the head and returns the body.
    fn write(self, head: &mut Head) -> Body<B>;

    /// Reads the value.
    ///
    /// # Errors
    /// [`WireError`] if the head has no meaning or the body is not as long as the head says.
    fn read(head: &Head, body: B) -> Result<Self, WireError>
    where
        B: AsRef<[u8]>;

    /// Bytes of the body.
    fn body_bytes(&self) -> u64;
}

/// Calls `send` with the head and body of a message; for a packet, with those of each of its fragments.
pub fn encode<B>(message: Message<B>, mut send: impl FnMut([u8; HEAD_BYTES], Body<B>)) {
    message.encode(|head, body| send(zerocopy::transmute!(head), body));
}

/// Bytes of a message on the wire, heads included: the length of what [`encode`] produces.
pub fn length<B>(message: &Message<B>) -> u64 {
    message.wire_bytes()
}

/// Reads a message from its head and body.
///
/// # Errors
/// [`WireError`] if the head has no meaning or the body is not as long as the head says.
pub fn decode<B: AsRef<[u8]>>(head: &[u8; HEAD_BYTES], body: B) -> Result<Message<B>, WireError> {
    Message::decode(&zerocopy::transmute!(*head), body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{collection::vec, prelude::*};

    /// Reads the message with the first length that fits the body.
    fn decode_fitting(head: [u8; HEAD_BYTES], body: &[u8]) -> Option<Message<Vec<u8>>> {
        (0..=body.len() as u32).rev().find_map(|length| {
            let mut head: Head = zerocopy::transmute!(head);
            head.length = length.into();
            decode(&zerocopy::transmute!(head), body.to_vec()).ok()
        })
    }

    fn roundtrip(message: &Message<Vec<u8>>) -> Message<Vec<u8>> {
        let mut decoded = None;
        encode(message.clone(), |head, body| {
            let body = match body {
                Body::Empty => Vec::new(),
                Body::Payload(bytes) | Body::List(bytes) => bytes,
            };
            assert_eq!(length(message), (HEAD_BYTES + body.len()) as u64);
            decoded = Some(decode(&head, body).expect("an encoded message can be decoded"));
        });
        decoded.expect("one message")
    }

    #[test]
    fn every_kind_of_message_can_be_read() {
        for &kind in MessageKind::ALL {
            let mut head = [1; HEAD_BYTES];
            head[0] = kind as u8;
            // The number of bits in a report is one byte, and a piece begins at offset 0.
            head[3] = 0;
            head[24..].fill(0);
            assert!(decode_fitting(head, &[1; 360]).is_some() || decode_fitting(head, &[]).is_some(), "{kind:?}");
        }
    }

    proptest! {
        #[test]
        fn every_message_survives_the_wire(
            kind in prop::sample::select(MessageKind::ALL),
            flag in prop_oneof![0_u8..5, 128_u8..133],
            rest in any::<[u8; 22]>(),
            second in prop_oneof![any::<u64>(), 0_u64..100],
            body in prop_oneof![vec(any::<u8>(), 0..100), vec(1_u8..3, 0..100)],
        ) {
            let mut head = [0; HEAD_BYTES];
            head[2..24].copy_from_slice(&rest);
            head[24..].copy_from_slice(&second.to_le_bytes());
            head[..4].copy_from_slice(&[kind as u8, flag, rest[0], 0]);
            if let Some(message) = decode_fitting(head, &body) {
                prop_assert_eq!(roundtrip(&message), message);
            }
        }

        #[test]
        fn any_bytes_are_read_or_rejected(head in any::<[u8; HEAD_BYTES]>(), kind in 0_u8..32, body in vec(any::<u8>(), 0..100)) {
            let mut head = head;
            head[0] = kind;
            let _never_panics = decode(&head, body);
        }
    }
}
