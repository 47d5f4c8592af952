//! The builder unit as a node: its machine, the check of every payload byte, and its storage.

use crate::control::{BuilderReport, NodeError, Order, Report, faults};
use crate::meter::Meter;
use crate::storage::Storage;
use crate::worker::Role;
use bytes::Bytes;
use evb_core::{Machine, NodeId, Time, Transmit};
use evb_experiment::Plan;
use evb_protocol::{
    BuilderCommand, BuilderEvent, BuilderUnit, Built, Filter, Fragment, FragmentStatus, Message, Mismatch,
};
use evb_record::{Finding, FindingKind};
use evb_transport::Waker;

pub(crate) struct Builder {
    machine: BuilderUnit<Bytes>,
    filter: Filter,
    storage: Storage,
    /// Events that are handed to the writer together.
    hand_over_at: usize,
    /// Events that the machine is to be told of as stored.
    stored: Vec<Built<Bytes>>,
    max_fragment: usize,
    deadline: Option<Time>,
    /// The node was away for long, and does not know yet whether its peers have given it up.
    was_away: bool,
    moved: bool,
    meter: Meter,
}

impl Builder {
    /// Opens the storage of builder `index`. `text` is the resolved experiment, `run` the number of this run; `waker` wakes
    /// the node.
    pub(crate) fn open(plan: &Plan, text: &str, run: u64, index: u16, waker: Waker) -> Result<Self, NodeError> {
        Ok(Self {
            machine: BuilderUnit::new(plan.building.clone()),
            filter: plan.filter,
            storage: Storage::open(plan, text, run, index, waker)?,
            hand_over_at: (plan.building.builder_slots / 2).max(1) as usize,
            stored: Vec::new(),
            max_fragment: plan.building.max_fragment.0 as usize,
            deadline: None,
            was_away: false,
            moved: false,
            meter: Meter::default(),
        })
    }

    /// Takes in a fragment after reading every byte of it.
    fn receive(&mut self, now: Time, from: NodeId, mut fragment: Fragment<Bytes>) {
        if fragment.payload.len() > self.max_fragment {
            fragment.payload.truncate(self.max_fragment);
            fragment.length = self.max_fragment as u32;
            fragment.checksum = evb_core::checksum(&fragment.payload);
            fragment.status = FragmentStatus::Oversized;
        }
        let found = evb_core::checksum(&fragment.payload);
        if found == fragment.checksum {
            return self.machine.handle_message(now, from, Message::Fragment(fragment));
        }
        // Should no better copy come, the file keeps the bytes as they are, and a checksum that fits them.
        fragment.checksum = found;
        self.machine.handle_command(now, BuilderCommand::Damaged { from, fragment });
    }

    fn handle_events(&mut self, now: Time) {
        while let Some(event) = self.machine.poll_event() {
            let answer = match event {
                BuilderEvent::Built(built) => self.storage.store(built).map(BuilderCommand::Stored),
                BuilderEvent::Decide { event, complete } => {
                    let accepted = self.filter.accepts(event, complete);
                    Some(BuilderCommand::Decided { event, accepted })
                }
                BuilderEvent::Stands => {
                    self.was_away = false;
                    self.storage.release();
                    continue;
                }
                BuilderEvent::Fenced => {
                    self.storage.fence();
                    continue;
                }
                BuilderEvent::Orphaned => continue,
            };
            self.moved = true;
            if let Some(answer) = answer {
                self.machine.handle_command(now, answer);
            }
        }
        // Without new events nothing will fill the batch, and somebody waits for the ones in it.
        if self.storage.fresh() >= self.hand_over_at || !self.moved {
            self.storage.hand_over();
        }
    }

    /// A node that was away for longer than its peers wait asks whether it is still one of the run. Until it knows, its
    /// storage is held.
    fn look_at_standing(&mut self, now: Time) {
        if !self.was_away && self.storage.is_held() {
            self.was_away = true;
            self.machine.handle_command(now, BuilderCommand::Away);
        }
    }

    /// Tells the machine what is stored.
    fn take_stored(&mut self, now: Time) -> Result<(), NodeError> {
        self.storage.take_stored(&mut self.stored)?;
        self.moved |= !self.stored.is_empty();
        for built in self.stored.drain(..) {
            self.machine.handle_command(now, BuilderCommand::Stored(built));
        }
        Ok(())
    }
}

/// A mismatch as a finding.
fn tell(mismatch: &Mismatch) -> Finding {
    let Mismatch { event, expected: (one, expected), found: (other, found) } = *mismatch;
    let message = format!("event {event}: ru{other} says {found} where ru{one} says {expected}");
    Finding::new(FindingKind::Mismatch, format!("ru{other}"), message)
}

impl Role for Builder {
    fn message(&mut self, now: Time, from: NodeId, message: Message<Bytes>) {
        let counts = self.machine.counts();
        self.meter.pass(now, || [counts.bytes, counts.fragments]);
        match message {
            Message::Fragment(fragment) => self.receive(now, from, fragment),
            other => self.machine.handle_message(now, from, other),
        }
    }

    fn lost(&mut self, now: Time, peer: NodeId) {
        self.machine.handle_command(now, BuilderCommand::Lost(peer));
    }

    fn order(&mut self, now: Time, order: Order) {
        match order {
            Order::Start => {
                self.meter.start(now, &[0, 0]);
                self.machine.handle_command(now, BuilderCommand::Start);
            }
            Order::Cut => self.machine.handle_command(now, BuilderCommand::Cut),
            _ => {}
        }
    }

    fn work(&mut self, now: Time, calm: bool) -> Result<bool, NodeError> {
        if calm && self.deadline.is_some_and(|deadline| deadline <= now) {
            self.machine.handle_timeout(now);
        }
        self.moved = false;
        self.take_stored(now)?;
        self.look_at_standing(now);
        self.handle_events(now);
        Ok(self.moved)
    }

    fn transmit(&mut self, _now: Time, send: &mut dyn FnMut(Transmit<Message<Bytes>>)) {
        while let Some(transmit) = self.machine.poll_transmit() {
            send(transmit);
        }
        self.deadline = self.machine.poll_timeout().map(|(at, _)| at);
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn is_helped(&self) -> bool {
        self.storage.is_writing()
    }

    fn report(&self, now: Time) -> Report {
        let counts = self.machine.counts();
        let stored = self.storage.stored();
        Report::Builder(BuilderReport {
            counts: evb_record::Builder {
                built: counts.built,
                incomplete: counts.incomplete,
                rejected: counts.rejected,
                fragments: counts.fragments,
                bytes: counts.bytes,
                asked: counts.asked,
                repeated: counts.repeated,
                stored: stored.events,
                stored_bytes: stored.bytes,
                file_count: stored.files.into(),
                files: self.storage.file_names().collect(),
            },
            faults: faults(&counts.faults),
            findings: self.machine.mismatches().iter().map(tell).collect(),
            series: self.meter.series(now, &[counts.bytes, counts.fragments]),
        })
    }

    fn finish(&mut self, now: Time) -> Result<bool, NodeError> {
        let closed = self.storage.finish();
        self.take_stored(now)?;
        closed
    }
}
