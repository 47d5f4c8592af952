//! The format of a transport's messages in a frame: records one after another, each of a length, a head and, if it is
//! short enough, the body. The record of a longer body is alone in its frame, and the body follows by itself.

use evb_transport::HEAD_BYTES;

/// Bytes of a record without its body: length and head.
pub(crate) const RECORD_BYTES: usize = 8 + HEAD_BYTES;

/// The bit in a length that marks a body that follows by itself.
const FOLLOWS: u64 = 1 << 63;

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) head: [u8; HEAD_BYTES],
    pub(crate) body: Body<'a>,
}

/// The place of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body<'a> {
    /// In the frame.
    Here(&'a [u8]),
    /// Outside of the frame, with this length.
    Follows(usize),
}

impl<'a> Record<'a> {
    /// Writes the record to the start of `room`, which is long enough; returns its length.
    pub(crate) fn encode(&self, room: &mut [u8]) -> usize {
        let (length, body): (u64, &[u8]) = match self.body {
            Body::Here(body) => (body.len() as u64, body),
            Body::Follows(length) => (length as u64 | FOLLOWS, &[]),
        };
        room[..8].copy_from_slice(&length.to_le_bytes());
        room[8..RECORD_BYTES].copy_from_slice(&self.head);
        room[RECORD_BYTES..RECORD_BYTES + body.len()].copy_from_slice(body);
        RECORD_BYTES + body.len()
    }

    /// The first record of `bytes` and its length. `None` for bytes that no node writes.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (head, rest) = rest.split_first_chunk()?;
        let length = u64::from_le_bytes(*length);
        let bytes = usize::try_from(length & !FOLLOWS).ok()?;
        if length & FOLLOWS != 0 {
            return rest.is_empty().then_some((Self { head: *head, body: Body::Follows(bytes) }, RECORD_BYTES));
        }
        Some((Self { head: *head, body: Body::Here(rest.get(..bytes)?) }, RECORD_BYTES + bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_one_after_another() {
        let mut frame = [0; 200];
        let first = Record { head: [1; HEAD_BYTES], body: Body::Here(b"body") };
        let second = Record { head: [2; HEAD_BYTES], body: Body::Here(b"") };
        let length = first.encode(&mut frame);
        let end = length + second.encode(&mut frame[length..]);
        assert_eq!(Record::decode(&frame[..end]), Some((first, length)));
        assert_eq!(Record::decode(&frame[length..end]), Some((second, end - length)));
        assert_eq!(Record::decode(&frame[..length - 1]), None);
        assert_eq!(Record::decode(&frame[..20]), None);
    }

    #[test]
    fn a_record_whose_body_follows_stands_alone() {
        let mut frame = [0; 100];
        let record = Record { head: [3; HEAD_BYTES], body: Body::Follows(1 << 40) };
        let length = record.encode(&mut frame);
        assert_eq!(Record::decode(&frame[..length]), Some((record, length)));
        assert_eq!(Record::decode(&frame[..length + 1]), None);
    }
}
