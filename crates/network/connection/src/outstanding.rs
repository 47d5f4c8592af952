//! The segments that were sent and are not acknowledged: which of them have arrived ahead of their turn, and which count
//! as lost (RFC 6675, counted in segments as Linux does).

use crate::wire::Segment;
use evb_core::Time;
use std::{collections::VecDeque, ops::Range};

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
    /// Segments before this number have been looked at: they have arrived or were called lost once.
    judged: u64,
    /// Number of segments before `judged` that have arrived ahead of their turn.
    arrived_before: u64,
    /// Number of segments that are lost.
    lost: u64,
    /// No segment before this number is lost.
    first_lost: u64,
    /// Segments that must arrive behind another one before that counts as lost.
    reordering: u64,
}

impl Outstanding {
    pub(crate) const fn new(reordering: u64) -> Self {
        Self {
            segments: VecDeque::new(),
            base: 0,
            bytes: 0,
            not_sent: 0,
            arrived: 0,
            judged: 0,
            arrived_before: 0,
            lost: 0,
            first_lost: u64::MAX,
            reordering,
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

    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Adds a segment that is sent for the first time.
    pub(crate) fn push(&mut self, segment: Segment) {
        self.bytes += u64::from(segment.bytes);
        self.segments.push_back((segment, State::Sent));
    }

    /// All bytes before `expected` have arrived; returns how many of these were not known to have arrived.
    pub(crate) fn acknowledge(&mut self, expected: u64) -> u64 {
        let mut new = 0;
        while let Some(&(segment, state)) = self.segments.front()
            && segment.end() <= expected
        {
            self.segments.pop_front();
            self.bytes -= u64::from(segment.bytes);
            self.forget_state(self.base, segment, state);
            new += if state == State::Arrived { 0 } else { u64::from(segment.bytes) };
            self.base += 1;
        }
        self.judged = self.judged.max(self.base);
        new
    }

    fn forget_state(&mut self, number: u64, segment: Segment, state: State) {
        match state {
            State::Sent => return,
            State::Arrived => {
                self.arrived -= 1;
                self.arrived_before -= u64::from(number < self.judged);
            }
            State::Lost => self.lost -= 1,
        }
        self.not_sent -= u64::from(segment.bytes);
    }

    /// Segments at the end of this block have arrived ahead of their turn; returns their bytes. The receiver told earlier
    /// ones of the block before, unless all its answers since were lost.
    pub(crate) fn note_arrived(&mut self, block: &Range<u64>) -> u64 {
        let end = self.segments.partition_point(|(segment, _)| segment.end() <= block.end);
        let mut new = 0;
        for place in (0..end).rev() {
            let (segment, state) = self.segments[place];
            if segment.first < block.start || state == State::Arrived {
                break;
            }
            let number = self.base + place as u64;
            self.forget_state(number, segment, state);
            self.segments[place].1 = State::Arrived;
            self.arrived += 1;
            self.arrived_before += u64::from(number < self.judged);
            self.not_sent += u64::from(segment.bytes);
            new += u64::from(segment.bytes);
        }
        new
    }

    /// Calls segments lost behind which enough others have arrived; returns true if there are new ones.
    pub(crate) fn judge(&mut self) -> bool {
        let lost_before = self.lost;
        while self.arrived - self.arrived_before >= self.reordering {
            let place = (self.judged - self.base) as usize;
            match self.segments[place].1 {
                State::Arrived => self.arrived_before += 1,
                State::Sent => self.lose(place),
                State::Lost => {}
            }
            self.judged += 1;
        }
        self.lost > lost_before
    }

    fn lose(&mut self, place: usize) {
        let (segment, state) = &mut self.segments[place];
        *state = State::Lost;
        self.not_sent += u64::from(segment.bytes);
        self.lost += 1;
        self.first_lost = self.first_lost.min(self.base + place as u64);
    }

    /// All segments are lost that have not arrived.
    pub(crate) fn lose_all(&mut self) {
        for place in 0..self.segments.len() {
            if self.segments[place].1 == State::Sent {
                self.lose(place);
            }
        }
    }

    /// Takes the first lost segment to be sent again now.
    pub(crate) fn send_again(&mut self, now: Time) -> Option<Segment> {
        if self.lost == 0 {
            self.first_lost = u64::MAX;
            return None;
        }
        let from = self.first_lost.saturating_sub(self.base) as usize;
        let place = (from..self.segments.len()).find(|&place| self.segments[place].1 == State::Lost)?;
        let (segment, state) = &mut self.segments[place];
        *state = State::Sent;
        (segment.sent_at, segment.is_again) = (now, true);
        self.not_sent -= u64::from(segment.bytes);
        self.lost -= 1;
        self.first_lost = self.base + place as u64 + 1;
        Some(*segment)
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
