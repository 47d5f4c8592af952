//! Blocks and notes in the segment of a sender, for messages that do not fit a line.
//!
//! A block holds a copy of the message until the receiver has it. A note names the memory of the message: the receiver fetches
//! it and says so in the note. A receiver that may not read the memory of the sender asks for one block after another.

use crate::{fetch::Span, layout as at, segment::Segment};
use std::sync::atomic::{AtomicU32, Ordering};

/// States of a note.
pub(crate) mod state {
    /// Unused.
    pub(crate) const FREE: u32 = 0;
    /// Waits for its receiver.
    pub(crate) const OPEN: u32 = 1;
    /// The receiver asks for the next block.
    pub(crate) const ASKED: u32 = 2;
    /// The next block is in `block`.
    pub(crate) const READY: u32 = 3;
    /// The receiver has everything.
    pub(crate) const DONE: u32 = 4;
}

/// A note: number, memory, and how far it has been sent in blocks.
#[derive(Clone, Debug)]
pub struct Note {
    /// Its number in the segment of the sender.
    pub index: u16,
    /// Memory of the message.
    pub spans: Vec<Span>,
    pub(crate) sent: usize,
    pub(crate) peer: usize,
}

pub(crate) fn note(index: u16) -> usize {
    at::NOTES_AT + (index as usize % at::NOTES) * at::NOTE_BYTES
}

pub(crate) fn block(index: u16) -> usize {
    at::BLOCKS_AT + (index as usize % at::BLOCKS) * at::BLOCK_BYTES
}

/// Blocks that are used before all others. They stay in the caches of a sender and a receiver that keep pace.
const HOT: usize = 4;

/// Blocks and notes of the own segment that can be used again.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Blocks that were free at the last look. Receivers free others meanwhile, which costs this core a cache line to see.
    blocks: Vec<u16>,
    notes: Vec<u16>,
    /// The peer that each block was last used for.
    users: [usize; at::BLOCKS],
}

impl Outbox {
    pub(crate) fn new() -> Self {
        Self { blocks: Vec::new(), notes: (0..at::NOTES as u16).rev().collect(), users: [usize::MAX; at::BLOCKS] }
    }

    /// A free block, which is now in use for a peer.
    pub(crate) fn block(&mut self, own: &Segment, peer: usize) -> Option<u16> {
        if self.blocks.is_empty() {
            self.look(own);
        }
        let index = self.blocks.pop()?;
        state_of_block(own, index).store(1, Ordering::Relaxed);
        self.users[usize::from(index)] = peer;
        Some(index)
    }

    /// Looks for blocks that receivers have freed.
    fn look(&mut self, own: &Segment) {
        for some in [0..HOT, HOT..at::BLOCKS] {
            let is_free = |index: &u16| state_of_block(own, *index).load(Ordering::Acquire) == 0;
            self.blocks.extend(some.rev().map(|index| index as u16).filter(is_free));
            if !self.blocks.is_empty() {
                return;
            }
        }
    }

    /// Frees the blocks of a peer that has ended.
    pub(crate) fn free_blocks(&self, own: &Segment, peer: usize) {
        let of_peer = self.users.iter().enumerate().filter(|(_, user)| **user == peer);
        of_peer.for_each(|(index, _)| free_block(own, index as u16));
    }

    /// Returns true if no block and no note is in use.
    pub(crate) fn is_idle(&self, own: &Segment) -> bool {
        let is_free = |index| state_of_block(own, index).load(Ordering::Acquire) == 0;
        self.notes.len() == at::NOTES && (0..at::BLOCKS as u16).all(is_free)
    }

    /// A note about this memory.
    pub(crate) fn note(&mut self, own: &Segment, spans: &[Span]) -> Option<u16> {
        assert!(spans.len() <= at::NOTE_SPANS, "{} pieces of memory", spans.len());
        let index = self.notes.pop()?;
        let place = note(index);
        own.half(place + 4).store(spans.len() as u32, Ordering::Relaxed);
        for (number, span) in spans.iter().enumerate() {
            own.word(place + 16 + 16 * number).store(span.address as u64, Ordering::Relaxed);
            own.word(place + 24 + 16 * number).store(span.length as u64, Ordering::Relaxed);
        }
        own.half(place).store(state::OPEN, Ordering::Release);
        Some(index)
    }

    pub(crate) fn free_note(&mut self, own: &Segment, index: u16) {
        own.half(note(index)).store(state::FREE, Ordering::Relaxed);
        self.notes.push(index);
    }
}

/// Frees a block of a sender.
pub(crate) fn free_block(segment: &Segment, index: u16) {
    state_of_block(segment, index).store(0, Ordering::Release);
}

/// The word that is 0 if a block is free.
fn state_of_block(segment: &Segment, index: u16) -> &AtomicU32 {
    segment.half(at::BLOCK_STATES_AT + 4 * (index as usize % at::BLOCKS))
}

/// The memory that a note of a sender names.
pub(crate) fn spans(segment: &Segment, index: u16) -> Vec<Span> {
    let place = note(index);
    let count = segment.half(place + 4).load(Ordering::Relaxed) as usize;
    let word = |at: usize| segment.word(at).load(Ordering::Relaxed) as usize;
    let span = |number| Span { address: word(place + 16 + 16 * number), length: word(place + 24 + 16 * number) };
    (0..count.min(at::NOTE_SPANS)).map(span).collect()
}

/// Puts the next block of a note whose receiver asked for it. True when the receiver has everything.
pub(crate) fn serve(own: &Segment, outbox: &mut Outbox, note_of: &mut Note) -> bool {
    let place = note(note_of.index);
    match own.half(place).load(Ordering::Acquire) {
        state::DONE => return true,
        state::ASKED => {
            let Some(index) = outbox.block(own, note_of.peer) else { return false };
            let length = own.fill(block(index), at::BLOCK_BYTES, &note_of.spans, note_of.sent);
            note_of.sent += length;
            own.half(place + 8).store(index.into(), Ordering::Relaxed);
            own.half(place + 12).store(length as u32, Ordering::Relaxed);
            own.half(place).store(state::READY, Ordering::Release);
        }
        _ => {}
    }
    false
}

/// Moves the next block of a note from the segment of its sender, once there is one, into memory of the program behind `done`
/// bytes; the length of the block. An empty one ends the message.
pub(crate) fn next(segment: &Segment, index: u16, spans: &[Span], done: usize) -> Option<usize> {
    let place = note(index);
    if segment.half(place).load(Ordering::Acquire) != state::READY {
        return None;
    }
    let from = segment.half(place + 8).load(Ordering::Relaxed) as u16;
    let length = (segment.half(place + 12).load(Ordering::Relaxed) as usize).min(at::BLOCK_BYTES);
    segment.drain(block(from), length, spans, done);
    free_block(segment, from);
    Some(length)
}

/// Tells a sender what the receiver of a note wants: the next block, or nothing more.
pub(crate) fn answer(segment: &Segment, index: u16, state: u32) {
    segment.half(note(index)).store(state, Ordering::Release);
}
