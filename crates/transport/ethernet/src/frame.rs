//! Frames on the wire: the Ethernet header, the header of the protocol and its checksum. `docs/reference/ethernet-wire.md`
//! describes the bytes.

use evb_core::{NodeId, checksum};
use std::{fmt, str::FromStr};

/// EtherType of all frames: the first of the two that IEEE 802 sets aside for experiments.
pub const ETHERTYPE: u16 = 0x88b5;
/// EtherType of a VLAN tag.
pub(crate) const VLAN: u16 = 0x8100;
/// Version of the protocol.
pub(crate) const VERSION: u8 = 1;
/// Bytes of the header behind the Ethernet header.
pub const HEADER_BYTES: usize = 36;
/// Bytes of an Ethernet header with a VLAN tag.
pub(crate) const MOST_ETHERNET_BYTES: usize = 18;
/// Places in a frame without a VLAN tag of what a program of the kernel looks at: its EtherType, the mark of the run and the
/// receiver.
pub(crate) const TYPE_AT: u16 = 12;
pub(crate) const RUN_AT: u16 = 14 + 4;
pub(crate) const TO_AT: u16 = 14 + 8;
/// Bytes before the checksum begins to count.
const CHECK_BYTES: usize = 4;
/// Bit of the kind that asks for a status.
const ASKS: u8 = 0x80;

/// The address of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The address of all interfaces of a network.
    pub const ALL: Self = Self([0xff; 6]);
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes: Result<Vec<_>, _> = text.split(':').map(|byte| u8::from_str_radix(byte, 16)).collect();
        let bytes = bytes.ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| format!("{text:?} is not an Ethernet address, such as 02:00:00:00:00:01"))
    }
}

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// A part of the stream of records.
    Data,
    /// Acknowledgements and credit only.
    Status,
    /// A question for a node, or the answer.
    Hello,
    /// The sender does not know this session, or has given it up.
    Reset,
}

/// The header of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) run: u32,
    pub(crate) to: NodeId,
    pub(crate) from: NodeId,
    /// Bytes of the payload.
    pub(crate) length: u16,
    pub(crate) kind: FrameKind,
    /// The sender wants a status at once.
    pub(crate) asks: bool,
    /// The session, from sender to receiver.
    pub(crate) session: u64,
    /// Low bits of: the frame's number, the first number that has not arrived, and the first number without credit.
    pub(crate) number: u32,
    pub(crate) ack: u32,
    pub(crate) limit: u32,
}

impl Header {
    /// Writes the header in front of the payload, and the checksum of both.
    pub(crate) fn seal(&self, frame: &mut [u8]) {
        frame[4..8].copy_from_slice(&self.run.to_le_bytes());
        frame[8..10].copy_from_slice(&self.to.0.to_le_bytes());
        frame[10..12].copy_from_slice(&self.from.0.to_le_bytes());
        frame[12..14].copy_from_slice(&self.length.to_le_bytes());
        frame[14] = VERSION;
        frame[15] = self.kind as u8 | if self.asks { ASKS } else { 0 };
        frame[16..24].copy_from_slice(&self.session.to_le_bytes());
        frame[24..28].copy_from_slice(&self.number.to_le_bytes());
        frame[28..32].copy_from_slice(&self.ack.to_le_bytes());
        frame[32..36].copy_from_slice(&self.limit.to_le_bytes());
        let check = checksum(&frame[CHECK_BYTES..HEADER_BYTES + usize::from(self.length)]);
        frame[..CHECK_BYTES].copy_from_slice(&check.to_le_bytes());
    }

    /// Reads the header of a frame behind the Ethernet header; `None` if it is cut, harmed or of another version. Bytes
    /// behind the payload are padding.
    pub(crate) fn parse(frame: &[u8]) -> Option<(Self, &[u8])> {
        let head: &[u8; HEADER_BYTES] = frame.first_chunk()?;
        let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let end = HEADER_BYTES + usize::from(half(12));
        if head[14] != VERSION || frame.len() < end || checksum(&frame[CHECK_BYTES..end]) != word(0) {
            return None;
        }
        let kind = match head[15] & !ASKS {
            0 => FrameKind::Data,
            1 => FrameKind::Status,
            2 => FrameKind::Hello,
            3 => FrameKind::Reset,
            _ => return None,
        };
        let header = Self {
            run: word(4),
            to: NodeId(half(8)),
            from: NodeId(half(10)),
            length: half(12),
            kind,
            asks: head[15] & ASKS != 0,
            session: u64::from(word(16)) | u64::from(word(20)) << 32,
            number: word(24),
            ack: word(28),
            limit: word(32),
        };
        Some((header, &frame[HEADER_BYTES..end]))
    }
}

/// An Ethernet header, with a VLAN tag if `priority` is above 0.
pub(crate) fn ethernet(to: Mac, from: Mac, priority: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(MOST_ETHERNET_BYTES);
    bytes.extend_from_slice(&to.0);
    bytes.extend_from_slice(&from.0);
    if priority > 0 {
        bytes.extend_from_slice(&VLAN.to_be_bytes());
        bytes.extend_from_slice(&(u16::from(priority) << 13).to_be_bytes());
    }
    bytes.extend_from_slice(&ETHERTYPE.to_be_bytes());
    bytes
}

/// The sender's address and what is behind the Ethernet header of a frame of this protocol.
pub(crate) fn split(frame: &[u8]) -> Option<(Mac, &[u8])> {
    let from = Mac(frame.get(6..12)?.try_into().ok()?);
    let kind = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let begin = if kind(12)? == VLAN { 16 } else { 12 };
    (kind(begin)? == ETHERTYPE).then(|| (from, &frame[begin + 2..]))
}

/// The number with these low bits that is nearest to `near`.
pub(crate) fn widen(low: u32, near: u64) -> u64 {
    let distance = low.wrapping_sub(near as u32) as i32;
    near.saturating_add_signed(i64::from(distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> (Header, Vec<u8>) {
        let header = Header {
            run: 0x1234_5678,
            to: NodeId(3),
            from: NodeId(500),
            length: 9,
            kind: FrameKind::Status,
            asks: true,
            session: u64::MAX - 5,
            number: 7,
            ack: 8,
            limit: 9,
        };
        let mut frame = vec![5; HEADER_BYTES + 9 + 20];
        header.seal(&mut frame);
        (header, frame)
    }

    #[test]
    fn headers_come_back_and_padding_is_not_payload() {
        let (header, frame) = example();
        assert_eq!(Header::parse(&frame), Some((header, &[5; 9][..])));
        for cut in 0..HEADER_BYTES + 9 {
            assert_eq!(Header::parse(&frame[..cut]), None);
        }
    }

    #[test]
    fn a_changed_bit_is_found() {
        let (_, frame) = example();
        for bit in 0..8 * (HEADER_BYTES + 9) {
            let mut harmed = frame.clone();
            harmed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::parse(&harmed), None, "bit {bit}");
        }
    }

    #[test]
    fn tagged_frames_are_read_like_others() {
        let (to, from) = (Mac([1; 6]), "02:00:00:00:00:0f".parse().unwrap());
        for (priority, bytes) in [(0, 14), (5, 18)] {
            let mut frame = ethernet(to, from, priority);
            assert_eq!(frame.len(), bytes);
            frame.push(7);
            assert_eq!(split(&frame), Some((from, &[7][..])));
        }
        assert_eq!(split(&[0; 60]), None);
        assert_eq!((from.to_string().as_str(), "02:00".parse::<Mac>().is_err()), ("02:00:00:00:00:0f", true));
    }

    #[test]
    fn numbers_go_on_beyond_their_low_bits() {
        for near in [0_u64, 5, (1 << 32) - 2, 1 << 32, 7 << 32] {
            for number in [near, near + 3, near + 1000, near.saturating_sub(900)] {
                assert_eq!(widen(number as u32, near), number);
            }
        }
    }
}
