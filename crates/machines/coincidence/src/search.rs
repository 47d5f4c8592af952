//! The search for the offset of a clock.
//!
//! Two intervals in a row between hits of a random process are as good as a name. The search looks up such patterns of
//! the new source among those of the reference. Each place where they agree is a vote for a difference of the clocks.
//! Losses and noise destroy some patterns, and chance adds votes elsewhere. The true place has many votes, and others
//! have few. Patterns that are everywhere tell nothing, so they have no vote, and a regular pulser finds no place.

use crate::tracking::Line;
use alloc::{collections::VecDeque, vec::Vec};
use evb_core::{Span, Time};

/// Most hits of the reference that are remembered.
const MOST_REMEMBERED: usize = 1 << 17;
/// Most hits of the new source that are looked up, and the fewest.
const MOST_LOOKED_UP: usize = 1024;
const FEWEST_LOOKED_UP: u32 = 32;
/// Fewest votes for a place.
const FEWEST_VOTES: usize = 8;
/// Most places at which a pattern may be. One that is in more places tells nothing.
const MOST_PLACES: usize = 512;
/// Most patterns with the same first interval. One with more tells nothing, and would take long to look up.
const MOST_COMPARED: usize = 1 << 14;
/// Largest difference of the rates of two clocks: oscillators are good to 25 parts in a million.
const MOST_DRIFT: f64 = 5e-5;
/// Ticks by which an interval may differ between two sources: both ends of both may be off by one.
const JITTER_TICKS: i64 = 5;
/// Time after which the search is repeated at the latest, if a few hits have come.
const REPEATED: Span = Span::from_secs(1);

/// Largest memory of the history and of one attempt in bytes.
pub(crate) const SEARCH_BYTES: u64 = {
    let of_hit = 2 * size_of::<i64>() + size_of::<i64>() + size_of::<Pattern>();
    let votes = MOST_LOOKED_UP * (MOST_PLACES + 1) * size_of::<Vote>();
    (MOST_REMEMBERED * of_hit + 2 * votes) as u64
};

/// Times of the last hits of the reference, in the order of their arrival.
#[derive(Default)]
pub(crate) struct History {
    times: VecDeque<i64>,
    /// Number of hits so far.
    pushed: u64,
}

impl History {
    pub(crate) fn push(&mut self, time: i64) {
        if self.times.len() == MOST_REMEMBERED {
            self.times.pop_front();
        }
        self.times.push_back(time);
        self.pushed += 1;
    }

    pub(crate) fn clear(&mut self) {
        self.times.clear();
    }

    fn patterns(&self) -> Vec<Pattern> {
        let mut patterns = patterns(self.times.iter().copied());
        patterns.sort_unstable_by_key(|pattern| pattern.first);
        patterns
    }
}

/// Two intervals in a row.
struct Pattern {
    first: i64,
    second: i64,
    /// The time of the hit between them.
    at: i64,
}

fn patterns(times: impl Iterator<Item = i64>) -> Vec<Pattern> {
    let mut times: Vec<_> = times.collect();
    times.sort_unstable();
    let pattern = |hits: &[i64]| Pattern { first: hits[1] - hits[0], second: hits[2] - hits[1], at: hits[1] };
    times.windows(3).map(pattern).collect()
}

/// The place of a clock as the search has found it.
pub(crate) struct Found {
    pub(crate) line: Line,
    pub(crate) votes: usize,
}

/// One vote: the time of the clock, and the common time minus that.
type Vote = (i64, i64);

/// The search for the offset of one source.
pub(crate) struct Search {
    recent: VecDeque<i64>,
    /// Hits since the last attempt.
    fresh: u32,
    /// Hits from one attempt to the next.
    interval: u32,
    repeat_at: Time,
    /// Hits of the reference at the last attempt.
    looked_at: u64,
    /// Most patterns of the last attempt were everywhere.
    pub(crate) is_regular: bool,
    /// Hits of the reference and of the source at the last attempt with all of them.
    tried: Option<(u64, u64)>,
}

impl Search {
    pub(crate) const fn new() -> Self {
        Self {
            recent: VecDeque::new(),
            fresh: 0,
            interval: FEWEST_LOOKED_UP,
            repeat_at: Time::ZERO,
            looked_at: 0,
            is_regular: false,
            tried: None,
        }
    }

    pub(crate) fn push(&mut self, local: i64) {
        if self.recent.len() == MOST_LOOKED_UP {
            self.recent.pop_front();
        }
        self.recent.push_back(local);
        self.fresh = self.fresh.saturating_add(1);
    }

    /// Returns true if enough hits have come, of this source or of the reference, for another attempt. Attempts that fail
    /// are made less and less often.
    pub(crate) fn is_due(&self, now: Time, history: &History) -> bool {
        let fresh = history.pushed - self.looked_at;
        let has_fresh = self.fresh >= FEWEST_LOOKED_UP || fresh >= FEWEST_LOOKED_UP.into();
        let has_many = self.fresh >= self.interval || fresh >= self.looked_at.max(FEWEST_LOOKED_UP.into());
        self.recent.len() >= FEWEST_LOOKED_UP as usize && (has_many || has_fresh && now >= self.repeat_at)
    }

    /// Looks for the place of the clock. `tick` is the longest tick of both sources, in picoseconds.
    pub(crate) fn attempt(&mut self, now: Time, history: &History, tick: i64) -> Option<Found> {
        self.fresh = 0;
        self.interval = self.interval.saturating_mul(2);
        self.repeat_at = now + REPEATED;
        self.looked_at = history.pushed;
        self.look_up(patterns(self.recent.iter().copied()), &history.patterns(), tick)
    }

    /// Returns true if every hit that there is has been looked up: `came` is the number of those of the source.
    pub(crate) fn has_tried(&self, history: &History, came: u64) -> bool {
        self.tried == Some((history.pushed, came))
    }

    /// Looks for the place of the clock by the latest hits and by those that have waited longest, `oldest`. The two need
    /// not be far behind the hits of the reference, nor far ahead.
    pub(crate) fn attempt_with_all(
        &mut self,
        history: &History,
        (oldest, came): (impl Iterator<Item = i64>, u64),
        tick: i64,
    ) -> Option<Found> {
        self.tried = Some((history.pushed, came));
        let known = history.patterns();
        let latest = patterns(self.recent.iter().copied());
        let oldest = patterns(oldest.take(MOST_LOOKED_UP));
        self.look_up(oldest, &known, tick).or_else(|| self.look_up(latest, &known, tick))
    }

    fn look_up(&mut self, own: Vec<Pattern>, known: &[Pattern], tick: i64) -> Option<Found> {
        let jitter = tick.saturating_mul(JITTER_TICKS);
        let (mut votes, mut everywhere) = (Vec::new(), 0);
        for pattern in &own {
            everywhere += usize::from(!vote(pattern, known, jitter, &mut votes));
        }
        self.is_regular = everywhere * 2 > own.len();
        let span = own.last()?.at - own.first()?.at;
        elect(votes, jitter + (span as f64 * MOST_DRIFT) as i64)
    }
}

/// Votes for all places of a pattern; returns false if it is everywhere.
fn vote(own: &Pattern, known: &[Pattern], jitter: i64, votes: &mut Vec<Vote>) -> bool {
    let tolerance = |interval: i64| jitter + (interval as f64 * MOST_DRIFT) as i64;
    let (of_first, of_second) = (tolerance(own.first), tolerance(own.second));
    let begin = known.partition_point(|pattern| pattern.first < own.first - of_first);
    let near = known[begin..].iter().take_while(|pattern| pattern.first <= own.first + of_first);
    if near.clone().count() > MOST_COMPARED {
        return false;
    }
    let before = votes.len();
    votes.extend(
        near.filter(|pattern| (pattern.second - own.second).abs() <= of_second)
            .map(|pattern| (own.at, pattern.at - own.at))
            .take(MOST_PLACES + 1),
    );
    let tells = votes.len() - before <= MOST_PLACES;
    if !tells {
        votes.truncate(before);
    }
    tells
}

/// The place with the most votes, if it has enough of them and every other has less than half as many.
fn elect(mut votes: Vec<Vote>, width: i64) -> Option<Found> {
    votes.sort_unstable_by_key(|(_, shift)| *shift);
    let (best, count) = most(&votes, width)?;
    let place = votes[best].1;
    let others = votes.split_at(votes.partition_point(|(_, shift)| *shift < place - width)).0;
    let above = votes.partition_point(|(_, shift)| *shift <= place + 2 * width);
    let second = [others, &votes[above..]].into_iter().filter_map(|part| Some(most(part, width)?.1)).max();
    let is_clear = count >= FEWEST_VOTES && second.unwrap_or(0) * 2 < count;
    is_clear.then(|| Found { line: fit(&votes[best..best + count]), votes: count })
}

/// The first and the number of the most votes within a width.
fn most(votes: &[Vote], width: i64) -> Option<(usize, usize)> {
    let mut end = 0;
    let counted = votes.iter().enumerate().map(|(begin, (_, shift))| {
        end += votes[end..].iter().take_while(|(_, other)| *other <= shift.saturating_add(width)).count();
        (begin, end - begin)
    });
    counted.max_by_key(|(begin, count)| (*count, core::cmp::Reverse(*begin)))
}

/// The line through votes, by least squares.
fn fit(votes: &[Vote]) -> Line {
    let count = votes.len() as f64;
    let (anchor, shift) = votes[0];
    let offsets = || votes.iter().map(|(at, to)| ((at - anchor) as f64, (to - shift) as f64));
    let (at, to) = offsets().fold((0.0, 0.0), |(at, to), (x, y)| (at + x / count, to + y / count));
    let (mut square, mut product) = (0.0, 0.0);
    for (x, y) in offsets() {
        square += (x - at) * (x - at);
        product += (x - at) * (y - to);
    }
    let rate = if square > 0.0 { (product / square).clamp(-2.0 * MOST_DRIFT, 2.0 * MOST_DRIFT) } else { 0.0 };
    Line { anchor: anchor + at as i64, shift: shift + to as i64, rate }
}
