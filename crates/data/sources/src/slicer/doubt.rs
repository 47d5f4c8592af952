//! Hits whose times are not believed yet: the first ones of a source, and those that leap far ahead.
//!
//! A corrupt frame may have many hits, all with one wrong time, so only hits of other frames confirm a leap. What goes on
//! as before refutes it. A source of rare hits leaps again and again: a leap that was confirmed is believed the next time.

use super::SlicedHit;
use evb_core::Time;

/// Frames that confirm a leap, or a beginning.
const WITNESSES: usize = 3;
/// Most hits that are doubted at a time.
const MOST_DOUBTED: usize = 1 << 16;
/// How much wider a gap is than all that follows, if what is before it is wrong.
const WIDER: i64 = 16;

/// A hit that is doubted.
#[derive(Clone, Debug)]
pub(super) struct Doubted {
    pub(super) hit: SlicedHit,
    /// The number of its frame, and its arrival at the host.
    frame: u64,
    pub(super) arrived: Time,
}

/// The doubted hits of a source.
#[derive(Debug)]
pub(super) struct Doubt {
    /// Nanoseconds by which a hit may be ahead and is believed at once.
    reach: i64,
    frame: u64,
    hits: Vec<Doubted>,
    /// Number of different frames among them.
    frames: usize,
}

impl Doubt {
    pub(super) const fn new(reach: i64) -> Self {
        Self { reach, frame: 0, hits: Vec::new(), frames: 0 }
    }

    pub(super) const fn reach(&self) -> i64 {
        self.reach
    }

    /// A leap of this length was confirmed.
    pub(super) fn extend_reach(&mut self, leap: i64) {
        self.reach = self.reach.max(leap);
    }

    pub(super) const fn begin_frame(&mut self) {
        self.frame += 1;
    }

    /// The arrival of the first one.
    pub(super) fn since(&self) -> Option<Time> {
        self.hits.first().map(|doubted| doubted.arrived)
    }

    /// The largest of their times.
    pub(super) fn newest(&self) -> Option<i64> {
        self.hits.iter().map(|doubted| doubted.hit.time).max()
    }

    /// A hit of the present frame.
    pub(super) const fn hit(&self, hit: SlicedHit, arrived: Time) -> Doubted {
        Doubted { hit, frame: self.frame, arrived }
    }

    /// Takes a hit. Returns those that it refutes: they are ahead of it, too; or the hit, if there is no room.
    pub(super) fn push(&mut self, doubted: Doubted) -> Vec<Doubted> {
        let time = doubted.hit.time;
        let goes_back = self.hits.last().is_some_and(|last| time < last.hit.time.saturating_sub(self.reach));
        let mut refuted = if goes_back { self.take() } else { Vec::new() };
        if self.is_full() {
            refuted.push(doubted);
            return refuted;
        }
        self.frames += usize::from(self.hits.last().is_none_or(|last| last.frame != doubted.frame));
        self.hits.push(doubted);
        refuted
    }

    pub(super) const fn is_confirmed(&self) -> bool {
        self.frames >= WITNESSES
    }

    pub(super) const fn is_full(&self) -> bool {
        self.hits.len() >= MOST_DOUBTED
    }

    /// The first of their times that can be believed: what is before a gap that is much wider than all behind it is wrong.
    pub(super) fn begin(&self) -> Option<i64> {
        let mut times: Vec<_> = self.hits.iter().map(|doubted| doubted.hit.time).collect();
        times.sort_unstable();
        let (first, last) = (*times.first()?, *times.last()?);
        let gaps = (1..times.len()).map(|behind| (times[behind].saturating_sub(times[behind - 1]), behind));
        let is_wrong = |&(gap, behind): &(i64, usize)| {
            let others = last.saturating_sub(times[behind]);
            gap > self.reach && behind + 1 < times.len() && gap / WIDER > others
        };
        Some(gaps.max_by_key(|(gap, _)| *gap).filter(is_wrong).map_or(first, |(_, behind)| times[behind]))
    }

    /// Takes all of them.
    pub(super) fn take(&mut self) -> Vec<Doubted> {
        self.frames = 0;
        std::mem::take(&mut self.hits)
    }
}
