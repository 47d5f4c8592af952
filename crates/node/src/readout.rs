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
use evb_record::Finding;
use evb_sources::{FedFile, Feed, LiveItem, LiveSource, OpenOptions, ReadOutcome, Source, SourceSpec};
use evb_transport::{Buffers, Waker};
use findings::Refusals;
use std::collections::VecDeque;

/// An event, and where the source has its fragment.
type Wanted = (EventId, u64);

/// Fragments read from the source in one round: enough to amortise the round, few enough to keep others served.
const READS: usize = 64;
/// Bytes read from the source in one round: a node with large fragments gives signs of life in between.
const READ_BYTES: usize = 8 << 20;

mod findings;

pub(crate) struct Readout {
    machine: ReadoutUnit<Bytes>,
    source_id: SourceId,
    source: Input,
    /// Events to be read that did not fit into a round, and where the source has them.
    reads: VecDeque<Wanted>,
    pool: Pool,
    /// Sources that number their fragments by themselves.
    numbered: usize,
    harm: Option<Harm>,
    refusals: Refusals,
    /// Fragments that a live front end says it has sent.
    announced: Option<u32>,
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
            numbered: plan.building.numbered.len(),
            harm: Harm::new(plan, node),
            refusals: Refusals::default(),
            announced: None,
            deadline: None,
            meter: Meter::default(),
        })
    }

    /// Fragments that the source had, those of them that belong to no event, and the source id that they carry.
    fn origin(&self) -> (u64, u64, Option<u32>) {
        let counts = self.machine.counts();
        let Some(file) = self.recorded() else { return (counts.came, counts.apart, None) };
        let entries = file.entries();
        let before = self.machine.events_before();
        let outside = |event: Option<u64>| event.is_none_or(|event| event as i64 + before < 1);
        let apart = entries.iter().filter(|entry| outside(entry.event)).count();
        (entries.len() as u64, apart as u64, file.source_id().map(u32::from))
    }

    fn recorded(&self) -> Option<&FedFile> {
        match &self.source {
            Input::OnDemand(source) => source.recorded(),
            Input::Live(_) => None,
        }
    }

    /// What people should know of this source.
    fn findings(&self) -> Vec<Finding> {
        let (came, apart, _) = self.origin();
        findings::of(&findings::Seen {
            unit: self.source_id,
            counts: self.machine.counts(),
            came,
            apart,
            live: matches!(self.source, Input::Live(_)),
            numbered: self.numbered,
            announced: self.announced,
            refusals: &self.refusals,
            recorded: self.recorded(),
        })
    }

    fn start(&mut self, now: Time) {
        let Input::OnDemand(source) = &self.source else { return };
        let command = match (source.recorded(), source.feed()) {
            (Some(file), _) => ReadoutCommand::StartRecorded(file.recording()),
            (None, Feed::Finite { events }) => ReadoutCommand::Start { through: EventId(events), last: true },
            (None, Feed::Endless | Feed::Live) => ReadoutCommand::Start { through: EventId(u64::MAX), last: true },
        };
        self.machine.handle_command(now, command);
    }

    fn handle_events(&mut self) {
        take_events(&mut self.machine, &mut self.reads, &mut self.pool);
    }

    fn read(&mut self, now: Time) -> Result<bool, NodeError> {
        let Input::OnDemand(source) = &mut self.source else { return self.take_arrivals(now) };
        let mut bytes = 0;
        for count in 0..READS {
            if bytes >= READ_BYTES {
                break;
            }
            let Some(event) = self.reads.pop_front() else { return Ok(count > 0) };
            let fragment = read_fragment(source, self.source_id, event, &mut self.pool)?;
            bytes += fragment.payload.len();
            self.machine.handle_command(now, ReadoutCommand::Fragment(fragment));
            // A machine that does not know the sizes asks for one fragment after the other.
            take_events(&mut self.machine, &mut self.reads, &mut self.pool);
        }
        Ok(true)
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
                Some(LiveItem::Fragment { counter, resynchronised, mark, good, bytes }) => {
                    let status = if good { FragmentStatus::Good } else { FragmentStatus::Corrupted };
                    ReadoutCommand::Arrived(Arrival {
                        number: counter,
                        restarted: resynchronised,
                        length: bytes.len() as u32,
                        checksum: evb_core::checksum(&bytes),
                        mark,
                        status,
                        payload: bytes,
                    })
                }
                Some(LiveItem::EndOfRun { counter, sent }) => {
                    self.announced = sent.or(self.announced);
                    ReadoutCommand::EndOfData { last: Some(counter) }
                }
                Some(LiveItem::Rejected { kind, count, first }) => {
                    self.refusals.add(kind, count, first);
                    continue;
                }
            };
            self.machine.handle_command(now, command);
        }
        Ok(true)
    }
}

/// Notes what the machine wants to be read, and takes back what it needs no more.
fn take_events(machine: &mut ReadoutUnit<Bytes>, reads: &mut VecDeque<Wanted>, pool: &mut Pool) {
    while let Some(event) = machine.poll_event() {
        match event {
            ReadoutEvent::Read { event, position } => reads.push_back((event, position)),
            ReadoutEvent::Released(payload) => pool.give(payload),
            ReadoutEvent::Orphaned => {}
        }
    }
}

/// Reads the fragment of one event.
fn read_fragment(
    source: &mut Source,
    source_id: SourceId,
    (event, position): Wanted,
    pool: &mut Pool,
) -> Result<Fragment<Bytes>, NodeError> {
    let (mut draft, at) = (pool.draft(), EventId(position));
    let outcome = source.read(at, &mut draft).map_err(|error| source_error(source_id, &error))?;
    let status = match outcome {
        ReadOutcome::Good => FragmentStatus::Good,
        ReadOutcome::Corrupted(_) => FragmentStatus::Corrupted,
        ReadOutcome::Missing => FragmentStatus::Missing,
        ReadOutcome::Oversized { .. } => FragmentStatus::Oversized,
    };
    let payload = draft.finish();
    let (length, checksum) = (payload.len() as u32, evb_core::checksum(&payload));
    Ok(Fragment { event, source: source_id, length, checksum, mark: source.mark(at), status, payload })
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

    fn work(&mut self, now: Time, _calm: bool) -> Result<bool, NodeError> {
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
        let (came, apart, source_id) = self.origin();
        Report::Readout(ReadoutReport {
            through: counts.through.0,
            counts: evb_record::Readout {
                came,
                apart,
                source_id,
                fragments: counts.fragments,
                bytes: counts.bytes,
                sent: counts.sent,
                sent_bytes: counts.sent_bytes,
                repeated: counts.repeated,
                busy: counts.busy,
                most_events: counts.most_events,
                most_bytes: counts.most_bytes,
                rejected: self.refusals.count(),
            },
            faults: faults(&counts.faults),
            findings: self.findings(),
            series: self.meter.series(now, &[counts.sent_bytes]),
        })
    }
}
