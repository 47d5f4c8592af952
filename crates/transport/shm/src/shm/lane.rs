//! A lane: the ring of records from one sender to one receiver, in words that both processes map.
//!
//! A ring with many writers would need a word that all of them change. Such a word is a hidden lock: a process that is
//! killed between two instructions leaves it taken. The price of a lane for each pair is memory, and a receiver that
//! polls many words: hot lanes each time, cold ones less often.
//!
//! # Why no message is torn or lost
//! A record is a header word and its payload. The sender writes the payload, then stores the header with release; the
//! receiver loads the header with acquire, so it sees the payload, too. The word of the next header is 0 before a
//! record is published: the receiver finds 0 there, never the rest of an earlier lap. After it has published, the sender sets
//! some words ahead of its position to 0, which also brings their cache lines in before they are needed. It does not clear
//! the rest of a long record, which no header is read from before the next lap.
//!
//! Records are published in batches: all headers of a batch are stored at once except the first, which is stored last,
//! with release. So a polling receiver takes one cache line from the sender, and not each line while it is written.
//!
//! The receiver stores the position up to which it has read (the credit) with release once per quarter of the ring. The
//! sender loads it with acquire when it seems to be out of room. It writes only before the credit plus one lap. A
//! sender that dies between any two stores leaves either no header at the position of the receiver, or whole records.
//!
//! A record does not cross the end of the ring: a pad goes before it. One record takes at most 3/8 of the ring, so that
//! there is room for it and its pad even if the receiver has not published the last part of a quarter.
//!
//! Nothing that the other side writes can cause harm: an impossible header is [`BrokenLane`], and an impossible credit is
//! ignored. `tests/lane.rs` has the model check.

use super::record::{Record, RecordKind, WORD_BYTES};
use crate::sync::{AtomicU64, Ordering};

/// Words before the ring, on their own cache lines (two, because of the adjacent-line prefetcher). The first is the
/// sender's [`bell`](super::bell) while it waits for room.
pub(crate) const CONTROL_WORDS: usize = 16;
/// Words of a cache line.
const LINE_WORDS: u64 = 8;
/// Number of words after the line of its position that a sender clears when it has published.
const AHEAD_WORDS: u64 = 2 * LINE_WORDS;
/// Number of words that a receiver prefetches in a burst.
const LOOK_AHEAD_WORDS: u64 = 8 * LINE_WORDS;
/// Words after which a batch is published without a call.
const BATCH_WORDS: u64 = 16 * LINE_WORDS;
/// Number of parts of the ring that the receiver frees one by one.
const CREDITS: u64 = 4;

/// A header that no sender of this protocol writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BrokenLane(pub(crate) u64);

/// Longest payload of a record in a ring of `ring_words` words, in bytes.
pub(crate) const fn longest(ring_words: usize) -> usize {
    (ring_words * 3 / 8 - 1) * WORD_BYTES
}

/// First position of a lane. Each sender begins on another line of a page, so that the lanes of an idle receiver do not
/// all compete for the same set of its cache.
pub(crate) const fn first_position(sender: u16, ring_words: usize) -> u64 {
    (sender as u64 * LINE_WORDS) % ring_words as u64
}

#[derive(Debug)]
struct Ring<W> {
    words: W,
    size: u64,
}

impl<W: AsRef<[AtomicU64]>> Ring<W> {
    fn new(words: W) -> Self {
        let size = words.as_ref().len() - CONTROL_WORDS;
        assert!(size.is_power_of_two() && size >= 2 * LINE_WORDS as usize, "a ring of {size} words");
        Self { words, size: size as u64 }
    }

    /// Words from a position to the end of the ring.
    #[inline]
    fn until_end(&self, position: u64) -> u64 {
        self.size - (position & (self.size - 1))
    }

    /// Words that follow each other in the ring.
    #[inline]
    fn span(&self, position: u64, count: u64) -> &[AtomicU64] {
        let start = CONTROL_WORDS + (position & (self.size - 1)) as usize;
        &self.words.as_ref()[start..start + count as usize]
    }
}

/// The sending side of a lane.
#[derive(Debug)]
pub(crate) struct Producer<W> {
    ring: Ring<W>,
    position: u64,
    /// End of the words from `position` that are 0.
    zeroed: u64,
    /// End of the words that may be written.
    limit: u64,
    /// The first record of the batch: its position, and its header, which is not stored yet.
    held: Option<(u64, u64)>,
}

impl<W: AsRef<[AtomicU64]>> Producer<W> {
    /// The sending side of an empty lane, all words of which are 0.
    pub(crate) fn new(words: W, first: u64) -> Self {
        let ring = Ring::new(words);
        let limit = first + ring.size;
        Self { ring, position: first, zeroed: limit, limit, held: None }
    }

    /// The word on which this side sleeps for room.
    pub(crate) fn bell(&self) -> &AtomicU64 {
        &self.ring.words.as_ref()[0]
    }

    /// All words of the ring, for tests that write invalid words.
    #[cfg(test)]
    pub(crate) fn all_words(&self) -> &[AtomicU64] {
        self.ring.span(0, self.ring.size)
    }

    /// Writes a record of `head` (a multiple of 8 bytes) and `body`, if there is room for it. It is published by
    /// [`publish`](Producer::publish), or when its batch is long enough.
    #[inline]
    pub(crate) fn push(&mut self, kind: RecordKind, head: &[u8], body: &[u8], credit: &AtomicU64) -> bool {
        let record = Record { kind, length: head.len() + body.len() };
        let words = record.words();
        if !self.has_room(record.length, credit) {
            return false;
        }
        let [header, payload @ ..] = self.ring.span(self.position, words) else { return false };
        write(payload, head);
        write(&payload[head.len() / WORD_BYTES..], body);
        let first = match self.held {
            Some((first, _)) => {
                header.store(record.encode(), Ordering::Relaxed);
                first
            }
            None => {
                self.held = Some((self.position, record.encode()));
                self.position
            }
        };
        self.pass(words);
        if self.position - first >= BATCH_WORDS {
            self.publish();
        }
        true
    }

    /// Publishes all written records: the header of the first one is stored last.
    #[inline]
    pub(crate) fn publish(&mut self) {
        if let Some((position, word)) = self.held.take() {
            self.ring.span(position, 1)[0].store(word, Ordering::Release);
            // Stores leave a core in their order: before that of the header, these would keep the message back until their
            // lines are here.
            self.zero_until((self.position | (LINE_WORDS - 1)) + 1 + AHEAD_WORDS);
        }
    }

    /// Returns true if a record of this length can be written now. A pad before it is written already. If false, all
    /// written records are published, since only the receiver can make room.
    #[inline]
    pub(crate) fn has_room(&mut self, length: usize, credit: &AtomicU64) -> bool {
        let words = Record { kind: RecordKind::Whole, length }.words();
        let left = self.ring.until_end(self.position);
        let room = (words <= left || self.pad(left, credit)) && self.is_free(words, credit);
        if !room {
            self.publish();
        }
        room
    }

    #[cold]
    fn pad(&mut self, words: u64, credit: &AtomicU64) -> bool {
        let room = self.is_free(words, credit);
        if room {
            let position = self.position;
            self.pass(words);
            let pad = Record { kind: RecordKind::Pad, length: 1 };
            self.ring.span(position, 1)[0].store(pad.encode(), Ordering::Release);
        }
        room
    }

    /// Returns true if `words` words and one after them may be written.
    #[inline]
    fn is_free(&mut self, words: u64, credit: &AtomicU64) -> bool {
        let end = self.position + words + 1;
        if end > self.limit {
            self.read_credit(credit);
        }
        end <= self.limit
    }

    /// Goes over a record, and sets the word of the next header to 0. The words of the record need not be 0: none of them
    /// will be read as a header before the next lap.
    #[inline]
    fn pass(&mut self, words: u64) {
        self.position += words;
        self.zeroed = self.zeroed.max(self.position);
        self.zero_until(self.position + 1);
    }

    #[cold]
    fn read_credit(&mut self, credit: &AtomicU64) {
        let limit = credit.load(Ordering::Acquire).wrapping_add(self.ring.size);
        if limit > self.limit && limit <= self.position + self.ring.size {
            self.limit = limit;
        }
    }

    #[inline]
    fn zero_until(&mut self, end: u64) {
        let end = end.min(self.limit);
        while self.zeroed < end {
            let count = (end - self.zeroed).min(self.ring.until_end(self.zeroed));
            self.ring.span(self.zeroed, count).iter().for_each(|word| word.store(0, Ordering::Relaxed));
            self.zeroed += count;
        }
    }
}

/// The receiving side of a lane.
#[derive(Debug)]
pub(crate) struct Consumer<W> {
    ring: Ring<W>,
    position: u64,
    /// The credit that the sender knows.
    credit: u64,
}

impl<W: AsRef<[AtomicU64]>> Consumer<W> {
    /// The receiver's side of an empty lane.
    pub(crate) fn new(words: W, first: u64) -> Self {
        Self { ring: Ring::new(words), position: first, credit: first }
    }

    /// Returns true if the next word is a header, valid or not.
    #[inline]
    pub(crate) fn has_next(&self) -> bool {
        self.ring.span(self.position, 1)[0].load(Ordering::Acquire) != 0
    }

    /// Words read since the lane began.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Words of the ring.
    pub(crate) fn size(&self) -> u64 {
        self.ring.size
    }

    /// The next record, which stays until [`advance`](Consumer::advance).
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<Record>, BrokenLane> {
        let word = self.ring.span(self.position, 1)[0].load(Ordering::Acquire);
        if word == 0 {
            return Ok(None);
        }
        let record = Record::decode(word).ok_or(BrokenLane(word))?;
        if record.kind == RecordKind::Pad {
            return self.skip(word);
        }
        let fits = record.length <= longest(self.ring.size as usize);
        if fits && record.words() <= self.ring.until_end(self.position) {
            Ok(Some(record))
        } else {
            Err(BrokenLane(word))
        }
    }

    /// Prefetches a line that will be read soon; returns true if the sender had written it. It is for records that come
    /// one after another: the next header's position is known only from this record, so each line would cause a wait of
    /// its own. If the sender had not written the line, the prefetch has cost it a line that it needs next.
    #[inline]
    pub(crate) fn look_ahead(&self) -> bool {
        self.ring.span(self.position + LOOK_AHEAD_WORDS, 1)[0].load(Ordering::Relaxed) != 0
    }

    /// Copies payload from `offset` (a multiple of 8 bytes) on; `offset` and `out` lie within the record.
    #[inline]
    pub(crate) fn read(&self, record: Record, offset: usize, out: &mut [u8]) {
        let payload = &self.ring.span(self.position, record.words())[1 + offset / WORD_BYTES..];
        let (words, tail) = out.as_chunks_mut::<WORD_BYTES>();
        for (bytes, word) in words.iter_mut().zip(payload) {
            *bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        if !tail.is_empty() {
            tail.copy_from_slice(&payload[words.len()].load(Ordering::Relaxed).to_ne_bytes()[..tail.len()]);
        }
    }

    /// Frees a record. Returns true if the sender was given new room.
    #[inline]
    pub(crate) fn advance(&mut self, record: Record, credit: &AtomicU64) -> bool {
        self.position += record.words();
        let due = self.position - self.credit >= self.ring.size / CREDITS;
        if due {
            self.credit = self.position;
            credit.store(self.position, Ordering::Release);
        }
        due
    }

    /// Skips a pad. A pad is never at the start of the ring, so a second one would be.
    #[cold]
    fn skip(&mut self, word: u64) -> Result<Option<Record>, BrokenLane> {
        let left = self.ring.until_end(self.position);
        if left == self.ring.size {
            return Err(BrokenLane(word));
        }
        self.position += left;
        self.next()
    }
}

/// Writes bytes as words; the last word may be padded with zeros.
#[inline]
fn write(words: &[AtomicU64], bytes: &[u8]) {
    let (whole, tail) = bytes.as_chunks::<WORD_BYTES>();
    for (word, bytes) in words.iter().zip(whole) {
        word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
    }
    if !tail.is_empty() {
        let mut last = [0; WORD_BYTES];
        last[..tail.len()].copy_from_slice(tail);
        words[whole.len()].store(u64::from_ne_bytes(last), Ordering::Relaxed);
    }
}
