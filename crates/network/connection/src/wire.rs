//! What the two ends of a connection say to each other.

use evb_core::Time;
use std::ops::Range;

/// A part of the stream, in one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Place of its first byte in the stream, from 0.
    pub first: u64,
    /// Number of its bytes, at least 1.
    pub bytes: u32,
    /// Time at which it was sent, which the acknowledgement returns (RFC 7323).
    pub sent_at: Time,
    /// It was sent before.
    pub is_again: bool,
    /// The number of its path among those of its connection, from 0.
    pub path: u16,
    /// All credit that the sender needs for what it has, since the start, beside that for trimmed segments.
    pub needed: u64,
}

impl Segment {
    /// The place behind its last byte.
    pub const fn end(&self) -> u64 {
        self.first + self.bytes as u64
    }
}

/// An answer of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// What it says.
    pub kind: ReplyKind,
    /// All bytes before this place have arrived.
    pub expected: u64,
    /// The bytes around the last segment that arrived ahead of its turn (RFC 2018); empty if none did.
    pub block: Range<u64>,
    /// The time at which the first segment that this acknowledges was sent.
    pub echo: Time,
    /// The last segment had arrived before (RFC 2883).
    pub is_repeated: bool,
    /// The segments that this acknowledges met congestion.
    pub is_marked: bool,
    /// The path of the segment that it answers.
    pub path: u16,
    /// Bytes that the receiver has granted, since the start.
    pub credit: u64,
}

/// The kind of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// Bytes have arrived.
    Acknowledgement,
    /// A packet is missing: all from `expected` on are to be sent again (go-back-N).
    OutOfSequence,
    /// Packets met congestion (DCQCN).
    CongestionNotice,
    /// A switch cut the segment in `block` to its header.
    Trimmed,
    /// The receiver grants more bytes.
    Credit,
}
