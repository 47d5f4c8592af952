//! The event manager: its machine, and the account of the events that ended.

use crate::{Latencies, ManagerReport, meter::Meter};
use evb_core::{Machine, NodeId, Time};
use evb_protocol::{Config, Ending, EventManager, ManagerCommand, ManagerEvent};
use evb_record::Events;
use evb_steady::RATES;

/// An event manager with the account of its builders.
pub struct Manager<B> {
    /// The machine.
    pub machine: EventManager<B>,
    /// From trigger to stored; rejected events have no latency.
    pub latencies: Latencies,
    /// Events after which the trigger ends by itself.
    events: Option<u64>,
    running: bool,
    paused: bool,
    first_builder: NodeId,
    /// The events that each builder has ended.
    of_builders: Vec<Events>,
    meter: Meter,
}

impl<B: Clone> Manager<B> {
    /// The event manager of a configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            machine: EventManager::new(config.clone()),
            latencies: Latencies::default(),
            events: config.events,
            running: false,
            paused: false,
            first_builder: config.builder_nodes().first,
            of_builders: vec![Events::default(); config.builder_units.into()],
            meter: Meter::default(),
        }
    }

    /// True while triggers are taken.
    pub const fn is_running(&self) -> bool {
        self.running && !self.paused
    }

    /// True if all triggers of the plan have come: the trigger has ended by number.
    pub fn has_all_triggers(&self) -> bool {
        self.events.is_some_and(|events| self.machine.counts().triggered >= events)
    }

    /// Begins.
    pub fn start(&mut self, now: Time) {
        self.running = true;
        self.meter.start(now, &counts(&self.machine));
        self.machine.handle_command(now, ManagerCommand::Start);
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
            self.meter.stop(now, &counts(&self.machine));
        }
        self.running = false;
        self.machine.handle_command(now, ManagerCommand::Stop);
    }

    /// Marks the time for the counts. It must be called before anything is counted that happens now.
    #[inline]
    pub fn pass(&mut self, now: Time) {
        self.meter.pass(now, || counts(&self.machine));
    }

    /// The next happening to the events; ended events are counted.
    #[inline]
    pub fn poll_event(&mut self) -> Option<ManagerEvent> {
        let event = self.machine.poll_event()?;
        match event {
            ManagerEvent::Completed { completion, builder, latency } => {
                if completion.ending != Ending::Rejected {
                    self.latencies.record(latency);
                }
                let events = &mut self.of_builders[usize::from(builder.0 - self.first_builder.0)];
                match completion.ending {
                    Ending::Complete => events.built += 1,
                    Ending::Incomplete => events.incomplete += 1,
                    Ending::Rejected => events.rejected += 1,
                }
            }
            ManagerEvent::Drained => self.running = false,
            ManagerEvent::NoBuilders => {}
        }
        Some(event)
    }

    /// The report of the event manager.
    pub fn report(&self, now: Time) -> ManagerReport {
        ManagerReport {
            of_builders: self.of_builders.clone(),
            latency_us: self.latencies.summary(),
            series: self.meter.series(now, &counts(&self.machine)),
            ..ManagerReport::of(self.machine.counts())
        }
    }
}

/// Numbers of triggers, triggered events and ended events, in the order of the series by which a window is found.
fn counts<B>(machine: &EventManager<B>) -> [u64; RATES] {
    let counts = machine.counts();
    let ended = counts.triggered - counts.open();
    [counts.triggered + counts.inhibited, counts.triggered, ended, ended]
}
