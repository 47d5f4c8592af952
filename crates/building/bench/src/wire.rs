//! A message of the benchmarks in bytes: a word for its kind, then data that follow from its number and its sender.

use evb_core::{NodeId, Time};
use evb_patterns::TrafficMessage;

/// Shortest message in bytes: the word for its kind.
pub const SMALLEST_BYTES: usize = 8;

/// Longest message that a benchmark sends in bytes.
pub const LONGEST_BYTES: usize = 16 << 20;

/// Shortest message that can carry when it was due, in bytes.
pub const SMALLEST_STAMPED: usize = 16;

/// Length of messages that carry no data: such as requests (ATLAS DAQ note 77, section 2: 64 bytes).
pub const CONTROL_BYTES: usize = 64;

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// A message of the pattern's machine.
    Traffic(TrafficMessage),
    /// The node is ready to begin, since this time of its clock.
    Ready { at: Time },
    /// The node begins nothing more by itself.
    Done,
    /// The node sends nothing more. It has sent this number of data messages to the receiver.
    End { sent: u64 },
}

const START: u64 = 1;
const NEXT: u64 = 2;
const ASK: u64 = 3;
const DATA: u64 = 4;
const READY: u64 = 5;
const END: u64 = 6;
const DONE: u64 = 7;

impl Content {
    /// The first word: the kind below, a number above.
    pub(crate) const fn word(self) -> u64 {
        let (kind, number) = match self {
            Self::Traffic(TrafficMessage::Start) => (START, 0),
            Self::Traffic(TrafficMessage::Next) => (NEXT, 0),
            Self::Traffic(TrafficMessage::Ask { event, .. }) => (ASK, event),
            Self::Traffic(TrafficMessage::Data { number, .. }) => (DATA, number),
            Self::Ready { at } => (READY, at.0 / 1000),
            Self::Done => (DONE, 0),
            Self::End { sent } => (END, sent),
        };
        number << 8 | kind
    }

    /// Reads the content of a message. The moment when it was born does not travel: it is the beginning of time.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let word = u64::from_le_bytes(*bytes.first_chunk()?);
        let (number, born) = (word >> 8, Time::ZERO);
        Some(match word & 0xff {
            START => Self::Traffic(TrafficMessage::Start),
            NEXT => Self::Traffic(TrafficMessage::Next),
            ASK => Self::Traffic(TrafficMessage::Ask { event: number, born }),
            DATA => Self::Traffic(TrafficMessage::Data { number, born }),
            READY => Self::Ready { at: Time(number * 1000) },
            DONE => Self::Done,
            END => Self::End { sent: number },
            _ => return None,
        })
    }
}

/// Bytes before the data: the word, and perhaps the stamp.
const fn prefix(stamped: bool) -> usize {
    if stamped { 8 } else { 0 }
}

/// Writes when a message was due, in nanoseconds behind the first word.
pub(crate) fn write_stamp(message: &mut [u8], due: Time) {
    message[8..SMALLEST_STAMPED].copy_from_slice(&(due.0 / 1000).to_le_bytes());
}

/// Reads the time at which a message was due.
pub(crate) fn read_stamp(message: &[u8]) -> Time {
    Time(message.get(8..).and_then(|rest| rest.first_chunk()).map_or(0, |stamp| u64::from_le_bytes(*stamp)) * 1000)
}

/// Writes the data: words that follow from the last one before them, the number or the stamp, from the sender, and from
/// the length of the message.
pub(crate) fn fill(message: &mut [u8], stamped: bool, from: NodeId) {
    let length = message.len();
    let Some((first, rest)) = message[prefix(stamped)..].split_first_chunk_mut() else { return };
    let mut value = seed(u64::from_le_bytes(*first), length, from);
    let (words, tail) = rest.as_chunks_mut();
    for word in words {
        *word = value.to_le_bytes();
        value = value.wrapping_add(STEP);
    }
    // A call for nothing would cost as much as some words.
    if !tail.is_empty() {
        tail.copy_from_slice(&value.to_le_bytes()[..tail.len()]);
    }
}

/// True if the data are those that [`fill`] wrote.
pub(crate) fn is_whole(message: &[u8], stamped: bool, from: NodeId) -> bool {
    let rest = message.get(prefix(stamped)..).and_then(|rest| rest.split_first_chunk());
    let Some((first, rest)) = rest else { return false };
    if rest.is_empty() {
        return true;
    }
    let mut value = seed(u64::from_le_bytes(*first), message.len(), from);
    let (words, tail) = rest.as_chunks();
    let mut difference = 0;
    for word in words {
        difference |= u64::from_le_bytes(*word) ^ value;
        value = value.wrapping_add(STEP);
    }
    difference == 0 && (tail.is_empty() || tail == &value.to_le_bytes()[..tail.len()])
}

/// Odd, so that all words of a message differ.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Every bit of the sender and of the length reaches the low byte, which may be all that a short message has.
const fn seed(word: u64, length: usize, from: NodeId) -> u64 {
    let origin = (length as u64) << 16 | from.0 as u64;
    let mixed = (word ^ (origin + 1).wrapping_mul(STEP)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_come_back() {
        let born = Time::ZERO;
        for content in [
            Content::Ready { at: Time(5_000_000) },
            Content::Done,
            Content::End { sent: 77 },
            Content::Traffic(TrafficMessage::Start),
            Content::Traffic(TrafficMessage::Next),
            Content::Traffic(TrafficMessage::Ask { event: 1 << 40, born }),
            Content::Traffic(TrafficMessage::Data { number: 3, born }),
        ] {
            assert_eq!(Content::read(&content.word().to_le_bytes()), Some(content));
        }
        assert_eq!(Content::read(&[0; 7]), None, "too short");
        assert_eq!(Content::read(&[0; 8]), None, "no such kind");
    }

    #[test]
    fn every_changed_byte_is_found() {
        for length in [8, 9, 15, 16, 17, 64, 1001] {
            let mut message = vec![0; length];
            message[..8].copy_from_slice(&Content::Done.word().to_le_bytes());
            fill(&mut message, false, NodeId(3));
            assert!(is_whole(&message, false, NodeId(3)));
            assert!(length == 8 || !is_whole(&message, false, NodeId(4)), "another sender, {length} bytes");
            for at in 8..length {
                message[at] ^= 0x10;
                assert!(!is_whole(&message, false, NodeId(3)), "byte {at} of {length}");
                message[at] ^= 0x10;
            }
        }
    }

    #[test]
    fn a_message_that_is_cut_short_is_not_whole() {
        let mut message = vec![0; 100];
        message[..8].copy_from_slice(&Content::Done.word().to_le_bytes());
        fill(&mut message, false, NodeId(3));
        assert!(is_whole(&message, false, NodeId(3)));
        assert!((9..100).all(|length| !is_whole(&message[..length], false, NodeId(3))));
    }

    #[test]
    fn a_stamp_travels_with_the_data() {
        let mut message = vec![0; 40];
        message[..8].copy_from_slice(&Content::Done.word().to_le_bytes());
        write_stamp(&mut message, Time(5_000_000));
        fill(&mut message, true, NodeId(1));
        assert_eq!(read_stamp(&message), Time(5_000_000));
        assert!(is_whole(&message, true, NodeId(1)));
        message[20] ^= 1;
        assert!(!is_whole(&message, true, NodeId(1)));
    }
}
