//! The builder unit: its machine, the check of every payload, the decision after a first phase, and the storage.

use crate::{BuilderReport, Payload, Selector, meter::Meter};
use evb_core::{Machine, NodeId, Time};
use evb_experiment::Plan;
use evb_filter::{Answer, Question, StreamId};
use evb_protocol::{BuilderCommand, BuilderEvent, BuilderUnit, Built, Fragment, FragmentStatus, Message};

/// Where a builder puts its events.
pub trait Store<B> {
    /// Takes an event to be stored in a stream; gives it back when it needs no storing, or is stored already. Others the
    /// driver gives back to the machine.
    fn store(&mut self, now: Time, stream: StreamId, built: Built<B>) -> Option<Built<B>>;

    /// Takes an event about which the filter units are to decide. The driver gives their answer to
    /// [`Builder::answer`].
    fn ask(&mut self, now: Time, question: Question<B>);

    /// Whether nothing is stored until it is known that the builder stands: its node was away for long.
    fn is_held(&self) -> bool {
        false
    }

    /// The builder stands: goes on with all that was held.
    fn release(&mut self) {}

    /// The builder was given up: stores nothing any more.
    fn fence(&mut self) {}
}

/// A builder unit with its storage.
pub struct Builder<B, S> {
    /// The machine.
    pub machine: BuilderUnit<B>,
    /// Where events are stored.
    pub storage: S,
    selector: Selector,
    max_fragment: u32,
    /// It has asked whether its peers have given it up, and does not know yet.
    is_asking: bool,
    meter: Meter,
}

impl<B: Payload, S: Store<B>> Builder<B, S> {
    /// A builder unit of a plan.
    pub fn new(plan: &Plan, storage: S) -> Self {
        Self {
            machine: BuilderUnit::new(plan.building.clone()),
            storage,
            selector: Selector::new(plan.filter.clone()),
            max_fragment: u32::try_from(plan.building.max_fragment.0).unwrap_or(u32::MAX),
            is_asking: false,
            meter: Meter::default(),
        }
    }

    /// Begins.
    pub fn start(&mut self, now: Time) {
        self.meter.start(now, &[0, 0]);
        self.machine.handle_command(now, BuilderCommand::Start);
    }

    /// Marks the time in what it counts. To be called before anything is counted that happens now.
    #[inline]
    pub fn pass(&mut self, now: Time) {
        let counts = self.machine.counts();
        self.meter.pass(now, || [counts.bytes, counts.fragments]);
    }

    /// Takes in a message; a fragment after a look at every byte of it.
    #[inline]
    pub fn handle_message(&mut self, now: Time, from: NodeId, message: Message<B>) {
        match message {
            Message::Fragment(fragment) if !self.is_as_sent(&fragment) => self.receive_bad(now, from, fragment),
            message => self.machine.handle_message(now, from, message),
        }
    }

    /// True when a fragment has its bytes and no more than allowed.
    #[inline]
    fn is_as_sent(&self, fragment: &Fragment<B>) -> bool {
        B::length(fragment) <= self.max_fragment && B::checksum(fragment) == fragment.checksum
    }

    #[cold]
    fn receive_bad(&mut self, now: Time, from: NodeId, mut fragment: Fragment<B>) {
        if B::length(&fragment) > self.max_fragment {
            B::resize(&mut fragment, self.max_fragment);
            fragment.status = FragmentStatus::Oversized;
        }
        let found = B::checksum(&fragment);
        if found == fragment.checksum {
            return self.machine.handle_message(now, from, Message::Fragment(fragment));
        }
        // Should no better copy come, the file keeps the bytes as they are, and a checksum that fits them.
        fragment.checksum = found;
        self.machine.handle_command(now, BuilderCommand::Damaged { from, fragment });
    }

    /// Does what the machine wants; true when there was something. A decision takes no time.
    #[inline]
    pub fn handle_events(&mut self, now: Time) -> bool {
        let mut moved = false;
        while let Some(event) = self.machine.poll_event() {
            let answer = match event {
                BuilderEvent::Built(built) => self.selector.take_built(&mut self.storage, now, built),
                BuilderEvent::Decide { event, complete } => {
                    let fragments = self.machine.fragments(event);
                    self.selector.take_phase(&mut self.storage, now, (event, complete), fragments)
                }
                BuilderEvent::Stands => {
                    self.is_asking = false;
                    self.storage.release();
                    continue;
                }
                BuilderEvent::Fenced => {
                    self.storage.fence();
                    continue;
                }
                BuilderEvent::Orphaned => continue,
            };
            moved = true;
            if let Some(answer) = answer {
                self.machine.handle_command(now, answer);
            }
        }
        moved
    }

    /// Takes the decision of the filter units about an event.
    pub fn answer(&mut self, now: Time, answer: Answer<B>) {
        if let Some(command) = self.selector.take_answer(&mut self.storage, now, answer) {
            self.machine.handle_command(now, command);
        }
    }

    /// Asks whether it is still one of the run, when its storage is held for that.
    pub fn look_at_standing(&mut self, now: Time) {
        if !self.is_asking && self.storage.is_held() {
            self.is_asking = true;
            self.machine.handle_command(now, BuilderCommand::Away);
        }
    }

    /// How it stands. What is stored the driver knows.
    pub fn report(&self, now: Time) -> BuilderReport {
        let counts = self.machine.counts();
        let series = self.meter.series(now, &[counts.bytes, counts.fragments]);
        let filter = self.selector.filtering().map(Box::new);
        BuilderReport { series, filter, ..BuilderReport::of(&self.machine) }
    }
}
