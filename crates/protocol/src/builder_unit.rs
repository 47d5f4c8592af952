//! The builder unit: puts the fragments of an event together, checks them, and hands the event on.

use crate::{Completion, Config, Fault, FaultCounts, Fragment, FragmentStatus, Message, Protocol, Timer};
use alloc::{collections::VecDeque, vec::Vec};
use evb_core::{EventId, Machine, NodeId, SourceId, Time, Transmit};
use hashbrown::HashMap;

/// How many ended events a builder remembers, to tell a late fragment from a duplicate and from a stray one.
const HISTORY: usize = 1024;

/// How many events may be opened by stray fragments, beside the events that were asked for.
const STRAYS: u32 = 1024;

/// What the driver tells a builder unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuilderCommand<B> {
    /// Ask for events.
    Start,
    /// The event is stored, or needs no storing: it may be reported as done. Its memory comes back for the next one.
    Stored(Built<B>),
    /// A node is gone.
    Lost(NodeId),
}

/// An event put together: one entry per source, `None` where no fragment came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built<B> {
    /// The event.
    pub event: EventId,
    /// Whether every fragment is there and good.
    pub complete: bool,
    /// The fragments in the order of their sources.
    pub fragments: Vec<Option<Fragment<B>>>,
}

/// What a builder unit tells the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuilderEvent<B> {
    /// An event is put together: store it, and answer with [`BuilderCommand::Stored`].
    Built(Built<B>),
    /// The event manager is gone.
    Orphaned,
}

/// What a builder unit has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuilderCounts {
    /// Events stored with every fragment there and good.
    pub built: u64,
    /// Events stored with a fragment missing or bad.
    pub incomplete: u64,
    /// Fragments received.
    pub fragments: u64,
    /// Payload bytes received.
    pub bytes: u64,
    /// Most events under construction or being stored at once.
    pub most_open: u64,
    /// Faults by kind.
    pub faults: FaultCounts,
}

/// An event under construction.
struct Building<B> {
    /// The event manager has said that the event is ours.
    granted: bool,
    /// Fragments that can still come.
    waiting: u32,
    complete: bool,
    /// When the event is given up.
    deadline: Time,
    fragments: Vec<Option<Fragment<B>>>,
}

/// A builder unit as a machine.
pub struct BuilderUnit<B> {
    config: Config,
    now: Time,
    counts: BuilderCounts,
    building: HashMap<EventId, Building<B>>,
    /// No event under construction is given up before this.
    next_deadline: Time,
    /// Events under construction that nobody granted yet.
    ungranted: u32,
    /// Events handed on and not yet stored.
    storing: u64,
    alive: Vec<bool>,
    /// The last events that ended. It is searched only for stray fragments, so that it costs little otherwise.
    ended: VecDeque<EventId>,
    /// Of these, the ones with missing fragments, and their sources.
    ended_missing: VecDeque<(EventId, Vec<SourceId>)>,
    spare: Vec<Vec<Option<Fragment<B>>>>,
    done: Vec<Completion>,
    slots: u32,
    transmits: VecDeque<Transmit<Message<B>>>,
    events: VecDeque<BuilderEvent<B>>,
}

impl<B> BuilderUnit<B> {
    /// A builder unit that waits for [`BuilderCommand::Start`].
    pub fn new(config: Config) -> Self {
        Self {
            alive: (0..config.readout_units).map(|_| true).collect(),
            config,
            now: Time::ZERO,
            counts: BuilderCounts::default(),
            building: HashMap::new(),
            next_deadline: Time::MAX,
            ungranted: 0,
            storing: 0,
            ended: VecDeque::new(),
            ended_missing: VecDeque::new(),
            spare: Vec::new(),
            done: Vec::new(),
            slots: 0,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// What was counted so far.
    pub const fn counts(&self) -> &BuilderCounts {
        &self.counts
    }

    /// Whether no event is under construction or being stored.
    pub fn is_idle(&self) -> bool {
        self.building.is_empty() && self.storing == 0
    }

    fn source_of(&self, node: NodeId) -> Option<SourceId> {
        let range = self.config.readout_nodes();
        range.contains(node).then(|| SourceId(node.0 - range.first.0))
    }

    fn open(&mut self, event: EventId, granted: bool) {
        let mut fragments = self.spare.pop().unwrap_or_default();
        fragments.clear();
        fragments.resize_with(self.alive.len(), || None);
        let waiting = self.alive.iter().filter(|&&alive| alive).count() as u32;
        let deadline = self.now + self.config.fragment_timeout;
        self.next_deadline = self.next_deadline.min(deadline);
        self.counts.most_open = self.counts.most_open.max(self.building.len() as u64 + 1 + self.storing);
        self.building.insert(event, Building { granted, waiting, complete: true, deadline, fragments });
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
        self.close_if_ready(event);
    }

    fn receive(&mut self, from: NodeId, fragment: Fragment<B>) {
        self.counts.fragments += 1;
        self.counts.bytes += u64::from(fragment.length);
        if self.source_of(from) != Some(fragment.source) {
            return self.counts.faults.count(Fault::Unexpected);
        }
        let (event, source) = (fragment.event, fragment.source);
        let Err(fragment) = self.place(fragment) else { return };
        if self.open_ungranted(event, source) {
            let _opened_just_now = self.place(fragment);
        }
    }

    /// Puts a fragment into its event; gives it back when that is not under construction.
    fn place(&mut self, fragment: Fragment<B>) -> Result<(), Fragment<B>> {
        let event = fragment.event;
        let Some(building) = self.building.get_mut(&event) else { return Err(fragment) };
        let place = &mut building.fragments[fragment.source.index()];
        if place.is_some() {
            self.counts.faults.count(Fault::Duplicate);
            return Ok(());
        }
        building.waiting = building.waiting.saturating_sub(1);
        building.complete &= fragment.status == FragmentStatus::Good;
        *place = Some(fragment);
        if building.waiting == 0 && building.granted {
            self.close(event);
        }
        Ok(())
    }

    /// A fragment may overtake its grant, so it opens its event on probation; true when it did.
    fn open_ungranted(&mut self, event: EventId, source: SourceId) -> bool {
        let is_missing = |(ended, missing): &(EventId, Vec<SourceId>)| *ended == event && missing.contains(&source);
        let fault = if self.ended_missing.iter().any(is_missing) {
            Fault::Late
        } else if self.ended.contains(&event) {
            Fault::Duplicate
        } else if self.ungranted >= self.config.builder_slots + STRAYS {
            // No more events can be on their way to us than we have asked for; what is beyond must be stray.
            Fault::Unexpected
        } else {
            self.ungranted += 1;
            self.open(event, false);
            return true;
        };
        self.counts.faults.count(fault);
        false
    }

    fn close_if_ready(&mut self, event: EventId) {
        if self.building.get(&event).is_some_and(|building| building.granted && building.waiting == 0) {
            self.close(event);
        }
    }

    /// Ends an event with what is there.
    fn close(&mut self, event: EventId) {
        let Some(building) = self.building.remove(&event) else { return };
        let Building { granted, fragments, mut complete, .. } = building;
        if !granted {
            // Nobody ever asked us to build this: what came of it belongs nowhere.
            self.ungranted -= 1;
            self.counts.faults.add(Fault::Unexpected, fragments.iter().flatten().count() as u64);
            self.spare.push(fragments);
            return;
        }
        if !complete || fragments.iter().any(Option::is_none) {
            complete = false;
            self.count_faults(&fragments);
        }
        self.remember(event, &fragments, complete);
        self.storing += 1;
        self.events.push_back(BuilderEvent::Built(Built { event, complete, fragments }));
    }

    fn count_faults(&mut self, fragments: &[Option<Fragment<B>>]) {
        for fragment in fragments {
            match fragment.as_ref().map_or(FragmentStatus::Missing, |fragment| fragment.status) {
                FragmentStatus::Good => {}
                FragmentStatus::Corrupted => self.counts.faults.count(Fault::Corrupted),
                FragmentStatus::Missing => self.counts.faults.count(Fault::Missing),
                FragmentStatus::Oversized => self.counts.faults.count(Fault::Oversized),
            }
        }
    }

    fn remember(&mut self, event: EventId, fragments: &[Option<Fragment<B>>], complete: bool) {
        if !complete {
            let sources = (0..).map(SourceId).zip(fragments);
            let missing = sources.filter(|(_, fragment)| fragment.is_none()).map(|(source, _)| source).collect();
            self.ended_missing.push_back((event, missing));
        }
        self.ended.push_back(event);
        if self.ended.len() > HISTORY
            && let Some(oldest) = self.ended.pop_front()
            && self.ended_missing.front().is_some_and(|(event, _)| *event == oldest)
        {
            self.ended_missing.pop_front();
        }
    }

    fn stored(&mut self, built: Built<B>) {
        let Built { event, complete, mut fragments } = built;
        fragments.clear();
        self.spare.push(fragments);
        self.storing -= 1;
        match complete {
            true => self.counts.built += 1,
            false => self.counts.incomplete += 1,
        }
        self.done.push(Completion { event, complete });
        self.slots += 1;
    }

    fn lose(&mut self, node: NodeId) {
        if node == Config::EVENT_MANAGER {
            return self.events.push_back(BuilderEvent::Orphaned);
        }
        let Some(source) = self.source_of(node).filter(|source| self.alive[source.index()]) else { return };
        self.alive[source.index()] = false;
        let mut ready = Vec::new();
        for (&event, building) in &mut self.building {
            if building.fragments[source.index()].is_none() {
                building.waiting -= 1;
            }
            if building.waiting == 0 && building.granted {
                ready.push(event);
            }
        }
        ready.sort_unstable();
        ready.into_iter().for_each(|event| self.close(event));
    }

    fn tell_manager(&mut self, message: Message<B>) {
        self.transmits.push_back(Transmit { to: Config::EVENT_MANAGER.into(), message });
    }

    fn report(&mut self) {
        if !self.done.is_empty() {
            let done = core::mem::take(&mut self.done);
            self.tell_manager(Message::Done(done.into()));
        }
        if self.slots > 0 {
            let slots = core::mem::take(&mut self.slots);
            self.tell_manager(Message::Request { slots });
        }
    }
}

impl<B> Machine for BuilderUnit<B> {
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
                if self.config.protocol == Protocol::Pull {
                    let to = self.config.readout_nodes();
                    self.transmits.push_back(Transmit { to, message: Message::Pull(events) });
                }
            }
            _ => self.counts.faults.count(Fault::Unexpected),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        if now < self.next_deadline {
            return;
        }
        let overdue = self.building.iter().filter(|(_, building)| building.deadline <= now);
        let mut overdue: Vec<_> = overdue.map(|(&event, _)| event).collect();
        overdue.sort_unstable();
        overdue.into_iter().for_each(|event| self.close(event));
        self.next_deadline = self.building.values().map(|building| building.deadline).min().unwrap_or(Time::MAX);
    }

    fn handle_command(&mut self, now: Time, command: BuilderCommand<B>) {
        self.now = now;
        match command {
            BuilderCommand::Start => self.slots = self.config.builder_slots,
            BuilderCommand::Stored(built) => self.stored(built),
            BuilderCommand::Lost(node) => self.lose(node),
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit<Message<B>>> {
        if self.transmits.is_empty() {
            self.report();
        }
        self.transmits.pop_front()
    }

    fn poll_event(&mut self) -> Option<BuilderEvent<B>> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Time, Timer)> {
        (self.next_deadline < Time::MAX).then_some((self.next_deadline, Timer::Fragments))
    }
}
