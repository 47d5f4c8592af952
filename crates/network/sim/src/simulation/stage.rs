//! A simulation as an event builder of one of two stages.

use super::{Observe, Simulation};
use crate::node::{Node, NodeUnit};
use evb_core::{Machine as _, NodeId, Time};
use evb_protocol::{Arrival, Fragment, ReadoutCommand};
use evb_unit::SimulatedPayload;

impl Simulation<'_> {
    /// Begins.
    pub(crate) fn begin(&mut self, observe: &mut Observe<'_>) {
        self.start();
        self.settle(observe);
    }

    /// The time of the next event; `None` if nothing is planned, or everything is over.
    pub(crate) fn next_time(&self) -> Option<Time> {
        if self.ended { None } else { self.net.queue.next_time() }
    }

    /// Advances to the next event, and handles all that happens then.
    pub(crate) fn step(&mut self, observe: &mut Observe<'_>) {
        self.net.queue.advance();
        self.settle(observe);
    }

    /// Handles all that follows at once from what was given or taken.
    pub(crate) fn follow(&mut self, observe: &mut Observe<'_>) {
        self.settle(observe);
        while !self.ended && self.net.queue.next_time() == Some(self.net.queue.now()) {
            self.step(observe);
        }
    }

    /// True if everything is over.
    pub(crate) const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Ends the measurement. To be called once, last.
    pub(crate) fn end(&mut self) {
        self.finish();
    }

    /// The next super-fragment of a builder of the first stage.
    pub(crate) fn pop_super_fragment(&mut self, builder: u16) -> Option<(u64, Fragment<SimulatedPayload>)> {
        match &mut self.builder(builder).unit {
            NodeUnit::Builder(unit) => unit.storage.outlet.as_mut()?.pop(),
            _ => None,
        }
    }

    /// The second stage has taken a super-fragment of a builder.
    pub(crate) fn taken(&mut self, now: Time, builder: u16, number: u64) {
        self.pass_to(now);
        let id = self.builder_id(builder);
        if let NodeUnit::Builder(unit) = &mut self.builder(builder).unit
            && let Some(outlet) = &mut unit.storage.outlet
        {
            for built in outlet.taken(number) {
                unit.stored(now, built);
            }
        }
        self.moved_at = now.0;
        self.drain(id);
    }

    /// True if a readout unit of the second stage has room for a super-fragment.
    pub(crate) fn has_room(&mut self, unit: u16) -> bool {
        matches!(&self.readout(unit).unit, NodeUnit::Readout(unit) if unit.machine.has_room())
    }

    /// Passes a super-fragment to a readout unit of the second stage, or the end of all with the number of the last one.
    pub(crate) fn give(&mut self, now: Time, unit: u16, input: Result<(u64, Fragment<SimulatedPayload>), u64>) {
        self.pass_to(now);
        let command = match input {
            Ok((number, Fragment { length, checksum, mark, status, payload, .. })) => {
                let (restarted, arrived, clock) = (false, now, None);
                ReadoutCommand::Arrived(Arrival {
                    number,
                    restarted,
                    arrived,
                    clock,
                    length,
                    checksum,
                    mark,
                    status,
                    payload,
                })
            }
            Err(last) => ReadoutCommand::EndOfData { last: Some(last) },
        };
        if let NodeUnit::Readout(unit) = &mut self.readout(unit).unit {
            unit.machine.handle_command(now, command);
        }
        self.drain(NodeId(self.plan.building.readout_nodes().first.0 + unit));
    }

    /// Advances to a time at which something arrives from another stage.
    fn pass_to(&mut self, now: Time) {
        self.net.queue.pass_to(now);
        self.count_trains_if_due();
    }

    fn builder_id(&self, builder: u16) -> NodeId {
        NodeId(self.plan.building.builder_nodes().first.0 + builder)
    }

    fn builder(&mut self, builder: u16) -> &mut Node {
        let id = self.builder_id(builder);
        &mut self.nodes[id.index()]
    }

    fn readout(&mut self, unit: u16) -> &mut Node {
        let first = self.plan.building.readout_nodes().first;
        &mut self.nodes[first.index() + usize::from(unit)]
    }
}
