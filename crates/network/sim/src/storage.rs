//! The storage of a simulated builder. A fast one stores events at once. A disk that is slow on purpose stores them one after
//! another. Where storing costs processor time, a writer of the builder stores them.

use crate::{cpu::has_writers, disk::Disk, filter::FilterUnits};
use evb_core::{EventId, NodeId, Time};
use evb_experiment::{DiskPlan, Keep, Plan};
use evb_filter::{Question, Route, StreamId};
use evb_protocol::Built;
use evb_unit::{SimulatedPayload, Store, SuperFragmentSender, WRITE_BATCH_BYTES};
use std::collections::VecDeque;

pub(crate) struct Storage {
    keep: Keep,
    /// A disk that is slow on purpose.
    slow: Option<Disk>,
    has_writer: bool,
    /// Events for the writer that the builder has not handed over.
    fresh: Vec<Built<SimulatedPayload>>,
    /// Events that wait for the writer.
    waiting: VecDeque<Built<SimulatedPayload>>,
    /// Events that are being stored. All events here are at most those of the builder's slots.
    writing: VecDeque<Built<SimulatedPayload>>,
    /// When the writer may go on.
    free_at: Time,
    /// Times at which the events begun since the last drain will be stored.
    pub(crate) begun: Vec<Time>,
    /// The filter units beside it.
    pub(crate) filter: FilterUnits,
    /// The events on their way to the second stage, in a builder of the first.
    pub(crate) outlet: Option<SuperFragmentSender<SimulatedPayload>>,
}

/// Events that are written together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Batch {
    pub(crate) events: u64,
    pub(crate) bytes: u64,
}

impl Storage {
    /// The storage of a node.
    pub(crate) fn of(plan: &Plan, node: NodeId) -> Self {
        Self {
            keep: plan.storage.keep,
            slow: plan.slow_disk(node).map(|rate| Disk::new(DiskPlan::of_rate(rate))),
            has_writer: has_writers(plan),
            fresh: Vec::new(),
            waiting: VecDeque::new(),
            writing: VecDeque::new(),
            free_at: Time::ZERO,
            begun: Vec::new(),
            filter: FilterUnits::of(plan),
            outlet: SuperFragmentSender::new(plan),
        }
    }

    /// True if the builder has events for its writer.
    pub(crate) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Hands events to the writer.
    pub(crate) fn hand_over(&mut self) {
        self.waiting.extend(self.fresh.drain(..));
    }

    /// True if events wait for the writer.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Begins to store the next events, unless the writer still waits for a disk.
    pub(crate) fn begin_batch(&mut self, now: Time) -> Batch {
        let mut batch = Batch::default();
        while self.free_at <= now && batch.bytes < WRITE_BATCH_BYTES {
            let Some(built) = self.waiting.pop_front() else { break };
            batch.events += 1;
            batch.bytes += bytes(&built);
            self.writing.push_back(built);
        }
        batch
    }

    /// The time at which a batch is stored that the disk of the computer has taken at `taken`. Until then the writer waits.
    pub(crate) fn end_batch(&mut self, written: Time, taken: Time, batch: Batch) -> Time {
        let slow = self.slow.as_mut().map_or(taken, |disk| disk.write(written, batch.bytes));
        self.free_at = slow.max(taken);
        self.free_at
    }

    /// The event that is stored next.
    pub(crate) fn stored(&mut self) -> Option<Built<SimulatedPayload>> {
        self.writing.pop_front()
    }
}

impl Store<SimulatedPayload> for Storage {
    fn ask(&mut self, now: Time, question: Question<SimulatedPayload>) {
        self.filter.ask(now, question);
    }

    fn keeps(&self, _stream: StreamId, event: EventId, complete: bool) -> bool {
        let takes_time = self.has_writer || self.slow.is_some();
        self.outlet.is_some() || (takes_time && self.keep.keeps(event, complete))
    }

    fn store(&mut self, now: Time, route: Route, built: Built<SimulatedPayload>) -> Option<Built<SimulatedPayload>> {
        if let Some(outlet) = &mut self.outlet {
            outlet.add(built);
            return None;
        }
        if !self.keeps(route.stream, built.event, built.complete) {
            return Some(built);
        }
        match &mut self.slow {
            Some(disk) if !self.has_writer => {
                self.begun.push(disk.write(now, bytes(&built)));
                self.writing.push_back(built);
            }
            _ => self.fresh.push(built),
        }
        None
    }
}

/// The payload of an event.
pub(crate) fn bytes(built: &Built<SimulatedPayload>) -> u64 {
    built.fragments.iter().flatten().map(|fragment| u64::from(fragment.length)).sum()
}
