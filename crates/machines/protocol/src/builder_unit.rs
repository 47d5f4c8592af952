//! The builder unit: puts the fragments of an event together, checks them, and hands the event on.
//!
//! A builder gets a grant with push, too. So it knows its own events: it can close an event of which no fragment came,
//! and can distinguish a stray fragment from one that overtook its grant. Push and pull then need the same builder,
//! except for one message.

use crate::{
    Completion, Config, Ending, Fault, FaultCounts, Fragment, FragmentStatus, Message, Protocol, Recent, Region, Timer,
};
use alloc::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    vec::Vec,
};
use core::{num::NonZeroU32, ops::Range};
use evb_core::{EventId, Machine, NodeId, NodeRange, SourceId, Time, Transmit, bits::BitSet, put};
use hashbrown::HashMap;
use history::History;
use inquiry::{Inquiry, InquiryWindow};
use liveness::Membership;
pub use mismatch::Mismatch;
use requests::Requests;
use silence::Silence;
use source_faults::SourceFaults;

mod history;
mod inquiry;
mod liveness;
mod mismatch;
mod requests;
mod silence;
mod source_faults;

/// Most damaged fragments that are remembered.
const MOST_DAMAGED: usize = 1024;

/// A command from the driver to a builder unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuilderCommand<B> {
    /// Ask for events.
    Start,
    /// The event is stored, or needs no storing: it may be reported as done. Its memory comes back for the next one.
    Stored(Built<B>),
    /// The event was rejected after it was built: it ends, and nothing of it is stored.
    Rejected(Built<B>),
    /// The answer to [`BuilderEvent::Decide`].
    Decided {
        /// The event.
        event: EventId,
        /// True if the other fragments are wanted; if false, the event ends here.
        accepted: bool,
    },
    /// A fragment has arrived whose payload does not match its checksum. The builder asks for it again. If a second
    /// copy has the same bytes, the readout unit has no better one, and the fragment counts as corrupted.
    Damaged {
        /// The sender.
        from: NodeId,
        /// The fragment as it arrived, with the checksum of the bytes that arrived.
        fragment: Fragment<B>,
    },
    /// The node did not run for so long that its peers may have given it up. It builds nothing until the event manager
    /// confirms that it still belongs to the run.
    Away,
    /// Nothing has moved for so long that nothing will. From now on, an event that has waited for the patience ends
    /// with the fragments that are there. Missing fragments count as [`Fault::Cut`].
    Cut,
    /// A node is gone. The death of a readout unit counts only when the event manager reports it.
    Lost(NodeId),
    /// A readout unit that was gone is back.
    Joined(NodeId),
}

/// An event put together: one entry per source, `None` where no fragment came or none was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built<B> {
    /// The event.
    pub event: EventId,
    /// The time at which the builder heard of the event: of its grant, or of its first fragment if that came before.
    pub opened: Time,
    /// True if every fragment that was asked for is there and good.
    pub complete: bool,
    /// The readout units that were asked.
    pub asked: Region,
    /// The fragments in the order of their sources.
    pub fragments: Vec<Option<Fragment<B>>>,
}

/// An event from a builder unit for the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuilderEvent<B> {
    /// An event is complete or has ended without some fragments: store it, and answer with [`BuilderCommand::Stored`].
    Built(Built<B>),
    /// The first phase of an event is over ([`Protocol::Phased`]): answer with [`BuilderCommand::Decided`]. The event
    /// waits for the answer without limit, as it waits for storage.
    Decide {
        /// The event.
        event: EventId,
        /// True if every fragment of the first phase is there and good.
        complete: bool,
    },
    /// The event manager is gone.
    Orphaned,
    /// The node was away and was not given up: it continues.
    Confirmed,
    /// The node was given up. Other builders build its events, and it must store nothing more.
    Fenced,
}

/// Counts of a builder unit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuilderCounts {
    /// Events stored with every fragment there and good.
    pub built: u64,
    /// Events stored with a fragment missing or bad.
    pub incomplete: u64,
    /// Events rejected after they were built, or after their first phase.
    pub rejected: u64,
    /// Fragments received.
    pub fragments: u64,
    /// Payload bytes received.
    pub bytes: u64,
    /// Fragments asked for because they had not arrived; each question counts.
    pub asked: u64,
    /// Second copies of fragments that were asked for. They are dropped.
    pub repeated: u64,
    /// Most events under construction or being stored at once.
    pub most_open: u64,
    /// Faults by kind.
    pub faults: FaultCounts,
}

impl BuilderCounts {
    /// What was counted after `before`, an earlier state of the same counts. The most open events are those of both.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            built: self.built - before.built,
            incomplete: self.incomplete - before.incomplete,
            rejected: self.rejected - before.rejected,
            fragments: self.fragments - before.fragments,
            bytes: self.bytes - before.bytes,
            asked: self.asked - before.asked,
            repeated: self.repeated - before.repeated,
            most_open: self.most_open,
            faults: self.faults.since(&before.faults),
        }
    }

    /// Counts a second copy of a fragment. It is not a fault if the fragment was asked for.
    fn count_copy(&mut self, asked: bool) {
        if asked { self.repeated += 1 } else { self.faults.count(Fault::Duplicate) }
    }
}

/// The progress of the construction of an event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EventPhase {
    /// It waits for fragments of the first phase.
    First,
    /// It waits for a decision.
    Deciding,
    /// It waits for fragments of the other sources.
    Rest,
}

/// An event under construction.
struct Building<B> {
    /// The event manager has granted the event to this builder.
    granted: bool,
    phase: EventPhase,
    /// The sources of the first phase: all if there is only one.
    first: Region,
    /// Number of sources that the phase waits for and whose fragments can still arrive.
    waiting: u32,
    /// No bad fragment has arrived.
    good: bool,
    /// A fragment with a mark has arrived.
    marked: bool,
    /// A time limit ended the event or one of its phases.
    cut: bool,
    /// Start of the construction, and of the current phase.
    opened: Time,
    since: Time,
    fragments: Vec<Option<Fragment<B>>>,
    /// The sources whose fragments are there. With many events and sources it stays in a cache, and `fragments` do not.
    there: BitSet,
}

impl<B> Building<B> {
    /// Returns true if the phase has every fragment that it can get.
    fn is_ready(&self) -> bool {
        self.granted && self.waiting == 0 && self.is_collecting()
    }

    fn is_collecting(&self) -> bool {
        self.phase != EventPhase::Deciding
    }

    /// The fragment of this source is one of those that the phase waits for.
    fn awaits(&self, source: usize) -> bool {
        self.is_collecting() && self.first.contains(source) == (self.phase == EventPhase::First)
    }

    /// The fragment of this source is one of those that were asked for so far.
    fn has_asked(&self, source: usize) -> bool {
        self.phase == EventPhase::Rest || self.first.contains(source)
    }

    /// Returns true if the phase waits for the fragment of this source.
    fn lacks(&self, source: usize) -> bool {
        self.granted && self.awaits(source) && !self.there.contains(source)
    }

    /// The event with what was asked for so far. The set is for another event.
    fn into_built(self, event: EventId, sets: &mut Vec<BitSet>) -> Built<B> {
        sets.push(self.there);
        let asked = if self.phase == EventPhase::Rest { Region::ALL } else { self.first };
        let (opened, complete) = (self.opened, false);
        let mut built = Built { event, opened, complete, asked, fragments: self.fragments };
        built.complete = self.good && built.wanted().all(|(_, fragment)| fragment.is_some());
        built
    }
}

/// A builder unit as a machine.
pub struct BuilderMachine<B> {
    config: Config,
    now: Time,
    counts: BuilderCounts,
    building: HashMap<EventId, Building<B>>,
    /// Earliest time at which a fragment may be asked for or an event may time out.
    next_look: Time,
    inquiries: Vec<Inquiry>,
    window: InquiryWindow,
    requests: Requests,
    asked: Recent<(EventId, SourceId)>,
    /// Damaged fragments, each with the checksum of its last copy.
    damaged: Vec<(EventId, SourceId, u32)>,
    membership: Membership,
    /// Events under construction that are not granted yet.
    ungranted: u32,
    /// Events handed to the driver and not yet stored.
    storing: u64,
    alive: Vec<bool>,
    silence: Silence,
    history: History,
    mismatches: Vec<Mismatch>,
    source_faults: SourceFaults,
    /// Accepted events whose other fragments are not requested yet.
    accepted: Vec<EventId>,
    /// Memory for the fragments of events, and their sets, for the next ones.
    spare: Vec<Vec<Option<Fragment<B>>>>,
    sets: Vec<BitSet>,
    done: Vec<Completion>,
    slots: u32,
    transmits: VecDeque<Transmit<Message<B>>>,
    events: VecDeque<BuilderEvent<B>>,
}

impl<B> BuilderMachine<B> {
    /// The builder unit with this index, from 0. It waits for [`BuilderCommand::Start`].
    pub fn new(config: Config, index: u16) -> Self {
        Self {
            alive: (0..config.readout_units).map(|_| true).collect(),
            silence: Silence::new(config.readout_units),
            inquiries: (0..config.readout_units).map(|_| Inquiry::default()).collect(),
            window: InquiryWindow::new(config.readout_units),
            requests: Requests::new(&config, index),
            asked: Recent::new(inquiry::MOST_REMEMBERED),
            damaged: Vec::new(),
            membership: Membership::default(),
            config,
            now: Time::ZERO,
            counts: BuilderCounts::default(),
            building: HashMap::new(),
            next_look: Time::MAX,
            ungranted: 0,
            storing: 0,
            history: History::default(),
            mismatches: Vec::new(),
            source_faults: SourceFaults::default(),
            accepted: Vec::new(),
            spare: Vec::new(),
            sets: Vec::new(),
            done: Vec::new(),
            slots: 0,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The counts so far.
    pub const fn counts(&self) -> &BuilderCounts {
        &self.counts
    }

    /// The fragments of an event under construction, by source; empty if the event is not under construction.
    pub fn fragments(&self, event: EventId) -> &[Option<Fragment<B>>] {
        self.building.get(&event).map_or(&[], |building| &building.fragments)
    }

    /// The readout units of the first phase of an event.
    pub fn first_phase(&self, event: EventId) -> Region {
        self.config.first_phase(event)
    }

    /// The first events whose fragments disagreed.
    pub fn mismatches(&self) -> &[Mismatch] {
        &self.mismatches
    }

    /// The faults of each source, since the start or the last [`reset_source_faults`](Self::reset_source_faults). If very
    /// many sources have faults, only the first are here.
    pub fn source_faults(&self) -> impl Iterator<Item = (SourceId, &FaultCounts)> {
        self.source_faults.iter()
    }

    /// Begins to count the faults of each source anew.
    pub fn reset_source_faults(&mut self) {
        self.source_faults = SourceFaults::default();
    }

    /// Events under construction at present, and events handed to the driver that are not stored yet.
    pub fn open_events(&self) -> (u64, u64) {
        (self.building.len() as u64, self.storing)
    }

    /// Number of events under construction that wait for the fragment of each readout unit at present, by source.
    pub fn lacking(&self) -> Vec<u64> {
        let lacking = |source| self.building.values().filter(|building| building.lacks(source)).count() as u64;
        (0..self.alive.len()).map(lacking).collect()
    }

    /// Returns true if no event is under construction or being stored.
    pub fn is_idle(&self) -> bool {
        self.building.is_empty() && self.storing == 0
    }

    fn source_of(&self, node: NodeId) -> Option<SourceId> {
        let range = self.config.readout_nodes();
        range.contains(node).then(|| SourceId(node.0 - range.first.0))
    }

    /// Starts a phase of an event: it waits for those of its sources that are alive.
    fn begin_phase(&mut self, building: &mut Building<B>, phase: EventPhase) {
        self.look_after(self.first_limit());
        building.phase = phase;
        building.since = self.now;
        let awaited = self.alive.iter().enumerate().filter(|&(source, &alive)| alive && building.awaits(source));
        building.waiting = awaited.count() as u32;
    }

    /// Returns true if the builder holds as many events as it may: its slots, plus the oldest open event, which needs
    /// no slot.
    fn is_full(&self) -> bool {
        self.building.len() as u64 + self.storing > u64::from(self.config.builder_slots)
    }

    fn open(&mut self, event: EventId, granted: bool) {
        if self.ungranted > 0 && self.is_full() {
            self.drop_oldest_stray();
        }
        let mut fragments = self.spare.pop().unwrap_or_default();
        fragments.clear();
        fragments.resize_with(self.alive.len(), || None);
        let mut there = self.sets.pop().unwrap_or_else(|| BitSet::new(self.alive.len()));
        there.clear();
        self.counts.most_open = self.counts.most_open.max(self.building.len() as u64 + 1 + self.storing);
        let mut building = Building {
            granted,
            phase: EventPhase::First,
            first: self.first_phase(event),
            waiting: 0,
            good: true,
            marked: false,
            cut: false,
            opened: self.now,
            since: self.now,
            fragments,
            there,
        };
        self.begin_phase(&mut building, EventPhase::First);
        self.building.insert(event, building);
    }

    fn grant(&mut self, event: EventId) {
        if let Some(building) = self.building.get_mut(&event) {
            if !building.granted {
                building.granted = true;
                self.ungranted -= 1;
            }
        } else {
            self.open(event, true);
        }
        self.conclude_if_ready(event);
    }

    fn receive(&mut self, from: NodeId, fragment: Fragment<B>) {
        self.counts.fragments += 1;
        self.counts.bytes += u64::from(fragment.length);
        if self.source_of(from) != Some(fragment.source) {
            return self.counts.faults.count(Fault::Unexpected);
        }
        let (event, source) = (fragment.event, fragment.source);
        self.requests.hear(source.0, event);
        if self.silence.has_missed(source.index()) {
            self.silence.hear(source.index());
        }
        if !self.damaged.is_empty() && fragment.status != FragmentStatus::Corrupted {
            self.count_damage(event, source);
        }
        let Err(fragment) = self.place(fragment) else { return };
        // The answer to a question that was asked before the event ended.
        if fragment.status == FragmentStatus::Missing && self.history.has(event) {
            return;
        }
        if self.open_ungranted(event, source) {
            let _opened_just_now = self.place(fragment);
        }
    }

    /// Puts a fragment into its event; returns it if the event is not under construction.
    fn place(&mut self, fragment: Fragment<B>) -> Result<(), Fragment<B>> {
        let event = fragment.event;
        let Some(building) = self.building.get_mut(&event) else { return Err(fragment) };
        let source = fragment.source.index();
        if !building.has_asked(source) {
            self.counts.faults.count(Fault::Unexpected);
            return Ok(());
        }
        if building.there.contains(source) {
            let asked = self.asked.contains(&(event, fragment.source));
            self.counts.count_copy(asked);
            return Ok(());
        }
        // A dead source is not waited for, but its fragments are good.
        if building.awaits(source) && self.alive[source] {
            building.waiting = building.waiting.saturating_sub(1);
        }
        building.good &= fragment.status == FragmentStatus::Good;
        building.marked |= fragment.mark.is_some();
        building.there.insert(source);
        put(&mut building.fragments[source], fragment);
        self.conclude_if_ready(event);
        Ok(())
    }

    /// Opens an event whose fragment arrived before its grant. Returns false if the fragment is late, a second
    /// copy or unexpected, and counts it.
    fn open_ungranted(&mut self, event: EventId, source: SourceId) -> bool {
        let fault = if self.history.lacks(event, source) {
            Fault::Late
        } else if self.history.has(event) {
            let asked = self.asked.contains(&(event, source));
            self.counts.count_copy(asked);
            return false;
        } else if !self.first_phase(event).contains(source.index()) || self.is_full() {
            // No event begins with another source, and no more events can be on their way to us than we have asked for:
            // any more are stray.
            Fault::Unexpected
        } else {
            self.ungranted += 1;
            self.open(event, false);
            return true;
        };
        self.count_fault(source, fault);
        false
    }

    fn conclude_if_ready(&mut self, event: EventId) {
        if self.building.get(&event).is_some_and(Building::is_ready) {
            self.conclude(event);
        } else if self.silence.is_any() {
            self.pass_silent(event);
        }
    }

    /// Ends a phase of an event with the fragments that arrived. The last phase ends the event; an earlier one asks for
    /// a decision.
    fn conclude(&mut self, event: EventId) {
        let decides = matches!(self.config.protocol, Protocol::Phased { rest: true, .. });
        // Generated fragments carry no marks.
        if !self.config.numbered.is_empty() {
            self.compare(event);
        }
        match self.building.get_mut(&event) {
            Some(building) if decides && building.granted && building.phase == EventPhase::First => {
                building.phase = EventPhase::Deciding;
                let lacks = |(source, one): (usize, &Option<_>)| one.is_none() && building.first.contains(source);
                let complete = building.good && !building.fragments.iter().enumerate().any(lacks);
                self.events.push_back(BuilderEvent::Decide { event, complete });
            }
            _ => self.close(event),
        }
        self.requests.end(event);
    }

    /// Compares the marks of an event's fragments. Fragments whose marks disagree were not recorded for the same
    /// trigger.
    fn compare(&mut self, event: EventId) {
        let Some(building) = self.building.get_mut(&event).filter(|building| building.marked) else { return };
        let found = mismatch::compare(event, &mut building.fragments, &self.config);
        building.good &= !found.spoils;
        let reported = found.first.filter(|_| found.spoils && self.mismatches.len() < mismatch::MOST_REPORTED);
        self.mismatches.extend(reported);
        found.sources.iter().for_each(|source| self.count_fault(*source, Fault::Mismatch));
    }

    fn count_fault(&mut self, source: SourceId, fault: Fault) {
        self.counts.faults.count(fault);
        self.source_faults.count(source, fault);
    }

    fn decided(&mut self, event: EventId, accepted: bool) {
        if self.building.get(&event).is_none_or(Building::is_collecting) {
            return;
        }
        if !accepted {
            return self.reject(event);
        }
        let Some(mut building) = self.building.remove(&event) else { return };
        self.begin_phase(&mut building, EventPhase::Rest);
        self.building.insert(event, building);
        self.accepted.push(event);
        self.conclude_if_ready(event);
    }

    /// Ends an event after its first phase and drops its fragments.
    fn reject(&mut self, event: EventId) {
        let Some(building) = self.building.remove(&event) else { return };
        let cut = building.cut;
        let mut built = building.into_built(event, &mut self.sets);
        self.count_faults(&built, cut);
        self.history.push(&built);
        built.fragments.clear();
        self.spare.push(built.fragments);
        self.end(event, Ending::Rejected);
    }

    /// Ends an event with the fragments that arrived.
    fn close(&mut self, event: EventId) {
        let Some(building) = self.building.remove(&event) else { return };
        if !building.granted {
            // The event was never granted to this builder: its fragments are stray.
            self.ungranted -= 1;
            self.counts.faults.add(Fault::Unexpected, building.fragments.iter().flatten().count() as u64);
            self.spare.push(building.fragments);
            return;
        }
        let cut = building.cut;
        let built = building.into_built(event, &mut self.sets);
        if !built.complete {
            self.count_faults(&built, cut);
        }
        self.history.push(&built);
        self.storing += 1;
        self.events.push_back(BuilderEvent::Built(built));
    }

    /// Counts the faults of an event's fragments. `cut` says that a time limit ended the event.
    fn count_faults(&mut self, built: &Built<B>, cut: bool) {
        for (source, fragment) in built.wanted() {
            let alive = self.alive[source.index()];
            let fault = match fragment.map_or(FragmentStatus::Missing, |fragment| fragment.status) {
                FragmentStatus::Missing if cut && alive && fragment.is_none() => Fault::Cut,
                // A mismatch was counted when it was found.
                FragmentStatus::Good | FragmentStatus::Mismatched => continue,
                FragmentStatus::Corrupted => Fault::Corrupted,
                FragmentStatus::Missing => Fault::Missing,
                FragmentStatus::Oversized => Fault::Oversized,
            };
            self.count_fault(source, fault);
        }
    }

    fn stored(&mut self, built: Built<B>, rejected: bool) {
        let Built { event, complete, mut fragments, .. } = built;
        fragments.clear();
        self.spare.push(fragments);
        self.storing -= 1;
        self.end(
            event,
            match (rejected, complete) {
                (true, _) => Ending::Rejected,
                (false, true) => Ending::Complete,
                (false, false) => Ending::Incomplete,
            },
        );
    }

    /// Counts an event that has ended, and frees its slot.
    fn end(&mut self, event: EventId, ending: Ending) {
        match ending {
            Ending::Complete => self.counts.built += 1,
            Ending::Incomplete => self.counts.incomplete += 1,
            Ending::Rejected => self.counts.rejected += 1,
        }
        self.done.push(Completion { event, ending });
        self.slots += 1;
    }

    fn tell_manager(&mut self, message: Message<B>) {
        self.transmits.push_back(Transmit { to: Config::EVENT_MANAGER.into(), message });
    }

    /// Requests the fragments of these events from the sources of a phase.
    fn pull(&mut self, phase: EventPhase, events: &[EventId]) {
        match events.first().map(|&event| self.first_phase(event)) {
            Some(Region::First(end)) if phase == EventPhase::First => self.pull_from(0..end, events),
            Some(Region::First(end)) => self.pull_from(end..self.config.readout_units, events),
            _ => self.pull_regions(phase, events),
        }
        self.send_requests();
    }

    /// Requests from each readout unit the events for which the phase asks it.
    fn pull_regions(&mut self, phase: EventPhase, events: &[EventId]) {
        let mut wanted = BTreeMap::<u16, Vec<EventId>>::new();
        for &event in events {
            let region = self.first_phase(event);
            let mut add = |unit| wanted.entry(unit).or_default().push(event);
            match (phase, &region) {
                (EventPhase::First, Region::Drawn(units)) => units.iter().for_each(|&unit| add(unit)),
                _ => (0..self.config.readout_units).filter(|&unit| !region.contains(unit.into())).for_each(add),
            }
        }
        let mut wanted: Vec<_> = wanted.into_iter().collect();
        let first = self.requests.first_of(wanted.len());
        wanted.rotate_left(first);
        wanted.into_iter().for_each(|(unit, events)| self.pull_from(unit..unit + 1, &events));
    }

    fn pull_from(&mut self, units: Range<u16>, events: &[EventId]) {
        let group = self.config.request_group.map_or(usize::MAX, |group| group.get() as usize);
        events.chunks(group).for_each(|group| self.requests.push(units.clone(), group.into()));
    }

    /// Sends the requests for which the window has room.
    fn send_requests(&mut self) {
        while let Some((units, events)) = self.requests.next() {
            let Some(events) = self.still_wanted(&units, events) else { continue };
            let to = NodeRange {
                first: NodeId(self.config.readout_nodes().first.0 + units.start),
                count: units.len() as u16,
            };
            self.transmits.push_back(Transmit { to, message: Message::Pull(events) });
        }
    }

    /// The events for which a request is to be sent; `None` if there are none. One that waited for its place in the window
    /// may have become pointless. A silent unit gets its request, but no place.
    fn still_wanted(&mut self, units: &Range<u16>, events: Arc<[EventId]>) -> Option<Arc<[EventId]>> {
        if !self.requests.has_window() {
            return Some(events);
        }
        let source = usize::from(units.start);
        let lacks = |event: &&EventId| self.building.get(*event).is_some_and(|building| building.lacks(source));
        let wanted: Vec<_> = events.iter().filter(lacks).copied().collect();
        if wanted.is_empty() || !self.alive[source] {
            return None;
        }
        let events = wanted.as_slice().into();
        if !self.silence.is_silent(source) {
            let until = self.first_limit();
            self.look_after(until);
            self.requests.hold(units.start, wanted, until);
        }
        Some(events)
    }

    /// Returns true if the free slots are to be reported: they fill a group, or no event is left whose end would free
    /// another one. (An event that was not granted may never end.) Ended events are reported at once in any case, since
    /// readout units hold their fragments until then.
    fn reports_slots(&self) -> bool {
        let is_idle = self.building.len() == self.ungranted as usize && self.storing == 0;
        self.slots >= self.config.request_group.map_or(1, NonZeroU32::get) || (self.slots > 0 && is_idle)
    }

    fn report(&mut self) {
        self.send_requests();
        if !self.accepted.is_empty() {
            let accepted = core::mem::take(&mut self.accepted);
            self.pull(EventPhase::Rest, &accepted);
        }
        if !self.done.is_empty() {
            let done = core::mem::take(&mut self.done);
            self.tell_manager(Message::Done(done.into()));
        }
        if self.reports_slots() {
            let slots = core::mem::take(&mut self.slots);
            self.tell_manager(Message::Request { slots });
        }
    }
}

impl<B> Machine for BuilderMachine<B> {
    type Message = Message<B>;
    type Command = BuilderCommand<B>;
    type Event = BuilderEvent<B>;
    type Timer = Timer;

    fn handle_message(&mut self, now: Time, from: NodeId, message: Message<B>) {
        self.now = now;
        match message {
            Message::Fragment(fragment) => self.receive(from, fragment),
            Message::Packet(fragments) => fragments.into_iter().for_each(|fragment| self.receive(from, fragment)),
            Message::Grant(events) if from == Config::EVENT_MANAGER => {
                events.iter().for_each(|&event| self.grant(event));
                if self.config.protocol != Protocol::Push {
                    self.pull(EventPhase::First, &events);
                }
            }
            Message::Answer { number, pending } => self.hear_answer(from, number, &pending),
            Message::Unit { node, alive } if from == Config::EVENT_MANAGER => self.set_alive(node, alive),
            Message::Membership { number, is_member } if from == Config::EVENT_MANAGER => {
                self.handle_membership(number, is_member)
            }
            _ => self.counts.faults.count(Fault::Unexpected),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        if now >= self.next_look {
            self.look();
        }
    }

    fn handle_command(&mut self, now: Time, command: BuilderCommand<B>) {
        self.now = now;
        match command {
            BuilderCommand::Start => self.slots = self.config.builder_slots,
            BuilderCommand::Stored(built) => self.stored(built, false),
            BuilderCommand::Rejected(built) => self.stored(built, true),
            BuilderCommand::Decided { event, accepted } => self.decided(event, accepted),
            BuilderCommand::Damaged { from, fragment } => self.receive_damaged(from, fragment),
            BuilderCommand::Away => self.go_away(),
            BuilderCommand::Cut => self.cut_from_now_on(),
            BuilderCommand::Lost(Config::EVENT_MANAGER) => self.lose_manager(),
            BuilderCommand::Lost(_) => {}
            BuilderCommand::Joined(node) => self.ask_anew(node),
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit<Message<B>>> {
        if self.transmits.is_empty() && self.membership.is_firm() {
            self.report();
        }
        self.transmits.pop_front()
    }

    fn poll_event(&mut self) -> Option<BuilderEvent<B>> {
        if self.membership.is_firm() { self.events.pop_front() } else { self.membership.take_event() }
    }

    fn poll_timeout(&self) -> Option<(Time, Timer)> {
        (self.next_look < Time::MAX).then_some((self.next_look, Timer::Fragments))
    }
}
