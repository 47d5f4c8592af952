//! The segments that were sent and are not acknowledged: which of them have arrived ahead of their turn, and which count
//! as lost. A segment is lost if one that was sent after it has arrived, and a round trip has passed since it was sent, with
//! some time for packets that overtake each other (RACK: RFC 8985, 6).

use crate::wire::Segment;
use evb_core::{Span, Time};
use std::{collections::VecDeque, ops::Range};

/// How far packets overtake each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reordering {
    /// Never: each gap is a loss.
    Never,
    /// By a quarter of the shortest round trip, once that was seen (RFC 8985, 6.2).
    Seldom,
    /// By this time: they take many paths.
    Within(Span),
}

/// Segments that have arrived behind a missing one before that counts as lost at once (RFC 8985, 6.2: DupThresh).
const MANY_AHEAD: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// On its way, as far as the sender knows.
    Sent,
    /// Arrived ahead of its turn.
    Arrived,
    /// Lost, and not sent again yet.
    Lost,
}

/// The segments without an acknowledgement, in their order. A segment has a number, counted from the first one ever sent.
#[derive(Debug)]
pub(crate) struct Outstanding {
    segments: VecDeque<(Segment, State)>,
    /// The number of the first segment in the list.
    base: u64,
    /// Bytes of all segments in the list.
    bytes: u64,
    /// Bytes of those that are not on their way.
    not_sent: u64,
    /// Number of those that have arrived ahead of their turn.
    arrived: u64,
    /// Number of segments that are lost, and their bytes.
    lost: u64,
    lost_bytes: u64,
    /// No segment before this number is lost.
    first_lost: u64,
    /// Segments before this number have arrived, were called lost, or were sent again.
    judged: u64,
    /// Segments that were sent again, and when, in this order.
    again: VecDeque<(u64, Time)>,
    reordering: Reordering,
    arrivals: Arrivals,
}

/// What the segments that have arrived say about those that have not.
#[derive(Debug, Default)]
struct Arrivals {
    /// When the newest of them was sent, and its end.
    newest: Option<(Time, u64)>,
    /// The round trip of that one.
    round_trip: Span,
    shortest_round_trip: Option<Span>,
    /// The highest end of a segment.
    highest: u64,
    /// A segment has overtaken another one.
    has_reordered: bool,
}

/// The segments that were found to be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// There are new ones.
    pub(crate) are_new: bool,
    /// The time at which the next one may be found.
    pub(crate) next_at: Option<Time>,
}

impl Outstanding {
    pub(crate) fn new(reordering: Reordering) -> Self {
        Self {
            segments: VecDeque::new(),
            base: 0,
            bytes: 0,
            not_sent: 0,
            arrived: 0,
            lost: 0,
            lost_bytes: 0,
            first_lost: u64::MAX,
            judged: 0,
            again: VecDeque::new(),
            reordering,
            arrivals: Arrivals::default(),
        }
    }

    /// All bytes without an acknowledgement.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that are on their way, as far as the sender knows.
    pub(crate) const fn under_way(&self) -> u64 {
        self.bytes - self.not_sent
    }

    /// Bytes that are lost and were not sent again.
    pub(crate) const fn lost_bytes(&self) -> u64 {
        self.lost_bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// True if segments have arrived ahead of their turn.
    pub(crate) const fn has_gaps(&self) -> bool {
        self.arrived > 0
    }

    /// Adds a segment that is sent for the first time.
    pub(crate) fn push(&mut self, segment: Segment) {
        self.bytes += u64::from(segment.bytes);
        self.segments.push_back((segment, State::Sent));
    }

    /// All bytes before `expected` have arrived; returns how many of these were not known to have arrived.
    pub(crate) fn acknowledge(&mut self, now: Time, expected: u64) -> u64 {
        let mut new = 0;
        while let Some(&(segment, state)) = self.segments.front()
            && segment.end() <= expected
        {
            self.segments.pop_front();
            self.bytes -= u64::from(segment.bytes);
            self.forget_state(segment, state);
            if state != State::Arrived {
                self.arrivals.note(now, segment);
                new += u64::from(segment.bytes);
            }
            self.base += 1;
        }
        self.judged = self.judged.max(self.base);
        new
    }

    fn forget_state(&mut self, segment: Segment, state: State) {
        match state {
            State::Sent => return,
            State::Arrived => self.arrived -= 1,
            State::Lost => {
                self.lost -= 1;
                self.lost_bytes -= u64::from(segment.bytes);
            }
        }
        self.not_sent -= u64::from(segment.bytes);
    }

    /// Segments at the end of this block have arrived ahead of their turn; returns their bytes. The receiver told earlier
    /// ones of the block before, unless all its answers since were lost.
    pub(crate) fn note_arrived(&mut self, now: Time, block: &Range<u64>) -> u64 {
        let end = self.segments.partition_point(|(segment, _)| segment.end() <= block.end);
        let is_new = |&(segment, state): &(Segment, State)| segment.first >= block.start && state != State::Arrived;
        let count = self.segments.range(..end).rev().take_while(|sent| is_new(sent)).count();
        let mut new = 0;
        for place in end - count..end {
            let (segment, state) = self.segments[place];
            self.forget_state(segment, state);
            self.segments[place].1 = State::Arrived;
            self.arrived += 1;
            self.not_sent += u64::from(segment.bytes);
            self.arrivals.note(now, segment);
            new += u64::from(segment.bytes);
        }
        new
    }

    /// Finds segments that are lost.
    pub(crate) fn find_losses(&mut self, now: Time, is_recovering: bool) -> Losses {
        let lost_before = self.lost;
        let patience = self.patience(is_recovering);
        let (first, again) = (self.judge_first(now, patience), self.judge_again(now, patience));
        Losses { are_new: self.lost > lost_before, next_at: first.into_iter().chain(again).min() }
    }

    /// The time for packets that overtake each other (RFC 8985, 6.2, step 4).
    fn patience(&self, is_recovering: bool) -> Span {
        let is_sure = !self.arrivals.has_reordered && (is_recovering || self.arrived >= MANY_AHEAD);
        match self.reordering {
            Reordering::Never => Span::ZERO,
            Reordering::Seldom if is_sure => Span::ZERO,
            Reordering::Seldom => Span(self.arrivals.shortest_round_trip.unwrap_or_default().0 / 4),
            Reordering::Within(time) => time,
        }
    }

    /// Looks at the segments that were sent once, which is in the order of their numbers. Returns the time at which the
    /// next one counts as lost.
    fn judge_first(&mut self, now: Time, patience: Span) -> Option<Time> {
        while let Some(&(segment, state)) = self.segments.get((self.judged - self.base) as usize) {
            if state == State::Sent && !segment.is_again {
                let at = self.arrivals.lost_at(segment, patience)?;
                if at > now {
                    return Some(at);
                }
                self.lose((self.judged - self.base) as usize);
            }
            self.judged += 1;
        }
        None
    }

    /// Looks at the segments that were sent again, in the order in which they were.
    fn judge_again(&mut self, now: Time, patience: Span) -> Option<Time> {
        while let Some(&(number, sent_at)) = self.again.front() {
            let place = number.checked_sub(self.base).map(|place| place as usize);
            let segment = place.and_then(|place| self.segments.get(place));
            let is_on_its_way =
                |(segment, state): &&(Segment, State)| *state == State::Sent && segment.sent_at == sent_at;
            if let (Some(place), Some(&(segment, _))) = (place, segment.filter(is_on_its_way)) {
                let at = self.arrivals.lost_at(segment, patience)?;
                if at > now {
                    return Some(at);
                }
                self.lose(place);
            }
            self.again.pop_front();
        }
        None
    }

    fn lose(&mut self, place: usize) {
        let (segment, state) = &mut self.segments[place];
        *state = State::Lost;
        self.not_sent += u64::from(segment.bytes);
        self.lost += 1;
        self.lost_bytes += u64::from(segment.bytes);
        self.first_lost = self.first_lost.min(self.base + place as u64);
    }

    /// All segments are lost that have not arrived.
    pub(crate) fn lose_all(&mut self) {
        self.lose_until(Time::MAX);
    }

    /// The segments are lost that were sent by this time and have not arrived.
    pub(crate) fn lose_until(&mut self, sent: Time) {
        for place in 0..self.segments.len() {
            let (segment, state) = self.segments[place];
            if state == State::Sent && segment.sent_at <= sent {
                self.lose(place);
            }
        }
    }

    /// The segment that begins at this place was cut to its header; returns false if it was not under way since `sent`.
    pub(crate) fn lose_trimmed(&mut self, first: u64, sent: Time) -> bool {
        let place = self.segments.partition_point(|(segment, _)| segment.first < first);
        let is_it = |(segment, state): &(Segment, State)| {
            segment.first == first && segment.sent_at == sent && *state == State::Sent
        };
        let is_under_way = self.segments.get(place).is_some_and(is_it);
        if is_under_way {
            self.lose(place);
        }
        is_under_way
    }

    /// The time at which the first of the segments was sent that are under way.
    pub(crate) fn oldest(&self) -> Option<Time> {
        let sent = self.segments.iter().filter(|(_, state)| *state == State::Sent);
        sent.map(|(segment, _)| segment.sent_at).min()
    }

    /// Takes the first lost segment to be sent again now.
    pub(crate) fn send_again(&mut self, now: Time) -> Option<Segment> {
        if self.lost == 0 {
            self.first_lost = u64::MAX;
            return None;
        }
        let from = self.first_lost.saturating_sub(self.base) as usize;
        let place = (from..self.segments.len()).find(|&place| self.segments[place].1 == State::Lost)?;
        self.segments[place].1 = State::Sent;
        self.lost -= 1;
        self.lost_bytes -= u64::from(self.segments[place].0.bytes);
        self.first_lost = self.base + place as u64 + 1;
        let segment = self.renew(place, now);
        self.not_sent -= u64::from(segment.bytes);
        Some(segment)
    }

    /// Takes the last segment to be sent again now, if it is on its way.
    pub(crate) fn send_last_again(&mut self, now: Time) -> Option<Segment> {
        let place = self.segments.len().checked_sub(1)?;
        (self.segments[place].1 == State::Sent).then(|| self.renew(place, now))
    }

    fn renew(&mut self, place: usize, now: Time) -> Segment {
        let (segment, _) = &mut self.segments[place];
        (segment.sent_at, segment.is_again) = (now, true);
        self.again.push_back((self.base + place as u64, now));
        *segment
    }

    /// The first lost segment has this many bytes; `None` if none is lost.
    pub(crate) fn next_lost(&self) -> Option<u32> {
        if self.lost == 0 {
            return None;
        }
        let from = self.first_lost.saturating_sub(self.base) as usize;
        self.segments.iter().skip(from).find(|(_, state)| *state == State::Lost).map(|(segment, _)| segment.bytes)
    }
}

impl Arrivals {
    /// A segment has arrived that was not known to.
    fn note(&mut self, now: Time, segment: Segment) {
        let round_trip = now.since(segment.sent_at);
        // What came back sooner than ever was sent before (RFC 8985, 6.2, step 2).
        if segment.is_again && self.shortest_round_trip.is_some_and(|shortest| round_trip < shortest) {
            return;
        }
        if !segment.is_again {
            let shortest = self.shortest_round_trip.get_or_insert(round_trip);
            *shortest = round_trip.min(*shortest);
            self.has_reordered |= segment.end() < self.highest;
        }
        self.highest = self.highest.max(segment.end());
        let sent = (segment.sent_at, segment.end());
        if self.newest.is_none_or(|newest| sent > newest) {
            (self.newest, self.round_trip) = (Some(sent), round_trip);
        }
    }

    /// The time at which a segment counts as lost; `None` if none that was sent after it has arrived.
    fn lost_at(&self, segment: Segment, patience: Span) -> Option<Time> {
        let newest = self.newest?;
        let time = self.round_trip.0.saturating_add(patience.0);
        ((segment.sent_at, segment.end()) < newest).then(|| Time(segment.sent_at.0.saturating_add(time)))
    }
}
