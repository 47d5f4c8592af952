//! Slots of a mailbox: senders claim and publish them, the owner takes them.
//!
//! A slot begins with the header of [`evb_velo::mailbox`], written last and never 0, and the first bytes of the message. The rest
//! is the lane's: envelope and claim fill the cache line, and further bytes of the message have their own, so a short
//! message moves one line between the cores. The claim is the number of the sender and the round of the ring, so that a slot
//! whose sender died between claim and header can be passed over, and a full ring is seen at the slot itself.
//! `tests/mailbox` has the model check.

use crate::{bell, fetch::Span, layout as at, segment::Segment, sync::Ordering};
use evb_velo::{AddressMap, Endpoint, Header, mailbox};

/// Division of addresses: one node, as many threads as a header can name.
const MAP: AddressMap = match AddressMap::new(34, 34) {
    Ok(map) => map,
    Err(_) => panic!("a map"),
};

/// Bits of the sender in a claim; the rest is the round.
const SENDER_BITS: u32 = 16;

/// What a message is beside its bytes. The words of the lane: VELO gives them no meaning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// Length of the whole message in bytes.
    pub length: u64,
    /// A word for the receiver to choose by.
    pub tag: u64,
    /// A word that the sender gives along.
    pub data: u64,
    /// Bits for the user of the lane.
    pub flags: u16,
}

/// Where the bytes of a message are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Here: they were in the slot.
    Line([u8; at::LINE_BYTES]),
    /// In this block of the sender.
    Block(u16),
    /// In the memory of the sender, as its note says.
    Note(u16),
}

/// A message that has arrived. Its bytes are still where [`Body`] says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Incoming {
    /// The number of its sender among those that the device knows.
    pub sender: u16,
    /// What it is.
    pub envelope: Envelope,
    /// Where its bytes are.
    pub body: Body,
}

#[inline]
fn slot(position: u64) -> usize {
    at::SLOTS_AT + (position as usize % at::SLOTS) * at::SLOT_BYTES
}

#[inline]
fn rest(position: u64) -> usize {
    at::RESTS_AT + (position as usize % at::SLOTS) * at::REST_BYTES
}

impl Default for Body {
    fn default() -> Self {
        Self::Block(0)
    }
}

/// What is sent behind an envelope.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'a> {
    /// These bytes, no more than a line has.
    Line(&'a [Span]),
    /// The number of a block.
    Block(u16),
    /// The number of a note.
    Note(u16),
}

#[inline]
fn free(position: u64) -> u64 {
    (position / at::SLOTS as u64) << SENDER_BITS
}

/// The header of a message of this sender with this many bytes in its line.
pub(crate) fn header(sender: u16, bytes: usize) -> u64 {
    let (source, target) = (Endpoint { node: 0, thread: sender.into() }, Endpoint { node: 0, thread: 0 });
    let length = (bytes as u64).max(1);
    Header { source, target, length, offset: 0, data: length }.encode(MAP).expect("a line at most")
}

/// Puts a message into the mailbox of a segment; false if it is full.
#[inline]
pub(crate) fn push(segment: &Segment, sender: u16, header: u64, envelope: &Envelope, content: Content<'_>) -> bool {
    let Some(position) = claim(segment, sender) else { return false };
    let place = slot(position);
    let (kind, index) = match content {
        Content::Line(spans) => {
            let length = envelope.length as usize;
            segment.fill(place + mailbox::MESSAGE_AT as usize, length.min(at::FIRST_BYTES), spans, 0);
            if length > at::FIRST_BYTES {
                segment.fill(rest(position), length - at::FIRST_BYTES, spans, at::FIRST_BYTES);
            }
            (0_u16, 0)
        }
        Content::Block(index) => (1, index),
        Content::Note(index) => (2, index),
    };
    let first = u64::from(kind) | u64::from(index) << 16 | u64::from(envelope.flags) << 32;
    for (word, value) in [first, envelope.length, envelope.tag, envelope.data].into_iter().enumerate() {
        segment.word(place + at::ENVELOPE_AT + 8 * word).store(value, Ordering::Relaxed);
    }
    // In one order with the bell: either this sender sees that the owner sleeps, or the owner sees the header.
    segment.word(place + mailbox::HEADER_AT as usize).swap(header, Ordering::SeqCst);
    bell::ring(segment);
    true
}

/// The position of a slot that now belongs to this sender. The claims decide; the tail only says where to begin to look. A
/// sender that was interrupted between both may set it back, so a thread that finds a claimed slot there moves it on.
#[inline]
fn claim(segment: &Segment, sender: u16) -> Option<u64> {
    let tail = segment.word(at::TAIL_AT);
    loop {
        let position = tail.load(Ordering::Acquire);
        let free = free(position);
        let claim = segment.word(slot(position) + at::CLAIM_AT);
        let mine = free | (u64::from(sender) + 1);
        match claim.compare_exchange(free, mine, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                tail.store(position + 1, Ordering::Release);
                return Some(position);
            }
            Err(found) if found < free => return None,
            Err(_) => {
                let _ = tail.compare_exchange(position, position + 1, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }
}

/// Returns true if a message is at a position.
#[inline]
pub(crate) fn is_there(segment: &Segment, position: u64) -> bool {
    segment.word(slot(position) + mailbox::HEADER_AT as usize).load(Ordering::Acquire) != 0
}

/// Reads the message that is at a position. The slot stays taken until [`release`].
#[inline]
pub(crate) fn read(segment: &Segment, position: u64, incoming: &mut Incoming) {
    let place = slot(position);
    let word = segment.word(place + mailbox::HEADER_AT as usize).load(Ordering::Relaxed);
    let [first, length, tag, data] =
        [0, 1, 2, 3].map(|word| segment.word(place + at::ENVELOPE_AT + 8 * word).load(Ordering::Relaxed));
    incoming.sender = Header::split(word, MAP).source.thread as u16;
    incoming.envelope = Envelope { length, tag, data, flags: (first >> 32) as u16 };
    incoming.body = match first as u16 {
        1 => Body::Block((first >> 16) as u16),
        2 => Body::Note((first >> 16) as u16),
        _ => {
            let mut line = [0; at::LINE_BYTES];
            let (first_bytes, others) = line.split_at_mut(at::FIRST_BYTES);
            segment.read(place + mailbox::MESSAGE_AT as usize, first_bytes);
            if length as usize > at::FIRST_BYTES {
                segment.read(rest(position), others);
            }
            Body::Line(line)
        }
    };
}

/// Gives a slot back to the senders: first the header is 0, then the claim is that of the next round.
#[inline]
pub(crate) fn release(segment: &Segment, position: u64) {
    let place = slot(position);
    segment.word(place + mailbox::HEADER_AT as usize).store(0, Ordering::Relaxed);
    segment.word(place + at::CLAIM_AT).store(free(position + at::SLOTS as u64), Ordering::Release);
}

/// Returns true if nothing will ever be at a position: a sender has claimed it, has published nothing, and is dead.
pub(crate) fn is_abandoned(segment: &Segment, position: u64, is_dead: impl Fn(u16) -> bool) -> bool {
    // The sender may have published its message and ended since the first look: only what is not there after its death never
    // will be.
    claimant(segment, position).is_some_and(is_dead) && claimant(segment, position).is_some()
}

/// The sender that has claimed this position without publishing anything.
fn claimant(segment: &Segment, position: u64) -> Option<u16> {
    let place = slot(position);
    let (claim, free) = (segment.word(place + at::CLAIM_AT).load(Ordering::Acquire), free(position));
    let empty = segment.word(place + mailbox::HEADER_AT as usize).load(Ordering::Acquire) == 0;
    (empty && claim > free && claim >> SENDER_BITS == free >> SENDER_BITS).then(|| (claim - free - 1) as u16)
}
