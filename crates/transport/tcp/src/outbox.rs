//! Messages that wait to be sent to one peer, ready for vectored writes.

use super::frame::{CONTROL_BYTES, FRAME_HEADER_BYTES, FrameHeader};
use bytes::Bytes;
use evb_transport::Message;
use std::{
    collections::VecDeque,
    io::{self, IoSlice, Write},
};

/// Length below which bodies are copied beside their headers; others are written in place.
const COPY_BELOW: usize = 1024;
/// Most slices of one write; the system's own limit is 1024.
const MOST_SLICES: usize = 512;
/// Bytes of written headers above which they are removed even if the queue does not run empty.
const COMPACT_ABOVE: usize = 64 << 10;

/// Frames in the order of sending: runs of copied bytes, and bodies by reference between them.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    copied: Vec<u8>,
    /// Number of bytes of `copied` that belong to sent parts.
    copied_gone: usize,
    parts: VecDeque<FramePart>,
    /// Number of bytes of the first part that were sent.
    first_gone: usize,
    bytes: usize,
    sequence: u32,
}

#[derive(Debug)]
enum FramePart {
    /// This many bytes of `copied`.
    Copied(usize),
    Body(Bytes),
}

impl FramePart {
    fn bytes(&self) -> usize {
        match self {
            Self::Copied(bytes) => *bytes,
            Self::Body(body) => body.len(),
        }
    }
}

/// The outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteProgress {
    /// Nothing is left.
    All,
    /// The socket takes no more now.
    Blocked,
}

impl Outbox {
    /// Bytes that wait, headers included.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns true if a body of this length keeps the queue within `limit` bytes. One message always fits.
    pub(super) fn has_room(&self, body: usize, limit: usize) -> bool {
        self.bytes == 0 || self.bytes + FRAME_HEADER_BYTES + body <= limit
    }

    /// Appends a message.
    pub(super) fn push(&mut self, Message { head, body }: Message) {
        FrameHeader::Message { head, body: body.len() }.encode(self.sequence, &mut self.copied);
        self.sequence = self.sequence.wrapping_add(1);
        if body.len() < COPY_BELOW {
            self.copied.extend_from_slice(&body);
            self.add_copied(FRAME_HEADER_BYTES + body.len());
        } else {
            self.add_copied(FRAME_HEADER_BYTES);
            self.bytes += body.len();
            self.parts.push_back(FramePart::Body(body));
        }
    }

    /// Appends a frame without a message.
    pub(super) fn push_control(&mut self, header: FrameHeader) {
        header.encode(self.sequence, &mut self.copied);
        self.add_copied(CONTROL_BYTES);
    }

    /// Writes until nothing is left or `stream` takes no more.
    pub(super) fn write_to(&mut self, stream: &mut impl Write) -> io::Result<WriteProgress> {
        while self.bytes > 0 {
            let slices = self.slices();
            let offered: usize = slices.iter().map(|slice| slice.len()).sum();
            match stream.write_vectored(&slices) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.consume(count);
                    if count < offered {
                        return Ok(WriteProgress::Blocked);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(WriteProgress::Blocked),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(WriteProgress::All)
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn add_copied(&mut self, bytes: usize) {
        self.bytes += bytes;
        match self.parts.back_mut() {
            Some(FramePart::Copied(run)) => *run += bytes,
            _ => self.parts.push_back(FramePart::Copied(bytes)),
        }
    }

    fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut slices = Vec::with_capacity(self.parts.len().min(MOST_SLICES));
        let (mut copied, mut gone) = (&self.copied[self.copied_gone..], self.first_gone);
        for part in self.parts.iter().take(MOST_SLICES) {
            let bytes = match part {
                FramePart::Copied(run) => copied.split_off(..*run).expect("every run lies within the copied bytes"),
                FramePart::Body(body) => body,
            };
            slices.push(IoSlice::new(&bytes[std::mem::take(&mut gone)..]));
        }
        slices
    }

    fn consume(&mut self, count: usize) {
        self.bytes -= count;
        self.first_gone += count;
        while let Some(first) = self.parts.front().filter(|first| first.bytes() <= self.first_gone) {
            self.first_gone -= first.bytes();
            if let FramePart::Copied(run) = first {
                self.copied_gone += run;
            }
            self.parts.pop_front();
        }
        if self.parts.is_empty() {
            self.copied.clear();
            self.copied_gone = 0;
        } else if self.copied_gone > COMPACT_ABOVE && self.copied_gone > self.copied.len() / 2 {
            self.copied.drain(..std::mem::take(&mut self.copied_gone));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_transport::HEAD_BYTES;

    /// A stream that takes a number of bytes that changes from write to write, and then no more.
    struct Stutter {
        wire: Vec<u8>,
        turn: usize,
    }

    impl Write for Stutter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.write_vectored(&[IoSlice::new(bytes)])
        }

        fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
            self.turn += 1;
            if self.turn.is_multiple_of(3) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let all: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
            let count = (self.turn * 977).min(all.len());
            self.wire.extend_from_slice(&all[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn partial_writes_lose_nothing() {
        let (mut outbox, mut expected) = (Outbox::default(), Vec::new());
        let mut stream = Stutter { wire: Vec::new(), turn: 0 };
        for sequence in 0..4000_u32 {
            let body = vec![sequence as u8; (sequence as usize * 37) % (2 * COPY_BELOW)];
            let head = [sequence as u8; HEAD_BYTES];
            FrameHeader::Message { head, body: body.len() }.encode(sequence, &mut expected);
            expected.extend_from_slice(&body);
            outbox.push(Message { head, body: body.into() });
            if sequence % 50 == 0 {
                outbox.write_to(&mut stream).unwrap();
            }
            if sequence == 3000 {
                FrameHeader::Heartbeat.encode(3001, &mut expected);
                outbox.push_control(FrameHeader::Heartbeat);
            }
        }
        assert_eq!(outbox.bytes() + stream.wire.len(), expected.len());
        while outbox.write_to(&mut stream).unwrap() == WriteProgress::Blocked {}
        assert!(stream.wire == expected && outbox.bytes() == 0 && outbox.copied.is_empty());
    }

    #[test]
    fn the_queue_is_bounded_but_takes_one_message_of_any_length() {
        let mut outbox = Outbox::default();
        assert!(outbox.has_room(1000, 100));
        outbox.push(Message { head: [0; HEAD_BYTES], body: Bytes::from_static(&[0; 60]) });
        assert!(outbox.has_room(60, 200) && !outbox.has_room(61, 200));
    }
}
