//! The numbers of the fragments of a live source, and their events.
//!
//! The numbers of a source form segments. Within a segment they follow each other by value. Between two segments the
//! source has restarted its counter, or the counter has leapt. The event manager, which hears of all sources, decides
//! which event a segment begins with; until then its fragments wait. If it cannot decide, a source with marks keeps its
//! last fragments waiting, so that it can be aligned later; no builder waits for it.

use super::{Arrival, HeldFragment, Live, ReadoutEvent, ReadoutMachine};
use crate::{Config, Fault, Fragment, Message, Sighted};
use alloc::{collections::VecDeque, sync::Arc, vec::Vec};
use evb_core::{
    Apart, Counter, EventCounter, EventId, FirstCounter, Numbered, Numbering, NumberingEvent, Recording, Sighting,
    Span, Time, Transmit,
};

/// Most fragments in one message to the event manager.
const MOST_REPORTED: usize = 256;
/// Time after which a fragment that was overtaken is given up.
const LATEST: Span = Span::from_millis(100);
/// Longest time for which builders wait for a source whose counter turned.
const PATIENCE: Span = Span::from_secs(5);
/// Most fragments that wait while a source is out of step.
const MOST_OUT_OF_STEP: usize = 64;

/// A live source, as its readout unit follows it.
pub(super) struct LiveStream<B> {
    counter: EventCounter,
    numbering: Numbering<Arrival<B>>,
    segment: u32,
    /// The number at position 0 of the segment.
    number: u64,
    declared: bool,
    /// Numbers by which position 0 is ahead of the last fragment that has an event; 0 if it is not.
    ahead: u32,
    /// The event of position 0; `None` while it is unknown.
    first: Option<i64>,
    /// The event manager could not align the segment. No builder waits for it.
    out_of_step: bool,
    /// Fragments whose event is not known, by position in the segment.
    waiting: VecDeque<(u64, Arrival<B>)>,
    /// Number of waiting fragments that were reported to the event manager, and whether their end was.
    reported: (usize, bool),
    /// The next fragment belongs to another segment, and this segment still waits for its answer.
    blocked: bool,
    ended: bool,
    /// It has ended without a word.
    gone: bool,
    /// The number of the last fragment that has an event.
    last_number: Option<u64>,
    /// The last event with a fragment.
    last: EventId,
    /// The last event of the segments before.
    before: EventId,
    /// When fragments that were overtaken are given up, and up to which position.
    give_up: Option<(Time, u64)>,
    /// When the segment counts as out of step, if it has no answer until then.
    answer_until: Option<Time>,
}

impl<B> LiveStream<B> {
    /// A stream of numbers of this counter.
    pub(super) const fn new(counter: EventCounter) -> Self {
        Self {
            counter,
            numbering: Numbering::new(counter.bits),
            segment: 0,
            number: 0,
            declared: false,
            ahead: 0,
            first: None,
            out_of_step: false,
            waiting: VecDeque::new(),
            reported: (0, false),
            blocked: false,
            ended: false,
            gone: false,
            last_number: None,
            last: EventId(0),
            before: EventId(0),
            give_up: None,
            answer_until: None,
        }
    }

    /// Number of fragments that may wait for their event beside those that do, out of `most`.
    pub(super) fn room(&self, most: u64) -> u64 {
        if self.blocked { 0 } else { most.saturating_sub(self.waiting.len() as u64) }
    }

    /// Returns true if the segment waits for the answer of the event manager.
    fn asks(&self) -> bool {
        self.first.is_none() && !self.waiting.is_empty()
    }

    /// Returns true if the fragments that wait have no marks.
    fn is_unmarked(&self) -> bool {
        self.waiting.iter().all(|(_, arrival)| arrival.mark.is_none())
    }

    /// The last event up to which all fragments have come or do not come.
    fn settled(&self) -> EventId {
        let by_position = |first: i64| self.numbering.settled().map(|position| first + position as i64);
        let settled = self.first.and_then(by_position).and_then(|event| u64::try_from(event).ok());
        self.before.max(EventId(settled.unwrap_or(0)))
    }

    /// Returns true if the source will never have this event: the source has passed it, or has lost its alignment.
    pub(super) fn never_has(&self, event: EventId) -> bool {
        // If the segment continues by value, its first event is this far ahead; else it has no events at all.
        let leaps_over = || self.asks() && self.ahead > 0 && event.0 < self.before.0 + u64::from(self.ahead);
        event <= self.settled()
            || self.first.is_none() && (self.out_of_step || leaps_over() && (self.is_unmarked() || self.reported.1))
    }

    /// The last event that counts, and whether no more will come.
    pub(super) fn available(&self) -> (u64, bool) {
        (self.last.0, self.has_ended())
    }

    /// Number of fragments that came and have neither an event nor been set apart.
    pub(super) fn unplaced(&self) -> usize {
        self.waiting.len() + self.numbering.waiting()
    }

    /// Returns true if the events of its fragments are not known.
    pub(super) const fn is_out_of_step(&self) -> bool {
        self.out_of_step
    }

    /// Returns true if the source has ended without a word.
    pub(super) fn is_gone(&self) -> bool {
        self.gone && self.has_ended()
    }

    /// Returns true if the source has ended and all its fragments have been placed or set apart.
    fn has_ended(&self) -> bool {
        self.ended && self.waiting.is_empty() && !self.blocked
    }

    /// The time at which overtaken fragments, or the answer about the segment, are given up.
    pub(super) fn deadline(&self) -> Option<Time> {
        let overtaken = self.give_up.map(|(at, _)| at);
        overtaken.into_iter().chain(self.answer_until).min()
    }

    /// The next step of the numbering. A turn has to wait for the answer about the segment before it.
    fn next(&mut self) -> Option<NumberingEvent<Arrival<B>>> {
        let is_turn = || matches!(self.numbering.peek(), Some(NumberingEvent::Turn { .. }));
        self.blocked = self.asks() && !self.out_of_step && is_turn();
        if self.blocked { None } else { self.numbering.pop() }
    }

    /// Begins a segment whose first event is not known.
    fn begin_segment(&mut self) {
        self.segment += 1;
        self.first = None;
        self.out_of_step = false;
        self.reported = (0, false);
    }

    /// Sets the times at which overtaken fragments and the answer about the segment are given up.
    fn watch(&mut self, now: Time) {
        let holds_up = self.segment > 0 && self.asks() && !self.out_of_step;
        self.answer_until = holds_up.then(|| self.answer_until.unwrap_or(now + PATIENCE));
        self.give_up = match (self.numbering.last().filter(|_| self.numbering.is_unsettled()), self.give_up) {
            (Some(last), None) => Some((now + LATEST, last)),
            (Some(_), set) => set,
            (None, _) => None,
        };
    }

    /// The number of position 0 as the event manager compares it with those of other sources.
    fn compared_number(&self) -> u64 {
        let first = match self.counter.first {
            FirstCounter::Unknown => 0,
            FirstCounter::Known(first) => first,
            FirstCounter::Any if self.segment == 0 => self.number,
            FirstCounter::Any => 0,
        };
        self.number.wrapping_sub(first) & (u64::MAX >> (64 - u32::from(self.counter.bits)))
    }

    /// The report about a segment that waits for its answer. `is_full` says that no more fragments can come before it.
    fn sighted(&mut self, is_full: bool) -> Option<Arc<Sighted>> {
        if !self.asks() {
            return None;
        }
        let new = self.waiting.iter().skip(self.reported.0).take(MOST_REPORTED);
        let fragments: Arc<[_]> =
            new.map(|(position, arrival)| Sighting { position: *position, mark: arrival.mark }).collect();
        let reported = self.reported.0 + fragments.len();
        let last = (self.ended || self.blocked || is_full) && reported == self.waiting.len();
        if self.reported == (reported, last) {
            return None;
        }
        self.reported = (reported, last);
        let number = self.compared_number();
        let Self { segment, declared, ahead, last: after, counter: EventCounter { bits, .. }, .. } = *self;
        Some(Arc::new(Sighted { segment, declared, last, bits, after, number, ahead, fragments }))
    }
}

/// The fault of a fragment that the numbering has set apart.
const fn fault(reason: Apart) -> Fault {
    match reason {
        Apart::Repeated => Fault::Duplicate,
        Apart::Disputed => Fault::Disputed,
        Apart::Late => Fault::Late,
        Apart::Misnumbered => Fault::OutOfSequence,
    }
}

/// A digest of what a fragment is, without its number.
pub(super) fn digest<B>(arrival: &Arrival<B>) -> u64 {
    let mark = arrival.mark.map_or(0, |mark| u64::from(mark.value()) + 1);
    (u64::from(arrival.checksum) << 32 | u64::from(arrival.length)) ^ mark.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<B: Clone + Default> ReadoutMachine<B> {
    /// Takes a fragment of a live source.
    pub(super) fn arrive(&mut self, arrival: Arrival<B>) {
        let Some(Live::Numbered(stream)) = &mut self.stream else { return self.arrive_timed(arrival) };
        self.counts.came += 1;
        self.counts.identity.note(&arrival, self.config.marks);
        let (number, declared, marked) = (arrival.number, arrival.restarted, arrival.mark.is_some());
        stream.numbering.push(Numbered { number, declared, marked, digest: digest(&arrival), item: arrival });
        self.follow();
    }

    /// The live source has ended; `last` is the number of its last fragment, if it has said that.
    pub(super) fn end_stream(&mut self, last: Option<u64>) {
        let Some(Live::Numbered(stream)) = &mut self.stream else { return self.end_timed(last) };
        stream.numbering.end(last);
        stream.ended = true;
        stream.gone = last.is_none();
        self.follow();
        let Some(Live::Numbered(stream)) = &self.stream else { return };
        let lost = stream.last_number.zip(last).and_then(|(own, last)| stream.numbering.ahead(own, last));
        self.counts.skipped += lost.unwrap_or(0);
        self.settle_end();
    }

    /// Gives up fragments that were overtaken long ago, and an answer that does not come.
    pub(super) fn give_up_waiting(&mut self) {
        let now = self.now;
        let Some(Live::Numbered(stream)) = &mut self.stream else { return };
        if stream.answer_until.take_if(|at| *at <= now).is_some() {
            self.lose_step();
            self.follow();
        }
        let Some(Live::Numbered(stream)) = &mut self.stream else { return };
        if let Some((_, position)) = stream.give_up.take_if(|(at, _)| *at <= now) {
            stream.numbering.give_up(position);
            self.follow();
        }
    }

    /// Takes the steps of the numbering.
    fn follow(&mut self) {
        while let Some(step) = self.stream.as_mut().and_then(Live::numbered).and_then(LiveStream::next) {
            match step {
                NumberingEvent::Placed { position, item } => self.place(position, item),
                NumberingEvent::Apart { item, reason } => self.set_apart(item, fault(reason)),
                NumberingEvent::Turn { declared, number, after } => self.turn(declared, number, after),
                NumberingEvent::Skipped(count) => self.skip(count),
                NumberingEvent::Wrapped => self.counts.faults.count(Fault::Wrapped),
            }
        }
        if let Some(Live::Numbered(stream)) = &mut self.stream {
            stream.watch(self.now);
        }
        if core::mem::take(&mut self.skipped) {
            self.answer_what_never_comes();
        }
    }

    fn skip(&mut self, count: u64) {
        self.counts.skipped += count;
        self.counts.faults.count(Fault::OutOfSequence);
        self.skipped = true;
    }

    fn place(&mut self, position: u64, arrival: Arrival<B>) {
        let Some(Live::Numbered(stream)) = &mut self.stream else { return };
        if position == 0 {
            stream.number = arrival.number;
        }
        if let Some(first) = stream.first {
            return self.keep(first + position as i64, arrival);
        }
        let is_marked = arrival.mark.is_some();
        stream.waiting.push_back((position, arrival));
        if stream.out_of_step && (!is_marked || stream.waiting.len() > MOST_OUT_OF_STEP) {
            stream.reported.0 = stream.reported.0.saturating_sub(1);
            let oldest = stream.waiting.pop_front();
            oldest.into_iter().for_each(|(_, arrival)| self.set_apart(arrival, Fault::OutOfStep));
        }
    }

    /// Keeps the fragment of an event. Events below 1 were before the beginning.
    fn keep(&mut self, event: i64, arrival: Arrival<B>) {
        let event = EventId(u64::try_from(event).unwrap_or(0));
        if event.0 == 0 {
            return self.set_apart(arrival, Fault::Early);
        }
        if let Some(Live::Numbered(stream)) = &mut self.stream
            && event >= stream.last
        {
            stream.last = event;
            stream.last_number = Some(arrival.number);
        }
        self.keep_of(event, arrival);
    }

    /// Keeps the fragment of an event, or sets it apart if the event has one already or is over.
    pub(super) fn keep_of(&mut self, event: EventId, arrival: Arrival<B>) {
        let Arrival { number, restarted, arrived, clock, length, checksum, mark, status, payload } = arrival;
        let (source, counter) = (self.source, Some(Counter::new(number)));
        let refused = self.take(Fragment { event, source, length, checksum, mark, counter, status, payload });
        if let Some((Fragment { payload, .. }, reason)) = refused {
            self.hand_out(
                Arrival { number, restarted, arrived, clock, length, checksum, mark, status, payload },
                reason,
            );
        }
    }

    pub(super) fn set_apart(&mut self, arrival: Arrival<B>, fault: Fault) {
        self.counts.faults.count(fault);
        self.hand_out(arrival, fault);
    }

    /// Hands a fragment that belongs to no event to the driver. Its fault is counted already.
    fn hand_out(&mut self, arrival: Arrival<B>, reason: Fault) {
        self.counts.apart += 1;
        self.events.push_back(ReadoutEvent::Apart { arrival, reason });
    }

    /// Begins a segment with this number.
    fn turn(&mut self, declared: bool, number: u64, after: u64) {
        self.counts.faults.count(Fault::Resynchronised);
        self.set_waiting_apart();
        let Some(Live::Numbered(stream)) = &mut self.stream else { return };
        self.counts.identity.note_turn(after, number);
        let ahead = stream.last_number.filter(|_| !declared).and_then(|last| stream.numbering.ahead(last, number));
        stream.before = stream.last;
        stream.ahead = ahead.and_then(|ahead| u32::try_from(ahead).ok()).unwrap_or(0);
        stream.number = number;
        stream.declared = declared;
        stream.begin_segment();
        self.skipped = true;
    }

    /// Takes the answer of the event manager: the event that a segment begins with, or `None` if that cannot be known.
    pub(super) fn align(&mut self, segment: u32, first: Option<i64>) {
        let Some(Live::Numbered(stream)) = &mut self.stream else { return self.align_recorded(first) };
        if stream.segment != segment || stream.first.is_some() {
            return;
        }
        match first {
            None => self.lose_step(),
            Some(first) => self.place_waiting(first),
        }
        self.answer_what_never_comes();
        self.follow();
        self.settle_end();
    }

    /// Places the fragments of a segment whose first event is known.
    fn place_waiting(&mut self, first: i64) {
        let Some(Live::Numbered(stream)) = &mut self.stream else { return };
        stream.first = Some(first);
        if stream.ahead > 0 {
            // The numbers that the counter passed were lost, whether or not another source has them.
            self.counts.skipped += u64::from(stream.ahead) - 1;
            self.counts.identity.leaps += 1;
            self.counts.faults.count(Fault::OutOfSequence);
        }
        for (position, arrival) in core::mem::take(&mut stream.waiting) {
            self.keep(first + position as i64, arrival);
        }
    }

    /// Sets a segment apart whose events are not known: none is better than wrong ones. Its further fragments wait for a
    /// while each, if they carry marks.
    fn lose_step(&mut self) {
        self.set_waiting_apart();
        let Some(Live::Numbered(stream)) = &mut self.stream else { return };
        stream.begin_segment();
        stream.out_of_step = true;
        self.skipped = true;
    }

    fn set_waiting_apart(&mut self) {
        let numbered = self.stream.as_mut().and_then(Live::numbered);
        let waiting = numbered.map(|stream| core::mem::take(&mut stream.waiting));
        for (_, arrival) in waiting.into_iter().flatten() {
            self.set_apart(arrival, Fault::OutOfStep);
        }
    }

    /// Sets all fragments apart whose events are not known, at the end of the last run.
    pub(super) fn finish(&mut self) {
        let Some(Live::Numbered(stream)) = &mut self.stream else { return self.finish_timed() };
        let placed = core::mem::take(&mut stream.waiting).into_iter().map(|(_, arrival)| arrival);
        let all: Vec<_> = placed.chain(stream.numbering.take_waiting()).collect();
        all.into_iter().for_each(|arrival| self.set_apart(arrival, Fault::Unplaced));
        self.set_untriggered_apart();
    }

    /// Sets the fragments apart that no builder has ever asked for: the run ended before their events were triggered.
    fn set_untriggered_apart(&mut self) {
        let from = (self.counts.through.0 + 1).max(self.held.first());
        let untriggered: Vec<_> = (from..self.held.end()).map(EventId).collect();
        for event in untriggered {
            let Some(fragment) = self.entry(event).and_then(|held| held.fragment.take()) else { continue };
            self.bytes_held -= u64::from(fragment.length);
            self.counts.fragments -= 1;
            self.counts.bytes -= u64::from(fragment.length);
            let HeldFragment { length, checksum, mark, counter, status, payload } = fragment;
            let number = counter.map_or(0, Counter::value);
            let (restarted, arrived, clock) = (false, self.now, None);
            let arrival = Arrival { number, restarted, arrived, clock, length, checksum, mark, status, payload };
            self.set_apart(arrival, Fault::Unplaced);
        }
    }

    /// Fixes the last event of a source that has ended once all its fragments have their events.
    fn settle_end(&mut self) {
        let Some(Live::Numbered(stream)) = &self.stream else { return };
        if stream.has_ended() {
            self.end = Some(stream.last.0);
            self.answer_what_never_comes();
        }
    }

    /// Begins with a recording, once the event manager knows which event is its first.
    pub(super) fn start_recorded(&mut self, recording: &Recording) {
        let Recording { positions, solid, bits, number, ref fragments } = *recording;
        let fragments = Arc::clone(fragments);
        self.unaligned = Some((solid, positions));
        let (segment, declared, last, ahead, after) = (0, false, true, 0, EventId(0));
        let sighted = Sighted { segment, declared, last, bits, after, number, ahead, fragments };
        self.transmits
            .push_back(Transmit { to: Config::EVENT_MANAGER.into(), message: Message::Sighted(Arc::new(sighted)) });
    }

    /// Takes the answer of the event manager: the event that a recording begins with.
    fn align_recorded(&mut self, first: Option<i64>) {
        let Some((solid, positions)) = self.unaligned.take() else { return };
        self.before = first.unwrap_or(1) - 1;
        let event = |position: u64| u64::try_from(position as i64 + self.before).unwrap_or(0);
        let (solid, last) = (event(solid), event(positions));
        self.end = Some(last);
        self.announce((solid, last, true));
    }

    /// Reports fragments that wait for their events, and the marks that are wanted for other sources.
    pub(super) fn report_sightings(&mut self) {
        let to = Config::EVENT_MANAGER.into();
        // At the beginning the source waits for the others; later no builder must wait for it.
        let is_full = matches!(&self.stream, Some(Live::Numbered(stream)) if stream.segment > 0) && !self.has_room();
        if let Some(sighted) = self.stream.as_mut().and_then(Live::numbered).and_then(|stream| stream.sighted(is_full))
        {
            self.transmits.push_back(Transmit { to, message: Message::Sighted(sighted) });
        }
        if !self.comparing {
            return;
        }
        let held = self.held.iter_from((self.compared.0 + 1).max(self.held.first()));
        let marks = held.filter_map(|(event, held)| Some((EventId(event), held.fragment.as_ref()?.mark?)));
        let marks: Arc<[_]> = marks.take(MOST_REPORTED).collect();
        if let Some((last, _)) = marks.last() {
            self.compared = *last;
            self.transmits.push_back(Transmit { to, message: Message::Marks(marks) });
        } else if !self.reported_all && self.stream.as_ref().map_or(self.end.is_some(), |stream| stream.available().1) {
            self.reported_all = true;
            self.transmits.push_back(Transmit { to, message: Message::Marks(marks) });
        }
    }
}
