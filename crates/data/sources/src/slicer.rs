//! Slices of hits that come by themselves: a machine between the frames of a live source and its readout unit.
//!
//! Hits of one source go into slices of the time. A slice is handed out when no hit can come for it any more: the newest
//! hit is ahead of it by the sort depth, or the source has been silent for its latency. So every slice is handed out, in
//! order, empty or not, as one fragment with the number of the slice. What follows needs to know nothing of hits: numbers
//! are aligned, events are built and filtered as those of any front end with a counter.
//!
//! A source has one slicer for all its connections, in the thread that takes its fragments: it needs no lock, and what it
//! does not take stays in the queue of frames, which stops the readers. It is told the time of the host, and has no I/O.
//!
//! A wrong time is worse than a missing hit: one far ahead would end all slices before it. So a leap is *doubted*, until
//! hits of other frames confirm it ([`doubt`]).

mod doubt;

use crate::{
    hits::HIT_TIME_BYTES,
    slicing::{Slicing, Windows},
};
use bytes::{BufMut as _, Bytes, BytesMut};
use doubt::{Doubt, Doubted};
use evb_core::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Slices by which a hit may be ahead of the newest one and be believed at once.
const REACH: i64 = 1024;
/// Most slices by which confirmed hits may be ahead: each of those between becomes an event.
const MOST_LEAP: i64 = 1 << 24;
/// Most bytes of hits in slices that are not complete. Above it, the oldest slice is handed out early.
pub(crate) const MOST_OPEN: usize = 64 << 20;
/// Memory of a hit in an open slice beside its bytes.
const HIT_BYTES: usize = size_of::<SlicedHit>();
/// Picoseconds of the host's time in one of the drift of two clocks: 50 parts in a million.
const DRIFT: i64 = 20_000;
/// Bytes of the length of a hit, where hits are whole frames.
const LENGTH_BYTES: usize = 4;

/// How a live source is cut into slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveSlicing {
    /// The slices. Without a beginning they are counted from the zero of the clock, and a source begins with the slice of
    /// its first hit.
    pub slicing: Slicing,
    /// What is added to the clock of the source to give the time of all.
    pub offset: Span,
    /// Time by which a hit may come behind later ones.
    pub sort_depth: Span,
    /// Time by which the delivery of a hit may be slower than the fastest.
    pub latency: Span,
}

/// A hit with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicedHit {
    /// Its time in nanoseconds.
    pub time: i64,
    /// Its bytes as they came.
    pub bytes: Bytes,
}

/// Why a hit is in no slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HitFault {
    /// Its slice was over.
    Late,
    /// It is from before the first slice.
    Early,
    /// Its time fits neither those before nor those after it.
    OutOfSequence,
    /// Its time is not known: it has no marker.
    OutOfStep,
    /// Its slice is above the largest fragment.
    Oversized,
    /// Its frame is damaged, or too short for it.
    Damaged,
    /// The run ended before its slice was complete.
    Unplaced,
}

/// What a slicer hands out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlicerItem {
    /// The next slice.
    Slice {
        /// Its number, from 1.
        number: u64,
        /// Its hits in the order of their times, each with its time before it.
        bytes: Bytes,
        /// All hits are in it; the others were above the largest fragment.
        is_whole: bool,
    },
    /// A hit that is in no slice.
    Apart {
        /// The number of the slice that it would be in, 0 if there is none.
        number: u64,
        /// The hit, with its time before it if that is known.
        bytes: Bytes,
        /// Why.
        reason: HitFault,
    },
}

/// Puts the hits of one source into slices.
#[derive(Debug)]
pub struct Slicer {
    windows: Windows,
    depth: i64,
    /// Longest time by which a hit may come late.
    late: i64,
    most: usize,
    /// Hits are whole frames, which do not all have one length.
    has_lengths: bool,
    doubt: Doubt,
    /// The newest time that is believed.
    newest: Option<i64>,
    /// Nothing comes from before this time.
    watermark: i64,
    /// Hits of slices that were not handed out, and the bytes of those that are not complete.
    open: BTreeMap<u64, Slice>,
    open_bytes: usize,
    /// The next slice to be handed out, and the first one that is not complete.
    next: u64,
    due: u64,
    /// The shortest delivery in nanoseconds, time of the host minus time of the hit, and when it was seen.
    shortest: Option<(i64, Time)>,
    apart: VecDeque<SlicerItem>,
    /// No more hits come, and no more slices.
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Slice {
    hits: Vec<SlicedHit>,
    bytes: usize,
}

impl Slicer {
    /// A slicer for slices of at most `max_fragment` bytes. `has_lengths` says that hits are whole frames.
    pub fn new(slicing: &LiveSlicing, max_fragment: u32, has_lengths: bool) -> Self {
        let windows = Windows::new(&slicing.slicing);
        let depth = nanoseconds(slicing.sort_depth);
        // Known slices begin with the first one. Otherwise the hits tell where.
        let begin = slicing.slicing.from_ns.map(|_| windows.from);
        Self {
            doubt: Doubt::new(windows.length.saturating_mul(REACH).max(depth)),
            depth,
            late: depth.max(nanoseconds(slicing.latency)),
            most: max_fragment as usize,
            has_lengths,
            newest: begin,
            watermark: i64::MIN,
            open: BTreeMap::new(),
            open_bytes: 0,
            next: 1,
            due: 1,
            shortest: None,
            apart: VecDeque::new(),
            has_ended: false,
            windows,
        }
    }

    /// The time in nanoseconds that the source has come to, as far as is known: a narrow clock is near it.
    pub fn reference(&self) -> Option<i64> {
        Some(self.newest?.max(self.watermark))
    }

    /// Begins the hits of another frame.
    pub const fn begin_frame(&mut self) {
        self.doubt.begin_frame();
    }

    /// Takes the next hit, which arrived at this time of the host.
    pub fn push(&mut self, hit: SlicedHit, arrived: Time) {
        let Some(reference) = self.reference() else { return self.take_in_doubt(self.doubt.hit(hit, arrived)) };
        let ahead = hit.time.saturating_sub(reference);
        if ahead > self.windows.length.saturating_mul(MOST_LEAP) {
            return self.set_apart(hit, HitFault::OutOfSequence);
        }
        if ahead > self.doubt.reach() {
            return self.take_in_doubt(self.doubt.hit(hit, arrived));
        }
        if !self.is_late(hit.time) {
            // What goes on as before refutes a leap.
            self.refute();
        }
        self.accept(hit, arrived);
    }

    /// Sets a piece of a frame apart that has no time.
    pub fn push_unknown(&mut self, bytes: Bytes, reason: HitFault) {
        self.apart.push_back(SlicerItem::Apart { number: 0, bytes, reason });
    }

    /// Nothing of the source waits in this host now: what was sent before has come, but for what is slower than the
    /// fastest delivery by the latency.
    pub fn be_silent(&mut self, now: Time) {
        if self.has_ended {
            return;
        }
        let waits_since = self.doubt.since();
        if self.shortest.is_none() && waits_since.is_some_and(|since| nanoseconds(now.since(since)) >= self.late) {
            self.believe();
        }
        if let Some(shortest) = self.shortest_at(now) {
            self.raise(host(now).saturating_sub(shortest).saturating_sub(self.late));
        }
        // A leap is none if the time has passed.
        let reached = self.reference().map(|reference| reference.saturating_add(self.doubt.reach()));
        if reached.is_some_and(|reached| self.doubt.newest().is_some_and(|newest| newest <= reached)) {
            self.believe();
        }
    }

    /// Returns true if the time of the host may complete slices.
    pub fn waits(&self) -> bool {
        !self.has_ended && (self.shortest.is_some() || self.doubt.since().is_some())
    }

    /// No more hits come: all slices are complete.
    pub fn finish(&mut self) {
        self.has_ended = true;
        if self.shortest.is_none() {
            self.believe();
        }
        self.refute();
        if let Some((last, _)) = self.open.last_key_value() {
            self.due = self.due.max(last + 1);
        }
        self.open_bytes = 0;
    }

    /// The run is over: sets the hits of all slices apart that were not handed out.
    pub fn abandon(&mut self) {
        self.has_ended = true;
        for doubted in self.doubt.take() {
            self.set_apart(doubted.hit, HitFault::Unplaced);
        }
        for (number, slice) in std::mem::take(&mut self.open) {
            // A hit of an overlap is in two slices, and perhaps the first of them was handed out.
            let windows = self.windows;
            let is_first = |hit: &SlicedHit| windows.first(hit.time) == number;
            slice.hits.into_iter().filter(is_first).for_each(|hit| self.set_apart(hit, HitFault::Unplaced));
        }
        self.open_bytes = 0;
        self.next = self.next.max(self.due);
    }

    /// The next complete slice, or hit that is in none. A driver takes all before it pushes the next frame.
    pub fn pop(&mut self) -> Option<SlicerItem> {
        if let Some(apart) = self.apart.pop_front() {
            return Some(apart);
        }
        if self.next >= self.due {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let slice = self.open.remove(&number).unwrap_or_default();
        Some(self.hand_out(number, slice))
    }

    fn hand_out(&mut self, number: u64, mut slice: Slice) -> SlicerItem {
        slice.hits.sort_by_key(|hit| hit.time);
        let mut bytes = BytesMut::with_capacity(slice.bytes.min(self.most));
        let mut is_whole = true;
        for hit in slice.hits {
            if bytes.len() + self.length(&hit) <= self.most {
                self.write(&hit, &mut bytes);
            } else {
                is_whole = false;
                let mut record = BytesMut::new();
                self.write(&hit, &mut record);
                let (bytes, reason) = (record.freeze(), HitFault::Oversized);
                self.apart.push_back(SlicerItem::Apart { number, bytes, reason });
            }
        }
        SlicerItem::Slice { number, bytes: bytes.freeze(), is_whole }
    }

    // ---- hits

    fn take_in_doubt(&mut self, doubted: Doubted) {
        self.doubt_it(doubted);
        // At the beginning there is nothing else to believe.
        if self.doubt.is_confirmed() || self.shortest.is_none() && self.doubt.is_full() {
            self.believe();
        }
    }

    fn doubt_it(&mut self, doubted: Doubted) {
        for refuted in self.doubt.push(doubted) {
            self.set_apart(refuted.hit, HitFault::OutOfSequence);
        }
    }

    /// Believes the doubted hits.
    fn believe(&mut self) {
        let Some(begin) = self.doubt.begin() else { return };
        match self.reference() {
            Some(reference) => self.doubt.extend_reach(begin.saturating_sub(reference)),
            None => self.begin(begin),
        }
        for doubted in self.doubt.take() {
            self.take_believed(doubted, begin);
        }
    }

    /// Takes a hit whose frame was confirmed, with the first time that is believed. Its own time may still be wrong.
    fn take_believed(&mut self, doubted: Doubted, begin: i64) {
        let (time, reach) = (doubted.hit.time, self.doubt.reach());
        let reference = self.reference().unwrap_or(time);
        if time < begin.saturating_sub(reach) {
            self.set_apart(doubted.hit, HitFault::OutOfSequence);
        } else if time.saturating_sub(reference) > reach {
            self.doubt_it(doubted);
        } else {
            self.accept(doubted.hit, doubted.arrived);
        }
    }

    /// Begins with the slice of this time; hits before it may still come.
    fn begin(&mut self, time: i64) {
        self.newest = Some(time);
        self.watermark = time.saturating_sub(self.depth);
        self.due = self.windows.first(self.watermark);
        self.next = self.due;
    }

    fn refute(&mut self) {
        for doubted in self.doubt.take() {
            self.set_apart(doubted.hit, HitFault::OutOfSequence);
        }
    }

    fn accept(&mut self, hit: SlicedHit, arrived: Time) {
        let delivery = host(arrived).saturating_sub(hit.time);
        if self.shortest_at(arrived).is_none_or(|shortest| delivery <= shortest) {
            self.shortest = Some((delivery, arrived));
        }
        let time = hit.time;
        if time < self.windows.from {
            self.set_apart(hit, HitFault::Early);
        } else if self.is_late(time) {
            self.set_apart(hit, HitFault::Late);
        } else {
            self.place(hit);
        }
        self.newest = self.newest.max(Some(time));
        self.raise(time.saturating_sub(self.depth));
    }

    /// A slice of the hit is complete.
    fn is_late(&self, time: i64) -> bool {
        self.windows.first(time) < self.due
    }

    fn place(&mut self, hit: SlicedHit) {
        let bytes = self.length(&hit);
        for number in self.windows.first(hit.time)..=self.windows.last(hit.time) {
            let slice = self.open.entry(number).or_default();
            slice.hits.push(hit.clone());
            slice.bytes += bytes;
            self.open_bytes += bytes + HIT_BYTES;
        }
        while self.open_bytes > MOST_OPEN
            && let Some((oldest, _)) = self.open.range(self.due..).next()
        {
            self.raise(self.windows.end(*oldest));
        }
    }

    /// Nothing comes from before this time.
    fn raise(&mut self, watermark: i64) {
        if watermark <= self.watermark {
            return;
        }
        self.watermark = watermark;
        let due = self.windows.first(watermark).max(self.due);
        for (_, slice) in self.open.range(self.due..due) {
            self.open_bytes -= slice.bytes + slice.hits.len() * HIT_BYTES;
        }
        self.due = due;
    }

    fn set_apart(&mut self, hit: SlicedHit, reason: HitFault) {
        let mut bytes = BytesMut::with_capacity(self.length(&hit));
        self.write(&hit, &mut bytes);
        let number = if hit.time < self.windows.from { 0 } else { self.windows.first(hit.time) };
        self.apart.push_back(SlicerItem::Apart { number, bytes: bytes.freeze(), reason });
    }

    /// Bytes of a hit in a slice.
    fn length(&self, hit: &SlicedHit) -> usize {
        HIT_TIME_BYTES as usize + if self.has_lengths { LENGTH_BYTES } else { 0 } + hit.bytes.len()
    }

    fn write(&self, hit: &SlicedHit, to: &mut BytesMut) {
        to.put_i64_le(hit.time);
        if self.has_lengths {
            to.put_u32_le(hit.bytes.len() as u32);
        }
        to.extend_from_slice(&hit.bytes);
    }

    /// The shortest delivery. What was seen long ago may have changed by the drift of the clocks.
    fn shortest_at(&self, now: Time) -> Option<i64> {
        let (shortest, seen) = self.shortest?;
        Some(shortest.saturating_add(nanoseconds(now.since(seen)) / DRIFT))
    }
}

fn nanoseconds(span: Span) -> i64 {
    i64::try_from(span.0 / 1000).unwrap_or(i64::MAX)
}

/// The time of the host in nanoseconds.
fn host(now: Time) -> i64 {
    i64::try_from(now.0 / 1000).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
