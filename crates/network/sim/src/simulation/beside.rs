//! What works beside a builder on the cores of its computer: the thread that stores its events, and its filter units.

use super::Simulation;
use crate::{
    cpu::{Task, WorkItem},
    event::Event,
    storage::{Batch, Storage},
};
use evb_core::{NodeId, Span, Time};
use evb_experiment::{CpuPlan, EventCost};

impl Simulation<'_> {
    fn storage(&mut self, builder: NodeId) -> Option<&mut Storage> {
        self.nodes[builder.index()].storage()
    }

    /// A builder hands the events of a turn over when this has ended, in `turn`. Returns the time to wake the writer.
    pub(super) fn plan_hand_over(&mut self, now: Time, id: NodeId, turn: Span) -> Span {
        let Some(storage) = self.storage(id) else { return Span::ZERO };
        let (stores, asks) = (storage.has_fresh(), storage.filter.has_fresh());
        if !stores && !asks {
            return Span::ZERO;
        }
        let wakes = if stores { self.cost_of_waking(Task::Writer(id)) } else { Span::ZERO };
        self.net.queue.push(now + turn + wakes, Event::HandOver { node: id.0 });
        wakes
    }

    /// The time that a task needs to wake another one, if this sleeps.
    fn cost_of_waking(&mut self, other: Task) -> Span {
        let Some(computing) = &mut self.computing else { return Span::ZERO };
        let (sleeps, cpus) = (computing.cpus.sleeps(other), &mut computing.cpus);
        cpus.work.add(WorkItem::WakeCall, sleeps.into(), cpus.plan.wake.call)
    }

    pub(super) fn hand_events_over(&mut self, now: u64, builder: NodeId) {
        if self.nodes[builder.index()].dead {
            return;
        }
        self.moved_at = now;
        let Some(storage) = self.storage(builder) else { return };
        storage.hand_over();
        let waiting = storage.filter.hand_over();
        self.call_writer(builder);
        let units = crate::cpu::local_filter_units(self.plan);
        let idle = |unit: &Task| self.computing.as_ref().is_some_and(|computing| computing.cpus.sleeps(*unit));
        let units: Vec<_> = (0..units).map(|unit| Task::FilterUnit(builder, unit)).filter(idle).take(waiting).collect();
        units.into_iter().for_each(|unit| self.call_task(unit));
    }

    /// Calls the writer of a builder if there are events for it.
    pub(super) fn call_writer(&mut self, builder: NodeId) {
        if self.storage(builder).is_some_and(|storage| storage.has_waiting()) {
            self.call_task(Task::Writer(builder));
        }
    }

    /// A turn of a writer: it stores a batch of events, and then waits for the disk.
    pub(super) fn write_events(&mut self, now: Time, builder: NodeId) {
        let task = Task::Writer(builder);
        let batch = self.storage(builder).map_or(Batch::default(), |storage| storage.begin_batch(now));
        let time =
            self.cost_of_batch(builder, batch, |cpu| cpu.storage, [WorkItem::StorageEvent, WorkItem::StorageByte]);
        let Some(computing) = &mut self.computing else { return };
        computing.cpus.end_turn(now, task, time, batch.events > 0);
        if batch.events == 0 {
            return;
        }
        let written = now + time;
        let taken = computing.cpus.write(written, builder, batch.bytes);
        let stored = self.storage(builder).map_or(taken, |storage| storage.end_batch(written, taken, batch));
        for _ in 0..batch.events {
            self.net.queue.push(stored, Event::Stored { node: builder.0 });
        }
    }

    /// The time for a batch, and to wake the builder that takes it back.
    fn cost_of_batch(
        &mut self,
        builder: NodeId,
        batch: Batch,
        cost: fn(&CpuPlan) -> EventCost,
        [event, byte]: [WorkItem; 2],
    ) -> Span {
        if batch.events == 0 {
            return Span::ZERO;
        }
        let wakes = self.cost_of_waking(Task::Node(builder));
        let Some(computing) = &mut self.computing else { return Span::ZERO };
        let (cost, work) = (cost(&computing.cpus.plan), &mut computing.cpus.work);
        wakes + work.add(event, batch.events, cost.event) + work.add(byte, batch.bytes, cost.byte)
    }

    /// A turn of a filter unit: it decides about its part of the events that wait.
    pub(super) fn decide(&mut self, now: Time, unit: Task, builder: NodeId) {
        let Some(filter) = self.storage(builder).map(|storage| &storage.filter) else { return };
        let (batch, each) = (filter.next_batch(), filter.time);
        let time = self.cost_of_batch(builder, batch, |cpu| cpu.filter, [WorkItem::FilterEvent, WorkItem::FilterByte]);
        let Some(computing) = &mut self.computing else { return };
        let time = time + computing.cpus.work.add(WorkItem::FilterTime, batch.events, each);
        computing.cpus.end_turn(now, unit, time, batch.events > 0);
        self.storage(builder).into_iter().for_each(|storage| storage.filter.begin(batch, now + time));
        for _ in 0..batch.events {
            self.net.queue.push(now + time, Event::Filtered { node: builder.0 });
        }
    }
}
