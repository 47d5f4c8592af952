//! The fragments of a live source that go to events by their times.
//!
//! The unit reports the time of each fragment to the event manager and keeps the fragment. The event manager, which hears
//! of all sources, answers with the event of the fragment, or the reason why there is none. Fragments are known by their
//! serial numbers, from 1 in the order of arrival.

use super::{Arrival, Live, ReadoutMachine, clock::FrontEndClock, gaps::CounterGaps};
use crate::{Config, Fault, Message, Settled, Times};
use alloc::{collections::VecDeque, sync::Arc};
use evb_coincidence::{ClockSettings, Outcome};
use evb_core::{EventCounter, EventId, Span, Time, Transmit};

/// Most fragments in one message to the event manager.
const MOST_REPORTED: usize = 256;
/// Shortest time between two reports of a silent source.
const SHORTEST_SILENCE: Span = Span::from_millis(10);

/// A live source whose fragments are matched by time.
pub(super) struct TimedStream<B> {
    clock: FrontEndClock,
    gaps: CounterGaps,
    /// Fragments without an outcome, and gaps where one was settled.
    waiting: VecDeque<Option<Arrival<B>>>,
    /// The serial number of the first of them.
    first: u64,
    /// Number of fragments, and their bytes.
    count: usize,
    bytes: u64,
    /// Times that were not reported.
    ticks: VecDeque<u64>,
    /// The frontier that was not reported.
    frontier: Option<u64>,
    /// The last time since the last fragment at which the source was silent.
    silent_at: Option<Time>,
    /// When the silence may be reported again, and when the driver is woken for that, once the source has been heard.
    silence_at: Option<Time>,
    wake_at: Option<Time>,
    /// The last report about a full buffer, and whether the end was reported.
    reported: (bool, bool),
    /// The run has begun: the event manager is there. A report before would be lost, and its fragments would wait for ever.
    is_started: bool,
    ended: bool,
    gone: bool,
    /// The event manager did not know the place of the clock when it settled the last fragment.
    out_of_step: bool,
    /// The last settled event, and the last one with a fragment.
    through: EventId,
    last: EventId,
}

impl<B> TimedStream<B> {
    pub(super) const fn new(clock: ClockSettings, counter: EventCounter) -> Self {
        Self {
            clock: FrontEndClock::new(clock),
            gaps: CounterGaps::new(counter),
            waiting: VecDeque::new(),
            first: 1,
            count: 0,
            bytes: 0,
            ticks: VecDeque::new(),
            frontier: None,
            silent_at: None,
            silence_at: None,
            wake_at: None,
            reported: (false, false),
            is_started: false,
            ended: false,
            gone: false,
            out_of_step: false,
            through: EventId(0),
            last: EventId(0),
        }
    }

    pub(super) const fn room(&self, most: u64) -> u64 {
        most.saturating_sub(self.count as u64)
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn never_has(&self, event: EventId) -> bool {
        event <= self.through
    }

    pub(super) const fn available(&self) -> (u64, bool) {
        (self.last.0, self.has_ended())
    }

    pub(super) const fn unplaced(&self) -> usize {
        self.count
    }

    pub(super) const fn is_out_of_step(&self) -> bool {
        self.out_of_step
    }

    pub(super) const fn is_gone(&self) -> bool {
        self.gone && self.has_ended()
    }

    const fn has_ended(&self) -> bool {
        self.ended && self.count == 0
    }

    pub(super) const fn deadline(&self) -> Option<Time> {
        if self.ended { None } else { self.wake_at }
    }

    /// Time between two reports of a silent source.
    fn silence(&self) -> Span {
        Span(self.clock.late().0 / 4).max(SHORTEST_SILENCE)
    }

    fn push(&mut self, arrival: Arrival<B>, raw: u64) {
        let ticks = self.clock.unwrap(raw, arrival.arrived, self.silent_at.take());
        self.silence_at = Some(arrival.arrived + self.silence());
        (self.wake_at, self.frontier) = (self.silence_at, None);
        self.ticks.push_back(ticks);
        self.count += 1;
        self.bytes += u64::from(arrival.length);
        self.waiting.push_back(Some(arrival));
    }

    /// Takes the fragment with this serial number, if it waits and its time was reported.
    fn take(&mut self, serial: u64) -> Option<Arrival<B>> {
        let index = usize::try_from(serial.checked_sub(self.first)?).ok()?;
        let reported = self.waiting.len() - self.ticks.len();
        let arrival = self.waiting.get_mut(index).filter(|_| index < reported)?.take()?;
        self.count -= 1;
        self.bytes -= u64::from(arrival.length);
        while self.waiting.front().is_some_and(Option::is_none) {
            self.waiting.pop_front();
            self.first += 1;
        }
        Some(arrival)
    }

    /// Notes that nothing waits in the front end's queue.
    fn note_silence(&mut self, now: Time) {
        self.silent_at = Some(now);
        if self.silence_at.is_some_and(|at| at <= now) {
            self.silence_at = Some(now + self.silence());
            self.wake_at = self.silence_at;
            self.frontier = self.clock.frontier(now);
        }
    }

    /// The next report, if there is anything new.
    fn times(&mut self, full: bool) -> Option<Times> {
        let last = self.ended && self.ticks.len() <= MOST_REPORTED;
        let is_new = !self.ticks.is_empty() || self.frontier.is_some() || self.reported != (full, last);
        if !is_new || !self.is_started {
            return None;
        }
        self.reported = (full, last);
        let first = self.first + (self.waiting.len() - self.ticks.len()) as u64;
        let ticks = self.ticks.drain(..self.ticks.len().min(MOST_REPORTED)).collect();
        Some(Times { first, ticks, frontier: self.frontier.take(), full, last })
    }
}

impl<B: Clone + Default> ReadoutMachine<B> {
    fn timed(&mut self) -> Option<&mut TimedStream<B>> {
        self.stream.as_mut().and_then(Live::timed)
    }

    /// Takes a fragment whose event is to be found by its time. One without a time belongs to no event.
    pub(super) fn arrive_timed(&mut self, arrival: Arrival<B>) {
        if self.stream.is_none() {
            return;
        }
        self.counts.came += 1;
        self.counts.identity.note(&arrival, self.config.marks);
        let stream = self.stream.as_mut().and_then(Live::timed);
        let Some((stream, clock)) = stream.zip(arrival.clock) else {
            return self.set_apart(arrival, Fault::OutOfStep);
        };
        stream.gaps.note(&arrival, &mut self.counts);
        stream.push(arrival, clock);
    }

    /// The source has ended; it has said so if `last` is given.
    pub(super) fn end_timed(&mut self, last: Option<u64>) {
        if let Some(stream) = self.stream.as_mut().and_then(Live::timed) {
            stream.ended = true;
            stream.gone = last.is_none();
            stream.gaps.end(last, &mut self.counts);
        }
        self.settle_timed_end();
    }

    /// Begins to report times.
    pub(super) fn start_timed(&mut self) {
        if let Some(stream) = self.timed() {
            stream.is_started = true;
        }
    }

    /// Nothing waits in the queue of the front end at this time.
    pub(super) fn be_silent(&mut self) {
        let now = self.now;
        if let Some(stream) = self.timed().filter(|stream| !stream.ended) {
            stream.note_silence(now);
        }
    }

    /// Lets the driver be woken again, whether or not it has said that the source is silent.
    pub(super) fn wait_for_silence(&mut self) {
        let now = self.now;
        if let Some(stream) = self.timed()
            && stream.wake_at.is_some_and(|at| at <= now)
        {
            stream.wake_at = Some(now + stream.silence());
        }
    }

    /// Takes the outcomes of fragments.
    pub(super) fn match_times(&mut self, through: EventId, outcomes: &[Settled]) {
        if self.timed().is_none() {
            return self.counts.faults.count(Fault::Unexpected);
        }
        for settled in outcomes {
            self.settle(*settled);
        }
        let Some(stream) = self.timed() else { return };
        let settled = stream.through.0 + 1..=through.0;
        stream.through = stream.through.max(through);
        self.answer_missing_among(settled);
        self.settle_timed_end();
    }

    fn settle(&mut self, Settled { serial, outcome }: Settled) {
        let Some(stream) = self.timed() else { return };
        let Some(arrival) = stream.take(serial) else { return };
        stream.out_of_step = outcome == Outcome::NotSynchronised;
        match outcome {
            Outcome::Event(event) if event > stream.through => {
                stream.last = stream.last.max(event);
                self.keep_of(event, arrival);
            }
            // The event manager has said that the source does not have this event.
            Outcome::Event(_) => self.set_apart(arrival, Fault::Unexpected),
            Outcome::Alone => self.set_apart(arrival, Fault::Alone),
            Outcome::Ambiguous => self.set_apart(arrival, Fault::Ambiguous),
            Outcome::OutOfWindow => self.set_apart(arrival, Fault::OutOfWindow),
            Outcome::Late => self.set_apart(arrival, Fault::Late),
            Outcome::NotSynchronised => self.set_apart(arrival, Fault::OutOfStep),
        }
    }

    /// Fixes the last event of a source that has ended once all its fragments have their outcomes.
    fn settle_timed_end(&mut self) {
        let Some(stream) = self.timed().filter(|stream| stream.has_ended()) else { return };
        let last = stream.last.0;
        if self.end.replace(last) != Some(last) {
            self.answer_what_never_comes();
        }
    }

    /// Sets all fragments apart that have no outcome, at the end of the last run.
    pub(super) fn finish_timed(&mut self) {
        let Some(stream) = self.timed() else { return };
        (stream.count, stream.bytes) = (0, 0);
        let waiting: VecDeque<_> = stream.waiting.iter_mut().map(Option::take).collect();
        waiting.into_iter().flatten().for_each(|arrival| self.set_apart(arrival, Fault::Unplaced));
    }

    /// Reports the times of fragments that came.
    pub(super) fn report_times(&mut self) {
        if !matches!(self.stream, Some(Live::Timed(_))) {
            return;
        }
        // What is held goes to builders and makes room. A buffer is full when only fragments without an outcome fill it.
        let is_full = !self.has_room() && self.reserved == 0;
        while let Some(times) = self.timed().and_then(|stream| stream.times(is_full)) {
            let message = Message::Times(Arc::new(times));
            self.transmits.push_back(Transmit { to: Config::EVENT_MANAGER.into(), message });
        }
    }
}
