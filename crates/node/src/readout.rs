//! The readout unit as a node: its machine and its source of fragments.

use crate::control::{NodeError, Order, ReadoutReport, Report, faults};
use crate::harm::Harm;
use crate::meter::Meter;
use crate::pool::Pool;
use crate::worker::Role;
use bytes::Bytes;
use evb_core::{EventId, Machine, NodeId, SourceId, Time, Transmit};
use evb_experiment::Plan;
use evb_protocol::{Arrival, Fragment, FragmentStatus, Message, ReadoutCommand, ReadoutEvent, ReadoutUnit};
use evb_sources::{Feed, LiveItem, LiveSource, OpenOptions, ReadOutcome, Source, SourceSpec};
use evb_transport::{Buffers, Waker};
use std::collections::VecDeque;

/// Fragments read from the source in one round: enough to amortise the round, few enough to keep others served.
const READS: usize = 64;

pub(crate) struct Readout {
    machine: ReadoutUnit<Bytes>,
    source_id: SourceId,
    source: Input,
    /// Events to be read that did not fit into a round.
    reads: VecDeque<EventId>,
    pool: Pool,
    harm: Option<Harm>,
    rejected: u64,
    deadline: Option<Time>,
    meter: Meter,
}

enum Input {
    OnDemand(Source),
    Live(LiveSource),
}

impl Readout {
    /// Opens the source of one readout unit.
    pub(crate) fn open(
        plan: &Plan,
        source_id: SourceId,
        node: NodeId,
        (waker, buffers): (Waker, Option<Buffers>),
    ) -> Result<Self, NodeError> {
        let spec = &plan.sources[source_id.index()];
        let options = OpenOptions {
            data_directory: plan.data_directory.clone(),
            unit: source_id.0,
            seed: plan.run.seed,
            max_fragment: plan.building.max_fragment.0 as u32,
        };
        let (source, bits) = match spec {
            SourceSpec::Tcp { counter_bits, .. } | SourceSpec::Udp { counter_bits, .. } => {
                (LiveSource::start(spec, &options, waker).map(Input::Live), Some(*counter_bits))
            }
            _ => (Source::open(spec, &options).map(Input::OnDemand), None),
        };
        Ok(Self {
            machine: ReadoutUnit::new(plan.building.clone(), source_id, bits),
            source_id,
            source: source.map_err(|error| source_error(source_id, &error))?,
            reads: VecDeque::new(),
            pool: Pool::new(buffers),
            harm: Harm::new(plan, node),
            rejected: 0,
            deadline: None,
            meter: Meter::default(),
        })
    }

    fn start(&mut self, now: Time) {
        let (through, last) = match &self.source {
            Input::OnDemand(source) => match source.feed() {
                Feed::Finite { events } => (EventId(events), true),
                Feed::Endless | Feed::Live => (EventId(u64::MAX), true),
            },
            Input::Live(_) => (EventId(0), false),
        };
        self.machine.handle_command(now, ReadoutCommand::Start { through, last });
    }

    fn handle_events(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                ReadoutEvent::Read(event) => self.reads.push_back(event),
                ReadoutEvent::Released(payload) => self.pool.give(payload),
                ReadoutEvent::Orphaned => {}
            }
        }
    }

    fn read(&mut self, now: Time) -> Result<bool, NodeError> {
        let Input::OnDemand(source) = &mut self.source else { return self.take_arrivals(now) };
        let count = self.reads.len().min(READS);
        for event in self.reads.drain(..count) {
            let mut draft = self.pool.draft();
            let outcome = source.read(event, &mut draft).map_err(|error| source_error(self.source_id, &error))?;
            let status = match outcome {
                ReadOutcome::Good => FragmentStatus::Good,
                ReadOutcome::Corrupted(_) => FragmentStatus::Corrupted,
                ReadOutcome::Missing => FragmentStatus::Missing,
                ReadOutcome::Oversized { .. } => FragmentStatus::Oversized,
            };
            let payload = draft.finish();
            let (length, checksum) = (payload.len() as u32, evb_core::checksum(&payload));
            let fragment = Fragment { event, source: self.source_id, length, checksum, status, payload };
            self.machine.handle_command(now, ReadoutCommand::Fragment(fragment));
        }
        Ok(count > 0)
    }

    fn take_arrivals(&mut self, now: Time) -> Result<bool, NodeError> {
        let Input::Live(live) = &mut self.source else { return Ok(false) };
        for count in 0..READS {
            // A front end waits while the buffer is full: that is the back-pressure.
            if !self.machine.has_room() {
                return Ok(count > 0);
            }
            let command = match live.try_next() {
                None => return Ok(count > 0),
                Some(LiveItem::Fragment { counter, resynchronised, good, bytes }) => {
                    let status = if good { FragmentStatus::Good } else { FragmentStatus::Corrupted };
                    ReadoutCommand::Arrived(Arrival {
                        counter,
                        restarted: resynchronised,
                        length: bytes.len() as u32,
                        checksum: evb_core::checksum(&bytes),
                        status,
                        payload: bytes,
                    })
                }
                Some(LiveItem::EndOfRun { .. }) => ReadoutCommand::EndOfData,
                Some(LiveItem::Rejected { count, .. }) => {
                    self.rejected += count;
                    continue;
                }
            };
            self.machine.handle_command(now, command);
        }
        Ok(true)
    }
}

fn source_error(source: SourceId, error: &evb_sources::SourceError) -> NodeError {
    let base = NodeError::new(format!("readout unit {source}: {error}"));
    match error {
        evb_sources::SourceError::Variable { name, .. } => {
            base.hint(format!("set it, as in `{name}=/path/to/data evb run FILE`, or give another folder with `--set data.directory=/path/to/data`"))
        }
        evb_sources::SourceError::Open { .. } => {
            base.hint("data files are looked for in the experiment's data.directory; `--set data.directory=/path/to/data` changes it")
        }
        _ => base,
    }
}

impl Role for Readout {
    fn message(&mut self, now: Time, from: NodeId, message: Message<Bytes>) {
        self.machine.handle_message(now, from, message);
    }

    fn lost(&mut self, now: Time, peer: NodeId) {
        self.machine.handle_command(now, ReadoutCommand::Lost(peer));
    }

    fn order(&mut self, now: Time, order: Order) {
        if order == Order::Start {
            self.meter.start(now, &[0]);
            self.start(now);
        }
    }

    fn work(&mut self, now: Time) -> Result<bool, NodeError> {
        self.meter.pass(now, || [self.machine.counts().sent_bytes]);
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.machine.handle_timeout(now);
        }
        self.handle_events();
        self.read(now)
    }

    fn transmit(&mut self, now: Time, send: &mut dyn FnMut(Transmit<Message<Bytes>>)) {
        if let Some(harm) = &mut self.harm {
            harm.release(now, send);
        }
        while let Some(transmit) = self.machine.poll_transmit() {
            match &mut self.harm {
                None => send(transmit),
                Some(harm) => harm.pass(now, transmit, send),
            }
        }
        self.handle_events();
        let machine = self.machine.poll_timeout().map(|(at, _)| at);
        let held_back = self.harm.as_ref().and_then(Harm::deadline);
        let reading = (!self.reads.is_empty()).then_some(now);
        self.deadline = [machine, held_back, reading].into_iter().flatten().min();
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn report(&self, now: Time) -> Report {
        let counts = self.machine.counts();
        Report::Readout(ReadoutReport {
            through: counts.through.0,
            counts: evb_record::Readout {
                fragments: counts.fragments,
                bytes: counts.bytes,
                sent: counts.sent,
                sent_bytes: counts.sent_bytes,
                busy: counts.busy,
                most_events: counts.most_events,
                most_bytes: counts.most_bytes,
                rejected: self.rejected,
            },
            faults: faults(&counts.faults),
            series: self.meter.series(now, &[counts.sent_bytes]),
        })
    }
}
