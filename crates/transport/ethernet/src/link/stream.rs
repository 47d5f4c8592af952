//! Bytes that wait, one after another: those of a layer, whose messages have no heads and are borrowed for a call.

use super::records::{GOODBYE, LENGTH_BYTES};
use std::collections::VecDeque;

/// Bytes that were taken, above which the rest is moved to the front.
const MOST_TAKEN: usize = 256 << 10;

/// A queue of bytes in one piece.
#[derive(Debug, Default)]
pub(super) struct Stream {
    bytes: Vec<u8>,
    begin: usize,
}

impl Stream {
    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The bytes that wait.
    #[inline]
    pub(super) fn front(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }

    /// Removes bytes from the front.
    #[inline]
    pub(super) fn advance(&mut self, count: usize) {
        self.begin += count;
        if self.begin == self.bytes.len() {
            self.bytes.clear();
            self.begin = 0;
        } else if self.begin > MOST_TAKEN && self.begin > self.bytes.len() / 2 {
            self.bytes.drain(..self.begin);
            self.begin = 0;
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.begin = 0;
    }
}

/// What is at the front of arrived bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Front {
    /// A message of this length, which is complete.
    Message(usize),
    /// A message of this length, which is not.
    Part(usize),
    Goodbye,
    /// Less than a length.
    Nothing,
}

/// Bytes that have arrived, and the frames that they came in.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    stream: Stream,
    /// Lengths of the payloads that were not taken wholly, and bytes of the first that were.
    payloads: VecDeque<u16>,
    taken: usize,
}

impl Arrived {
    #[inline]
    pub(super) fn push(&mut self, payload: &[u8]) {
        self.stream.push(payload);
        self.payloads.push_back(payload.len() as u16);
    }

    #[inline]
    pub(super) fn front(&self) -> Front {
        let Some((length, rest)) = self.stream.front().split_first_chunk() else { return Front::Nothing };
        match u32::from_le_bytes(*length) {
            GOODBYE => Front::Goodbye,
            length if rest.len() >= length as usize => Front::Message(length as usize),
            length => Front::Part(length as usize),
        }
    }

    /// Calls `take` with the message of this length at the front.
    #[inline]
    pub(super) fn take(&mut self, length: usize, mut take: impl FnMut(&[u8])) {
        take(&self.stream.front()[LENGTH_BYTES..LENGTH_BYTES + length]);
        self.stream.advance(LENGTH_BYTES + length);
        self.taken += LENGTH_BYTES + length;
        while let Some(&first) = self.payloads.front().filter(|first| self.taken >= usize::from(**first)) {
            self.taken -= usize::from(first);
            self.payloads.pop_front();
        }
    }

    /// Number of frames with bytes that were not taken.
    pub(super) fn frames(&self) -> usize {
        self.payloads.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_of_payloads_with_any_cut() {
        let mut bytes = Vec::new();
        for length in [1_u32, 70, 300_000, 8] {
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.resize(bytes.len() + length as usize, length as u8);
        }
        bytes.extend_from_slice(&GOODBYE.to_le_bytes());
        for cut in [3, 60, 1464, 9000] {
            let (mut arrived, mut got) = (Arrived::default(), Vec::new());
            for payload in bytes.chunks(cut) {
                arrived.push(payload);
                while let Front::Message(length) = arrived.front() {
                    arrived.take(length, |bytes| {
                        assert!(bytes.iter().all(|&byte| byte == length as u8));
                        got.push(bytes.len());
                    });
                }
            }
            assert_eq!((got, arrived.front()), (vec![1, 70, 300_000, 8], Front::Goodbye), "pieces of {cut}");
            assert!(arrived.frames() <= 4_usize.div_ceil(cut) + 1);
        }
    }
}
