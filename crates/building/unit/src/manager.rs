//! The event manager: its machine, and the account of the events that ended.

use crate::{
    Latencies, ManagerReport,
    blocks::Blocks,
    filling::{Filling, Full},
    meter::Meter,
    shaping::Rounds,
};
use evb_core::{EventId, Machine, NodeId, NodeRange, SourceId, Time, Transmit};
use evb_experiment::Plan;
use evb_protocol::{
    BlockSize, ClockState, Ending, ManagerCommand, ManagerCounts, ManagerEvent, ManagerMachine, Message, OutcomeCounts,
    Synchrony,
};
use evb_record::steady::RATES;
use evb_record::{ClockPlace, ClockRecord, Events};
use std::collections::VecDeque;

/// An event manager with the account of its builders.
pub struct EventManager<B> {
    /// The machine.
    pub machine: ManagerMachine<B>,
    /// From trigger to stored; rejected events have no latency.
    pub latencies: Latencies,
    /// Events after which the trigger ends by itself.
    events: Option<u64>,
    counted: Counted,
    filling: Filling,
    /// Sizes of blocks that the other units are to hear of.
    sizes: VecDeque<BlockSize>,
    running: bool,
    paused: bool,
    units: NodeRange,
    readout_nodes: NodeRange,
    first_builder: NodeId,
    /// The events that each builder has ended.
    of_builders: Vec<Events>,
    /// The rounds of a barrel shifter by barrier.
    rounds: Option<Rounds>,
    /// Readout units that have asked for the time: when they asked, and when the question came.
    asked: VecDeque<(NodeId, Time, Time)>,
    meter: Meter,
    /// The counts of events at the end of the run before, if this one followed it without a stop.
    before: ManagerCounts,
    /// Blocks of the runs before.
    blocks_before: u64,
    /// The clocks at the end of the run before.
    clocks_before: Vec<OutcomeCounts>,
    /// Triggers that were turned away between the two runs.
    switched: u64,
}

/// Counts of events. To the machine a block is an event.
struct Counted {
    blocks: Blocks,
    /// Ended events by outcome.
    ended: Events,
    reassigned: u64,
    inhibited: u64,
}

impl Counted {
    /// Triggered events.
    fn triggered(&self, machine: &ManagerCounts) -> u64 {
        self.blocks.through(EventId(machine.triggered))
    }

    /// The counts of a machine, with events in place of blocks.
    fn of(&self, machine: &ManagerCounts) -> ManagerCounts {
        let Events { built, incomplete, rejected, .. } = self.ended;
        ManagerCounts {
            triggered: self.triggered(machine),
            built,
            incomplete,
            rejected,
            inhibited: self.inhibited,
            reassigned: self.reassigned,
            ..*machine
        }
    }
}

impl<B: Clone> EventManager<B> {
    /// The event manager of a plan.
    pub fn new(plan: &Plan) -> Self {
        let config = &plan.building;
        Self {
            machine: ManagerMachine::new(config.clone()),
            latencies: Latencies::default(),
            events: plan.events(),
            counted: Counted { blocks: Blocks::new(plan), ended: Events::default(), reassigned: 0, inhibited: 0 },
            filling: Filling::new(plan.bundling.block, plan.bundling.largest, config.builder_units),
            sizes: VecDeque::new(),
            running: false,
            paused: false,
            units: NodeRange { count: config.nodes() - 1, ..config.readout_nodes() },
            readout_nodes: config.readout_nodes(),
            first_builder: config.builder_nodes().first,
            of_builders: vec![Events::default(); config.builder_units.into()],
            rounds: Rounds::new(config),
            asked: VecDeque::new(),
            meter: Meter::default(),
            before: ManagerCounts::default(),
            blocks_before: 0,
            clocks_before: vec![OutcomeCounts::default(); config.readout_units.into()],
            switched: 0,
        }
    }

    /// True while triggers are taken.
    pub const fn is_running(&self) -> bool {
        self.running && !self.paused
    }

    /// True if all triggers of the plan have come: the trigger has ended by number.
    pub fn has_all_triggers(&self) -> bool {
        self.room() == 0
    }

    /// Triggers until the run ends by their number.
    fn room(&self) -> u64 {
        self.events.map_or(u64::MAX, |events| events.saturating_sub(self.counted.triggered(self.machine.counts())))
    }

    /// Begins.
    pub fn start(&mut self, now: Time) {
        self.running = true;
        let counts = self.counts();
        self.meter.start(now, &counts);
        self.machine.handle_command(now, ManagerCommand::Start);
        if let Some(rounds) = &mut self.rounds {
            rounds.start(now);
        }
    }

    /// Takes in a message.
    #[inline]
    pub fn handle_message(&mut self, now: Time, from: NodeId, message: Message<B>) {
        match (message, &mut self.rounds) {
            (Message::Taken { round, empty }, Some(rounds)) => rounds.taken(now, from, round, empty),
            (Message::TimeRequest { asked }, _) => self.asked.push_back((from, asked, now)),
            (message, _) => self.machine.handle_message(now, from, message),
        }
    }

    /// Takes note that a node is gone.
    pub fn lose(&mut self, now: Time, node: NodeId) {
        self.machine.handle_command(now, ManagerCommand::Lost(node));
        if let Some(rounds) = &mut self.rounds {
            rounds.lose(now, node);
        }
    }

    /// The next message to send.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<Transmit<Message<B>>> {
        // A size comes before the blocks that have it.
        if let Some(size) = self.sizes.pop_front() {
            return Some(Transmit { to: self.units, message: Message::BlockSize(size) });
        }
        if let Some((number, calm)) = self.rounds.as_mut().and_then(Rounds::poll) {
            return Some(Transmit { to: self.readout_nodes, message: Message::Round { number, calm } });
        }
        if let Some((unit, asked, manager)) = self.asked.pop_front() {
            return Some(Transmit { to: unit.into(), message: Message::TimeAnswer { asked, manager } });
        }
        self.machine.poll_transmit()
    }

    /// Takes note that a [`deadline`](Self::deadline) has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.filling.deadline(self.machine.waiting(), self.room()).is_some_and(|deadline| deadline <= now) {
            self.start_rest(now);
        }
        self.machine.handle_timeout(now);
        if let Some(rounds) = &mut self.rounds {
            rounds.handle_timeout(now);
        }
    }

    /// The time at which [`handle_timeout`](Self::handle_timeout) must be called next.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        let machine = self.machine.poll_timeout().map(|(at, _)| at);
        let rounds = self.rounds.as_ref().and_then(Rounds::deadline);
        let filling = self.filling.deadline(self.machine.waiting(), self.room());
        machine.into_iter().chain(rounds).chain(filling).min()
    }

    /// Takes triggers that came at a time up to now. The last one of a block starts the block. A block of a fixed size
    /// that is not full at the end of the run has not begun.
    pub fn trigger(&mut self, now: Time, at: Time, count: u64) {
        self.filling.add(at, count);
        while let Some(full) = self.filling.full(now, self.machine.waiting(), self.room()) {
            self.start_blocks(now, full);
        }
    }

    /// Starts the block that is not full, if it need not be.
    fn start_rest(&mut self, now: Time) {
        if let Some(rest) = self.filling.rest(now, self.room()) {
            self.start_blocks(now, rest);
        }
    }

    fn start_blocks(&mut self, now: Time, Full { blocks, size, since }: Full) {
        let before = EventId(self.machine.counts().triggered);
        self.count_inhibited(now, size, ManagerCommand::Trigger { count: blocks, at: since });
        self.note_size(now, before, size);
        if self.has_all_triggers() {
            self.machine.handle_command(now, ManagerCommand::End);
        }
    }

    /// Tells the other units the size of the blocks after a block, if there are any, and it is another one.
    fn note_size(&mut self, now: Time, before: EventId, size: u64) {
        let from = EventId(before.0 + 1);
        if self.machine.counts().triggered == before.0 || self.counted.blocks.size(from) == size {
            return;
        }
        let first = EventId(self.counted.blocks.through(before) + 1);
        let size = BlockSize { from, first, events: u32::try_from(size).unwrap_or(u32::MAX) };
        self.counted.blocks.change(size);
        self.sizes.push_back(size);
        self.machine.handle_command(now, ManagerCommand::Resized);
    }

    /// Passes the machine a command about blocks of a size, and counts the triggers that it turns away.
    fn count_inhibited(&mut self, now: Time, size: u64, command: ManagerCommand) {
        let before = self.machine.counts().inhibited;
        self.machine.handle_command(now, command);
        self.counted.inhibited += (self.machine.counts().inhibited - before) * size;
    }

    /// Takes no triggers until [`resume`](Self::resume).
    pub fn pause(&mut self, now: Time) {
        self.start_rest(now);
        self.paused = true;
        self.machine.handle_command(now, ManagerCommand::Pause);
    }

    /// Takes triggers again.
    pub fn resume(&mut self, now: Time) {
        self.paused = false;
        self.machine.handle_command(now, ManagerCommand::Resume);
    }

    /// Stops the trigger.
    pub fn stop(&mut self, now: Time) {
        self.start_rest(now);
        // One that has ended by number is not stopped now.
        if self.running && !self.has_all_triggers() {
            let counts = self.counts();
            self.meter.stop(now, &counts);
        }
        self.running = false;
        self.machine.handle_command(now, ManagerCommand::Stop);
    }

    /// Marks the time for the counts. It must be called before anything is counted that happens now.
    #[inline]
    pub fn pass(&mut self, now: Time) {
        self.meter.pass(now, || counts(&self.counted.of(self.machine.counts()).since(&self.before)));
    }

    /// The next happening to the events; ended events are counted.
    #[inline]
    pub fn poll_event(&mut self) -> Option<ManagerEvent> {
        let event = self.machine.poll_event()?;
        match event {
            ManagerEvent::Completed { completion, builder, latency } => {
                let events = self.counted.blocks.size(completion.event);
                if completion.ending != Ending::Rejected {
                    self.latencies.record(latency, events);
                }
                let of_builder = &mut self.of_builders[usize::from(builder.0 - self.first_builder.0)];
                for ended in [of_builder, &mut self.counted.ended] {
                    *match completion.ending {
                        Ending::Complete => &mut ended.built,
                        Ending::Incomplete => &mut ended.incomplete,
                        Ending::Rejected => &mut ended.rejected,
                    } += events;
                }
            }
            ManagerEvent::Reassigned(block) => self.counted.reassigned += self.counted.blocks.size(block),
            ManagerEvent::Drained => self.running = false,
            ManagerEvent::NoBuilders => {}
        }
        Some(event)
    }

    /// The report of the event manager.
    pub fn report(&self, now: Time) -> ManagerReport {
        let mut report = ManagerReport {
            of_builders: self.of_builders.clone(),
            latency_us: self.latencies.summary(),
            latency_ns: self.latencies.distribution(),
            series: self.meter.series(now, &self.counts()),
            clocks: self.clocks().zip(&self.clocks_before).map(|(now, before)| record_of_clock(&now, before)).collect(),
            ..ManagerReport::of(&self.events())
        };
        report.trigger.switched = self.switched;
        let blocks = self.machine.counts().triggered - self.blocks_before;
        if blocks > 0 {
            report.trigger.block = report.events.triggered as f64 / blocks as f64;
        }
        report.trigger.slots = self.machine.counts().under_way as f64 / self.of_builders.len() as f64;
        report
    }

    /// Numbers of events that were triggered and that have ended, in all runs.
    pub fn triggered_and_ended(&self) -> (u64, u64) {
        let Events { built, incomplete, rejected, .. } = self.counted.ended;
        (self.counted.triggered(self.machine.counts()), built + incomplete + rejected)
    }

    /// The clocks of the readout units; none where fragments are not matched by time.
    fn clocks(&self) -> impl Iterator<Item = ClockState> {
        (0..self.readout_nodes.count).map_while(|unit| self.machine.clock(SourceId(unit)))
    }

    /// The counts of events of this run.
    fn events(&self) -> ManagerCounts {
        self.counted.of(self.machine.counts()).since(&self.before)
    }

    fn counts(&self) -> [u64; RATES] {
        counts(&self.events())
    }

    /// True if every triggered event has ended.
    pub fn is_settled(&self) -> bool {
        self.machine.counts().open() == 0
    }

    /// Begins the account of the next run. The machine continues: its events keep their numbers. All events must have
    /// ended.
    pub fn next_run(&mut self, now: Time) {
        self.before = self.counted.of(self.machine.counts());
        self.blocks_before = self.machine.counts().triggered;
        self.clocks_before = self.clocks().map(|clock| clock.counts).collect();
        self.switched = 0;
        self.latencies.reset();
        self.of_builders.fill(Events::default());
        let counts = self.counts();
        self.meter.start(now, &counts);
    }

    /// Counts triggers that have come while all were turned away.
    pub fn turn_away(&mut self, now: Time, count: u64) {
        let before = self.counted.inhibited;
        self.filling.add(now, count);
        while let Some(Full { blocks, size, .. }) =
            self.filling.full(now, 0, u64::MAX).or_else(|| self.filling.rest(now, u64::MAX))
        {
            self.count_inhibited(now, size, ManagerCommand::TurnAway(blocks));
        }
        self.switched = self.counted.inhibited - before;
        // They came before this run, and say nothing about its rates.
        let counts = self.counts();
        self.meter.start(now, &counts);
    }
}

/// The record of a clock, whose counts were others at the start of the run.
fn record_of_clock(clock: &ClockState, before: &OutcomeCounts) -> ClockRecord {
    ClockRecord {
        place: match clock.synchrony {
            Synchrony::Unheard => ClockPlace::Unheard,
            Synchrony::Sought => ClockPlace::Sought,
            Synchrony::Regular => ClockPlace::Regular,
            Synchrony::Known => ClockPlace::Known,
        },
        found: clock.counts.found - before.found,
        lost: clock.counts.lost - before.lost,
        drift_ppm: clock.drift.map(|drift| drift * 1e6),
    }
}

/// Numbers of triggers, triggered events and ended events, in the order of the series by which a window is found.
const fn counts(counts: &ManagerCounts) -> [u64; RATES] {
    let ended = counts.triggered - counts.open();
    [counts.triggered + counts.inhibited, counts.triggered, ended, ended]
}
