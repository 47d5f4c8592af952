//! The event manager: its machine, and the account of the events that ended.

use crate::{Latencies, ManagerReport, meter::Meter, shaping::Rounds};
use evb_core::{Machine, NodeId, NodeRange, Time, Transmit};
use evb_experiment::Plan;
use evb_protocol::{Ending, EventManager, ManagerCommand, ManagerCounts, ManagerEvent, Message};
use evb_record::Events;
use evb_steady::RATES;
use std::collections::VecDeque;

/// An event manager with the account of its builders.
pub struct Manager<B> {
    /// The machine.
    pub machine: EventManager<B>,
    /// From trigger to stored; rejected events have no latency.
    pub latencies: Latencies,
    /// Blocks of events after which the trigger ends by itself.
    blocks: Option<u64>,
    /// Events in a block. An event of the machine is a block.
    block: u64,
    /// Triggers of the block that is being filled.
    filled: u64,
    running: bool,
    paused: bool,
    readout_nodes: NodeRange,
    first_builder: NodeId,
    /// The events that each builder has ended.
    of_builders: Vec<Events>,
    /// The rounds of a barrel shifter by barrier.
    rounds: Option<Rounds>,
    /// Readout units that have asked for the time: when they asked, and when the question came.
    asked: VecDeque<(NodeId, Time, Time)>,
    meter: Meter,
    /// The counts of the machine at the end of the run before, if this one followed it without a stop.
    before: ManagerCounts,
    /// Blocks of triggers that were turned away between the two runs.
    switched: u64,
}

impl<B: Clone> Manager<B> {
    /// The event manager of a plan.
    pub fn new(plan: &Plan) -> Self {
        let config = &plan.building;
        Self {
            machine: EventManager::new(config.clone()),
            latencies: Latencies::default(),
            blocks: config.events,
            block: plan.bundling.block.into(),
            filled: 0,
            running: false,
            paused: false,
            readout_nodes: config.readout_nodes(),
            first_builder: config.builder_nodes().first,
            of_builders: vec![Events::default(); config.builder_units.into()],
            rounds: Rounds::new(config),
            asked: VecDeque::new(),
            meter: Meter::default(),
            before: ManagerCounts::default(),
            switched: 0,
        }
    }

    /// True while triggers are taken.
    pub const fn is_running(&self) -> bool {
        self.running && !self.paused
    }

    /// True if all triggers of the plan have come: the trigger has ended by number.
    pub fn has_all_triggers(&self) -> bool {
        self.blocks.is_some_and(|blocks| self.machine.counts().triggered >= blocks)
    }

    /// Begins.
    pub fn start(&mut self, now: Time) {
        self.running = true;
        let counts = self.counts();
        self.meter.start(now, &counts);
        self.machine.handle_command(now, ManagerCommand::Start);
        self.rounds.iter_mut().for_each(|rounds| rounds.start(now));
    }

    /// Takes in a message.
    #[inline]
    pub fn handle_message(&mut self, now: Time, from: NodeId, message: Message<B>) {
        match (message, &mut self.rounds) {
            (Message::Taken { round, empty }, Some(rounds)) => rounds.taken(now, from, round, empty),
            (Message::TimeAsked { asked }, _) => self.asked.push_back((from, asked, now)),
            (message, _) => self.machine.handle_message(now, from, message),
        }
    }

    /// Takes note that a node is gone.
    pub fn lose(&mut self, now: Time, node: NodeId) {
        self.machine.handle_command(now, ManagerCommand::Lost(node));
        self.rounds.iter_mut().for_each(|rounds| rounds.lose(now, node));
    }

    /// The next message to send.
    #[inline]
    pub fn poll_transmit(&mut self) -> Option<Transmit<Message<B>>> {
        if let Some((number, calm)) = self.rounds.as_mut().and_then(Rounds::poll) {
            return Some(Transmit { to: self.readout_nodes, message: Message::Round { number, calm } });
        }
        if let Some((unit, asked, manager)) = self.asked.pop_front() {
            return Some(Transmit { to: unit.into(), message: Message::TimeTold { asked, manager } });
        }
        self.machine.poll_transmit()
    }

    /// Takes note that a [`deadline`](Self::deadline) has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        self.machine.handle_timeout(now);
        self.rounds.iter_mut().for_each(|rounds| rounds.handle_timeout(now));
    }

    /// The time at which [`handle_timeout`](Self::handle_timeout) must be called next.
    #[inline]
    pub fn deadline(&self) -> Option<Time> {
        let machine = self.machine.poll_timeout().map(|(at, _)| at);
        let rounds = self.rounds.as_ref().and_then(Rounds::deadline);
        machine.into_iter().chain(rounds).min()
    }

    /// Takes triggers that came at a time up to now. The last one of a block starts the block; a block that is not full at the
    /// end of the run has not begun.
    pub fn trigger(&mut self, now: Time, at: Time, count: u64) {
        self.filled += count;
        let blocks = self.filled / self.block;
        self.filled %= self.block;
        if blocks > 0 {
            self.machine.handle_command(now, ManagerCommand::Trigger { count: blocks, at });
        }
    }

    /// Takes no triggers until [`resume`](Self::resume).
    pub fn pause(&mut self, now: Time) {
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
        self.meter.pass(now, || counts(&self.machine, &self.before, self.block));
    }

    /// The next happening to the events; ended events are counted.
    #[inline]
    pub fn poll_event(&mut self) -> Option<ManagerEvent> {
        let event = self.machine.poll_event()?;
        match event {
            ManagerEvent::Completed { completion, builder, latency } => {
                if completion.ending != Ending::Rejected {
                    self.latencies.record(latency, self.block);
                }
                let events = &mut self.of_builders[usize::from(builder.0 - self.first_builder.0)];
                match completion.ending {
                    Ending::Complete => events.built += self.block,
                    Ending::Incomplete => events.incomplete += self.block,
                    Ending::Rejected => events.rejected += self.block,
                }
            }
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
            ..ManagerReport::of(&self.machine.counts().since(&self.before), self.block)
        };
        report.trigger.switched = self.switched * self.block;
        report.trigger.slots = self.machine.counts().under_way as f64 / self.of_builders.len() as f64;
        report
    }

    fn counts(&self) -> [u64; RATES] {
        counts(&self.machine, &self.before, self.block)
    }

    /// True if every triggered event has ended.
    pub fn is_settled(&self) -> bool {
        self.machine.counts().open() == 0
    }

    /// Begins the account of the next run. The machine goes on: its events keep their numbers. All events must have ended.
    pub fn next_run(&mut self, now: Time) {
        self.before = *self.machine.counts();
        self.switched = 0;
        self.latencies.reset();
        self.of_builders.fill(Events::default());
        let counts = self.counts();
        self.meter.start(now, &counts);
    }

    /// Counts triggers that have come while all were turned away.
    pub fn turn_away(&mut self, now: Time, count: u64) {
        self.filled += count;
        let blocks = self.filled / self.block;
        self.filled %= self.block;
        let before = self.machine.counts().inhibited;
        self.machine.handle_command(now, ManagerCommand::TurnAway(blocks));
        self.switched = self.machine.counts().inhibited - before;
        // They came before this run, and say nothing about its rates.
        let counts = self.counts();
        self.meter.start(now, &counts);
    }
}

/// Numbers of triggers, triggered events and ended events, in the order of the series by which a window is found.
fn counts<B>(machine: &EventManager<B>, before: &ManagerCounts, block: u64) -> [u64; RATES] {
    let counts = machine.counts();
    let triggered = counts.triggered - before.triggered;
    let ended = triggered - counts.open();
    [triggered + counts.inhibited - before.inhibited, triggered, ended, ended].map(|count| count * block)
}
