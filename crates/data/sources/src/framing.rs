//! The framing by which front ends deliver fragments: frames back to back on TCP, one frame per datagram on UDP.
//!
//! A frame is a header of 32 bytes, all fields little-endian, and the payload:
//!
//! | bytes | field |
//! |---|---|
//! | 0-3 | magic, `evbF` |
//! | 4 | version, 1 |
//! | 5 | flags: 1 end of run, 2 resynchronised, 4 damaged, 8 marked |
//! | 6-7 | source id |
//! | 8-15 | event counter |
//! | 16-19 | payload length in bytes |
//! | 20-23 | CRC-32C of the payload |
//! | 24-27 | mark, or at the end of run the number of fragments; 0 without the flag |
//! | 28-31 | CRC-32C of bytes 0 to 27 |

use crate::{checksum, stream_buffer::StreamBuffer};
use bytes::{Buf as _, Bytes};

/// Size of a frame's header in bytes.
pub const HEADER_SIZE: usize = 32;

const MAGIC: [u8; 4] = *b"evbF";
const VERSION: u8 = 1;
const CHECKED: usize = HEADER_SIZE - 4;

const END_OF_RUN: u8 = 1;
const RESYNCHRONISED: u8 = 2;
const DAMAGED: u8 = 4;
const MARKED: u8 = 8;

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<B = Bytes> {
    /// The source id: the index of the readout unit that it is for.
    pub source: u16,
    /// The front end's event counter; only its low bits count.
    pub counter: u64,
    /// End of the run: no fragment follows. Such a frame has no payload, and its counter is that of the last fragment.
    pub end_of_run: bool,
    /// The front end has restarted its counter with this fragment.
    pub resynchronised: bool,
    /// True if the payload's checksum is right and the front end did not flag the payload as damaged.
    pub good: bool,
    /// The mark, equal in all sources for one event: a bunch crossing, an orbit, the low bits of a timestamp. At the
    /// end of run the number of fragments that were sent, its low 32 bits.
    pub mark: Option<u32>,
    /// The fragment.
    pub payload: B,
}

/// The reason why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The bytes do not begin with the magic.
    #[error("no frame begins here: the first four bytes are {found:02x?}")]
    Magic {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// Another version of the framing.
    #[error("framing version {found} is not known: this is version {VERSION}")]
    Version {
        /// The version.
        found: u8,
    },
    /// The checksum of the header is wrong.
    #[error("the checksum of the frame header is wrong")]
    HeaderChecksum,
    /// A field has a value that this version does not allow.
    #[error("the frame header has an unknown flag, a reserved field in use, or an end of run with a payload")]
    Field,
    /// The payload is above the largest fragment. On TCP the frame is skipped and the next one is read.
    #[error("the frame has {bytes} bytes, more than the largest fragment of {limit}")]
    Oversized {
        /// Payload length in bytes.
        bytes: u32,
        /// Largest fragment in bytes.
        limit: u32,
    },
    /// Bytes between two frames belong to none.
    #[error("{bytes} bytes belong to no frame")]
    Skipped {
        /// Their number.
        bytes: u64,
    },
    /// No later frame can be found, since the framing has no magic.
    #[error("the bytes are no frame, and frames without a magic cannot be found again")]
    Lost,
    /// A datagram is longer or shorter than its frame.
    #[error("the datagram has {found} bytes, its frame {wanted}")]
    DatagramSize {
        /// Bytes found.
        found: usize,
        /// Bytes expected.
        wanted: usize,
    },
}

impl FrameError {
    /// Returns true if the position of the next frame in a stream is lost.
    pub const fn ends_stream(self) -> bool {
        !matches!(self, Self::Oversized { .. } | Self::Skipped { .. })
    }
}

/// Appends a frame. A frame that is not `good` gets the damaged flag.
///
/// # Panics
/// If the payload is 4 GiB or longer.
pub fn encode<B: AsRef<[u8]>>(frame: &Frame<B>, out: &mut Vec<u8>) {
    let payload = frame.payload.as_ref();
    let length = u32::try_from(payload.len()).expect("a payload is shorter than 4 GiB");
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    let flags = flag(frame.end_of_run, END_OF_RUN)
        | flag(frame.resynchronised, RESYNCHRONISED)
        | flag(!frame.good, DAMAGED)
        | flag(frame.mark.is_some(), MARKED);
    let mut header = [0; HEADER_SIZE];
    header[..4].copy_from_slice(&MAGIC);
    header[4..6].copy_from_slice(&[VERSION, flags]);
    header[6..8].copy_from_slice(&frame.source.to_le_bytes());
    header[8..16].copy_from_slice(&frame.counter.to_le_bytes());
    header[16..20].copy_from_slice(&length.to_le_bytes());
    header[20..24].copy_from_slice(&checksum(payload).to_le_bytes());
    header[24..28].copy_from_slice(&frame.mark.unwrap_or(0).to_le_bytes());
    let check = checksum(&header[..CHECKED]);
    header[CHECKED..].copy_from_slice(&check.to_le_bytes());
    out.extend_from_slice(&header);
    out.extend_from_slice(payload);
}

/// Reads one datagram.
///
/// # Errors
/// If it is not exactly one frame.
pub fn decode_datagram(bytes: &[u8], max_fragment: u32) -> Result<Frame, FrameError> {
    let short = FrameError::DatagramSize { found: bytes.len(), wanted: HEADER_SIZE };
    let (header, payload) = bytes.split_first_chunk().ok_or(short)?;
    let header = Header::read(header, max_fragment)?;
    let wanted = HEADER_SIZE + header.length as usize;
    if bytes.len() != wanted {
        return Err(FrameError::DatagramSize { found: bytes.len(), wanted });
    }
    Ok(header.frame(Bytes::copy_from_slice(payload)))
}

/// Extracts frames from a stream of bytes, however it is cut up.
///
/// It holds the bytes that were pushed and not yet popped: at most one unfinished frame, if frames are popped after
/// every push until none is left.
#[derive(Debug)]
pub struct FrameParser {
    buffer: StreamBuffer,
    max_fragment: u32,
    /// Bytes of an oversized payload that are still to be dropped.
    skip: usize,
    /// The error that ended the stream.
    ended: Option<FrameError>,
}

impl FrameParser {
    /// A parser that accepts payloads of up to `max_fragment` bytes.
    pub fn new(max_fragment: u32) -> Self {
        Self { buffer: StreamBuffer::default(), max_fragment, skip: 0, ended: None }
    }

    /// Takes bytes. After an error that ends the stream they are dropped.
    pub fn push(&mut self, bytes: &[u8]) {
        let dropped = self.skip.min(bytes.len());
        self.skip -= dropped;
        if self.ended.is_none() {
            self.buffer.push(&bytes[dropped..]);
        }
    }

    /// The next frame, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// If the bytes are not a frame. After an error that [ends the stream](FrameError::ends_stream) every further call
    /// returns it again.
    pub fn pop(&mut self) -> Result<Option<Frame>, FrameError> {
        if let Some(error) = self.ended {
            return Err(error);
        }
        // Garbage is recognised before a whole header of it has come.
        let magic = self.buffer.first_chunk().map_or(Ok(()), |first| check_magic(*first));
        magic.inspect_err(|&error| self.fail(error))?;
        let Some(header) = self.buffer.first_chunk() else {
            return Ok(None);
        };
        let header = Header::read(header, self.max_fragment).inspect_err(|&error| self.fail(error))?;
        let length = header.length as usize;
        if self.buffer.len() - HEADER_SIZE < length {
            return Ok(None);
        }
        self.buffer.advance(HEADER_SIZE);
        Ok(Some(header.frame(self.buffer.cut(length))))
    }

    /// The bytes of an unfinished frame.
    pub fn unfinished(&self) -> &[u8] {
        &self.buffer
    }

    /// Returns true if the stream is between two frames.
    pub fn is_at_boundary(&self) -> bool {
        self.buffer.is_empty() && self.skip == 0
    }

    fn fail(&mut self, error: FrameError) {
        if let FrameError::Oversized { bytes, .. } = error {
            let frame = HEADER_SIZE + bytes as usize;
            let held = frame.min(self.buffer.len());
            self.buffer.advance(held);
            self.skip = frame - held;
        } else {
            self.buffer = StreamBuffer::default();
            self.ended = Some(error);
        }
    }
}

fn check_magic(found: [u8; 4]) -> Result<(), FrameError> {
    if found == MAGIC { Ok(()) } else { Err(FrameError::Magic { found }) }
}

struct Header {
    flags: u8,
    source: u16,
    counter: u64,
    length: u32,
    payload_checksum: u32,
    mark: u32,
}

impl Header {
    fn read(bytes: &[u8; HEADER_SIZE], limit: u32) -> Result<Self, FrameError> {
        let mut fields = &bytes[8..];
        let header = Self {
            flags: bytes[5],
            source: u16::from_le_bytes([bytes[6], bytes[7]]),
            counter: fields.get_u64_le(),
            length: fields.get_u32_le(),
            payload_checksum: fields.get_u32_le(),
            mark: fields.get_u32_le(),
        };
        let check = fields.get_u32_le();
        check_magic([bytes[0], bytes[1], bytes[2], bytes[3]])?;
        if bytes[4] != VERSION {
            return Err(FrameError::Version { found: bytes[4] });
        }
        if check != checksum(&bytes[..CHECKED]) {
            return Err(FrameError::HeaderChecksum);
        }
        let known = header.flags & !(END_OF_RUN | RESYNCHRONISED | DAMAGED | MARKED) == 0;
        let unmarked = header.flags & MARKED == 0;
        if !known || unmarked && header.mark != 0 || header.flags & END_OF_RUN != 0 && header.length != 0 {
            return Err(FrameError::Field);
        }
        if header.length > limit {
            return Err(FrameError::Oversized { bytes: header.length, limit });
        }
        Ok(header)
    }

    fn frame(&self, payload: Bytes) -> Frame {
        Frame {
            source: self.source,
            counter: self.counter,
            end_of_run: self.flags & END_OF_RUN != 0,
            resynchronised: self.flags & RESYNCHRONISED != 0,
            mark: (self.flags & MARKED != 0).then_some(self.mark),
            good: self.flags & DAMAGED == 0 && checksum(&payload) == self.payload_checksum,
            payload,
        }
    }
}
