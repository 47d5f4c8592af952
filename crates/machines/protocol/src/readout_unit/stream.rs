//! The numbers of the fragments of a live source, and their events.
//!
//! The numbers of a source form segments. Within a segment they follow each other by value. Between two segments the
//! source has restarted its counter, or the counter has leapt. The event manager, which hears of all sources, decides
//! which event a segment begins with; until then its fragments wait.

use super::{Arrival, ReadoutEvent, ReadoutMachine};
use crate::{Config, Fault, Fragment, FragmentStatus, Message, Sighted};
use alloc::{collections::VecDeque, sync::Arc};
use evb_core::{Apart, EventId, Numbering, NumberingEvent, Recording, Sighting, Transmit};

/// Most fragments in one message to the event manager.
const MOST_REPORTED: usize = 256;

/// A live source, as its readout unit follows it.
pub(super) struct LiveStream<B> {
    bits: u8,
    numbering: Numbering<Arrival<B>>,
    segment: u32,
    /// The number at position 0 of the segment.
    number: u64,
    declared: bool,
    /// The event of position 0; `None` while it is unknown.
    first: Option<i64>,
    /// The event of position 0 will never be known.
    hopeless: bool,
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
    /// A leap of the counter that no other source has confirmed: the last event before it, and the first after it.
    leap: Option<(EventId, EventId)>,
}

impl<B> LiveStream<B> {
    /// A stream of numbers of `bits` bits.
    pub(super) const fn new(bits: u8) -> Self {
        Self {
            bits,
            numbering: Numbering::new(bits),
            segment: 0,
            number: 0,
            declared: false,
            first: None,
            hopeless: false,
            waiting: VecDeque::new(),
            reported: (0, false),
            blocked: false,
            ended: false,
            gone: false,
            last_number: None,
            last: EventId(0),
            leap: None,
        }
    }

    /// Number of fragments that may wait for their event beside those that do, out of `most`.
    pub(super) fn room(&self, most: u64) -> u64 {
        if self.blocked { 0 } else { most.saturating_sub(self.waiting.len() as u64) }
    }

    /// Returns true if the segment waits for the answer of the event manager.
    fn asks(&self) -> bool {
        self.first.is_none() && !self.hopeless && !self.waiting.is_empty()
    }

    /// Returns true if the source has passed this event, or has lost its alignment.
    pub(super) fn never_has(&self, event: EventId) -> bool {
        event <= self.last || (self.first.is_none() && self.hopeless)
    }

    /// The last event that counts, the last that is claimed, and whether no more will come. `triggered` is the last
    /// event that others have: a leap up to it needs no confirmation.
    pub(super) fn available(&mut self, triggered: EventId) -> (u64, u64, bool) {
        self.leap = self.leap.filter(|(_, to)| triggered < *to);
        let through = self.leap.map_or(self.last, |(from, _)| from);
        (through.0, self.last.0, self.has_ended())
    }

    /// Returns true if the source has ended without a word.
    pub(super) fn is_gone(&self) -> bool {
        self.gone && self.has_ended()
    }

    /// Returns true if the source has ended and all its fragments have been placed or set apart.
    fn has_ended(&self) -> bool {
        self.ended && self.waiting.is_empty() && !self.blocked
    }

    /// The next step of the numbering. A turn has to wait for the answer about the segment before it.
    fn next(&mut self) -> Option<NumberingEvent<Arrival<B>>> {
        self.blocked = self.asks() && matches!(self.numbering.peek(), Some(NumberingEvent::Turn { .. }));
        if self.blocked { None } else { self.numbering.pop() }
    }

    /// The report about a segment that waits for its answer.
    fn sighted(&mut self) -> Option<Arc<Sighted>> {
        if !self.asks() {
            return None;
        }
        let new = self.waiting.iter().skip(self.reported.0).take(MOST_REPORTED);
        let fragments: Arc<[_]> =
            new.map(|(position, arrival)| Sighting { position: *position, mark: arrival.mark }).collect();
        let reported = self.reported.0 + fragments.len();
        let last = (self.ended || self.blocked) && reported == self.waiting.len();
        if self.reported == (reported, last) {
            return None;
        }
        self.reported = (reported, last);
        let Self { segment, declared, bits, number, last: after, .. } = *self;
        Some(Arc::new(Sighted { segment, declared, last, bits, after, number, fragments }))
    }
}

impl<B: Clone + Default> ReadoutMachine<B> {
    /// Takes a fragment of a live source.
    pub(super) fn arrive(&mut self, arrival: Arrival<B>) {
        let Some(stream) = &mut self.stream else { return };
        self.counts.came += 1;
        self.counts.marked += u64::from(arrival.mark.is_some());
        stream.numbering.push(arrival.number, arrival.restarted, arrival);
        self.follow();
    }

    /// The live source has ended; `last` is the number of its last fragment, if it has said that.
    pub(super) fn end_stream(&mut self, last: Option<u64>) {
        let Some(stream) = &mut self.stream else { return };
        stream.numbering.end(last);
        stream.ended = true;
        stream.gone = last.is_none();
        self.follow();
        let Some(stream) = &self.stream else { return };
        let lost = stream.last_number.zip(last).and_then(|(own, last)| stream.numbering.ahead(own, last));
        self.counts.skipped += lost.unwrap_or(0);
        self.settle_end();
    }

    /// Takes the steps of the numbering.
    fn follow(&mut self) {
        while let Some(step) = self.stream.as_mut().and_then(LiveStream::next) {
            match step {
                NumberingEvent::Placed { position, item } => self.place(position, item),
                NumberingEvent::Apart { item, reason: Apart::Repeated } => self.set_apart(item, Fault::Duplicate),
                NumberingEvent::Apart { item, reason: Apart::Misnumbered } => {
                    self.set_apart(item, Fault::OutOfSequence)
                }
                NumberingEvent::Turn { declared, number } => self.turn(declared, number),
                NumberingEvent::Skipped(count) => {
                    self.counts.skipped += count;
                    self.counts.faults.count(Fault::OutOfSequence);
                    self.skipped = true;
                }
                NumberingEvent::Wrapped => self.counts.faults.count(Fault::Wrapped),
            }
        }
        if core::mem::take(&mut self.skipped) {
            self.answer_what_never_comes();
        }
    }

    fn place(&mut self, position: u64, arrival: Arrival<B>) {
        let Some(stream) = &mut self.stream else { return };
        if position == 0 {
            stream.number = arrival.number;
        }
        match stream.first {
            Some(first) => self.keep(first + position as i64, arrival),
            None if stream.hopeless => self.set_apart(arrival, Fault::OutOfStep),
            None => {
                stream.waiting.push_back((position, arrival));
                // At the beginning the source waits for the others; later no builder must wait for it.
                if stream.segment > 0 && stream.waiting.len() >= self.config.buffer_events as usize {
                    self.give_up();
                }
            }
        }
    }

    /// Keeps the fragment of an event. Events below 1 were before the beginning.
    fn keep(&mut self, event: i64, arrival: Arrival<B>) {
        let event = EventId(u64::try_from(event).unwrap_or(0));
        let Some(stream) = self.stream.as_mut().filter(|_| event.0 > 0) else {
            return self.set_apart(arrival, Fault::Early);
        };
        stream.last = stream.last.max(event);
        stream.last_number = Some(arrival.number);
        let Arrival { number, restarted, length, checksum, mark, status, payload } = arrival;
        let refused = self.take(Fragment { event, source: self.source, length, checksum, mark, status, payload });
        if let Some((Fragment { payload, .. }, reason)) = refused {
            self.hand_out(Arrival { number, restarted, length, checksum, mark, status, payload }, reason);
        }
    }

    fn set_apart(&mut self, arrival: Arrival<B>, fault: Fault) {
        self.counts.faults.count(fault);
        self.hand_out(arrival, fault);
    }

    /// Hands a fragment that belongs to no event to the driver. Its fault is counted already.
    fn hand_out(&mut self, arrival: Arrival<B>, reason: Fault) {
        self.counts.apart += 1;
        self.events.push_back(ReadoutEvent::Apart { arrival, reason });
    }

    /// Begins a segment with this number.
    fn turn(&mut self, declared: bool, number: u64) {
        self.counts.faults.count(Fault::Resynchronised);
        self.set_waiting_apart();
        let reach = self.counts.through.0 + u64::from(self.config.buffer_events);
        let Some(stream) = &mut self.stream else { return };
        let ahead = stream.last_number.filter(|_| !declared).and_then(|last| stream.numbering.ahead(last, number));
        // The skipped fragments were lost if the others have theirs, or nearly. A larger leap proves nothing.
        let to = ahead.map(|ahead| EventId(stream.last.0 + ahead)).filter(|to| to.0 <= reach);
        let before = stream.leap.map_or(stream.last, |(from, _)| from);
        stream.segment += 1;
        stream.number = number;
        stream.declared = declared;
        stream.hopeless = false;
        stream.reported = (0, false);
        stream.first = to.map(|to| to.0 as i64);
        stream.leap = to.map(|to| (before, to));
        self.skipped = true;
    }

    /// Takes the answer of the event manager: the event that a segment begins with, or `None` if it will never be
    /// known.
    pub(super) fn align(&mut self, segment: u32, first: Option<i64>) {
        let Some(stream) = &mut self.stream else { return self.align_recorded(first) };
        if first.is_none() && stream.leap.is_some() {
            return self.retract();
        }
        if stream.segment != segment || stream.first.is_some() {
            return;
        }
        stream.first = first;
        match first {
            None => self.give_up(),
            Some(first) => {
                for (position, arrival) in core::mem::take(&mut stream.waiting) {
                    self.keep(first + position as i64, arrival);
                }
            }
        }
        self.answer_what_never_comes();
        self.follow();
        self.settle_end();
    }

    /// Sets a segment apart whose events will never be known: none is better than wrong ones.
    fn give_up(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.hopeless = true;
        }
        self.set_waiting_apart();
        self.answer_what_never_comes();
    }

    /// Sets the fragments behind an unconfirmed leap of the counter apart.
    fn retract(&mut self) {
        let Some(stream) = &mut self.stream else { return };
        let Some((from, to)) = stream.leap.take() else { return };
        let (number, mask) = (stream.number, u64::MAX >> (64 - u32::from(stream.bits)));
        for event in from.0 + 1..self.held.end() {
            let Some(held) = self.entry(EventId(event)) else { continue };
            if let Some(fragment) = held.fragment.take_if(|fragment| fragment.status != FragmentStatus::Missing) {
                let asked = core::mem::replace(&mut held.asked, false);
                self.reserved -= u64::from(asked);
                self.bytes_held -= u64::from(fragment.length);
                self.counts.fragments -= 1;
                self.counts.bytes -= u64::from(fragment.length);
                // Within a segment, numbers follow each other as events do.
                let number = number.wrapping_add(event).wrapping_sub(to.0) & mask;
                let Fragment { length, checksum, mark, status, payload, .. } = fragment;
                let arrival = Arrival { number, restarted: false, length, checksum, mark, status, payload };
                self.set_apart(arrival, Fault::OutOfStep);
            }
        }
        if let Some(stream) = &mut self.stream {
            stream.last = from;
            stream.first = None;
        }
        self.give_up();
        self.settle_end();
    }

    fn set_waiting_apart(&mut self) {
        let waiting = self.stream.as_mut().map(|stream| core::mem::take(&mut stream.waiting));
        for (_, arrival) in waiting.into_iter().flatten() {
            self.set_apart(arrival, Fault::OutOfStep);
        }
    }

    /// Fixes the last event of a source that has ended once all its fragments have their events.
    fn settle_end(&mut self) {
        let Some(stream) = &self.stream else { return };
        if stream.has_ended() {
            self.end = Some(stream.last.0);
            self.answer_what_never_comes();
        }
    }

    /// Begins with a recording, once the event manager knows which event is its first.
    pub(super) fn start_recorded(&mut self, recording: &Recording) {
        let Recording { positions, solid, bits, number, ref fragments } = *recording;
        let (segment, declared, last, after, fragments) = (0, false, true, EventId(0), Arc::clone(fragments));
        self.unaligned = Some((solid, positions));
        let message = Message::Sighted(Arc::new(Sighted { segment, declared, last, bits, after, number, fragments }));
        self.transmits.push_back(Transmit { to: Config::EVENT_MANAGER.into(), message });
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
        if let Some(sighted) = self.stream.as_mut().and_then(LiveStream::sighted) {
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
        }
    }
}
