//! The bytes between a builder and a filter program. Numbers are little-endian; every part begins at a multiple of eight
//! bytes. `docs/filters.md` has the same for authors of programs.

use bytes::Bytes;
use evb_core::EventId;
use evb_protocol::{Built, FragmentStatus};

/// Version of the protocol.
pub(crate) const VERSION: u16 = 1;
/// First bytes of a hello and of its answer.
const MAGIC: u32 = u32::from_le_bytes(*b"EVBF");
/// Bytes of a head: length of the rest, and kind.
const HEAD: usize = 8;
/// Bytes of one verdict.
const VERDICT: usize = 16;
/// Bytes of the part of an event before its fragments.
const EVENT: usize = 16;
/// Bytes of the part of a fragment before its payload.
const FRAGMENT: usize = 8;
/// Most verdicts in one message.
pub(crate) const MOST_VERDICTS: usize = 4096;
/// Longest message of events that a program accepts.
pub(crate) const MOST_BYTES: usize = 2 << 30;

const HELLO: u32 = 1;
const EVENTS: u32 = 2;
const READY: u32 = 16;
const VERDICTS: u32 = 17;

/// The first message to a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Number of the run.
    pub run: u64,
    /// Index of the builder unit.
    pub builder: u16,
    /// Index of the filter unit of this builder.
    pub unit: u16,
    /// Names of the streams, by index.
    pub streams: Vec<String>,
}

/// The reason why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The kind of the message does not exist, or is not expected.
    #[error("a message of kind {0} is not expected")]
    Kind(u32),
    /// The length does not fit the kind of the message.
    #[error("a message of kind {kind} has {length} bytes")]
    Length {
        /// The kind.
        kind: u32,
        /// The length without the head.
        length: usize,
    },
    /// The first message does not begin as it should.
    #[error("the first message does not say EVBF")]
    Magic,
    /// The other side has another version of the protocol.
    #[error("the other side speaks version {0}, and this one {VERSION}")]
    Version(u16),
    /// A text is not UTF-8, or a part does not end within its message.
    #[error("a message of kind {0} is not well-formed")]
    Form(u32),
}

/// A verdict about one event: none rejects it, and a stream takes it.
pub(crate) type Decided = (EventId, Option<u16>);

/// A message of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The program is ready for events.
    Ready,
    /// Verdicts about events.
    Verdicts(Vec<Decided>),
}

/// The bytes that have come, of which whole messages are taken.
#[derive(Debug, Default)]
pub struct Incoming {
    bytes: Vec<u8>,
}

impl Incoming {
    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message of a program; none if it has not come whole.
    ///
    /// # Errors
    /// [`WireError`] if the bytes can be no message, as early as their head.
    pub fn next_message(&mut self) -> Result<Option<Received>, WireError> {
        let Some((length, kind)) = head(&self.bytes) else { return Ok(None) };
        let fits = match kind {
            READY => length == 8,
            VERDICTS => length >= 8 && (length - 8).is_multiple_of(VERDICT) && length <= 8 + MOST_VERDICTS * VERDICT,
            _ => return Err(WireError::Kind(kind)),
        };
        if !fits {
            return Err(WireError::Length { kind, length });
        }
        let Some(body) = self.bytes.get(HEAD..HEAD + length) else { return Ok(None) };
        let message = match kind {
            READY => check_version(body).map(|()| Received::Ready),
            _ => decode_verdicts(body).map(Received::Verdicts),
        };
        self.bytes.drain(..HEAD + length);
        message.map(Some)
    }
}

/// Appends the first message to a program.
pub(crate) fn encode_hello(hello: &Hello, out: &mut Vec<u8>) {
    let at = begin(HELLO, out);
    out.extend(MAGIC.to_le_bytes());
    out.extend(VERSION.to_le_bytes());
    out.extend((hello.streams.len() as u16).to_le_bytes());
    out.extend(hello.run.to_le_bytes());
    out.extend(hello.builder.to_le_bytes());
    out.extend(hello.unit.to_le_bytes());
    out.extend([0; 4]);
    for stream in &hello.streams {
        out.extend((stream.len() as u16).to_le_bytes());
        out.extend(stream.as_bytes());
    }
    end(at, out);
}

/// Reads the body of the first message.
pub(crate) fn decode_hello(body: &[u8]) -> Result<Hello, WireError> {
    check_version(body)?;
    let (fixed, mut rest) = body.split_at_checked(24).ok_or(WireError::Form(HELLO))?;
    let mut streams = Vec::new();
    for _ in 0..u16_at(fixed, 6) {
        let (length, more) = rest.split_at_checked(2).ok_or(WireError::Form(HELLO))?;
        let (name, more) = more.split_at_checked(u16_at(length, 0).into()).ok_or(WireError::Form(HELLO))?;
        streams.push(String::from_utf8(name.to_vec()).map_err(|_| WireError::Form(HELLO))?);
        rest = more;
    }
    Ok(Hello { run: u64_at(fixed, 8), builder: u16_at(fixed, 16), unit: u16_at(fixed, 18), streams })
}

/// Appends a message with these events. The bytes are copied once; a missing fragment has status missing and no bytes.
pub(crate) fn encode_events<'a>(events: impl ExactSizeIterator<Item = &'a Built<Bytes>>, out: &mut Vec<u8>) {
    let at = begin(EVENTS, out);
    out.extend((events.len() as u32).to_le_bytes());
    out.extend([0; 4]);
    for event in events {
        encode_event(event, out);
    }
    end(at, out);
}

fn encode_event(event: &Built<Bytes>, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend(event.event.0.to_le_bytes());
    out.extend((event.wanted().count() as u16).to_le_bytes());
    out.extend(u16::from(event.complete).to_le_bytes());
    out.extend([0; 4]);
    for (source, fragment) in event.wanted() {
        let (source, status, bytes) = match fragment {
            Some(fragment) => (fragment.source, fragment.status, &fragment.payload[..]),
            None => (source, FragmentStatus::Missing, &[][..]),
        };
        out.extend(source.0.to_le_bytes());
        out.extend([status as u8, 0]);
        out.extend((bytes.len() as u32).to_le_bytes());
        out.extend(bytes);
        out.resize(start + (out.len() - start).next_multiple_of(8), 0);
    }
    let length = (out.len() - start - EVENT) as u32;
    out[start + 12..start + EVENT].copy_from_slice(&length.to_le_bytes());
}

/// A fragment in a message of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentBytes<'a> {
    pub(crate) source: u16,
    pub(crate) status: u8,
    pub(crate) bytes: &'a [u8],
}

/// An event in a message of events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventBytes<'a> {
    pub(crate) number: u64,
    pub(crate) complete: bool,
    pub(crate) fragments: Vec<FragmentBytes<'a>>,
}

/// Reads the body of a message of events.
pub(crate) fn decode_events(body: &[u8]) -> Result<Vec<EventBytes<'_>>, WireError> {
    let wrong = WireError::Form(EVENTS);
    let (count, mut rest) = body.split_at_checked(8).ok_or(wrong.clone())?;
    let mut events = Vec::new();
    for _ in 0..u32_at(count, 0) {
        let (fixed, more) = rest.split_at_checked(EVENT).ok_or(wrong.clone())?;
        let (inner, more) = more.split_at_checked(u32_at(fixed, 12) as usize).ok_or(wrong.clone())?;
        let fragments = decode_fragments(inner, u16_at(fixed, 8)).ok_or(wrong.clone())?;
        events.push(EventBytes { number: u64_at(fixed, 0), complete: u16_at(fixed, 10) & 1 != 0, fragments });
        rest = more;
    }
    Ok(events)
}

fn decode_fragments(mut rest: &[u8], count: u16) -> Option<Vec<FragmentBytes<'_>>> {
    let mut fragments = Vec::new();
    for _ in 0..count {
        let (fixed, more) = rest.split_at_checked(FRAGMENT)?;
        let length = u32_at(fixed, 4) as usize;
        let (padded, more) = more.split_at_checked(length.next_multiple_of(8))?;
        fragments.push(FragmentBytes { source: u16_at(fixed, 0), status: fixed[2], bytes: &padded[..length] });
        rest = more;
    }
    Some(fragments)
}

/// The first answer of a program.
pub(crate) fn encode_ready(out: &mut Vec<u8>) {
    let at = begin(READY, out);
    out.extend(MAGIC.to_le_bytes());
    out.extend(VERSION.to_le_bytes());
    out.extend([0; 2]);
    end(at, out);
}

/// Appends a message with verdicts.
pub(crate) fn encode_verdicts(verdicts: &[Decided], out: &mut Vec<u8>) {
    let at = begin(VERDICTS, out);
    out.extend((verdicts.len() as u32).to_le_bytes());
    out.extend([0; 4]);
    for (event, stream) in verdicts {
        out.extend(event.0.to_le_bytes());
        out.extend([u8::from(stream.is_some()), 0]);
        out.extend(stream.unwrap_or(0).to_le_bytes());
        out.extend([0; 4]);
    }
    end(at, out);
}

fn decode_verdicts(body: &[u8]) -> Result<Vec<Decided>, WireError> {
    let verdicts = body[8..].chunks_exact(VERDICT);
    if u32_at(body, 0) as usize != verdicts.len() {
        return Err(WireError::Form(VERDICTS));
    }
    let decode = |verdict: &[u8]| match verdict[8] {
        0 => Ok((EventId(u64_at(verdict, 0)), None)),
        1 => Ok((EventId(u64_at(verdict, 0)), Some(u16_at(verdict, 10)))),
        _ => Err(WireError::Form(VERDICTS)),
    };
    verdicts.map(decode).collect()
}

/// A message to a program: its kind, checked, and the length of its body.
pub(crate) fn order_head(bytes: [u8; HEAD]) -> Result<(bool, usize), WireError> {
    let (length, kind) = (u32_at(&bytes, 0) as usize, u32_at(&bytes, 4));
    match kind {
        HELLO | EVENTS if length <= MOST_BYTES => Ok((kind == HELLO, length)),
        HELLO | EVENTS => Err(WireError::Length { kind, length }),
        _ => Err(WireError::Kind(kind)),
    }
}

fn check_version(body: &[u8]) -> Result<(), WireError> {
    match body.get(..8).map(|fixed| (u32_at(fixed, 0), u16_at(fixed, 4))) {
        Some((MAGIC, VERSION)) => Ok(()),
        Some((MAGIC, other)) => Err(WireError::Version(other)),
        _ => Err(WireError::Magic),
    }
}

fn head(bytes: &[u8]) -> Option<(usize, u32)> {
    bytes.get(..HEAD).map(|head| (u32_at(head, 0) as usize, u32_at(head, 4)))
}

fn begin(kind: u32, out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend([0; 4]);
    out.extend(kind.to_le_bytes());
    at
}

fn end(at: usize, out: &mut [u8]) {
    let length = (out.len() - at - HEAD) as u32;
    out[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests;
