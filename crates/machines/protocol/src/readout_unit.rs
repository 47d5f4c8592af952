//! The readout unit: holds the fragments of one source from readout until the event manager clears their events.
//!
//! Fragments are kept until the clear, so that an event can be built again after the death of its builder. The oldest
//! open event is always read, without waiting for room. Units are asked in different orders; if each filled its buffer
//! in its own order, one could wait for an event whose fragment has no room in another.

use crate::shaper::Shaper;
use crate::{Assigned, Config, Fault, FaultCounts, Fragment, FragmentStatus, Message, Protocol, Timer, Trigger};
use alloc::{collections::VecDeque, vec::Vec};
use asked::{Asker, LastTransmission};
use core::ops::RangeInclusive;
use evb_core::{Counter, EventCounter, EventId, MAX_GAP, Machine, Mark, NodeId, Recording, SourceId, Time, Transmit};
use events::EventTable;
pub use identity::Identity;
use live::Live;

mod asked;
mod clock;
mod events;
mod gaps;
mod identity;
mod live;
mod stream;
mod timed;

/// A command from the driver to a readout unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadoutCommand<B> {
    /// Start. The source has a fragment for every event up to `through` (`u64::MAX` for a source that makes any
    /// fragment on demand, 0 for a live one). `last` says that no more will follow.
    Start {
        /// The last event with a fragment.
        through: EventId,
        /// No more fragments will come.
        last: bool,
    },
    /// Start with a recording.
    StartRecorded(Recording),
    /// The answer to [`ReadoutEvent::Read`].
    Fragment(Fragment<B>),
    /// A fragment has arrived from a live front end.
    Arrived(Arrival<B>),
    /// Something has come from a live front end that its driver could not make a fragment of an event.
    Apart {
        /// What came.
        arrival: Arrival<B>,
        /// Why it belongs to no event.
        reason: Fault,
    },
    /// The live front end has ended.
    EndOfData {
        /// The number of its last fragment, if the front end has reported it.
        last: Option<u64>,
    },
    /// The live source, whose fragments are slices of time, has ended: behind its last slice there are no hits, so that it
    /// has an empty fragment of every event.
    EndOfSlices {
        /// The number of the last slice that it had, if it had any.
        last: Option<u64>,
    },
    /// Nothing waits in the queue of the live front end now. A driver says this in every turn in which it is so, and after
    /// the timer [`Timer::Silence`]; it is needed where fragments are matched by time.
    Quiet,
    /// The run is over, and none follows. Fragments of a live source without an event are set apart.
    Finish,
    /// A node is gone.
    Lost(NodeId),
    /// A builder that was gone is back, without its former state.
    Joined(NodeId),
}

/// A fragment from a live front end, which numbers events in its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival<B> {
    /// The front end's event number.
    pub number: u64,
    /// The front end announces that its counter restarted.
    pub restarted: bool,
    /// Time of its arrival at the node.
    pub arrived: Time,
    /// The value of the front end's clock in ticks, as it was sent, if the front end has a clock.
    pub clock: Option<u64>,
    /// Payload length in bytes.
    pub length: u32,
    /// CRC-32C of the payload.
    pub checksum: u32,
    /// The mark of the fragment, if it carries one.
    pub mark: Option<Mark>,
    /// The status of the payload.
    pub status: FragmentStatus,
    /// The payload's handle.
    pub payload: B,
}

/// An event from a readout unit for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadoutEvent<B> {
    /// Read a fragment from the source and answer with [`ReadoutCommand::Fragment`].
    Read {
        /// The event.
        event: EventId,
        /// Position of the fragment in the source, counted from 1. A source that does not number its fragments has
        /// every event.
        position: u64,
    },
    /// The event is over. Its payload buffer may be reused.
    Released(B),
    /// A fragment of a live source belongs to no event. It is counted in [`ReadoutCounts::apart`].
    Apart {
        /// The fragment as it arrived.
        arrival: Arrival<B>,
        /// Why it belongs to no event.
        reason: Fault,
    },
    /// The event manager is gone.
    Orphaned,
}

/// Counts of a readout unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadoutCounts {
    /// Fragments that a live source has delivered.
    pub came: u64,
    /// Delivered fragments that belong to no event and were set apart; the faults say why.
    pub apart: u64,
    /// Numbers of a live source that were skipped, including those up to its last number if it has reported that.
    pub skipped: u64,
    /// Counters and marks of a live source.
    pub identity: Identity,
    /// Fragments taken from the source for an event.
    pub fragments: u64,
    /// Bytes taken from the source.
    pub bytes: u64,
    /// Fragments sent, repetitions included.
    pub sent: u64,
    /// Fragments sent again because a builder asked for them: they were lost on the way.
    pub repeated: u64,
    /// Bytes sent.
    pub sent_bytes: u64,
    /// Number of times the buffer rose above the busy threshold.
    pub busy: u64,
    /// Most events held at once.
    pub most_events: u64,
    /// Most bytes held at once.
    pub most_bytes: u64,
    /// The last event that is known to be triggered.
    pub through: EventId,
    /// Faults by kind.
    pub faults: FaultCounts,
}

impl ReadoutCounts {
    /// What was counted after `before`, an earlier state of the same counts. The most that was held is that of both.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            came: self.came - before.came,
            apart: self.apart - before.apart,
            skipped: self.skipped.saturating_sub(before.skipped),
            identity: self.identity.since(&before.identity),
            // What was taken for an event that is never triggered is given back at the end.
            fragments: self.fragments.saturating_sub(before.fragments),
            bytes: self.bytes.saturating_sub(before.bytes),
            sent: self.sent - before.sent,
            repeated: self.repeated - before.repeated,
            sent_bytes: self.sent_bytes - before.sent_bytes,
            busy: self.busy - before.busy,
            most_events: self.most_events,
            most_bytes: self.most_bytes,
            through: EventId(self.through.0.saturating_sub(before.through.0)),
            faults: self.faults.since(&before.faults),
        }
    }
}

/// A fragment that is held. Its event is known by its place, and its source is the unit.
#[derive(Clone)]
struct HeldFragment<B> {
    length: u32,
    checksum: u32,
    mark: Option<Mark>,
    counter: Option<Counter>,
    status: FragmentStatus,
    payload: B,
}

impl<B> HeldFragment<B> {
    fn of(fragment: Fragment<B>) -> Self {
        let Fragment { length, checksum, mark, counter, status, payload, .. } = fragment;
        Self { length, checksum, mark, counter, status, payload }
    }

    fn with(self, event: EventId, source: SourceId) -> Fragment<B> {
        let Self { length, checksum, mark, counter, status, payload } = self;
        Fragment { event, source, length, checksum, mark, counter, status, payload }
    }
}

/// The state of one event.
struct HeldEvent<B> {
    fragment: Option<HeldFragment<B>>,
    /// The driver was asked to read the fragment.
    asked: bool,
    /// The fragment will be read when the buffer has room.
    postponed: bool,
    /// The builder that waits for the fragment.
    wanted_by: Option<NodeId>,
    /// The last transmission of the fragment.
    sent: Option<LastTransmission>,
    /// The fragment is there, and no builder has wanted it yet.
    early: bool,
}

// A simulation of hundreds of units has millions of them.
const _: () = assert!(EventTable::<HeldEvent<u64>>::EVENT_BYTES == 48);

impl<B> Default for HeldEvent<B> {
    fn default() -> Self {
        Self { fragment: None, asked: false, postponed: false, wanted_by: None, sent: None, early: false }
    }
}

/// A readout unit as a machine.
pub struct ReadoutMachine<B> {
    config: Config,
    source: SourceId,
    now: Time,
    /// The stream of a live source.
    stream: Option<Live<B>>,
    /// Number of events before position 1 of a source that is read on demand.
    before: i64,
    /// Positions of a recording whose events are not known yet: the number before its first leap, and the total.
    unaligned: Option<(u64, u64)>,
    /// The last event of the source, if known.
    end: Option<u64>,
    /// Behind the end there are empty fragments.
    is_empty_behind: bool,
    /// The event manager wants marks, and knows them up to `compared`.
    comparing: bool,
    compared: EventId,
    /// The source has ended, and the event manager has all its marks.
    reported_all: bool,
    /// Some events have just become known to have no fragment.
    skipped: bool,
    counts: ReadoutCounts,
    held: EventTable<HeldEvent<B>>,
    /// Events requested or held.
    reserved: u64,
    /// Events to be read when the buffer has room, in the order of their requests. Some may be over.
    postponed: VecDeque<EventId>,
    bytes_held: u64,
    /// Reads under way; the sizes of their fragments are not known yet.
    under_way: u64,
    /// Number of events whose fragments a builder waits for, and of those whose fragments wait for a builder.
    wanted: u64,
    early: u64,
    busy: bool,
    askers: Vec<Asker>,
    shaper: Shaper<B>,
    /// The last announcement to the event manager.
    announced: (u64, u64, bool),
    transmits: VecDeque<Transmit<Message<B>>>,
    events: VecDeque<ReadoutEvent<B>>,
}

impl<B> ReadoutMachine<B> {
    /// Memory per event beside the payload, in bytes.
    pub const EVENT_BYTES: usize = EventTable::<HeldEvent<B>>::EVENT_BYTES;
    /// Memory per fragment that waits to be matched by time beside the payload, in bytes: the fragment and its time.
    pub const ARRIVAL_BYTES: usize = size_of::<Option<Arrival<B>>>() + size_of::<u64>();
}

impl<B: Clone + Default> ReadoutMachine<B> {
    /// The readout unit of `source`. `live` is given for a live source: the front end's event counter.
    pub fn new(config: Config, source: SourceId, live: Option<EventCounter>) -> Self {
        Self {
            askers: (0..config.builder_units).map(|_| Asker::default()).collect(),
            shaper: Shaper::new(config.shaping, config.builder_nodes().iter()),
            stream: live.map(|counter| Live::new(&config, source, counter)),
            config,
            source,
            now: Time::ZERO,
            before: 0,
            unaligned: None,
            end: None,
            is_empty_behind: false,
            comparing: false,
            compared: EventId(0),
            reported_all: false,
            skipped: false,
            counts: ReadoutCounts::default(),
            held: EventTable::from(1),
            reserved: 0,
            postponed: VecDeque::new(),
            bytes_held: 0,
            under_way: 0,
            wanted: 0,
            early: 0,
            busy: false,
            announced: (0, 0, false),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The counts so far.
    pub const fn counts(&self) -> &ReadoutCounts {
        &self.counts
    }

    /// Returns true if no fragment is held.
    pub fn is_idle(&self) -> bool {
        self.held.iter_from(self.held.first()).all(|(_, held)| held.fragment.is_none()) && self.under_way == 0
    }

    /// Events requested or held at present, and the payload bytes held.
    pub const fn held(&self) -> (u64, u64) {
        (self.reserved, self.bytes_held)
    }

    /// Number of fragments of a live source that wait for their event.
    pub fn waiting(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.unplaced() as u64)
    }

    /// Returns true if it is not known to which events the fragments of a live source belong.
    pub fn is_out_of_step(&self) -> bool {
        self.stream.as_ref().is_some_and(Live::is_out_of_step)
    }

    /// Number of events before the first one of a recording; negative if the recording has fragments from before the
    /// first event.
    pub const fn events_before(&self) -> i64 {
        self.before
    }

    /// Returns true if the slices of the source have ended before this event.
    fn is_behind(&self, event: EventId) -> bool {
        self.is_empty_behind && self.end.is_some_and(|end| event.0 > end)
    }

    /// Returns true if the fragments of [`ReadoutEvent::Read`] are needed now: a builder waits for one, or fewer than
    /// `ahead` are there that no builder has wanted yet. A fragment that is read long before leaves the caches again.
    pub const fn wants_reading(&self, ahead: u64) -> bool {
        self.wanted > 0 || self.early < ahead
    }

    /// Returns true if another [`ReadoutCommand::Arrived`] fits. The driver lets the front end wait while it does not.
    pub fn has_room(&self) -> bool {
        let most = u64::from(self.config.buffer_events);
        let listed = self.held.len() < most * Config::SPAN_FACTOR as u64;
        let room = self.stream.as_ref().map_or(most, |stream| stream.room(most));
        let bytes = self.bytes_held + self.stream.as_ref().map_or(0, Live::bytes);
        listed && self.reserved < room && bytes < self.config.buffer_bytes.0
    }

    /// The entry of `event`, created if it is new. `None` for an event that is over or absurdly far ahead.
    fn entry(&mut self, event: EventId) -> Option<&mut HeldEvent<B>> {
        let index = usize::try_from(event.0.checked_sub(self.held.first())?).ok()?;
        // The event manager keeps open events within this span; a live source may be one gap ahead of it.
        if index >= (Config::SPAN_FACTOR + 1) * self.config.buffer_events as usize + MAX_GAP as usize {
            return None;
        }
        self.held.entry(event.0)
    }

    /// Position of an event in a source that is read on demand, counted from 1.
    const fn position(&self, event: EventId) -> i64 {
        event.0 as i64 - self.before
    }

    /// Returns true if the source will never have this event: it has ended, or a live front end has passed the event or
    /// lost its alignment.
    fn never_comes(&self, event: EventId) -> bool {
        let passed = self.stream.as_ref().is_some_and(|stream| stream.never_has(event));
        passed || self.end.is_some_and(|end| event.0 > end)
    }

    /// Returns true if the fragment of an event may be read now. A read under way counts with the largest fragment
    /// size, but one is always allowed while the buffer is not full. When the buffer is full, only the oldest open
    /// event is read: every readout unit can deliver it, so it ends and makes room. So the buffer exceeds its bytes by
    /// less than two fragments.
    fn may_read(&self, event: EventId) -> bool {
        let (largest, most) = (self.config.max_fragment.0, self.config.buffer_bytes.0);
        let fits = self.bytes_held + (self.under_way + 1) * largest <= most;
        let is_next = self.under_way == 0 && (self.bytes_held < most || event.0 == self.held.first());
        // A builder's request may overtake the clearing before it.
        let listed = self.reserved < u64::from(self.config.buffer_events);
        listed && (fits || is_next)
    }

    /// Reads postponed events in the order of their requests as far as there is room. The oldest open event needs no
    /// room.
    fn ask_for_postponed(&mut self) {
        while let Some(&next) = self.postponed.front() {
            if !self.ask_again(next) {
                self.ask_again(EventId(self.held.first()));
                return;
            }
            self.postponed.pop_front();
        }
    }

    /// Reads a postponed event; returns false if it still has to wait.
    fn ask_again(&mut self, event: EventId) -> bool {
        let may_read = self.may_read(event);
        let Some(held) = self.entry(event).filter(|held| held.postponed) else { return true };
        held.postponed = !may_read;
        if may_read {
            self.ask(event);
        }
        may_read
    }

    /// Asks the driver for an event's fragment, once, as soon as the buffer has room.
    fn ask(&mut self, event: EventId) {
        let (live, may_read, position) = (self.stream.is_some(), self.may_read(event), self.position(event));
        let Some(held) = self.entry(event).filter(|held| !held.asked && !held.postponed) else {
            return;
        };
        if live {
            return;
        }
        if !may_read {
            held.postponed = true;
            return self.postponed.push_back(event);
        }
        held.asked = true;
        self.reserved += 1;
        self.under_way += 1;
        self.events.push_back(ReadoutEvent::Read { event, position: position.unsigned_abs() });
    }

    /// Sends an event's fragment to `builder`, now or when it has been read.
    fn serve(&mut self, event: EventId, builder: NodeId) {
        let Some(held) = self.entry(event) else {
            self.counts.faults.count(Fault::Unexpected);
            return;
        };
        // A builder that lacks what it was sent asks for it.
        if held.sent.is_some_and(|sent| sent.is_to(builder)) {
            return;
        }
        let is_new = held.wanted_by.replace(builder).is_none();
        let present = held.fragment.is_some();
        self.wanted += u64::from(is_new);
        self.counts.through = self.counts.through.max(event);
        if present {
            self.send(event);
        } else if self.never_comes(event) {
            self.answer_missing(event);
        } else {
            self.ask(event);
        }
    }

    /// Sends an event's fragment to the builder that waits for it. The original stays until the event is cleared.
    fn send(&mut self, event: EventId) {
        let (now, source) = (self.now, self.source);
        let Some(held) = self.entry(event) else { return };
        let (Some(fragment), Some(to)) = (held.fragment.clone(), held.wanted_by.take()) else { return };
        let was_early = core::mem::take(&mut held.early);
        self.wanted -= 1;
        self.early -= u64::from(was_early);
        let Some(builder) = self.builder(to) else { return };
        let sent = self.sent_now(to, builder);
        if let Some(held) = self.entry(event) {
            held.sent = Some(sent);
        }
        self.counts.sent += 1;
        self.counts.sent_bytes += u64::from(fragment.length);
        self.shaper.push(now, builder, fragment.with(event, source));
    }

    /// Takes the answer to [`ReadoutEvent::Read`].
    fn read(&mut self, fragment: Fragment<B>) {
        self.under_way = self.under_way.saturating_sub(1);
        if let Some((refused, _)) = self.take(fragment) {
            self.events.push_back(ReadoutEvent::Released(refused.payload));
        }
        self.ask_for_postponed();
    }

    /// Stores a fragment, and sends it if a builder waits for it. Returns it, with the reason, if the event has a
    /// fragment already or is over.
    fn take(&mut self, fragment: Fragment<B>) -> Option<(Fragment<B>, Fault)> {
        let (event, length) = (fragment.event, u64::from(fragment.length));
        let is_missing = fragment.status == FragmentStatus::Missing || self.is_behind(event);
        let Some(held) = self.entry(event) else {
            // In phases an event may end before a unit that was not asked has its fragment.
            let is_late = !matches!(self.config.protocol, Protocol::Phased { .. });
            self.counts.faults.add(Fault::Late, is_late.into());
            return Some((fragment, Fault::Late));
        };
        if held.fragment.is_some() {
            self.counts.faults.count(Fault::Duplicate);
            return Some((fragment, Fault::Duplicate));
        }
        held.fragment = Some(HeldFragment::of(fragment));
        held.early = true;
        // What was asked for has its place already.
        let asked = core::mem::replace(&mut held.asked, true);
        self.reserved += u64::from(!asked);
        if !is_missing {
            self.counts.fragments += 1;
            self.counts.bytes += length;
        }
        self.bytes_held += length;
        self.early += 1;
        self.counts.most_events = self.counts.most_events.max(self.reserved);
        self.counts.most_bytes = self.counts.most_bytes.max(self.bytes_held);
        self.send(event);
        None
    }

    /// Answers for all awaited events that the source will never have.
    fn answer_what_never_comes(&mut self) {
        self.answer_missing_among(self.held.first()..=self.held.end());
    }

    /// Answers for all awaited events among these that the source will never have.
    fn answer_missing_among(&mut self, events: RangeInclusive<u64>) {
        let events = *events.start().max(&self.held.first())..self.held.end().min(events.end().saturating_add(1));
        for event in events.map(EventId) {
            let waits = self.entry(event).is_some_and(|held| held.wanted_by.is_some() && held.fragment.is_none());
            if waits && self.never_comes(event) {
                self.answer_missing(event);
            }
        }
    }

    /// Tells the builder at once that a fragment does not come.
    fn answer_missing(&mut self, event: EventId) {
        let mut missing = self.missing(event);
        if self.is_behind(event) {
            (missing.status, missing.checksum) = (FragmentStatus::Good, evb_core::checksum(&[]));
        }
        self.take(missing);
    }

    fn assign(&mut self, list: &[Assigned]) {
        // The barrel shifter at the source: readout unit n starts at entry n, so that no two start at one builder.
        let start = self.source.index() % list.len().max(1);
        let (head, tail) = list.split_at(start);
        tail.iter().chain(head).for_each(|assigned| self.serve(assigned.event, assigned.builder));
    }

    fn clear(&mut self, event: EventId) {
        if self.entry(event).is_none() {
            return;
        }
        let Some(held) = self.held.end_event(event.0) else { return };
        if let Some(fragment) = held.fragment {
            self.bytes_held -= u64::from(fragment.length);
            self.events.push_back(ReadoutEvent::Released(fragment.payload));
        }
        self.reserved -= u64::from(held.asked);
        self.wanted -= u64::from(held.wanted_by.is_some());
        self.early -= u64::from(held.early);
        self.ask_for_postponed();
    }

    fn read_out(&mut self, through: EventId) {
        for event in self.counts.through.0 + 1..=through.0 {
            self.ask(EventId(event));
        }
        self.counts.through = self.counts.through.max(through);
    }

    /// Part of the buffer in use, in percent. The buffer counts as full when an event waits for room.
    fn fill_percent(&self) -> u64 {
        if self.under_way == 0 && !self.postponed.is_empty() {
            return 100;
        }
        let events = self.reserved * 100 / u64::from(self.config.buffer_events).max(1);
        events.max(self.bytes_held * 100 / self.config.buffer_bytes.0.max(1))
    }

    fn report_state(&mut self) {
        let manager = Config::EVENT_MANAGER.into();
        let fill = self.fill_percent();
        let busy = if self.busy {
            fill > u64::from(self.config.free_percent)
        } else {
            fill >= u64::from(self.config.busy_percent)
        };
        if busy != self.busy {
            self.busy = busy;
            self.counts.busy += u64::from(busy);
            // A full live buffer holds back its own front end; only readout on demand needs the trigger to stop.
            if self.stream.is_none() {
                self.transmits.push_back(Transmit { to: manager, message: Message::Busy(busy) });
            }
        }
        let triggered = self.counts.through;
        match &mut self.stream {
            Some(stream) => {
                let (through, last) = stream.available();
                let is_no_limit = self.config.trigger == Trigger::AllData && stream.is_gone();
                self.announce((if is_no_limit { u64::MAX } else { through }, through, last));
            }
            None => {
                // Others have gone on behind the last event before a leap of a recording.
                let (through, claim, last) = self.announced;
                if through < claim && through < triggered.0 {
                    self.announce((claim, claim, last));
                }
            }
        }
    }

    /// Announces the available events to the event manager if they have changed.
    fn announce(&mut self, available: (u64, u64, bool)) {
        if available != self.announced {
            self.announced = available;
            let (through, claim, last) = available;
            let message = Message::Available { through: EventId(through), claim: EventId(claim), last };
            self.transmits.push_back(Transmit { to: Config::EVENT_MANAGER.into(), message });
        }
    }

    fn start(&mut self, through: EventId, last: bool) {
        self.start_timed();
        if last && through.0 < u64::MAX {
            self.end = Some(through.0);
        }
        if self.stream.is_none() {
            self.announce((through.0, through.0, last));
        }
    }

    fn lose(&mut self, node: NodeId) {
        if node == Config::EVENT_MANAGER {
            self.events.push_back(ReadoutEvent::Orphaned);
        }
        self.note_builder(node, true);
        self.shaper.forget(node);
        for held in self.held.states_mut() {
            held.wanted_by = held.wanted_by.filter(|&builder| builder != node);
            held.sent = held.sent.filter(|sent| !sent.is_to(node));
        }
        self.wanted = self.held.states_mut().filter(|held| held.wanted_by.is_some()).count() as u64;
    }
}

impl<B: Clone + Default> Machine for ReadoutMachine<B> {
    type Message = Message<B>;
    type Command = ReadoutCommand<B>;
    type Event = ReadoutEvent<B>;
    type Timer = Timer;

    fn handle_message(&mut self, now: Time, from: NodeId, message: Message<B>) {
        self.now = now;
        match message {
            Message::Assign(list) => self.assign(&list),
            Message::Pull(events) if self.builder(from).is_some() => {
                events.iter().for_each(|&event| self.serve(event, from));
            }
            Message::Ask { number, heard, events } => self.answer(from, number, heard, &events),
            Message::Resume { first } => self.resume(first),
            Message::Clear(events) => events.iter().for_each(|&event| self.clear(event)),
            Message::Readout { through } => self.read_out(through),
            Message::Align { segment, first } => self.align(segment, first),
            Message::Matched { through, outcomes } => self.match_times(through, &outcomes),
            Message::Compare(wanted) => {
                (self.comparing, self.compared, self.reported_all) = (wanted, EventId(0), false);
            }
            _ => self.counts.faults.count(Fault::Unexpected),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        self.shaper.handle_timeout(now);
        self.give_up_waiting();
        self.wait_for_silence();
    }

    fn handle_command(&mut self, now: Time, command: ReadoutCommand<B>) {
        self.now = now;
        match command {
            ReadoutCommand::Start { through, last } => self.start(through, last),
            ReadoutCommand::StartRecorded(recording) => self.start_recorded(&recording),
            ReadoutCommand::Fragment(fragment) => self.read(fragment),
            ReadoutCommand::Arrived(arrival) => self.arrive(arrival),
            ReadoutCommand::Apart { arrival, reason } => {
                self.counts.came += 1;
                self.set_apart(arrival, reason);
            }
            ReadoutCommand::EndOfData { last } => self.end_stream(last),
            ReadoutCommand::EndOfSlices { last } => {
                self.is_empty_behind = true;
                self.end_stream(last);
            }
            ReadoutCommand::Quiet => self.be_silent(),
            ReadoutCommand::Finish => self.finish(),
            ReadoutCommand::Lost(node) => self.lose(node),
            ReadoutCommand::Joined(node) => self.note_builder(node, false),
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit<Message<B>>> {
        if self.transmits.is_empty() {
            self.report_state();
            self.report_sightings();
            self.report_times();
        }
        self.transmits.pop_front().or_else(|| self.shaper.poll())
    }

    fn poll_event(&mut self) -> Option<ReadoutEvent<B>> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Time, Timer)> {
        let packet = self.shaper.deadline().map(|deadline| (deadline, Timer::Packet));
        let live = if matches!(self.stream, Some(Live::Timed(_))) { Timer::Silence } else { Timer::Overtaken };
        let overtaken = self.stream.as_ref().and_then(Live::deadline).map(|deadline| (deadline, live));
        packet.into_iter().chain(overtaken).min_by_key(|(deadline, _)| *deadline)
    }
}
