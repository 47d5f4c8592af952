//! One source: its hits that wait, its frontier, and its place in the common time.

use crate::outcome::{Outcome, OutcomeCounts, Sink, Synchrony};
use crate::search::{Found, Search};
use crate::settings::{ClockOffset, ClockSettings, picoseconds};
use crate::tracking::{Line, Tracking};
use crate::trust::Trust;
use alloc::{collections::VecDeque, vec::Vec};
use evb_core::{EventId, Time};

/// Longest time of a clock since its first hit, in picoseconds: 53 days. Then it begins again.
const LONGEST: i64 = i64::MAX / 2;

/// Time behind the latest hit that no disorder explains, in picoseconds beside twice the sort depth.
const FAR: i64 = 10_000_000_000;

/// A hit that waits for its outcome.
#[derive(Clone, Copy)]
pub(crate) struct Hit {
    /// Picoseconds since the first hit of its source.
    pub(crate) local: i64,
    pub(crate) serial: u64,
}

/// The state of a source.
pub(crate) struct SourceState {
    index: usize,
    settings: ClockSettings,
    /// The first clock value.
    start: Option<u64>,
    /// Hits by time.
    pub(crate) queue: VecDeque<Hit>,
    /// The latest hit since the place of the clock was last lost.
    newest: Option<i64>,
    /// What the source itself has said about hits to come.
    frontier: Option<i64>,
    /// The sort depth; shorter while the source is full.
    depth: i64,
    pub(crate) tracking: Option<Tracking>,
    /// The offset is to be found, and the drift to be followed.
    pub(crate) follows: bool,
    pub(crate) search: Search,
    pub(crate) is_full: bool,
    pub(crate) has_ended: bool,
    /// Since when the place of the clock is unknown.
    pub(crate) since: Option<Time>,
    /// A hit has got its outcome in this turn.
    pub(crate) progressed: bool,
    /// Since when a full source gets no outcome, and how far the others were then.
    pub(crate) stuck: Option<(Time, i64)>,
    /// Hits in a row that were far behind the latest.
    pub(crate) behind: u32,
    /// The common time that was settled when the place was found.
    pub(crate) joined: i64,
    /// Serial numbers of hits from before a leap that no clock reaches.
    pub(crate) abandoned: Vec<u64>,
    pub(crate) trust: Trust,
    pub(crate) counts: OutcomeCounts,
}

impl SourceState {
    pub(crate) fn new(index: usize, settings: ClockSettings) -> Self {
        Self {
            index,
            start: None,
            queue: VecDeque::new(),
            newest: None,
            frontier: None,
            depth: picoseconds(settings.sort_depth),
            tracking: None,
            follows: settings.offset == ClockOffset::Find,
            search: Search::new(),
            is_full: false,
            has_ended: false,
            since: None,
            progressed: false,
            stuck: None,
            behind: 0,
            joined: i64::MIN,
            abandoned: Vec::new(),
            trust: Trust::new(),
            counts: OutcomeCounts::default(),
            settings,
        }
    }

    pub(crate) const fn is_needed(&self) -> bool {
        self.settings.needed
    }

    /// No hit comes before others are settled, or none comes at all.
    pub(crate) const fn is_done(&self) -> bool {
        self.is_full || self.has_ended
    }

    /// The source has ended, and all its hits have outcomes.
    pub(crate) fn is_over(&self) -> bool {
        self.has_ended && self.queue.is_empty()
    }

    pub(crate) fn synchrony(&self) -> Synchrony {
        match (self.tracking, self.start) {
            (Some(_), _) => Synchrony::Known,
            (None, None) => Synchrony::Unheard,
            (None, Some(_)) if self.search.is_regular => Synchrony::Regular,
            (None, Some(_)) => Synchrony::Sought,
        }
    }

    /// Length of a tick in picoseconds, rounded up.
    pub(crate) const fn tick(&self) -> i64 {
        self.settings.tick_fs.div_ceil(1000) as i64
    }

    pub(crate) const fn configured_depth(&self) -> i64 {
        picoseconds(self.settings.sort_depth)
    }

    /// Picoseconds of a clock value since the first one.
    #[inline]
    pub(crate) fn local(&self, ticks: u64) -> i64 {
        let (passed, tick) = (ticks.wrapping_sub(self.start.unwrap_or(ticks)) as i64, self.settings.tick_fs);
        if tick.is_multiple_of(1000) {
            return passed.saturating_mul((tick / 1000) as i64);
        }
        let exact = i128::from(passed) * i128::from(tick) / 1000;
        exact.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// Returns true if a clock value is so far from the first one that the source must begin again there.
    #[inline]
    pub(crate) fn leaps_to(&self, ticks: u64) -> bool {
        !(-LONGEST..LONGEST).contains(&self.local(ticks))
    }

    /// Begins at a clock value. What waits has no place any more.
    pub(crate) fn begin_at(&mut self, ticks: u64) {
        self.start = Some(ticks);
        self.abandoned.extend(self.queue.drain(..).map(|hit| hit.serial));
    }

    /// Gives the hits from before a leap their outcome.
    pub(crate) fn settle_abandoned(&mut self, sink: &mut impl Sink) {
        for serial in self.abandoned.drain(..) {
            self.counts.note(Outcome::NotSynchronised);
            self.progressed = true;
            sink.outcome(self.index, serial, Outcome::NotSynchronised);
        }
    }

    pub(crate) const fn has_begun(&self) -> bool {
        self.start.is_some()
    }

    /// The time of the first hit with the known offset, in picoseconds since the clock's zero.
    pub(crate) fn start_time(&self) -> i128 {
        let zero = i128::from(self.start.unwrap_or(0)) * i128::from(self.settings.tick_fs) / 1000;
        zero + self.settings.offset.picoseconds()
    }

    /// Adds a hit. Nearly all come in the order of their times.
    pub(crate) fn insert(&mut self, hit: Hit) {
        self.counts.came += 1;
        self.trust.note_arrival();
        let far = self.configured_depth().saturating_mul(2).saturating_add(FAR);
        let is_behind = self.newest.is_some_and(|newest| hit.local < newest.saturating_sub(far));
        self.behind = if is_behind { self.behind + 1 } else { 0 };
        self.newest = self.newest.max(Some(hit.local));
        if self.queue.back().is_none_or(|last| last.local <= hit.local) {
            return self.queue.push_back(hit);
        }
        let behind = self.queue.partition_point(|other| other.local <= hit.local);
        self.queue.insert(behind, hit);
    }

    /// No hit before this clock value will come.
    pub(crate) fn set_frontier(&mut self, ticks: u64) {
        if self.start.is_some() {
            self.frontier = self.frontier.max(Some(self.local(ticks)));
        }
    }

    /// The common time before which no hit comes, if the place of the clock is known.
    pub(crate) fn horizon(&self) -> Option<i64> {
        let by_hits = self.newest.map(|newest| newest.saturating_sub(self.depth));
        Some(self.tracking?.line.time(by_hits.max(self.frontier)?))
    }

    /// The common time of the latest hit.
    pub(crate) fn latest(&self) -> Option<i64> {
        Some(self.tracking?.line.time(self.newest?))
    }

    /// The common time of the first hit that waits, if the place of the clock is known.
    #[inline]
    pub(crate) fn front(&self) -> Option<i64> {
        self.time_at(0)
    }

    /// The common time of a hit that waits.
    #[inline]
    pub(crate) fn time_at(&self, position: usize) -> Option<i64> {
        Some(self.tracking.as_ref()?.line.time(self.queue.get(position)?.local))
    }

    /// Number of hits at the front that are not behind this common time.
    #[inline]
    pub(crate) fn count_through(&self, last: i64) -> usize {
        let mut count = 0;
        while self.time_at(count).is_some_and(|time| time <= last) {
            count += 1;
        }
        count
    }

    /// Gives the first hit that waits its outcome, and returns it.
    #[inline]
    pub(crate) fn settle(&mut self, outcome: Outcome, sink: &mut impl Sink) -> Option<Hit> {
        let hit = self.queue.pop_front()?;
        self.progressed = true;
        self.counts.note(outcome);
        sink.outcome(self.index, hit.serial, outcome);
        if let Outcome::Event(_) = outcome {
            self.trust.note_match();
        }
        Some(hit)
    }

    /// The outcome of a hit that matches an event. If many hits of the reference had no match where there should have been
    /// some, the clock may have leapt, and a single match is chance. Only several in a row are trusted.
    #[inline]
    pub(crate) fn outcome_of_match(&mut self, event: EventId) -> Outcome {
        if self.follows && !self.trust.believes() { Outcome::Ambiguous } else { Outcome::Event(event) }
    }

    /// Gives the first hits the same outcome.
    pub(crate) fn settle_many(&mut self, count: usize, outcome: Outcome, sink: &mut impl Sink) {
        for _ in 0..count {
            self.settle(outcome, sink);
        }
    }

    /// Gives all hits before a common time the same outcome.
    pub(crate) fn settle_before(&mut self, time: i64, outcome: Outcome, sink: &mut impl Sink) {
        while self.front().is_some_and(|front| front < time) {
            self.settle(outcome, sink);
        }
    }

    /// Joins the others at the place that was found; `passed` is the common time that is settled.
    pub(crate) fn join(&mut self, found: &Found, passed: i64) {
        self.place(found.line, found.votes);
        self.counts.found += 1;
        self.joined = passed;
    }

    /// Learns the place of the clock.
    pub(crate) fn place(&mut self, line: Line, hits: usize) {
        self.tracking = Some(Tracking::new(line, hits));
        (self.since, self.behind, self.trust) = (None, 0, Trust::new());
    }

    /// Loses the place of the clock. What waits is looked up first when it is sought again.
    pub(crate) fn lose_place(&mut self, now: Time) {
        self.counts.lost += u64::from(self.tracking.is_some());
        (self.tracking, self.follows, self.since, self.stuck) = (None, true, Some(now), None);
        self.behind = 0;
        self.frontier = None;
        self.newest = self.queue.back().map(|hit| hit.local);
        self.search = Search::new();
        self.queue.iter().for_each(|hit| self.search.push(hit.local));
    }

    /// The buffer of the source is full, or has room again.
    pub(crate) fn set_full(&mut self, is_full: bool) {
        self.is_full = is_full;
        if !is_full {
            self.depth = self.configured_depth();
            self.stuck = None;
        }
    }

    /// Shortens the sort depth to the half, and at last so far that the window of the latest hit closes. Returns false if
    /// it is as short as that.
    pub(crate) fn shorten(&mut self, window: i64) -> bool {
        let shortest = window.saturating_mul(-2) - 1;
        if self.depth <= shortest {
            return false;
        }
        self.counts.shortened += u64::from(self.depth == self.configured_depth());
        self.depth = if self.depth > 0 { self.depth / 2 } else { shortest };
        true
    }
}
