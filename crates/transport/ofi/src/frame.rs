//! The formats of a transport's messages. Short ones are records in a frame, one after another: length of the body, head and
//! body. A long one has its own room: number, length and head, then the body.

use evb_transport::HEAD_BYTES;

/// Bytes of a record without its body: length and head.
pub(crate) const RECORD_BYTES: usize = 8 + HEAD_BYTES;
/// Bytes of a room before the body, which begins with a cache line.
pub(crate) const LONG_BYTES: usize = 64;

/// A short message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) head: [u8; HEAD_BYTES],
    pub(crate) body: &'a [u8],
}

impl<'a> Record<'a> {
    /// Writes the record to the start of `room`, which is long enough; returns its length.
    pub(crate) fn encode(&self, room: &mut [u8]) -> usize {
        room[..8].copy_from_slice(&(self.body.len() as u64).to_le_bytes());
        room[8..RECORD_BYTES].copy_from_slice(&self.head);
        room[RECORD_BYTES..RECORD_BYTES + self.body.len()].copy_from_slice(self.body);
        RECORD_BYTES + self.body.len()
    }

    /// The first record of `bytes` and its length. `None` for bytes that no node writes.
    pub(crate) fn decode(bytes: &'a [u8]) -> Option<(Self, usize)> {
        let (length, rest) = bytes.split_first_chunk()?;
        let (head, rest) = rest.split_first_chunk()?;
        let bytes = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        Some((Self { head: *head, body: rest.get(..bytes)? }, RECORD_BYTES + bytes))
    }
}

/// The beginning of a long message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Long {
    /// Key and number of the message, as in the tags of others.
    pub(crate) low: u64,
    /// Bytes of the body.
    pub(crate) length: u64,
    pub(crate) head: [u8; HEAD_BYTES],
}

impl Long {
    /// Writes the beginning to `room`, which is long enough.
    pub(crate) fn encode(&self, room: &mut [u8]) {
        room[..8].copy_from_slice(&self.low.to_le_bytes());
        room[8..16].copy_from_slice(&self.length.to_le_bytes());
        room[16..16 + HEAD_BYTES].copy_from_slice(&self.head);
        room[16 + HEAD_BYTES..LONG_BYTES].fill(0);
    }

    /// Reads the beginning; `None` if there is less.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; LONG_BYTES] = bytes.first_chunk()?;
        let word = |start: usize| u64::from_le_bytes(std::array::from_fn(|byte| bytes[start + byte]));
        Some(Self { low: word(0), length: word(8), head: std::array::from_fn(|byte| bytes[16 + byte]) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_one_after_another() {
        let mut frame = [0; 200];
        let first = Record { head: [1; HEAD_BYTES], body: b"body" };
        let second = Record { head: [2; HEAD_BYTES], body: b"" };
        let length = first.encode(&mut frame);
        let end = length + second.encode(&mut frame[length..]);
        assert_eq!(Record::decode(&frame[..end]), Some((first, length)));
        assert_eq!(Record::decode(&frame[length..end]), Some((second, end - length)));
        assert_eq!(Record::decode(&frame[..length - 1]), None);
        assert_eq!(Record::decode(&frame[..20]), None);
        frame[7] = 0x80;
        assert_eq!(Record::decode(&frame), None, "a length beyond all memory");
    }

    #[test]
    fn the_beginning_of_a_long_message_comes_back() {
        let (long, mut room) = (Long { low: 7, length: 1 << 40, head: [3; HEAD_BYTES] }, [0xff; LONG_BYTES + 10]);
        long.encode(&mut room);
        assert_eq!(Long::decode(&room), Some(long));
        assert_eq!(Long::decode(&room[..LONG_BYTES - 1]), None);
        assert_eq!(room[LONG_BYTES..], [0xff; 10]);
    }
}
