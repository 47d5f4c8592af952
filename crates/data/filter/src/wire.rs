//! The bytes between a builder and a filter program. Numbers are little-endian; every part begins at a multiple of eight
//! bytes. `docs/reference/filter-wire.md` has the same for authors of programs.

use bytes::Bytes;
use evb_core::EventId;
use evb_protocol::{Built, Fragment, FragmentStatus};
use std::{io, ops::Range};

/// Version of the protocol.
pub(crate) const VERSION: u16 = 1;
/// First bytes of a hello and of its answer.
const MAGIC: u32 = u32::from_le_bytes(*b"EVBF");
/// Bytes of a head: length of the rest, and kind.
pub(crate) const HEAD: usize = 8;
/// Bytes of a hello before the names of its streams. An area of memory begins with the same bytes.
pub(crate) const HELLO_FIXED: usize = 24;
/// Bytes of the place of an event in an area of memory.
const PLACE: usize = 16;
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
const PLACES: u32 = 3;
const END: u32 = 4;
const READY: u32 = 16;
const VERDICTS: u32 = 17;
const FAILED: u32 = 18;
const ALIVE: u32 = 19;

/// Longest text of a failure.
const MOST_TEXT: usize = 1024;

/// Flag of a program that has mapped the area of memory.
const IN_MEMORY: u16 = 1;

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

/// The reason why bytes are not a message.
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
    Ready {
        /// It has mapped the area of memory that the hello announces.
        in_memory: bool,
    },
    /// Verdicts about events.
    Verdicts(Vec<Decided>),
    /// A filter unit on another machine is there, and its program may be at work.
    Alive,
    /// The program of a filter unit on another machine has ended, with this text if it crashed.
    Failed(Option<String>),
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

    /// Number of bytes that have come and were not taken.
    pub(crate) const fn waiting(&self) -> usize {
        self.bytes.len()
    }

    /// The next message of a program; `None` if it has not come whole.
    ///
    /// # Errors
    /// [`WireError`] if the bytes can be no message, as early as their head.
    pub fn next_message(&mut self) -> Result<Option<Received>, WireError> {
        let Some((length, kind)) = head(&self.bytes) else { return Ok(None) };
        let fits = match kind {
            READY => length == 8,
            VERDICTS => length >= 8 && (length - 8).is_multiple_of(VERDICT) && length <= 8 + MOST_VERDICTS * VERDICT,
            ALIVE => length == 0,
            FAILED => length <= MOST_TEXT,
            _ => return Err(WireError::Kind(kind)),
        };
        if !fits {
            return Err(WireError::Length { kind, length });
        }
        let Some(body) = self.bytes.get(HEAD..HEAD + length) else { return Ok(None) };
        let message = match kind {
            READY => check_version(body).map(|()| Received::Ready { in_memory: u16_at(body, 6) & IN_MEMORY != 0 }),
            ALIVE => Ok(Received::Alive),
            FAILED => Ok(Received::Failed(failure(body))),
            _ => decode_verdicts(body).map(Received::Verdicts),
        };
        self.bytes.drain(..HEAD + length);
        message.map(Some)
    }
}

/// The end of the work of a filter unit on another machine, which tells it from a broken connection.
pub(crate) fn encode_end(out: &mut Vec<u8>) {
    let at = begin(END, out);
    end(at, out);
}

/// True if a message to a filter unit on another machine with this head ends its work.
pub(crate) fn is_end(bytes: [u8; HEAD]) -> bool {
    u32_at(&bytes, 4) == END
}

/// Length of the body behind a head.
pub(crate) fn body_length(bytes: [u8; HEAD]) -> usize {
    u32_at(&bytes, 0) as usize
}

/// Appends a sign of life of a filter unit on another machine.
pub(crate) fn encode_alive(out: &mut Vec<u8>) {
    let at = begin(ALIVE, out);
    end(at, out);
}

/// Appends the end of the program of a filter unit on another machine; without a text, it ended by itself.
pub(crate) fn encode_failed(why: Option<&str>, out: &mut Vec<u8>) {
    let at = begin(FAILED, out);
    let text = why.unwrap_or_default();
    out.extend(text.bytes().take(MOST_TEXT));
    end(at, out);
}

fn failure(body: &[u8]) -> Option<String> {
    (!body.is_empty()).then(|| String::from_utf8_lossy(body).into_owned())
}

/// Length of the whole message at the beginning of these bytes of a program, with its head; `None` if its head has not
/// come, and an error if a program says no such thing.
pub(crate) fn program_message(bytes: &[u8]) -> Result<Option<usize>, WireError> {
    match head(bytes) {
        Some((length, READY | VERDICTS)) if length <= 8 + MOST_VERDICTS * VERDICT => Ok(Some(HEAD + length)),
        Some((_, kind)) => Err(WireError::Kind(kind)),
        None => Ok(None),
    }
}

/// Appends the first message to a program. `descriptor` is that of the area of memory, 0 if there is none.
pub(crate) fn encode_hello(hello: &Hello, descriptor: u32, out: &mut Vec<u8>) {
    let at = begin(HELLO, out);
    out.extend(MAGIC.to_le_bytes());
    out.extend(VERSION.to_le_bytes());
    out.extend((hello.streams.len() as u16).to_le_bytes());
    out.extend(hello.run.to_le_bytes());
    out.extend(hello.builder.to_le_bytes());
    out.extend(hello.unit.to_le_bytes());
    out.extend(descriptor.to_le_bytes());
    for stream in &hello.streams {
        out.extend((stream.len() as u16).to_le_bytes());
        out.extend(stream.as_bytes());
    }
    end(at, out);
}

/// The descriptor of the area of memory that the body of a first message announces; 0 if there is none.
pub(crate) fn descriptor(body: &[u8]) -> u32 {
    body.get(..HELLO_FIXED).map_or(0, |fixed| u32_at(fixed, 20))
}

/// Reads the body of the first message.
pub(crate) fn decode_hello(body: &[u8]) -> Result<Hello, WireError> {
    check_version(body)?;
    let (fixed, mut rest) = body.split_at_checked(HELLO_FIXED).ok_or(WireError::Form(HELLO))?;
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
        write_event(event, event_length(event), out).expect("a vector grows");
    }
    end(at, out);
}

/// Appends a message that gives the places of events in the area of memory.
pub(crate) fn encode_places(places: &[Range<usize>], out: &mut Vec<u8>) {
    let at = begin(PLACES, out);
    out.extend((places.len() as u32).to_le_bytes());
    out.extend([0; 4]);
    for place in places {
        out.extend((place.start as u64).to_le_bytes());
        out.extend((place.len() as u64).to_le_bytes());
    }
    end(at, out);
}

/// Length of an event in bytes, as [`write_event`] writes it.
pub(crate) fn event_length(event: &Built<Bytes>) -> usize {
    EVENT + event.wanted().map(|(_, fragment)| FRAGMENT + payload(fragment).len().next_multiple_of(8)).sum::<usize>()
}

/// Length in bytes of an event with this number of fragments of one size.
pub(crate) const fn largest_event(fragments: u64, size: u64) -> u64 {
    (EVENT as u64).saturating_add(fragments.saturating_mul((FRAGMENT as u64 + 7).saturating_add(size)))
}

fn payload(fragment: Option<&Fragment<Bytes>>) -> &[u8] {
    fragment.map_or(&[], |fragment| &fragment.payload)
}

/// Writes an event of this length. A missing fragment has status missing and no bytes.
pub(crate) fn write_event(event: &Built<Bytes>, length: usize, out: &mut impl io::Write) -> io::Result<()> {
    let length = (length - EVENT) as u32;
    out.write_all(&event.event.0.to_le_bytes())?;
    out.write_all(&(event.wanted().count() as u16).to_le_bytes())?;
    out.write_all(&u16::from(event.complete).to_le_bytes())?;
    out.write_all(&length.to_le_bytes())?;
    for (source, fragment) in event.wanted() {
        let (source, status) = fragment.map_or((source, FragmentStatus::Missing), |one| (one.source, one.status));
        let bytes = payload(fragment);
        out.write_all(&source.0.to_le_bytes())?;
        out.write_all(&[status as u8, 0])?;
        out.write_all(&(bytes.len() as u32).to_le_bytes())?;
        out.write_all(bytes)?;
        out.write_all(&[0; 8][..bytes.len().next_multiple_of(8) - bytes.len()])?;
    }
    Ok(())
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
    let (count, mut rest) = body.split_at_checked(8).ok_or(WireError::Form(EVENTS))?;
    let mut events = Vec::new();
    for _ in 0..u32_at(count, 0) {
        let (event, more) = decode_event(rest).ok_or(WireError::Form(EVENTS))?;
        events.push(event);
        rest = more;
    }
    Ok(events)
}

/// Reads an event; `None` if it does not end within these bytes. What follows it comes with it.
pub(crate) fn decode_event(bytes: &[u8]) -> Option<(EventBytes<'_>, &[u8])> {
    let (fixed, rest) = bytes.split_at_checked(EVENT)?;
    let (inner, rest) = rest.split_at_checked(u32_at(fixed, 12) as usize)?;
    let fragments = decode_fragments(inner, u16_at(fixed, 8))?;
    Some((EventBytes { number: u64_at(fixed, 0), complete: u16_at(fixed, 10) & 1 != 0, fragments }, rest))
}

/// Reads the body of a message with the places of events. They may be anywhere: the area of memory knows its end.
pub(crate) fn decode_places(body: &[u8]) -> Result<Vec<Range<usize>>, WireError> {
    let (count, places) = body.split_at_checked(8).ok_or(WireError::Form(PLACES))?;
    if u32_at(count, 0) as usize != places.len() / PLACE || !places.len().is_multiple_of(PLACE) {
        return Err(WireError::Form(PLACES));
    }
    let place = |place: &[u8]| {
        let (start, length) = (usize::try_from(u64_at(place, 0)).ok()?, usize::try_from(u64_at(place, 8)).ok()?);
        Some(start..start.checked_add(length)?)
    };
    places.chunks_exact(PLACE).map(place).collect::<Option<_>>().ok_or(WireError::Form(PLACES))
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
pub(crate) fn encode_ready(in_memory: bool, out: &mut Vec<u8>) {
    let at = begin(READY, out);
    out.extend(MAGIC.to_le_bytes());
    out.extend(VERSION.to_le_bytes());
    out.extend(if in_memory { IN_MEMORY } else { 0 }.to_le_bytes());
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

/// The kind of a message to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The first message.
    Hello,
    /// Events.
    Events,
    /// Places of events in the area of memory.
    Places,
}

impl Order {
    /// The error of a message of this kind that is not expected.
    pub(crate) const fn unexpected(self) -> WireError {
        WireError::Kind(match self {
            Self::Hello => HELLO,
            Self::Events => EVENTS,
            Self::Places => PLACES,
        })
    }
}

/// The error of a place that has no event.
pub(crate) const NO_EVENT_THERE: WireError = WireError::Form(PLACES);

/// A message to a program: its kind, checked, and the length of its body.
pub(crate) fn order_head(bytes: [u8; HEAD]) -> Result<(Order, usize), WireError> {
    let (length, kind) = (u32_at(&bytes, 0) as usize, u32_at(&bytes, 4));
    let order = match kind {
        HELLO => Order::Hello,
        EVENTS => Order::Events,
        PLACES => Order::Places,
        _ => return Err(WireError::Kind(kind)),
    };
    if length <= MOST_BYTES { Ok((order, length)) } else { Err(WireError::Length { kind, length }) }
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
