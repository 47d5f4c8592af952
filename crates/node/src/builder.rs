//! A builder unit as a node: the unit and its event files.

use crate::control::{NodeError, Order};
use crate::storage::Storage;
use crate::worker::Role;
use bytes::Bytes;
use evb_core::{Machine, NodeId, Time, Transmit};
use evb_experiment::Plan;
use evb_protocol::{BuilderCommand, Built, Message};
use evb_transport::Waker;
use evb_unit::{Report, shaping::Assembler};

pub(crate) struct Builder {
    unit: evb_unit::Builder<Bytes, Storage>,
    /// Fragments that come in pieces.
    pieces: Assembler,
    /// Number of events that are handed to the writer together.
    hand_over_at: usize,
    /// Stored events that the machine is to be told of.
    stored: Vec<Built<Bytes>>,
    deadline: Option<Time>,
    /// Time of the last turn of the node.
    now: Time,
}

impl Builder {
    /// Opens the storage of builder `index`. `text` is the resolved experiment, `run` the number of the run; `waker`
    /// wakes the node.
    pub(crate) fn open(plan: &Plan, text: &str, run: u64, index: u16, waker: Waker) -> Result<Self, NodeError> {
        Ok(Self {
            unit: evb_unit::Builder::new(plan, index, Storage::open(plan, text, run, index, waker)?),
            pieces: Assembler::new(&plan.building),
            hand_over_at: (plan.building.builder_slots / 2).max(1) as usize,
            stored: Vec::new(),
            deadline: None,
            now: Time::ZERO,
        })
    }

    /// Tells the machine which events are stored; returns true if there were any.
    fn take_stored(&mut self) -> Result<bool, NodeError> {
        self.unit.storage.take_stored(&mut self.stored)?;
        let moved = !self.stored.is_empty();
        for built in self.stored.drain(..) {
            self.unit.stored(self.now, built);
        }
        Ok(moved)
    }
}

impl Role for Builder {
    fn message(&mut self, now: Time, from: NodeId, message: Message<Bytes>) {
        self.unit.pass(now);
        let message = match message {
            Message::Piece(piece) => self.pieces.add(from, piece).map(Message::Fragment),
            whole => Some(whole),
        };
        message.into_iter().for_each(|message| self.unit.handle_message(now, from, message));
    }

    fn lost(&mut self, now: Time, peer: NodeId) {
        self.unit.lose(now, peer);
    }

    fn order(&mut self, now: Time, order: Order) {
        match order {
            Order::Start => self.unit.start(now),
            Order::Cut => self.unit.machine.handle_command(now, BuilderCommand::Cut),
            _ => {}
        }
    }

    fn work(&mut self, now: Time, calm: bool) -> Result<bool, NodeError> {
        if calm && self.deadline.is_some_and(|deadline| deadline <= now) {
            self.unit.handle_timeout(now);
        }
        self.now = now;
        let mut moved = self.take_stored()?;
        self.unit.look_at_standing(now);
        moved |= self.unit.handle_events(now);
        // Without new events nothing will fill the batch, and somebody waits for the ones in it.
        if !moved || self.unit.storage.fresh() >= self.hand_over_at {
            self.unit.storage.hand_over();
        }
        Ok(moved)
    }

    fn transmit(&mut self, _now: Time, send: &mut dyn FnMut(Transmit<Message<Bytes>>) -> bool) {
        while let Some(transmit) = self.unit.poll_transmit() {
            send(transmit);
        }
        self.deadline = self.unit.deadline();
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn is_helped(&self) -> bool {
        self.unit.storage.is_writing()
    }

    fn report(&self, now: Time) -> Report {
        let mut report = self.unit.report(now);
        let stored = self.unit.storage.stored();
        report.counts.stored = stored.events;
        report.counts.stored_bytes = stored.bytes;
        report.counts.file_count = stored.files.into();
        report.counts.files = self.unit.storage.file_names().collect();
        Report::Builder(report)
    }

    fn finish(&mut self) -> Result<bool, NodeError> {
        let closed = self.unit.storage.finish();
        self.take_stored()?;
        closed
    }
}
