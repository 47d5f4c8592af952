//! The readout unit: its machine, and the source of its fragments.

use crate::{
    BufferFill, Injector, Payload, ReadoutReport, SimulatedBundle, SimulatedPayload, Sources, bundle::Bundle,
    meter::Meter,
};
use evb_core::{EventCounter, EventId, Machine, NodeId, Recording, SourceId, Span, Time, Transmit};
use evb_experiment::Plan;
use evb_protocol::{
    Arrival, Fault, FaultCounts, Fragment, FragmentStatus, Message, ReadoutCommand, ReadoutCounts, ReadoutEvent,
    ReadoutMachine,
};
use evb_sources::{Feed, OpenOptions, SizeModel};
use std::{collections::VecDeque, convert::Infallible};

/// A source of fragments.
pub trait FragmentSource<B> {
    /// Why a fragment cannot be read.
    type Error;

    /// How far it goes. Fragments of a live source are never asked for.
    fn feed(&self) -> Feed;

    /// What a recorded source says of its events.
    fn recording(&self) -> Option<Recording>;

    /// Reads the fragment of an event, which the source has at this position.
    ///
    /// # Errors
    /// When the source is broken.
    fn read(&mut self, unit: SourceId, event: EventId, position: u64) -> Result<Fragment<B>, Self::Error>;

    /// A bundle that is being made by sources of this kind.
    type Bundle: Bundle<B>;

    /// An empty bundle, with space for this many fragments, and this many bytes if that is known.
    fn begin_bundle(&mut self, fragments: usize, bytes: usize) -> Self::Bundle;

    /// Reads the fragment of an event into a bundle, behind those that are there.
    ///
    /// # Errors
    /// When the source is broken.
    fn read_into(
        &mut self,
        source: SourceId,
        event: EventId,
        bundle: &mut Self::Bundle,
    ) -> Result<FragmentStatus, Self::Error>;

    /// Takes back a payload that is no longer needed.
    fn release(&mut self, _payload: B) {}

    /// Takes a fragment of a live source that belongs to no event.
    fn set_apart(&mut self, arrival: Arrival<B>, _reason: Fault) {
        self.release(arrival.payload);
    }
}

/// Sizes are a source of fragments without bytes.
impl FragmentSource<SimulatedPayload> for SizeModel {
    type Error = Infallible;

    fn feed(&self) -> Feed {
        Self::feed(self)
    }

    fn recording(&self) -> Option<Recording> {
        Self::recording(self).cloned()
    }

    #[inline]
    fn read(
        &mut self,
        source: SourceId,
        event: EventId,
        position: u64,
    ) -> Result<Fragment<SimulatedPayload>, Infallible> {
        let size = self.size(EventId(position));
        let status = if size.is_some() { FragmentStatus::Good } else { FragmentStatus::Missing };
        let payload = SimulatedPayload::default();
        Ok(Fragment {
            event,
            source,
            length: size.unwrap_or(0),
            checksum: 0,
            mark: None,
            counter: None,
            status,
            payload,
        })
    }

    type Bundle = SimulatedBundle;

    fn begin_bundle(&mut self, fragments: usize, _bytes: usize) -> SimulatedBundle {
        SimulatedBundle::with_capacity(fragments)
    }

    #[inline]
    fn read_into(
        &mut self,
        source: SourceId,
        event: EventId,
        bundle: &mut SimulatedBundle,
    ) -> Result<FragmentStatus, Infallible> {
        let fragment = self.read(source, event, event.0)?;
        bundle.push(&fragment);
        Ok(fragment.status)
    }
}

/// How a source is opened.
pub fn open_options(plan: &Plan, source: SourceId) -> OpenOptions {
    let has_super_fragments = plan.bundling.slice.is_some();
    let largest = if has_super_fragments { plan.building.max_fragment } else { plan.max_fragment() };
    OpenOptions {
        data_directory: plan.data_directory.clone(),
        unit: source.0,
        seed: plan.run.seed,
        max_fragment: u32::try_from(largest.0).unwrap_or(u32::MAX),
    }
}

/// Limits for reading from a source in one round.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// Most fragments.
    pub fragments: usize,
    /// Bytes from which no further fragment is read.
    pub bytes: u64,
    /// Number of events whose fragments may be there before a builder wants them; at least one block.
    pub ahead: u64,
}

impl ReadLimits {
    /// Those of one turn of a node: enough fragments to amortise the turn, few enough to keep others served. A node with large
    /// fragments shows signs of life in between. A little is read ahead of the builders' requests: more would leave the
    /// caches before it is sent.
    pub const TURN: Self = Self { fragments: 64, bytes: 8 << 20, ahead: 64 };

    /// No limit: reading takes no time.
    pub const NONE: Self = Self { fragments: usize::MAX, bytes: u64::MAX, ahead: u64::MAX };
}

/// What a unit has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkDone {
    /// What its machine handled: fragments, or those of whole blocks of events.
    pub blocks: u64,
    /// Fragments, each of those in a block.
    pub fragments: u64,
    /// Bytes of their payload.
    pub bytes: u64,
}

impl WorkDone {
    /// What was done after `before`.
    #[must_use]
    pub const fn since(self, before: Self) -> Self {
        Self {
            blocks: self.blocks - before.blocks,
            fragments: self.fragments - before.fragments,
            bytes: self.bytes - before.bytes,
        }
    }
}

/// A readout unit with its sources and the faults that are injected into what it sends.
pub struct ReadoutUnit<B, S> {
    /// The machine.
    pub machine: ReadoutMachine<B>,
    /// Where fragments come from.
    pub source: Sources<S>,
    id: SourceId,
    injector: Option<Injector>,
    /// Fragments that the machine has asked for, with their places.
    due: VecDeque<(EventId, u64)>,
    meter: Meter,
    /// Fragments of this run that were set apart, by reason.
    apart: FaultCounts,
    /// The counts of the machine at the end of the run before, if this one followed it without a stop.
    before: ReadoutCounts,
    /// Fragments of a live source that waited for their event at the start of this run.
    waited: u64,
}

impl<B: Payload, S: FragmentSource<B>> ReadoutUnit<B, S> {
    /// The readout unit of a node. `live` is given when fragments come by themselves: the event counter of the front end.
    pub fn new(plan: &Plan, node: NodeId, source: Sources<S>, live: Option<EventCounter>) -> Self {
        let id = SourceId(node.0 - plan.building.readout_nodes().first.0);
        Self {
            machine: ReadoutMachine::new(plan.building.clone(), id, live),
            source,
            id,
            injector: Injector::new(plan, node),
            due: VecDeque::new(),
            meter: Meter::default(),
            apart: FaultCounts::default(),
            before: ReadoutCounts::default(),
            waited: 0,
        }
    }

    /// Which of the sources it has.
    pub const fn id(&self) -> SourceId {
        self.id
    }

    /// Begins.
    pub fn start(&mut self, now: Time) {
        self.meter.start(now, &[0]);
        let through = |through, last| ReadoutCommand::Start { through: EventId(through), last };
        let command = match (self.source.recording::<B>(), self.source.feed::<B>()) {
            (_, Feed::Live) => through(0, false),
            (Some(recording), _) => ReadoutCommand::StartRecorded(recording),
            (None, Feed::Finite { events }) => through(events, true),
            (None, Feed::Endless) => through(u64::MAX, true),
        };
        self.machine.handle_command(now, command);
    }

    /// Takes in a message.
    #[inline]
    pub fn handle_message(&mut self, now: Time, from: NodeId, message: Message<B>) {
        match message {
            Message::BlockSize(size) => self.source.change_blocks(size),
            message => self.machine.handle_message(now, from, message),
        }
    }

    /// Marks the time in what it counts. To be called before anything is counted that happens now.
    #[inline]
    pub fn pass(&mut self, now: Time) {
        self.meter.pass(now, || [self.machine.counts().sent_bytes - self.before.sent_bytes]);
    }

    /// Reads what the machine wants to have, within limits; true when it has read something. A machine that does not
    /// know sizes asks for one fragment after the other.
    ///
    /// # Errors
    /// When the source is broken.
    #[inline]
    pub fn read(&mut self, now: Time, limits: ReadLimits) -> Result<bool, S::Error> {
        let (mut count, mut bytes) = (0, 0);
        let ahead = limits.ahead.div_ceil(self.source.block_size());
        while count < limits.fragments && bytes < limits.bytes {
            self.take_events();
            if !self.machine.wants_reading(ahead) {
                break;
            }
            let Some((event, position)) = self.due.pop_front() else { break };
            let fragment = self.source.read(self.id, event, position)?;
            count += 1;
            bytes += u64::from(fragment.length);
            self.machine.handle_command(now, ReadoutCommand::Fragment(fragment));
        }
        Ok(count > 0)
    }

    /// Takes back payloads, notes which fragments are to be read, and passes on those that were set apart.
    pub fn take_events(&mut self) {
        while let Some(event) = self.machine.poll_event() {
            match event {
                ReadoutEvent::Read { event, position } => self.due.push_back((event, position)),
                ReadoutEvent::Released(payload) => self.source.release(payload),
                ReadoutEvent::Apart { arrival, reason } => {
                    self.apart.count(reason);
                    self.source.set_apart(arrival, reason);
                }
                ReadoutEvent::Orphaned => {}
            }
        }
    }

    /// Hands over at most `room` messages of the machine, with the time by which an injected fault holds them back; how
    /// many there were.
    #[inline]
    pub fn transmit(&mut self, room: usize, mut send: impl FnMut(Transmit<Message<B>>, Span)) -> usize {
        let messages = std::iter::from_fn(|| self.machine.poll_transmit()).take(room);
        match &mut self.injector {
            None => messages.map(|transmit| send(transmit, Span::ZERO)).count(),
            Some(injector) => messages.map(|transmit| injector.inject(transmit, &mut send)).count(),
        }
    }

    /// Fragments that were read and their bytes, in all runs.
    pub fn work_done(&self) -> WorkDone {
        let counts = self.machine.counts();
        WorkDone { blocks: counts.fragments, fragments: self.source.count(), bytes: counts.bytes }
    }

    /// The counts of this run. Fragments that waited at its start count as those that came.
    pub fn counts(&self) -> ReadoutCounts {
        let counts = self.machine.counts().since(&self.before);
        ReadoutCounts { came: counts.came + self.waited, ..counts }
    }

    /// Begins the account of the next run. Machine and source go on where they are.
    pub fn next_run(&mut self, now: Time) {
        self.before = *self.machine.counts();
        self.waited = self.machine.waiting();
        self.apart = FaultCounts::default();
        self.meter.start(now, &[0]);
    }

    /// The present report.
    pub fn report(&self, now: Time) -> ReadoutReport {
        let counts = self.counts();
        let mut report = ReadoutReport::of(&counts);
        report.counts.waiting = self.machine.waiting();
        report.counts.apart_by_reason =
            self.apart.seen().map(|(reason, count)| (reason.name().into(), count)).collect();
        let through = |counts: &ReadoutCounts| self.source.events_through(counts.through);
        let through = through(self.machine.counts()).saturating_sub(through(&self.before));
        let (events, bytes) = self.machine.held();
        let held = BufferFill { events, bytes };
        ReadoutReport { through, held, series: self.meter.series(now, &[counts.sent_bytes]), ..report }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use evb_protocol::Config;
    use evb_sources::SourceSpec;

    /// A readout unit that knows of 500 blocks of this many events.
    fn readout(block: u32) -> ReadoutUnit<SimulatedPayload, SizeModel> {
        let mut plan = Plan::new(Config::new(1, 1), SourceSpec::Fixed { size: "2 B".parse().unwrap() });
        plan.bundling.block = block;
        let sources = Sources::open(&plan, 0, |id| SizeModel::open(plan.source(id), &open_options(&plan, id)));
        let node = plan.building.readout_nodes().first;
        let mut readout = ReadoutUnit::new(&plan, node, sources.expect("sizes"), None);
        readout.start(Time::ZERO);
        let triggered = Message::Readout { through: EventId(500) };
        readout.handle_message(Time::ZERO, Config::EVENT_MANAGER, triggered);
        readout
    }

    /// The number of fragments that it has read, after it has read ahead this number of events.
    fn read(readout: &mut ReadoutUnit<SimulatedPayload, SizeModel>, ahead: u64) -> u64 {
        let Ok(_) = readout.read(Time::ZERO, ReadLimits { ahead, ..ReadLimits::NONE });
        readout.machine.counts().fragments
    }

    #[test]
    fn unwanted_fragments_are_read_ahead_only_a_little() {
        let mut readout = readout(1);
        assert_eq!(read(&mut readout, 64), 64);
        // A builder wants one far ahead: all before it are read, too, and none behind it.
        let builder = Config::new(1, 1).builder_nodes().first;
        readout.handle_message(Time::ZERO, builder, Message::Pull([EventId(200)].into()));
        assert_eq!(read(&mut readout, 64), 200);
        assert_eq!(read(&mut readout, u64::MAX), 500);
    }

    #[test]
    fn blocks_are_read_ahead_by_their_events() {
        assert_eq!([1, 16, 60, 64, 100].map(|block| read(&mut readout(block), 64)), [64, 4, 2, 1, 1]);
    }
}
