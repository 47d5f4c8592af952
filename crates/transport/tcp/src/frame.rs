//! Frames on a connection: the fixed header and its checks, without any I/O. `docs/reference/tcp-wire.md` describes the
//! bytes.

use evb_transport::HEAD_BYTES;

/// Bytes before the body of a message frame.
pub const FRAME_HEADER_BYTES: usize = CONTROL_BYTES + HEAD_BYTES;
/// Bytes of a frame that carries no message.
pub const CONTROL_BYTES: usize = 8;
/// Longest body that a frame can announce; larger values are control frames.
pub const FRAME_MAX_BODY: usize = u32::MAX as usize - 16;

const HEARTBEAT: u32 = u32::MAX;
const GOODBYE: u32 = u32::MAX - 1;

/// The front of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameHeader {
    /// A message; its body follows.
    Message {
        /// The message's head.
        head: [u8; HEAD_BYTES],
        /// Length of the body in bytes, at most the parser's limit.
        body: usize,
    },
    /// A sign of life without content.
    Heartbeat,
    /// The peer ends the connection in order: no message follows.
    Goodbye,
}

impl FrameHeader {
    /// Length on the wire in bytes, without the body.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        match self {
            Self::Message { .. } => FRAME_HEADER_BYTES,
            Self::Heartbeat | Self::Goodbye => CONTROL_BYTES,
        }
    }

    /// Appends the header with this sequence number to `wire`.
    pub fn encode(&self, sequence: u32, wire: &mut Vec<u8>) {
        let length = match self {
            Self::Message { body, .. } => *body as u32,
            Self::Heartbeat => HEARTBEAT,
            Self::Goodbye => GOODBYE,
        };
        wire.extend_from_slice(&length.to_le_bytes());
        wire.extend_from_slice(&sequence.to_le_bytes());
        if let Self::Message { head, .. } = self {
            wire.extend_from_slice(head);
        }
    }
}

/// The reason why a peer's bytes are refused; the connection cannot be used after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The announced body is above the limit.
    #[error("it announced a body of {length} bytes, above the limit of {limit} bytes")]
    TooLarge {
        /// The announced length in bytes.
        length: u32,
        /// The limit in bytes.
        limit: usize,
    },
    /// A frame is missing, or the bytes are not a frame.
    #[error("it sent frame {found} where frame {expected} was due")]
    Sequence {
        /// The expected number.
        expected: u32,
        /// The number in the frame.
        found: u32,
    },
    /// A frame after the goodbye.
    #[error("it sent a frame after its goodbye")]
    AfterGoodbye,
}

/// Reads the headers of one connection's frames.
#[derive(Clone, Debug)]
pub struct FrameParser {
    max_body: usize,
    next: u32,
    ended: bool,
}

impl FrameParser {
    /// A parser at the start of a connection, for bodies of at most `max_body` bytes.
    #[must_use]
    pub const fn new(max_body: usize) -> Self {
        Self { max_body, next: 0, ended: false }
    }

    /// The header at the front of `bytes`, or `None` if more bytes are needed. The caller skips [`FrameHeader::bytes`]
    /// and the body.
    ///
    /// # Errors
    /// [`FrameError`] describes the fault of the frame.
    pub fn parse(&mut self, bytes: &[u8]) -> Result<Option<FrameHeader>, FrameError> {
        let Some((length, rest)) = bytes.split_first_chunk() else { return Ok(None) };
        let Some((sequence, rest)) = rest.split_first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*length);
        self.check(length, u32::from_le_bytes(*sequence))?;
        let header = match length {
            HEARTBEAT => FrameHeader::Heartbeat,
            GOODBYE => FrameHeader::Goodbye,
            _ => match rest.first_chunk() {
                Some(&head) => FrameHeader::Message { head, body: length as usize },
                None => return Ok(None),
            },
        };
        self.ended = header == FrameHeader::Goodbye;
        if let FrameHeader::Message { .. } = header {
            self.next = self.next.wrapping_add(1);
        }
        Ok(Some(header))
    }

    /// Returns true if the peer has sent a goodbye.
    #[must_use]
    pub const fn ended(&self) -> bool {
        self.ended
    }

    /// Checks length and number, which arrive before the head: a wrong peer is found at once.
    fn check(&self, length: u32, found: u32) -> Result<(), FrameError> {
        if self.ended {
            return Err(FrameError::AfterGoodbye);
        }
        if length < GOODBYE && length as usize > self.max_body {
            return Err(FrameError::TooLarge { length, limit: self.max_body });
        }
        if found != self.next {
            return Err(FrameError::Sequence { expected: self.next, found });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: FrameHeader = FrameHeader::Message { head: [7; HEAD_BYTES], body: 9 };

    fn encoded(headers: &[(FrameHeader, u32)]) -> Vec<u8> {
        let mut wire = Vec::new();
        headers.iter().for_each(|(header, sequence)| header.encode(*sequence, &mut wire));
        wire
    }

    #[test]
    fn headers_come_back_and_need_all_their_bytes() {
        for header in [MESSAGE, FrameHeader::Heartbeat, FrameHeader::Goodbye] {
            let wire = encoded(&[(header, 0)]);
            assert_eq!(wire.len(), header.bytes());
            for cut in 0..wire.len() {
                assert_eq!(FrameParser::new(9).parse(&wire[..cut]), Ok(None));
            }
            assert_eq!(FrameParser::new(9).parse(&wire), Ok(Some(header)));
        }
    }

    #[test]
    fn wrong_frames_are_named() {
        let mut parser = FrameParser::new(8);
        assert_eq!(parser.parse(&encoded(&[(MESSAGE, 0)])), Err(FrameError::TooLarge { length: 9, limit: 8 }));
        assert_eq!(parser.parse(&[0xf0, 0xff, 0xff, 0xff, 0, 0, 0, 0]).unwrap_err().to_string(), {
            "it announced a body of 4294967280 bytes, above the limit of 8 bytes"
        });
        let late = encoded(&[(FrameHeader::Heartbeat, 1)]);
        assert_eq!(parser.parse(&late), Err(FrameError::Sequence { expected: 0, found: 1 }));
        assert_eq!(parser.parse(&encoded(&[(FrameHeader::Goodbye, 0)])), Ok(Some(FrameHeader::Goodbye)));
        assert_eq!(parser.parse(&encoded(&[(FrameHeader::Heartbeat, 0)])), Err(FrameError::AfterGoodbye));
    }

    #[test]
    fn only_messages_are_numbered_and_the_number_wraps() {
        let mut parser = FrameParser { max_body: 9, next: u32::MAX, ended: false };
        for (header, sequence) in [(FrameHeader::Heartbeat, u32::MAX), (MESSAGE, u32::MAX), (MESSAGE, 0)] {
            assert_eq!(parser.parse(&encoded(&[(header, sequence)])), Ok(Some(header)));
        }
    }
}
