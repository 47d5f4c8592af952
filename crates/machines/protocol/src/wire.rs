//! The wire format: every [`Message`] as a 32-byte head and a body.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | kind, see [`MessageKind`], in the lower five bits; [`RunMark`] in the upper three |
//! | 1 | status of a fragment, or a flag |
//! | 2..4 | source |
//! | 4..8 | length of the payload, or number of list entries, or of slots |
//! | 8..16 | event |
//! | 16..20 | CRC-32C of the payload |
//! | 20..24 | mark of a fragment, 0 for none |
//! | 24..32 | a second event: a claim, or the last one before a segment; for a piece, the bytes before it |
//!
//! All numbers are little-endian. The body of a fragment is its payload. The body of a list is its entries: events
//! as 8 bytes each, assignments as 8 bytes of event and 2 of builder, completions as 8 bytes of event and 1 of
//! [`Ending`]. A [`Message::Packet`] has no form of its own: its fragments travel one after another.

use crate::{Assigned, BlockSize, Completion, Ending, Fragment, FragmentStatus, Message, Piece, Sighted};
use alloc::{boxed::Box, sync::Arc, vec::Vec};
use evb_core::{EventId, Mark, NodeId, Sighting, SourceId, Time};
use zerocopy::{FromBytes, FromZeros as _, Immutable, IntoBytes, KnownLayout, little_endian as le};

/// Bytes of a head.
pub const HEAD_BYTES: usize = 32;

/// A mark of the run in the upper three bits of a head's first byte, which [`encode`] leaves free.
///
/// Nodes stay connected from one run to the next, and a message of the run before may still be on its way. Runs that
/// follow each other have different marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunMark(u8);

impl RunMark {
    const SHIFT: u32 = 5;
    const KIND_BITS: u8 = (1 << Self::SHIFT) - 1;

    /// The mark of the next run.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.wrapping_add(1 << Self::SHIFT))
    }

    /// Marks a head.
    pub const fn put_into(self, head: &mut [u8; HEAD_BYTES]) {
        head[0] |= self.0;
    }

    /// Takes the mark out of a head; returns false if it is that of another run.
    pub const fn take_from(self, head: &mut [u8; HEAD_BYTES]) -> bool {
        let is_of_run = head[0] & !Self::KIND_BITS == self.0;
        head[0] &= Self::KIND_BITS;
        is_of_run
    }
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MessageKind {
    /// [`Message::Request`].
    Request = 1,
    /// [`Message::Done`].
    Done = 2,
    /// [`Message::Available`].
    Available = 3,
    /// [`Message::Busy`].
    Busy = 4,
    /// [`Message::Readout`].
    Readout = 5,
    /// [`Message::Assign`].
    Assign = 6,
    /// [`Message::Grant`].
    Grant = 7,
    /// [`Message::Pull`].
    Pull = 8,
    /// [`Message::Clear`].
    Clear = 9,
    /// [`Message::Fragment`].
    Fragment = 10,
    /// [`Message::Sighted`]. The number is in the field of the event, the segment in that of the checksum, the bits in
    /// that of the source. The second event is the last one before the segment.
    Sighted = 11,
    /// [`Message::Align`]. The segment is in the field of the length.
    Align = 12,
    /// [`Message::Compare`].
    Compare = 13,
    /// [`Message::Marks`].
    Marks = 14,
    /// [`Message::Ask`]. The number is in the field of the checksum, the last heard answer in that of the mark.
    Ask = 15,
    /// [`Message::Answer`]. The number is in the field of the checksum.
    Answer = 16,
    /// [`Message::Away`]. The number is in the field of the checksum.
    Away = 17,
    /// [`Message::Standing`]. The number is in the field of the checksum.
    Standing = 18,
    /// [`Message::Resume`].
    Resume = 19,
    /// [`Message::Unit`]. The node is in the field of the source.
    Unit = 20,
    /// [`Message::Piece`]. The bytes before it are in the field of the second event.
    Piece = 21,
    /// [`Message::Slot`]. The round is in the field of the event.
    Slot = 22,
    /// [`Message::Credit`].
    Credit = 23,
    /// [`Message::Taken`]. The round is in the field of the event.
    Taken = 24,
    /// [`Message::Round`]. The number is in the field of the event.
    Round = 25,
    /// [`Message::TimeAsked`]. The time is in the field of the event, in picoseconds.
    TimeAsked = 26,
    /// [`Message::TimeTold`]. The times are in the fields of both events, in picoseconds.
    TimeTold = 27,
    /// [`Message::BlockSize`]. The block is in the field of the event, its first event in that of the second event, the number
    /// of events in that of the length.
    BlockSize = 28,
}

/// The reason why bytes are not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The first byte is no [`MessageKind`].
    #[error("message kind {0} is unknown")]
    UnknownKind(u8),
    /// A flag or status byte has no meaning.
    #[error("flag {flag} means nothing in a message of kind {kind}")]
    BadFlag {
        /// The message kind.
        kind: u8,
        /// The byte.
        flag: u8,
    },
    /// The body is not as long as the head says.
    #[error("a message of kind {kind} announces {announced} bytes and has {actual}")]
    WrongLength {
        /// The message kind.
        kind: u8,
        /// Bytes that the head announces.
        announced: u64,
        /// Bytes of the body.
        actual: usize,
    },
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct Head {
    kind: u8,
    flag: u8,
    source: le::U16,
    length: le::U32,
    event: le::U64,
    checksum: le::U32,
    mark: le::U32,
    second: le::U64,
}

const DECLARED: u8 = 1;
const LAST: u8 = 2;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct MarkEntry {
    event: le::U64,
    mark: le::U32,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct AssignedEntry {
    event: le::U64,
    builder: le::U16,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct CompletionEntry {
    event: le::U64,
    ending: u8,
}

/// The body of an encoded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<B> {
    /// No body.
    Empty,
    /// The payload of a fragment.
    Payload(B),
    /// The entries of a list.
    List(Vec<u8>),
}

impl Head {
    fn new(kind: MessageKind) -> Self {
        Self { kind: kind as u8, ..Self::new_zeroed() }
    }

    fn of_round(kind: MessageKind, round: u64, flag: bool) -> Self {
        Self { flag: flag.into(), event: round.into(), ..Self::new(kind) }
    }
}

/// Calls `send` with the head and body of a message; for a packet, with those of each of its fragments.
pub fn encode<B>(message: Message<B>, mut send: impl FnMut([u8; HEAD_BYTES], Body<B>)) {
    let empty = |head: Head| (head, Body::Empty);
    let (head, body) = match message {
        Message::Request { slots } => empty(Head { length: slots.into(), ..Head::new(MessageKind::Request) }),
        Message::Done(list) => encode_list(MessageKind::Done, &list, |completion| CompletionEntry {
            event: completion.event.0.into(),
            ending: completion.ending as u8,
        }),
        Message::Available { through, claim, last } => empty(Head {
            event: through.0.into(),
            second: claim.0.into(),
            flag: last.into(),
            ..Head::new(MessageKind::Available)
        }),
        Message::Sighted(sighted) => encode_sighted(&sighted),
        Message::Align { segment, first } => empty(Head {
            length: segment.into(),
            flag: first.is_some().into(),
            event: (first.unwrap_or(0) as u64).into(),
            ..Head::new(MessageKind::Align)
        }),
        Message::Compare(wanted) => empty(Head { flag: wanted.into(), ..Head::new(MessageKind::Compare) }),
        Message::Marks(list) => encode_list(MessageKind::Marks, &list, |(event, mark)| MarkEntry {
            event: event.0.into(),
            mark: Mark::to_bits(Some(*mark)).into(),
        }),
        Message::Busy(busy) => empty(Head { flag: busy.into(), ..Head::new(MessageKind::Busy) }),
        Message::Readout { through } => empty(Head { event: through.0.into(), ..Head::new(MessageKind::Readout) }),
        Message::Assign(list) => encode_list(MessageKind::Assign, &list, |assigned| AssignedEntry {
            event: assigned.event.0.into(),
            builder: assigned.builder.0.into(),
        }),
        Message::Grant(list) => encode_events(MessageKind::Grant, &list),
        Message::Pull(list) => encode_events(MessageKind::Pull, &list),
        Message::Clear(list) => encode_events(MessageKind::Clear, &list),
        Message::Ask { number, heard, events } => {
            let (head, body) = encode_events(MessageKind::Ask, &events);
            (Head { checksum: number.into(), mark: heard.into(), ..head }, body)
        }
        Message::Answer { number, pending } => {
            let (head, body) = encode_events(MessageKind::Answer, &pending);
            (Head { checksum: number.into(), ..head }, body)
        }
        Message::Away { number } => empty(Head { checksum: number.into(), ..Head::new(MessageKind::Away) }),
        Message::Standing { number, stands } => {
            empty(Head { checksum: number.into(), flag: stands.into(), ..Head::new(MessageKind::Standing) })
        }
        Message::Unit { node, alive } => {
            empty(Head { source: node.0.into(), flag: alive.into(), ..Head::new(MessageKind::Unit) })
        }
        Message::Resume { first } => empty(Head { event: first.0.into(), ..Head::new(MessageKind::Resume) }),
        Message::Fragment(fragment) => encode_fragment(fragment),
        Message::Piece(piece) => {
            let Piece { offset, of, .. } = *piece;
            let (head, body) = encode_fragment(of);
            (Head { kind: MessageKind::Piece as u8, second: u64::from(offset).into(), ..head }, body)
        }
        Message::Slot { empty: flag, round } => empty(Head::of_round(MessageKind::Slot, round, flag)),
        Message::Credit { calm } => empty(Head { flag: calm.into(), ..Head::new(MessageKind::Credit) }),
        Message::Taken { round, empty: flag } => empty(Head::of_round(MessageKind::Taken, round, flag)),
        Message::Round { number, calm } => empty(Head::of_round(MessageKind::Round, number, calm)),
        Message::BlockSize(BlockSize { from, first, events }) => empty(Head {
            length: events.into(),
            event: from.0.into(),
            second: first.0.into(),
            ..Head::new(MessageKind::BlockSize)
        }),
        Message::TimeAsked { asked } => empty(Head { event: asked.0.into(), ..Head::new(MessageKind::TimeAsked) }),
        Message::TimeTold { asked, manager } => {
            empty(Head { event: asked.0.into(), second: manager.0.into(), ..Head::new(MessageKind::TimeTold) })
        }
        Message::Packet(fragments) => {
            return fragments.into_iter().for_each(|fragment| {
                let (head, body) = encode_fragment(fragment);
                send(zerocopy::transmute!(head), body);
            });
        }
    };
    send(zerocopy::transmute!(head), body);
}

/// Bytes of a message on the wire, heads included: the length of what [`encode`] produces.
pub fn length<B>(message: &Message<B>) -> u64 {
    let fragment = |fragment: &Fragment<B>| (HEAD_BYTES as u64) + u64::from(fragment.length);
    let list = |entries: usize, size: usize| (HEAD_BYTES + entries * size) as u64;
    match message {
        Message::Done(done) => list(done.len(), size_of::<CompletionEntry>()),
        Message::Assign(assigned) => list(assigned.len(), size_of::<AssignedEntry>()),
        Message::Grant(events) | Message::Pull(events) | Message::Clear(events) => list(events.len(), size_of::<u64>()),
        Message::Ask { events, .. } => list(events.len(), size_of::<u64>()),
        Message::Answer { pending, .. } => list(pending.len(), size_of::<u64>()),
        Message::Fragment(one) => fragment(one),
        Message::Packet(fragments) => fragments.iter().map(fragment).sum(),
        Message::Sighted(sighted) => list(sighted.fragments.len(), size_of::<MarkEntry>()),
        Message::Marks(marks) => list(marks.len(), size_of::<MarkEntry>()),
        Message::Request { .. } | Message::Available { .. } | Message::Busy(_) | Message::Readout { .. } => list(0, 0),
        Message::Align { .. } | Message::Compare(_) | Message::Away { .. } => list(0, 0),
        Message::Standing { .. } | Message::Unit { .. } | Message::Resume { .. } => list(0, 0),
        Message::Slot { .. } | Message::Credit { .. } | Message::Taken { .. } | Message::Round { .. } => list(0, 0),
        Message::TimeAsked { .. } | Message::TimeTold { .. } | Message::BlockSize(_) => list(0, 0),
        Message::Piece(piece) => list(piece.bytes as usize, 1),
    }
}

fn encode_fragment<B>(fragment: Fragment<B>) -> (Head, Body<B>) {
    let head = Head {
        flag: fragment.status as u8,
        source: fragment.source.0.into(),
        length: fragment.length.into(),
        event: fragment.event.0.into(),
        checksum: fragment.checksum.into(),
        mark: Mark::to_bits(fragment.mark).into(),
        ..Head::new(MessageKind::Fragment)
    };
    (head, Body::Payload(fragment.payload))
}

fn encode_sighted<B>(sighted: &Sighted) -> (Head, Body<B>) {
    let (head, body) = encode_list(MessageKind::Sighted, &sighted.fragments, |sighting| MarkEntry {
        event: sighting.position.into(),
        mark: Mark::to_bits(sighting.mark).into(),
    });
    let flag = |set: bool, bit: u8| if set { bit } else { 0 };
    let head = Head {
        flag: flag(sighted.declared, DECLARED) | flag(sighted.last, LAST),
        source: u16::from(sighted.bits).into(),
        event: sighted.number.into(),
        checksum: sighted.segment.into(),
        second: sighted.after.0.into(),
        ..head
    };
    (head, body)
}

fn encode_events<B>(kind: MessageKind, events: &[EventId]) -> (Head, Body<B>) {
    encode_list(kind, events, |event| le::U64::new(event.0))
}

fn encode_list<T, E: IntoBytes + Immutable, B>(
    kind: MessageKind,
    list: &[T],
    entry: impl Fn(&T) -> E,
) -> (Head, Body<B>) {
    let mut bytes = Vec::with_capacity(size_of_val(list));
    list.iter().for_each(|item| bytes.extend_from_slice(entry(item).as_bytes()));
    (Head { length: (list.len() as u32).into(), ..Head::new(kind) }, Body::List(bytes))
}

/// Reads a message from its head and body.
///
/// # Errors
/// [`WireError`] if the head has no meaning or the body is not as long as the head says.
pub fn decode<B: AsRef<[u8]>>(head: &[u8; HEAD_BYTES], body: B) -> Result<Message<B>, WireError> {
    let head: Head = zerocopy::transmute!(*head);
    let bytes = body.as_ref();
    Ok(match head.kind {
        kind if kind == MessageKind::Fragment as u8 => return decode_fragment(&head, body),
        kind if kind == MessageKind::Request as u8 => Message::Request { slots: head.length.get() },
        kind if kind == MessageKind::Available as u8 => Message::Available {
            through: EventId(head.event.get()),
            claim: EventId(head.second.get()),
            last: flag(&head)?,
        },
        kind if kind == MessageKind::Sighted as u8 => Message::Sighted(decode_sighted(&head, bytes)?),
        kind if kind == MessageKind::Align as u8 => {
            Message::Align { segment: head.length.get(), first: flag(&head)?.then_some(head.event.get() as i64) }
        }
        kind if kind == MessageKind::Compare as u8 => Message::Compare(flag(&head)?),
        kind if kind == MessageKind::Marks as u8 => Message::Marks(decode_marks(&head, bytes)?),
        kind if kind == MessageKind::Busy as u8 => Message::Busy(flag(&head)?),
        kind if kind == MessageKind::Readout as u8 => Message::Readout { through: EventId(head.event.get()) },
        kind if kind == MessageKind::Done as u8 => Message::Done(decode_done(&head, bytes)?),
        kind if kind == MessageKind::Assign as u8 => {
            Message::Assign(decode_list(&head, bytes, |entry: &AssignedEntry| Assigned {
                event: EventId(entry.event.get()),
                builder: NodeId(entry.builder.get()),
            })?)
        }
        kind if kind == MessageKind::Grant as u8 => Message::Grant(decode_events(&head, bytes)?),
        kind if kind == MessageKind::Pull as u8 => Message::Pull(decode_events(&head, bytes)?),
        kind if kind == MessageKind::Clear as u8 => Message::Clear(decode_events(&head, bytes)?),
        kind if kind == MessageKind::Ask as u8 => {
            Message::Ask { number: head.checksum.get(), heard: head.mark.get(), events: decode_events(&head, bytes)? }
        }
        kind if kind == MessageKind::Answer as u8 => {
            Message::Answer { number: head.checksum.get(), pending: decode_events(&head, bytes)? }
        }
        kind if kind == MessageKind::Away as u8 => Message::Away { number: head.checksum.get() },
        kind if kind == MessageKind::Standing as u8 => {
            Message::Standing { number: head.checksum.get(), stands: flag(&head)? }
        }
        kind if kind == MessageKind::Unit as u8 => {
            Message::Unit { node: NodeId(head.source.get()), alive: flag(&head)? }
        }
        kind if kind == MessageKind::Piece as u8 => return decode_piece(&head, body),
        kind if kind == MessageKind::Slot as u8 => Message::Slot { empty: flag(&head)?, round: head.event.get() },
        kind if kind == MessageKind::Credit as u8 => Message::Credit { calm: flag(&head)? },
        kind if kind == MessageKind::Taken as u8 => Message::Taken { round: head.event.get(), empty: flag(&head)? },
        kind if kind == MessageKind::Round as u8 => Message::Round { number: head.event.get(), calm: flag(&head)? },
        kind if kind == MessageKind::TimeAsked as u8 => Message::TimeAsked { asked: Time(head.event.get()) },
        kind if kind == MessageKind::TimeTold as u8 => {
            Message::TimeTold { asked: Time(head.event.get()), manager: Time(head.second.get()) }
        }
        kind if kind == MessageKind::BlockSize as u8 => Message::BlockSize(BlockSize {
            from: EventId(head.event.get()),
            first: EventId(head.second.get()),
            events: head.length.get(),
        }),
        kind if kind == MessageKind::Resume as u8 => Message::Resume { first: EventId(head.event.get()) },
        kind => return Err(WireError::UnknownKind(kind)),
    })
}

fn decode_fragment<B: AsRef<[u8]>>(head: &Head, payload: B) -> Result<Message<B>, WireError> {
    let (length, actual) = (head.length.get(), payload.as_ref().len());
    if length as usize != actual {
        return Err(WireError::WrongLength { kind: head.kind, announced: length.into(), actual });
    }
    Ok(Message::Fragment(fragment_of(head, payload)?))
}

fn decode_piece<B: AsRef<[u8]>>(head: &Head, payload: B) -> Result<Message<B>, WireError> {
    let (length, actual) = (u64::from(head.length.get()), payload.as_ref().len());
    let offset = u32::try_from(head.second.get()).ok().filter(|&offset| u64::from(offset) + actual as u64 <= length);
    let offset = offset.ok_or(WireError::WrongLength { kind: head.kind, announced: length, actual })?;
    Ok(Message::Piece(Box::new(Piece { offset, bytes: actual as u32, of: fragment_of(head, payload)? })))
}

fn fragment_of<B>(head: &Head, payload: B) -> Result<Fragment<B>, WireError> {
    let status = match head.flag {
        0 => FragmentStatus::Good,
        1 => FragmentStatus::Corrupted,
        2 => FragmentStatus::Missing,
        3 => FragmentStatus::Oversized,
        4 => FragmentStatus::Mismatched,
        flag => return Err(WireError::BadFlag { kind: head.kind, flag }),
    };
    let (event, source) = (EventId(head.event.get()), SourceId(head.source.get()));
    let (length, checksum, mark) = (head.length.get(), head.checksum.get(), Mark::from_bits(head.mark.get()));
    Ok(Fragment { event, source, length, checksum, mark, status, payload })
}

fn decode_sighted(head: &Head, bytes: &[u8]) -> Result<Arc<Sighted>, WireError> {
    let bad = WireError::BadFlag { kind: head.kind, flag: head.flag };
    if head.flag > DECLARED | LAST {
        return Err(bad);
    }
    Ok(Arc::new(Sighted {
        segment: head.checksum.get(),
        declared: head.flag & DECLARED != 0,
        last: head.flag & LAST != 0,
        bits: u8::try_from(head.source.get()).map_err(|_| bad)?,
        after: EventId(head.second.get()),
        number: head.event.get(),
        fragments: decode_list(head, bytes, |entry: &MarkEntry| Sighting {
            position: entry.event.get(),
            mark: Mark::from_bits(entry.mark.get()),
        })?,
    }))
}

fn decode_marks(head: &Head, bytes: &[u8]) -> Result<Arc<[(EventId, Mark)]>, WireError> {
    let bad = WireError::BadFlag { kind: head.kind, flag: 0 };
    let entries = decode_list(head, bytes, |entry: &MarkEntry| *entry)?;
    let mark = |entry: &MarkEntry| Some((EventId(entry.event.get()), Mark::from_bits(entry.mark.get())?));
    entries.iter().map(mark).collect::<Option<_>>().ok_or(bad)
}

fn decode_done(head: &Head, bytes: &[u8]) -> Result<Arc<[Completion]>, WireError> {
    let entries = decode_list(head, bytes, |entry: &CompletionEntry| *entry)?;
    let completion = |entry: &CompletionEntry| {
        let ending = match entry.ending {
            0 => Ending::Incomplete,
            1 => Ending::Complete,
            2 => Ending::Rejected,
            flag => return Err(WireError::BadFlag { kind: head.kind, flag }),
        };
        Ok(Completion { event: EventId(entry.event.get()), ending })
    };
    entries.iter().map(completion).collect()
}

fn flag(head: &Head) -> Result<bool, WireError> {
    match head.flag {
        0 => Ok(false),
        1 => Ok(true),
        flag => Err(WireError::BadFlag { kind: head.kind, flag }),
    }
}

fn decode_events(head: &Head, bytes: &[u8]) -> Result<Arc<[EventId]>, WireError> {
    decode_list(head, bytes, |entry: &le::U64| EventId(entry.get()))
}

fn decode_list<E, T>(head: &Head, bytes: &[u8], item: impl Fn(&E) -> T) -> Result<Arc<[T]>, WireError>
where
    E: FromBytes + KnownLayout + Immutable,
{
    let announced = u64::from(head.length.get()) * size_of::<E>() as u64;
    let wrong = WireError::WrongLength { kind: head.kind, announced, actual: bytes.len() };
    if bytes.len() as u64 != announced {
        return Err(wrong);
    }
    <[E]>::ref_from_bytes(bytes).map(|entries| entries.iter().map(item).collect()).map_err(|_| wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::{collection::vec, prelude::*};

    fn roundtrip(message: &Message<Vec<u8>>) -> Message<Vec<u8>> {
        let mut decoded = None;
        encode(message.clone(), |head, body| {
            let body = match body {
                Body::Empty => Vec::new(),
                Body::Payload(bytes) | Body::List(bytes) => bytes,
            };
            decoded = Some(decode(&head, body).expect("what we encode we can decode"));
        });
        decoded.expect("one message")
    }

    fn mark() -> impl Strategy<Value = Option<Mark>> {
        any::<Option<u32>>().prop_map(|value| value.map(Mark::new))
    }

    fn sighted() -> impl Strategy<Value = Sighted> {
        let sighting = (any::<u64>(), mark()).prop_map(|(position, mark)| Sighting { position, mark });
        let head = (any::<u32>(), any::<bool>(), any::<bool>(), any::<u8>(), any::<u64>(), any::<u64>());
        (head, vec(sighting, 0..40)).prop_map(|((segment, declared, last, bits, after, number), fragments)| Sighted {
            segment,
            declared,
            last,
            bits,
            after: EventId(after),
            number,
            fragments: fragments.into(),
        })
    }

    fn any_message() -> impl Strategy<Value = Message<Vec<u8>>> {
        let event = || any::<u64>().prop_map(EventId);
        let events = || vec(event(), 0..40).prop_map(Arc::from);
        let assigned = (event(), any::<u16>()).prop_map(|(event, n)| Assigned { event, builder: NodeId(n) });
        let ending = prop_oneof![Just(Ending::Incomplete), Just(Ending::Complete), Just(Ending::Rejected)];
        let completion = (event(), ending).prop_map(|(event, ending)| Completion { event, ending });
        prop_oneof![
            any::<u32>().prop_map(|slots| Message::Request { slots }),
            vec(completion, 0..40).prop_map(|list| Message::Done(list.into())),
            (event(), event(), any::<bool>()).prop_map(|(through, claim, last)| Message::Available {
                through,
                claim,
                last
            }),
            sighted().prop_map(|sighted| Message::Sighted(Arc::new(sighted))),
            (any::<u32>(), any::<Option<i64>>()).prop_map(|(segment, first)| Message::Align { segment, first }),
            any::<bool>().prop_map(Message::Compare),
            vec((event(), any::<u32>().prop_map(Mark::new)), 0..40).prop_map(|list| Message::Marks(list.into())),
            any::<bool>().prop_map(Message::Busy),
            event().prop_map(|through| Message::Readout { through }),
            vec(assigned, 0..40).prop_map(|list| Message::Assign(list.into())),
            events().prop_map(Message::Grant),
            events().prop_map(Message::Pull),
            events().prop_map(Message::Clear),
            (any::<u32>(), any::<u32>(), events()).prop_map(|(number, heard, events)| Message::Ask {
                number,
                heard,
                events
            }),
            (any::<u32>(), events()).prop_map(|(number, pending)| Message::Answer { number, pending }),
            any::<u32>().prop_map(|number| Message::Away { number }),
            (any::<u32>(), any::<bool>()).prop_map(|(number, stands)| Message::Standing { number, stands }),
            event().prop_map(|first| Message::Resume { first }),
            (event(), event(), any::<u32>()).prop_map(|(from, first, events)| Message::BlockSize(BlockSize {
                from,
                first,
                events
            })),
            (any::<u16>(), any::<bool>()).prop_map(|(node, alive)| Message::Unit { node: NodeId(node), alive }),
            (event(), any::<u16>(), any::<u32>(), mark(), vec(any::<u8>(), 0..100)).prop_map(
                |(event, source, checksum, mark, payload)| {
                    let (source, length, status) = (SourceId(source), payload.len() as u32, FragmentStatus::Good);
                    Message::Fragment(Fragment { event, source, length, checksum, mark, status, payload })
                }
            ),
        ]
    }

    proptest! {
        #[test]
        fn every_message_survives_the_wire(message in any_message()) {
            prop_assert_eq!(roundtrip(&message), message);
        }

        #[test]
        fn any_bytes_are_read_or_refused(head in any::<[u8; HEAD_BYTES]>(), kind in 0_u8..16, body in vec(any::<u8>(), 0..100)) {
            let mut head = head;
            head[0] = kind;
            let _never_panics = decode(&head, body);
        }
    }
}
