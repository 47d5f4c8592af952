//! The event manager: numbers triggers, assigns events to builders, and says when an event may be forgotten.
//!
//! It sees no fragment. At most `buffer_events` events are open at once, so no readout unit can overflow. No builder
//! gets more events than it asked for.
//!
//! Waiting triggers are announced to the readout units in batches of 64, or with a message that goes anyway. Nothing is
//! in a hurry while events wait for builders, and a message for each trigger takes the time of every node.

mod alignment;
mod matching;
mod open;
mod pace;
mod roster;

use crate::{Assigned, Assignment, Completion, Config, Ending, Fault, FaultCounts, Message, Protocol, Timer, Trigger};
use alignment::{Aligned, Alignment};
use alloc::{boxed::Box, collections::VecDeque, vec::Vec};
use core::marker::PhantomData;
use evb_coincidence::ClockState;
use evb_core::{EventId, Machine, NodeId, NodeRange, SourceId, Span, Time, Transmit};
use matching::Matching;
use open::OpenEvents;
use pace::Pace;
use roster::Roster;

/// Number of new events from which they are announced to readout units although builders leave events waiting: as many
/// as a unit reads ahead.
const ANNOUNCED: u64 = 64;

/// A command from the driver to the event manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagerCommand {
    /// Start triggering.
    Start,
    /// This many triggers have arrived ([`Trigger::Driven`]). A driver that looks at its clock now and then says when
    /// they came: the latency of their events counts from there.
    Trigger {
        /// Their number.
        count: u64,
        /// The time at which they came.
        at: Time,
    },
    /// This many triggers have arrived while all were turned away ([`Trigger::Driven`]): they are counted as inhibited.
    TurnAway(u64),
    /// Take no triggers until [`ManagerCommand::Resume`], and finish the open events.
    Pause,
    /// Take triggers again.
    Resume,
    /// Take no more triggers, and finish the open events.
    Stop,
    /// The last trigger has come: the run ends by its number of events. For a driver that counts other events than the
    /// machine.
    End,
    /// Events take another time from now on, since they are blocks of another size. Rates before and after say nothing
    /// about the number of events under way.
    Resized,
    /// A node is gone.
    Lost(NodeId),
    /// A node that was gone is back, without its former state. A readout unit whose source numbers its fragments itself
    /// cannot come back, because its fragments could not be assigned to events.
    Joined(NodeId),
}

/// An event from the event manager for the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManagerEvent {
    /// An event has ended.
    Completed {
        /// The event and how it ended.
        completion: Completion,
        /// Its builder.
        builder: NodeId,
        /// Time from its trigger to its end.
        latency: Span,
    },
    /// An event is assigned again, because its builder is gone.
    Reassigned(EventId),
    /// Every triggered event has ended, and no more will be triggered.
    Drained,
    /// No builder is left; open events stay unbuilt.
    NoBuilders,
}

/// Counts of the event manager.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManagerCounts {
    /// Events triggered.
    pub triggered: u64,
    /// Events ended with every fragment there and good.
    pub built: u64,
    /// Events ended with a fragment missing or bad.
    pub incomplete: u64,
    /// Events rejected after their first phase.
    pub rejected: u64,
    /// Triggers that arrived while the trigger was inhibited.
    pub inhibited: u64,
    /// Number of times the trigger changed from free to inhibited.
    pub inhibitions: u64,
    /// Events assigned again because their builder died.
    pub reassigned: u64,
    /// Events that all builders together may have under construction now.
    pub under_way: u64,
    /// Faults by kind.
    pub faults: FaultCounts,
}

impl ManagerCounts {
    /// Triggered events without an end.
    pub const fn open(&self) -> u64 {
        self.triggered - self.built - self.incomplete - self.rejected
    }

    /// What was counted after `before`, an earlier state of the same counts. What may be under way is that of now.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            triggered: self.triggered - before.triggered,
            built: self.built - before.built,
            incomplete: self.incomplete - before.incomplete,
            rejected: self.rejected - before.rejected,
            inhibited: self.inhibited - before.inhibited,
            inhibitions: self.inhibitions - before.inhibitions,
            reassigned: self.reassigned - before.reassigned,
            under_way: self.under_way,
            faults: self.faults.since(&before.faults),
        }
    }
}

struct ReadoutState {
    alive: bool,
    busy: bool,
    through: u64,
    /// The last event that this source claims, even if it is the only one.
    claim: u64,
    last: bool,
}

impl ReadoutState {
    const fn new() -> Self {
        Self { alive: true, busy: false, through: 0, claim: 0, last: false }
    }
}

/// The event manager as a machine. `B` is the payload handle of the messages; it never carries one.
pub struct ManagerMachine<B> {
    config: Config,
    now: Time,
    running: bool,
    paused: bool,
    stopping: bool,
    drained: bool,
    inhibited: bool,
    /// Triggers that wait until triggers are not inhibited any more.
    deferred: u64,
    counts: ManagerCounts,
    open: OpenEvents,
    builders: Roster,
    pace: Pace,
    readouts: Vec<ReadoutState>,
    alignment: Alignment,
    /// The matching of fragments by time.
    matching: Option<Box<Matching>>,
    /// Readout units report the marks of their events.
    comparing: bool,
    /// Assignments that wait for their group to fill (push only).
    group: Vec<Assigned>,
    group_deadline: Option<Time>,
    cleared: Vec<EventId>,
    /// The last triggered event that the readout units know of.
    announced: u64,
    transmits: VecDeque<Transmit<Message<B>>>,
    events: VecDeque<ManagerEvent>,
    payload: PhantomData<B>,
}

impl<B> ManagerMachine<B> {
    /// Memory per open event, in bytes.
    pub const EVENT_BYTES: usize = open::EVENT_BYTES;

    /// An event manager that waits for [`ManagerCommand::Start`].
    pub fn new(config: Config) -> Self {
        Self {
            builders: Roster::new(&config),
            pace: Pace::new(&config),
            readouts: (0..config.readout_units).map(|_| ReadoutState::new()).collect(),
            alignment: Alignment::new(&config),
            matching: Matching::new(&config).map(Box::new),
            comparing: false,
            now: Time::ZERO,
            running: false,
            paused: false,
            stopping: false,
            drained: false,
            inhibited: false,
            deferred: 0,
            counts: ManagerCounts { under_way: Pace::new(&config).limit(), ..ManagerCounts::default() },
            open: OpenEvents::new(),
            group: Vec::new(),
            group_deadline: None,
            cleared: Vec::new(),
            announced: 0,
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            payload: PhantomData,
            config,
        }
    }

    /// The counts so far.
    pub const fn counts(&self) -> &ManagerCounts {
        &self.counts
    }

    /// Returns true if triggers are turned away now, because a readout unit is busy or too many events are open.
    pub fn is_inhibited(&self) -> bool {
        let (most, readouts) = (self.config.buffer_events as usize, &self.readouts);
        // One event that waits for a lost fragment must not stop all later ones; only the list of them is bounded.
        let full = self.open.len() >= most || self.open.span() >= most * Config::SPAN_FACTOR;
        full || readouts.iter().any(|readout| readout.busy)
    }

    /// The state of the clock of a readout unit; `None` where fragments are not matched by time.
    pub fn clock(&self, unit: SourceId) -> Option<ClockState> {
        self.matching.as_ref()?.clock(unit.index())
    }

    /// Number of events that wait for a builder.
    pub fn waiting(&self) -> u64 {
        self.open.waiting()
    }

    fn readout_index(&self, node: NodeId) -> Option<usize> {
        let range = self.config.readout_nodes();
        range.contains(node).then(|| (node.0 - range.first.0) as usize)
    }

    /// The index of a living readout unit. Messages from a unit that was given up do not count.
    fn living_readout(&self, node: NodeId) -> Option<usize> {
        self.readout_index(node).filter(|&index| self.readouts[index].alive)
    }

    // ---- triggers

    /// Returns true if events may be triggered: the first event that all sources have must be known.
    const fn is_triggering(&self) -> bool {
        self.running && !self.paused && !self.stopping && self.alignment.has_begun()
    }

    /// Takes one trigger, or turns it away.
    fn trigger(&mut self, at: Time) -> bool {
        let inhibited = self.is_inhibited();
        if inhibited && !self.inhibited {
            self.counts.inhibitions += 1;
        }
        self.inhibited = inhibited;
        if inhibited {
            return false;
        }
        self.counts.triggered += 1;
        self.open.trigger(at);
        true
    }

    /// The last event that may be triggered, as far as is known now.
    fn event_limit(&self) -> u64 {
        let wanted = self.config.events.unwrap_or(u64::MAX);
        match self.config.trigger {
            Trigger::FreeRunning | Trigger::Driven | Trigger::Deferred => return wanted,
            Trigger::AllData => {
                let alive = self.readouts.iter().filter(|readout| readout.alive);
                return alive.map(|readout| readout.through).min().map_or(0, |through| wanted.min(through));
            }
            Trigger::Data => {}
        }
        let finite = self.readouts.iter().filter(|readout| readout.through < u64::MAX);
        let through = finite.clone().map(|readout| readout.through).max().unwrap_or(0);
        wanted.min(through.max(self.confirmed_claim(finite.map(|readout| readout.claim))))
    }

    /// The largest claim that another source confirms. The only source needs no confirmation.
    fn confirmed_claim(&self, claims: impl Iterator<Item = u64>) -> u64 {
        let [mut first, mut second] = [0, 0];
        for claim in claims {
            (first, second) = (first.max(claim), second.max(first.min(claim)));
        }
        if self.alignment.alive() > 1 { second } else { first }
    }

    /// Returns true if the limit is final: it is that of the configuration, or no readout unit will announce more events.
    fn limit_is_final(&self) -> bool {
        if self.config.events.is_some_and(|wanted| self.event_limit() >= wanted) {
            return true;
        }
        match self.config.trigger {
            Trigger::FreeRunning | Trigger::Driven | Trigger::Deferred => true,
            Trigger::Data => self.readouts.iter().all(|r| r.last || !r.alive),
            Trigger::AllData => {
                let limit = self.event_limit();
                self.readouts.iter().all(|r| !r.alive || r.last || r.through > limit)
            }
        }
    }

    /// Returns true if events wait for builders, or would if builders asked for more.
    fn has_backlog(&self) -> bool {
        let is_on_demand = !self.config.trigger.is_driven() && self.is_triggering();
        self.open.waiting() > 0 || (is_on_demand && !self.is_ending())
    }

    /// Triggers as many events as builders have asked for, or those that wait. No driver is needed.
    fn trigger_on_demand(&mut self) {
        if !self.is_triggering() {
            return;
        }
        if self.config.trigger.is_driven() {
            let deferred = core::mem::take(&mut self.deferred);
            return self.handle_triggers(deferred, self.now);
        }
        let limit = self.event_limit();
        for _ in self.open.waiting()..self.builders.credits() {
            if self.counts.triggered >= limit || !self.trigger(self.now) {
                break;
            }
        }
    }

    fn handle_triggers(&mut self, count: u64, at: Time) {
        if !self.is_triggering() {
            return;
        }
        for taken in 0..count {
            if self.counts.triggered >= self.event_limit() {
                return;
            }
            if !self.trigger(at) {
                *self.turned_away() += count - taken;
                return;
            }
        }
    }

    /// Where triggers are counted that cannot be taken now: they wait, or are lost.
    fn turned_away(&mut self) -> &mut u64 {
        match self.config.trigger {
            Trigger::Deferred => &mut self.deferred,
            _ => &mut self.counts.inhibited,
        }
    }

    // ---- assignment

    /// Assigns waiting events to builders. In push, readout units walk through the list of assignments from different
    /// starting points. Their packets do not collide as long as the builders follow each other in turn. So the next
    /// builder in turn is waited for, but no longer than an incomplete group.
    fn assign(&mut self) {
        let in_turn = self.config.protocol == Protocol::Push && !self.is_ending() && !self.is_overdue();
        while let Some(event) = self.open.next() {
            if let Some(gone) = self.builders.gone_owner(event) {
                self.end_unbuilt(gone, event);
                continue;
            }
            let Some(builder) = self.next_builder(event, in_turn) else { return };
            self.open.assign_next(builder);
            self.group.push(Assigned { event, builder });
        }
    }

    /// The builder of the next event. The oldest open event needs no slot after the death of its builder: the events
    /// that fill all slots may themselves wait for the room that it occupies in the readout units.
    fn next_builder(&mut self, event: EventId, in_turn: bool) -> Option<NodeId> {
        let able = if in_turn { self.builders.pick_in_turn(event) } else { self.builders.pick(event) };
        match able {
            None if self.open.oldest_is_returned() => self.builders.pick_without_slot(event),
            able => able,
        }
    }

    /// Number of waiting assignments to send now: a whole multiple of the number of builders that take turns, or all of
    /// them if they have waited long enough or no more will follow. Pull sends no broadcast, so nothing waits.
    fn ready_assignments(&mut self) -> usize {
        let waiting = self.group.len();
        if self.config.protocol != Protocol::Push || self.is_ending() || self.is_overdue() {
            return waiting;
        }
        waiting - waiting % self.builders.spread()
    }

    /// Returns true if no more assignments will join the waiting ones.
    fn is_ending(&self) -> bool {
        self.stopping || self.counts.triggered >= self.event_limit()
    }

    /// Returns true if assignments, or events that a builder could take, have waited long enough.
    fn is_overdue(&self) -> bool {
        self.group_deadline.is_some_and(|deadline| deadline <= self.now)
    }

    fn send_assignments(&mut self) {
        let ready = self.ready_assignments();
        let rest = self.group.split_off(ready);
        let ready = core::mem::replace(&mut self.group, rest);
        let timeout = self.config.group_timeout;
        let began = self.group_deadline.filter(|_| ready.is_empty());
        let in_turn = self.config.assignment == Assignment::RoundRobin;
        let waits_for_turn = in_turn && self.open.waiting() > 0 && self.builders.credits() > 0;
        let waits = !self.group.is_empty() || waits_for_turn;
        self.group_deadline = waits.then(|| began.unwrap_or(self.now + timeout));
        if self.config.protocol == Protocol::Push {
            let largest = self.largest_group();
            for message in ready.chunks(largest) {
                self.transmit(self.config.readout_nodes(), Message::Assign(message.into()));
            }
        }
        for Assigned { event, builder } in ready {
            if let Some(builder) = self.builders.get_mut(builder) {
                builder.granted.push(event);
            }
        }
        for (node, builder) in self.builders.iter_mut() {
            if !builder.granted.is_empty() {
                let granted = core::mem::take(&mut builder.granted);
                self.transmits.push_back(Transmit { to: node.into(), message: Message::Grant(granted.into()) });
            }
        }
    }

    /// The largest multiple of the number of builders that one message may hold.
    fn largest_group(&self) -> usize {
        let (most, builders) = (self.config.group as usize, self.builders.len());
        (most - most % builders).max(1)
    }

    fn transmit(&mut self, to: NodeRange, message: Message<B>) {
        self.transmits.push_back(Transmit { to, message });
    }

    // ---- ends

    /// Ends an event that only a builder could have built that is gone.
    fn end_unbuilt(&mut self, gone: NodeId, event: EventId) {
        self.open.assign_next(gone);
        if let Some(latency) = self.open.end(self.now, event, gone) {
            self.counts.incomplete += 1;
            self.note_end(Completion { event, ending: Ending::Incomplete }, gone, latency);
        }
    }

    fn note_end(&mut self, completion: Completion, builder: NodeId, latency: Span) {
        self.cleared.push(completion.event);
        self.events.push_back(ManagerEvent::Completed { completion, builder, latency });
    }

    fn end_event(&mut self, from: NodeId, completion: Completion) {
        let Some(latency) = self.open.end(self.now, completion.event, from) else {
            return self.counts.faults.count(Fault::Unexpected);
        };
        match completion.ending {
            Ending::Complete => self.counts.built += 1,
            Ending::Incomplete => self.counts.incomplete += 1,
            Ending::Rejected => self.counts.rejected += 1,
        }
        if !self.pace.is_fixed() {
            self.pace.ended(self.now, self.has_backlog());
            self.builders.limit(self.pace.limit());
            self.counts.under_way = self.pace.limit();
        }
        self.builders.end(from);
        self.note_end(completion, from, latency);
    }

    /// Tells the readout units which events are triggered and which have ended.
    fn send_notices(&mut self) {
        let nodes = self.config.readout_nodes();
        if self.counts.triggered - self.announced >= self.worth_announcing() {
            self.announced = self.counts.triggered;
            self.transmit(nodes, Message::Readout { through: EventId(self.announced) });
        }
        if !self.cleared.is_empty() {
            let cleared = core::mem::take(&mut self.cleared);
            self.transmit(nodes, Message::Clear(cleared.into()));
        }
    }

    /// Number of new events from which they are announced to readout units. Where builders leave events waiting, the
    /// units have enough to do: a message for each trigger would only take their time.
    fn worth_announcing(&self) -> u64 {
        match self.config.trigger.is_driven() {
            // Triggers on demand are read out on demand: the assignment itself says that the event exists.
            false => u64::MAX,
            true if self.cleared.is_empty() && self.open.waiting() > 0 => ANNOUNCED,
            true => 1,
        }
    }

    /// Answers sources that ask for the events of their fragments.
    fn send_alignment(&mut self) {
        if self.config.numbered.is_empty() {
            return;
        }
        let first = self.config.readout_nodes().first.0;
        while let Some(Aligned { unit, segment, first: event }) = self.alignment.poll(self.counts.triggered) {
            let to = NodeId(first + unit as u16).into();
            self.transmit(to, Message::Align { segment, first: event });
        }
        self.refuse_claims();
        let wanted = self.alignment.wants_marks();
        if wanted != self.comparing {
            self.comparing = wanted;
            self.alignment.ask_marks();
            self.transmit(self.config.readout_nodes(), Message::Compare(wanted));
        }
    }

    /// Tells readout units what has become of fragments that are matched by time.
    fn send_matches(&mut self) {
        if let Some(matching) = &mut self.matching {
            let (first, transmits) = (self.config.readout_nodes().first, &mut self.transmits);
            matching.advance(self.now, first, |transmit| transmits.push_back(transmit));
        }
    }

    /// Refuses the claims of a source whose counter has leapt, if no other source is left that could confirm them.
    fn refuse_claims(&mut self) {
        let (first, limit) = (self.config.readout_nodes().first.0, self.event_limit());
        for index in 0..self.readouts.len() {
            let readout = &mut self.readouts[index];
            let unconfirmed = readout.alive && readout.claim > readout.through.max(limit);
            if unconfirmed && self.alignment.is_last_of_all(index) && self.alignment.alive() > 1 {
                readout.claim = readout.through;
                let to = NodeId(first + index as u16).into();
                self.transmits.push_back(Transmit { to, message: Message::Align { segment: 0, first: None } });
            }
        }
    }

    fn note_drained(&mut self) {
        let ended =
            self.stopping || (self.running && self.limit_is_final() && self.counts.triggered >= self.event_limit());
        if ended && self.open.is_empty() && !self.drained {
            self.stopping = true;
            self.drained = true;
            self.events.push_back(ManagerEvent::Drained);
        }
    }

    // ---- losses

    fn lose_builder(&mut self, node: NodeId) {
        if !self.builders.lose(node) {
            return;
        }
        self.group.retain(|assigned| assigned.builder != node);
        let taken = self.open.take_back(node);
        if self.builders.alive() == 0 {
            self.stopping = true;
            self.events.push_back(ManagerEvent::NoBuilders);
        } else if self.config.assignment != Assignment::ByNumber {
            self.counts.reassigned += taken.len() as u64;
            self.events.extend(taken.into_iter().map(ManagerEvent::Reassigned));
        }
    }

    fn lose(&mut self, node: NodeId) {
        match self.readout_index(node) {
            None => self.lose_builder(node),
            Some(index) => {
                let readout = &mut self.readouts[index];
                if !core::mem::replace(&mut readout.alive, false) {
                    return;
                }
                readout.busy = false;
                readout.last = true;
                self.transmit(self.config.builder_nodes(), Message::Unit { node, alive: false });
                self.alignment.lose(index);
                if let Some(matching) = &mut self.matching {
                    matching.lose(index);
                }
                // Without any source there is nothing left to trigger for.
                self.stopping |= self.readouts.iter().all(|readout| !readout.alive);
            }
        }
    }

    // ---- returns

    /// Takes back a node that was gone.
    fn join(&mut self, node: NodeId) {
        let Some(index) = self.readout_index(node) else { return self.join_builder(node) };
        if !self.readouts[index].alive && self.config.numbered.is_empty() {
            self.readouts[index] = ReadoutState::new();
            self.transmit(node.into(), Message::Resume { first: self.open.first() });
            self.transmit(node.into(), Message::Clear(self.open.ended().into()));
            self.transmit(self.config.builder_nodes(), Message::Unit { node, alive: true });
        }
    }

    /// Takes back a builder, which knows of no dead readout unit.
    fn join_builder(&mut self, builder: NodeId) {
        self.builders.join(builder);
        for (node, index) in self.config.readout_nodes().iter().zip(0..) {
            if !self.readouts[index].alive {
                self.transmit(builder.into(), Message::Unit { node, alive: false });
            }
        }
    }
}

impl<B> Machine for ManagerMachine<B> {
    type Message = Message<B>;
    type Command = ManagerCommand;
    type Event = ManagerEvent;
    type Timer = Timer;

    fn handle_message(&mut self, now: Time, from: NodeId, message: Message<B>) {
        self.now = now;
        match message {
            Message::Request { slots } => {
                if !self.builders.request(from, slots) {
                    self.counts.faults.count(Fault::Unexpected);
                }
            }
            Message::Done(completions) => completions.iter().for_each(|&completion| self.end_event(from, completion)),
            Message::Available { through, claim, last } => {
                if let Some(index) = self.living_readout(from) {
                    let readout = &mut self.readouts[index];
                    readout.through = through.0.max(readout.through);
                    readout.last = last || readout.last;
                    readout.claim = claim.0;
                    self.alignment.available(index, through, last);
                }
            }
            Message::Sighted(sighted) => {
                if let Some(index) = self.living_readout(from) {
                    self.alignment.sighted(index, &sighted);
                }
            }
            Message::Times(times) => {
                if let (Some(index), Some(matching)) = (self.living_readout(from), &mut self.matching) {
                    matching.take(index, &times);
                }
            }
            Message::Marks(marks) => {
                if let Some(index) = self.living_readout(from) {
                    self.alignment.marks(index, &marks);
                }
            }
            Message::Away { number } => {
                let is_member = self.builders.is_member(from);
                self.transmit(from.into(), Message::Membership { number, is_member });
            }
            Message::Busy(busy) => {
                if let Some(index) = self.living_readout(from) {
                    self.readouts[index].busy = busy;
                }
            }
            _ => self.counts.faults.count(Fault::Unexpected),
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.now = now;
    }

    fn handle_command(&mut self, now: Time, command: ManagerCommand) {
        self.now = now;
        match command {
            ManagerCommand::Start => self.running = true,
            ManagerCommand::Trigger { count, at } => self.handle_triggers(count, at),
            ManagerCommand::TurnAway(count) => *self.turned_away() += count,
            ManagerCommand::Pause => self.paused = true,
            ManagerCommand::Resume => self.paused = false,
            ManagerCommand::Stop => self.stopping = true,
            ManagerCommand::End => self.config.events = Some(self.counts.triggered),
            ManagerCommand::Resized => self.pace.restart(),
            ManagerCommand::Lost(node) => self.lose(node),
            ManagerCommand::Joined(node) => self.join(node),
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit<Message<B>>> {
        if self.transmits.is_empty() {
            self.send_alignment();
            self.send_matches();
            self.trigger_on_demand();
            self.assign();
            // Before the assignments: readout units forget old events before they meet new ones.
            self.send_notices();
            self.send_assignments();
            self.note_drained();
        }
        self.transmits.pop_front()
    }

    fn poll_event(&mut self) -> Option<ManagerEvent> {
        self.events.pop_front()
    }

    fn poll_timeout(&self) -> Option<(Time, Timer)> {
        let group = self.group_deadline.map(|deadline| (deadline, Timer::Group));
        let place =
            self.matching.as_ref().and_then(|matching| matching.deadline()).map(|deadline| (deadline, Timer::Place));
        group.into_iter().chain(place).min_by_key(|(deadline, _)| *deadline)
    }
}
