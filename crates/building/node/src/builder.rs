//! A builder unit as a node: the unit and its event files.

use crate::control::{Notice, Order};
use crate::error::NodeError;
use crate::filter;
use crate::node::NodeRole;
use crate::run_info::RunStart;
use crate::sample::{Sample, Sampling};
use crate::storage::Storage;
use bytes::Bytes;
use evb_core::{Machine, NodeId, Time, Transmit};
use evb_experiment::Plan;
use evb_filter::{Answer, Units};
use evb_protocol::{BuilderCommand, Built, Config, Message};
use evb_transport::Waker;
use evb_unit::{Report, shaping::Assembler};

pub(crate) struct BuilderNode {
    unit: evb_unit::BuilderUnit<Bytes, Storage>,
    /// Fragments that come in pieces.
    pieces: Assembler,
    /// Number of events that are handed to the writer together.
    hand_over_at: usize,
    index: u16,
    /// Events about which the filter units have decided.
    answers: Vec<Answer<Bytes>>,
    /// Stored events that are not reported to the machine yet.
    stored: Vec<Built<Bytes>>,
    deadline: Option<Time>,
    /// Time of the last turn of the node.
    now: Time,
    sampling: Sampling,
    files: Files,
}

/// What the files and filter units of a run are opened with.
struct Files {
    plan: Plan,
    text: String,
    index: u16,
    waker: Waker,
}

impl Files {
    fn open(&self, run: &RunStart) -> Result<Storage, NodeError> {
        let mut storage = Storage::open(&self.plan, &self.text, run, self.index, self.waker.clone())?;
        storage.filter = filter::start(&self.plan, run.info.number, self.index, self.waker.clone())?;
        Ok(storage)
    }
}

impl BuilderNode {
    /// Opens the storage of builder `index`. `text` is the resolved experiment; `waker` wakes the node.
    pub(crate) fn open(plan: &Plan, text: &str, run: &RunStart, index: u16, waker: Waker) -> Result<Self, NodeError> {
        let files = Files { plan: plan.clone(), text: text.to_owned(), index, waker };
        Ok(Self {
            unit: evb_unit::BuilderUnit::new(plan, index, files.open(run)?),
            files,
            pieces: Assembler::new(&plan.building),
            index,
            answers: Vec::new(),
            hand_over_at: (plan.building.first_slots() / 2).max(1) as usize,
            stored: Vec::new(),
            deadline: None,
            now: Time::ZERO,
            sampling: Sampling::new(plan.run.samples),
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

    /// Gives the decisions of the filter units to the unit; returns true if there were any.
    fn take_answers(&mut self) -> bool {
        if let Some(units) = &mut self.unit.storage.filter {
            units.take(&mut self.answers);
        }
        let moved = !self.answers.is_empty();
        for answer in self.answers.drain(..) {
            self.unit.answer(self.now, answer);
        }
        moved
    }
}

impl NodeRole for BuilderNode {
    fn message(&mut self, now: Time, from: NodeId, message: Message<Bytes>) {
        self.unit.pass(now);
        let message = match message {
            Message::Piece(piece) => self.pieces.add(from, *piece).map(Message::Fragment),
            whole => Some(whole),
        };
        message.into_iter().for_each(|message| self.unit.handle_message(now, from, message));
    }

    fn lost(&mut self, now: Time, peer: NodeId) {
        self.unit.lose(now, peer);
        if peer == Config::EVENT_MANAGER {
            self.unit.storage.orphan();
        }
    }

    fn order(&mut self, now: Time, order: Order) {
        match order {
            Order::Start => self.unit.start(now),
            Order::Cut => {
                self.unit.machine.handle_command(now, BuilderCommand::Cut);
                self.unit.storage.filter.iter_mut().for_each(Units::expect_end);
            }
            _ => {}
        }
    }

    fn work(&mut self, now: Time, calm: bool) -> Result<bool, NodeError> {
        if calm && self.deadline.is_some_and(|deadline| deadline <= now) {
            self.unit.handle_timeout(now);
        }
        self.now = now;
        if self.sampling.is_due(now) {
            self.unit.want_sample();
        }
        let mut moved = self.take_stored()?;
        moved |= self.take_answers();
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
        self.unit.storage.is_writing() || self.unit.storage.filter.as_ref().is_some_and(Units::is_busy)
    }

    fn notice(&mut self) -> Option<Notice> {
        if let Some(built) = self.unit.take_sample() {
            return Some(Notice::Sample(Box::new(Sample::of(&built))));
        }
        self.unit.storage.filter.as_mut().and_then(Units::note).map(Notice::Note)
    }

    fn report(&self, now: Time) -> Report {
        let mut report = self.unit.report(now);
        let stored = self.unit.storage.stored();
        report.counts.stored = stored.events;
        report.counts.stored_bytes = stored.bytes;
        report.counts.file_count = stored.files.into();
        report.counts.files = self.unit.storage.file_names().collect();
        let units = self.unit.storage.filter.as_ref().map(Units::report);
        filter::complete(&mut report, self.index, units, self.unit.storage.by_stream());
        Report::Builder(report)
    }

    fn next_run(&mut self, now: Time, run: &RunStart) -> Result<(), NodeError> {
        self.unit.next_run(now, self.files.open(run)?);
        Ok(())
    }

    fn finish(&mut self, _now: Time, _is_last: bool) -> Result<bool, NodeError> {
        // The files are closed when no filter unit can return an event.
        if !self.unit.storage.filter.as_mut().is_none_or(Units::finish) {
            return Ok(false);
        }
        let closed = self.unit.storage.finish();
        self.take_stored()?;
        closed
    }
}
